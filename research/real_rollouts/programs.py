"""Agent programs of others over a real chain: the model that they ask, and what an export must hold of its replies.

The model decides by what the request's last message says, not by a count. A task: it looks at the files that the
reference changes. What they hold: it applies the reference's patch. A status with each of these files: it hands in.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prchain.core.errors import ScriptUnknown
from prchain.core.git import path_text
from prchain.core.git.trees import TreeStore
from prchain.core.llm.model import Reply, Request
from research.exchanges.script import HAND_IN, calls_of, has_commands_alone, says, shell_of
from research.real_rollouts.script import command
from research.real_rollouts.work import StageWork
from sql.store import Store
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.tokens import TokenEstimate

SEEN, STATUS, LINES = "SEEN", "STATUS", 20
"""What the commands print before a file and before the status, and lines of a file."""
TITLE = "What developers did"

_STATUS = re.compile(rf"^{STATUS}$", re.M)
_TASK = re.compile(r"\bTask ([0-9]+) of [0-9]+:$", re.M)


class StageScript:
    """Answers the requests of an agent program, and keeps the replies that end conversations with tools."""

    def __init__(self, trees: TreeStore, works: Sequence[StageWork]) -> None:
        self.replies: list[Reply] = []
        self._patches, self._paths = {}, {}
        for work in works:
            start, end = work.state.tree, work.tree
            self._paths[work.position] = [path_text(change.path) for change in trees.diff(start, end)]
            self._patches[work.position] = trees.patch_text(start, end)

    def answer(self, request: Request) -> Reply:
        """The reply to a request. Raises `ScriptUnknown` where the last result is none that it expects."""
        assert request.body is not None  # a program's request is sent as it came
        tool = shell_of(request.body.get("tools") or [])
        if tool is None:
            return says(TITLE)
        reply = self._reply(request, tool)
        self.replies.append(reply)
        return reply

    def _reply(self, request: Request, tool: Mapping[str, Any]) -> Reply:
        last, number = _printed(request.messages[-1].content), len(request.messages)
        asked = [match for it in request.messages if it.role == "user" for match in _TASK.findall(it.content)]
        position = int(asked[-1])
        paths = self._paths[position]
        if request.messages[-1].role != "tool":
            looks = [f"echo {SEEN} {shlex.quote(path)}; head -n {LINES} {shlex.quote(path)}" for path in paths]
            return says("I look at what is there.", *calls_of(tool, number, "\n".join(looks)))
        if _STATUS.search(last):
            missing = [path for path in paths if not re.search(rf'^( M| D|\?\?) "?{re.escape(path)}"?$', last, re.M)]
            if missing:
                raise ScriptUnknown(f"the patch of stage {position} left {missing[0]} as it was: {last[-300:]}")
            return says("It is done.", *(calls_of(tool, number, HAND_IN) if has_commands_alone(request) else ()))
        if all(f"{SEEN} {path}" in last for path in paths):
            apply = command(self._patches[position])
            status = f"echo {STATUS}; git -c core.quotePath=off status --short --untracked-files=all"
            return says("I write it.", *calls_of(tool, number, f"{apply}\n{status}"))
        raise ScriptUnknown(f"the result of a look at stage {position} names not all files: {last[-300:]}")

    def export_faults(self, store: Store, folder: Path, say: Callable[[str], None]) -> list[str]:
        """Write the exports for slime and swift. Returns what they have under loss and no reply said, or the other way
        round; empty where each has each reply once, in order, with its calls, and as many tokens."""
        said = [part for reply in self.replies for part in _parts(reply)]
        tokens = sum(map(_tokens, self.replies))
        options, found = ExportOptions(), []
        for name, told in (("slime", _of_slime), ("swift", _of_swift)):
            file = folder / f"{name}.jsonl"
            report = export(store, chosen_format(name, options), options, file, force=True)
            rows = [json.loads(line) for line in file.read_text().splitlines()] if report.files else []
            loss = report.card["loss"] if report.files else {"turns_under_loss": 0, "tokens_under_loss": 0}
            under = f"{loss['turns_under_loss']} turns and {loss['tokens_under_loss']} tokens under loss"
            say(f"{name}, {len(rows)} rows: {under}; {len(self.replies)} replies of {tokens} tokens")
            if [part for row in rows for part in told(row["messages"])] != said:
                found.append(f"{name}: under loss is not what was replied, in {len(rows)} rows")
            if (loss["turns_under_loss"], loss["tokens_under_loss"]) != (len(self.replies), tokens):
                found.append(f"{name}: {under}")
        return found


def _printed(result: str) -> str:
    """What a command printed: some agents tell it within an object."""
    try:
        told = json.loads(result)
    except ValueError:
        return result
    return str(told.get("output", result)) if isinstance(told, dict) else result


def _parts(reply: Reply) -> list[Any]:
    return [reply.text, *({"name": it.name, "arguments": json.loads(it.arguments)} for it in reply.tool_calls)]


def _tokens(reply: Reply) -> int:
    texts = (part for call in reply.tool_calls for part in (call.name, call.arguments))
    return sum(map(TokenEstimate().text, (reply.text, *texts)))


def _of_slime(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    parts = []
    for it in messages:
        if it["step_loss_mask"]:
            functions = [call["function"] for call in it.get("tool_calls") or []]
            parts += [it["content"], *({name: call[name] for name in ("name", "arguments")} for call in functions)]
    return parts


def _of_swift(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [json.loads(it["content"]) if it["role"] == "tool_call" else it["content"] for it in messages if it["loss"]]
