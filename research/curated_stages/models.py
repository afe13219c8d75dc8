"""The models of a curated run over real stages whose graphs were made from hand-written nodes: one object that answers
every purpose, as a function of the request.

The blinded agent does what the nodes of a stage do, in their order, and wastes every third step on a look that it has
taken before; the second seed of a window begins with a look of its own. The curator does what its target does. The
verifier says yes where the latest step does what a node does, with the quote that was written for the node.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from trajectories.agents.tools.edits import EDITOR
from trajectories.curation.graphs.options import CRITIC, PROPOSER
from trajectories.curation.graphs.shapes import NodeReply
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND

WORKDIR = "/testbed"
_IDLE = {"command": "git status --short"}

Call = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True)
class StageScript:
    """A stage as its models know it: the query by which they recognize it, and its nodes in order."""

    query: str
    nodes: Mapping[str, NodeReply]

    @property
    def steps(self) -> list[Call]:
        """What the agent does, without the looks that it wastes."""
        return [call for node in self.nodes.values() for call in calls_of(node)]


def calls_of(node: NodeReply) -> Iterator[Call]:
    """The calls by which an agent does what a node does; none for what the query tells."""
    action = node.action
    path = f"{WORKDIR}/{action.path}"
    match action.tool:
        case "view":
            yield EDITOR, {"command": "view", "path": path, "view_range": [action.first, action.last]}
        case "bash":
            yield "bash", {"command": _apart(action.command)}
        case "create":
            yield EDITOR, {"command": "create", "path": path, "file_text": action.content}
            if action.command:
                yield "bash", {"command": _apart(action.command)}
        case "str_replace":
            yield (
                EDITOR,
                {"command": "str_replace", "path": path, "old_str": action.old, "new_str": action.new},
            )
        case "think":
            yield "think", {"thought": action.thought}


def _apart(command: str | None) -> str:
    """A command that leaves the session's folder as it was: the nodes' commands begin in the workspace."""
    return f"(cd {WORKDIR}; {command}\n)" if re.search(r"\bcd\b", str(command)) else str(command)


@dataclass
class StagesModel:
    """See the module. Keeps what readers were shown, for the search for leaks."""

    stages: Sequence[StageScript]
    name: str = "scripted"
    prompts: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, request: Request) -> Reply:
        """See `prchain.core.llm.model.Model`."""
        answers = {
            "agent": self._agent,
            CURATOR: self._curator,
            ESTABLISH: self._verifier,
            GROUND: self._judge,
            PROPOSER: self._proposer,
            CRITIC: self._critic,
        }
        with self._lock:
            text = "\n".join(message.content for message in request.messages)
            self.prompts.setdefault(request.purpose, []).append(text)
        return answers[request.purpose](request)

    def _stage(self, text: str) -> StageScript:
        """The stage whose query stands last in a text."""
        return max(self.stages, key=lambda stage: text.rfind(stage.query[:80]))

    def _agent(self, request: Request) -> Reply:
        opening = max(at for at, message in enumerate(request.messages) if "<task>" in message.content)
        stage = self._stage(request.messages[opening].content)
        done = [
            (call.name, json.loads(call.arguments))
            for message in request.messages[opening:]
            for call in message.tool_calls
        ]
        left = list(stage.steps)
        for name, arguments in done:
            if left and (name, arguments) in [(tool, dict(values)) for tool, values in left]:
                left = [(tool, values) for tool, values in left if (tool, dict(values)) != (name, arguments)]
        if request.subject.endswith("/1") and not done:
            return _reply("First a look at what there is.", "bash", {"command": "ls"}, len(done))
        if len(done) % 3 == 0 and left:
            return _reply("", "bash", _IDLE, len(done))
        if not left:
            return _reply("This is done.", "submit", {}, len(done))
        name, arguments = left[0]
        thought = str(arguments.get("thought", "Next."))
        return _reply(thought, name, arguments, len(done))

    def _curator(self, request: Request) -> Reply:
        text = request.messages[-1].content
        target = _fenced(text, "target")[0][1]
        statement = target.split("statement: ")[1].split("\n")[0]
        nodes = [node for stage in self.stages for node in stage.nodes.values()]
        node = next(node for node in nodes if node.statement == statement)
        name, arguments = next(calls_of(node))
        words = str(arguments["thought"]) if name == "think" else "Before I go on, one more look."
        return _reply(words, name, arguments, 0)

    def _verifier(self, request: Request) -> Reply:
        text = request.messages[-1].content
        step = _fenced(text, "step")[0][1]
        findings = []
        for label, shown in _fenced(text, "node [^ ]+"):
            statement = shown.split("statement: ")[1].split("\n")[0]
            name = label.removeprefix("node ")
            node = next(
                stage.nodes[name]
                for stage in self.stages
                if name in stage.nodes and stage.nodes[name].statement == statement
            )
            calls = list(calls_of(node))
            done = bool(calls) and f"call of {calls[-1][0]}: {json.dumps(dict(calls[-1][1]))}" in step
            evidence = _quote(node) if done else ""
            findings.append({"id": name, "established": done, "evidence": evidence, "reason": ""})
        return Reply(json.dumps({"nodes": findings}), self.name, usage=Usage(1, 0, 1))

    def _proposer(self, request: Request) -> Reply:
        text = request.messages[1].content
        first = re.search(r"(?m)^Round 1 of", text) is not None
        nodes = [node.model_dump(exclude_none=True) for node in self._stage(text).nodes.values()] if first else []
        return Reply(json.dumps({"nodes": nodes}), self.name, usage=Usage(1, 0, 1))

    def _critic(self, request: Request) -> Reply:
        names = re.findall(r"(?m)^<<<node (\S+) ", request.messages[1].content)
        verdicts = [{"id": name, "verdict": "keep"} for name in names]
        return Reply(json.dumps({"verdicts": verdicts}), self.name, usage=Usage(1, 0, 1))

    def _judge(self, request: Request) -> Reply:
        return Reply(json.dumps({"valid": True, "reasons": []}), self.name, usage=Usage(1, 0, 1))


def _quote(node: NodeReply) -> str:
    action = node.action
    if action.tool == "think":
        return str(action.thought)
    if action.tool in {"str_replace", "create"} and node.kind == "code_edit":
        return str(action.new or action.content or action.old)
    return node.observation


def _fenced(text: str, label: str) -> list[tuple[str, str]]:
    found = re.findall(rf"(?s)<<<({label}) ([0-9a-f]{{16}})\n(.*?)\n\1 \2>>>", text)
    return [(name, content) for name, _, content in found]


def _reply(words: str, tool: str, arguments: Mapping[str, Any], place: int) -> Reply:
    call = ToolCall(f"call_{place}", tool, json.dumps(dict(arguments)))
    tokens = -(-(len(words) + len(call.arguments)) // 4)
    return Reply(words, "scripted", "tool_calls", tool_calls=(call,), usage=Usage(1, 0, tokens))
