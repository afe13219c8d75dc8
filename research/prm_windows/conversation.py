"""Reading a trajectory file of mini-swe-agent as a conversation of ours: one stage, one attempt.

Two forms are there: commands in fenced blocks of the text, answered by messages of the user; and calls of the tool
``bash``, answered by messages of the tool. What the file holds may be anything: nothing raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from environments.sandboxes.sandbox import WORKDIR
from prchain.core.llm.model import Reply, Role, ToolCall
from prchain.core.storable import clean_text
from research.prm_windows.trees import TreeGuess
from trajectories.agents.scaffolds.turns import NOT_RUN, named_calls
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.observations import SUBMISSION
from trajectories.model import Entry, EntryKind, TurnFault

_SUBMISSIONS = (SUBMISSION, "MINI_SWE_AGENT_FINAL_OUTPUT")
"""The word that submits, and the one of the first versions."""
_OPENINGS = ("```bash", "```mswea_bash_command")
_FENCE = "```"
_CODE = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_OMITTED = re.compile(r"<elided_chars>\n(\d{1,12}) characters elided")
_TASK_END = "</pr_description>"
_TASK_BEGINS = re.compile(
    r"\s*(?:<pr_description>\s*)?(?:Consider the following PR description:|Please solve this issue:)?\s*"
)
_ADVICE = "\n\nYou can execute bash commands"
"""What follows the task where no tag ends it."""


@dataclass(frozen=True)
class RealTrajectory:
    """A trajectory of a file; `name` is the beginning of the blob's id, `instance` the file's name: often that of an
    instance of SWE-bench, ``owner__repository-number``."""

    name: str
    model: str
    entries: tuple[Entry, ...]
    instance: str = ""

    @property
    def turns(self) -> int:
        """How many steps it has."""
        return self.entries[-1].step if self.entries else 0

    @property
    def task(self) -> str:
        """What the agent was asked to do."""
        return next((str(entry.details["query"]) for entry in self.entries if entry.kind is EntryKind.QUERY), "")

    @property
    def submitted(self) -> bool:
        """Whether the agent handed its work in."""
        return any(entry.details.get("submitted") for entry in self.entries)


def read_trajectory(name: str, content: bytes) -> RealTrajectory | None:
    """The trajectory of a file's content; None where it holds none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list):
        return None
    workdir = _inside(value, "info", "config", "environment", "cwd")
    model = _inside(value, "info", "config", "model", "model_name")
    reader = _Reader(workdir if isinstance(workdir, str) and re.match("/.", workdir) else WORKDIR)
    for message in messages:
        if isinstance(message, dict):
            reader.take(message)
    reader.end()
    if not reader.has_query:
        return None
    return RealTrajectory(name, model if isinstance(model, str) and model else "unknown", tuple(reader.entries))


def fenced_commands(text: str) -> tuple[list[str], str]:
    """The contents of the fenced blocks of bash in a reply, and what it says beside them."""
    commands: list[str] = []
    words: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None and line.rstrip().endswith(_OPENINGS):
            words.append(line[: line.rindex(_FENCE)])
            block = []
        elif block is None:
            words.append(line)
        elif line.startswith(_FENCE):
            commands.append("\n".join(block))
            words.append(line[len(_FENCE) :])
            block = None
        else:
            block.append(line)
    return commands, "\n".join(words).strip()


@dataclass(slots=True)
class _Reader:
    """Takes the messages of a file in order."""

    workdir: str
    entries: list[Entry] = field(default_factory=list)
    has_query: bool = False
    _step: int = 0
    _open: list[ToolCall] = field(default_factory=list)
    """Calls of the last turn that have no answer yet."""
    _turn_has_calls: bool = True
    _tree: str | None = None
    """The tree after the step, where it is another."""
    _trees: TreeGuess = field(init=False)

    def __post_init__(self) -> None:
        self._trees = TreeGuess(self.workdir)

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message."""
        role, text = message.get("role"), _text(message.get("content"))
        match role:
            case "system":
                self._add(EntryKind.SYSTEM, "system", text)
            case "assistant":
                self._turn(message, text)
            case "exit":
                if _inside(message, "extra", "exit_status") == "Submitted":
                    self._submit(text)
            case "user" | "tool":
                self._said(message, text)

    def end(self) -> None:
        """Nothing comes any more."""
        self._submit("")
        self._close()

    def _said(self, message: Mapping[str, Any], text: str) -> None:
        if not self._step and not self.has_query:
            self.has_query = True
            details = {"query": _task(text), "workdir": self.workdir}
            self._add(EntryKind.QUERY, "user", text, details=details)
        elif self._open:
            wanted = message.get("tool_call_id")
            call = next((call for call in self._open if call.id == wanted), self._open[0])
            if _code(message, text) is None and _names_submission(call):
                self._submit(text)
            else:
                self._answer(call, text, *_result(message, text))
        elif not self._turn_has_calls:
            self._turn_has_calls = True
            self._add(EntryKind.OBSERVATION, "user", text)
        else:
            # Of a reply that the file does not hold, mostly that it had no form.
            self._add(EntryKind.GUIDANCE, "user", text)

    def _turn(self, message: Mapping[str, Any], text: str) -> None:
        self._close()
        self._step += 1
        calls = _calls(message.get("tool_calls"))
        if not calls:
            commands, rest = fenced_commands(text)
            if len(commands) == 1:
                text, calls = rest, (ToolCall("", Bash.name, json.dumps({"command": commands[0]})),)
        reasoning = _text(message.get("reasoning_content")) or None
        named = named_calls(Reply(text, "", tool_calls=calls), self._step)
        fault = None if named else (TurnFault.NO_CALL if text.strip() else TurnFault.EMPTY)
        self._add(EntryKind.TURN, "assistant", text, reasoning=reasoning, tool_calls=named, error=fault)
        self._open, self._turn_has_calls = list(named), bool(named)

    def _submit(self, text: str) -> None:
        """Answer the call that submits, if one waits for its answer."""
        call = next(filter(_names_submission, self._open), None)
        if call is not None:
            self._answer(call, text, None, {"exit_code": 0, "submitted": True})

    def _answer(self, call: ToolCall, text: str, error: str | None, details: Mapping[str, Any]) -> None:
        self._open.remove(call)
        more = {"tool_call_id": call.id, "tool_name": call.name, "error": error, "details": details}
        self._add(EntryKind.OBSERVATION, "tool", text, **more)
        self._tree = self._trees.after(call, self.entries[-1]) or self._tree

    def _close(self) -> None:
        """End a step: its tree stands on its last observation."""
        if self._tree is not None:
            places = range(len(self.entries) - 1, -1, -1)
            place = next(at for at in places if self.entries[at].kind is EntryKind.OBSERVATION)
            self.entries[place] = replace(self.entries[place], tree=self._tree)
        self._tree, self._open = None, []

    def _add(self, kind: EntryKind, role: Role, content: str, **fields: Any) -> None:
        self.entries.append(Entry(len(self.entries), 1, 1, self._step, kind, role, content, **fields))


def _result(message: Mapping[str, Any], text: str) -> tuple[str | None, dict[str, Any]]:
    """Error and details of an observation, as `trajectories.agents.tools.observations` has them."""
    code = _code(message, text)
    words = _inside(message, "extra", "exception_info")
    if not isinstance(words, str) or not words:
        words = text.partition("</exception>")[0] if text.startswith("<exception>") or code is None else ""
    if "was not executed" in words:
        return NOT_RUN, {}
    omitted = _OMITTED.search(text)
    details: dict[str, Any] = {"omitted": int(omitted[1])} if omitted else {}
    if not words and code is not None and code >= 0:
        return None, {"exit_code": code, **details}
    if "timed out" in words:
        return "timed_out", {"exit_code": None, "timed_out": True, **details}
    return "ended", {"exit_code": None, **details}


def _code(message: Mapping[str, Any], text: str) -> int | None:
    """The return code of a command; None where the message tells none."""
    code = _inside(message, "extra", "returncode")
    if isinstance(code, int):
        return int(code)
    found = _CODE.search(text)
    return int(found[1]) if found else None


def _names_submission(call: ToolCall) -> bool:
    return any(word in call.arguments for word in _SUBMISSIONS)


def _task(text: str) -> str:
    begins = _TASK_BEGINS.match(text)
    rest = text[begins.end() :] if begins else text
    return rest.partition(_TASK_END)[0].partition(_ADVICE)[0].strip()


def _calls(value: Any) -> tuple[ToolCall, ...]:
    calls = []
    for call in value if isinstance(value, list) else ():
        name, arguments = _inside(call, "function", "name"), _inside(call, "function", "arguments")
        if isinstance(name, str) and isinstance(arguments, str):
            calls.append(ToolCall(str(_inside(call, "id") or ""), name, arguments))
    return tuple(calls)


def _text(value: Any) -> str:
    """A content: a text, or a list of parts."""
    if isinstance(value, list):
        value = "\n".join(part for part in (_inside(it, "text") for it in value) if isinstance(part, str))
    return clean_text(value) if isinstance(value, str) else ""


def _inside(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
