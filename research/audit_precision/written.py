"""Conversations that were written by hand, in a short form:

? a stage's query                 (several lines are one query; after a step they begin a new stage)
$ a command                       | its next line
@ view|create|replace|insert|undo PATH
- a line of the replaced text     + a line of the new one
> a line of the output            (! N: the exit code, where it is not 0)
" what the agent says
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prchain.core.llm.model import Role, ToolCall
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.edits import EDITOR
from trajectories.audit.finding import CheatSign
from trajectories.model import Entry, EntryKind

WORKDIR = "/testbed"
_COMMANDS = {"replace": "str_replace", "undo": "undo_edit"}


@dataclass(frozen=True)
class WrittenCase:
    """A conversation, and the signs that are in it; none where the agent is honest."""

    name: str
    signs: frozenset[CheatSign]
    why: str
    entries: tuple[Entry, ...]
    repository: str | None


def read_cases(path: Path) -> list[WrittenCase]:
    """The cases of a file, in its order."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    return [
        WrittenCase(
            row["name"],
            frozenset(map(CheatSign, row["signs"])),
            row["why"],
            conversation(row["text"]),
            row.get("repository"),
        )
        for row in found
    ]


@dataclass
class _Writing:
    entries: list[Entry] = field(default_factory=list)
    position: int = 0
    step: int = 0
    say: list[str] = field(default_factory=list)
    call: dict[str, Any] | None = None
    output: list[str] = field(default_factory=list)
    code: int = 0

    def add(self, kind: EntryKind, role: Role, content: str, **fields: Any) -> None:
        place = (len(self.entries), max(self.position, 1), 1, self.step)
        self.entries.append(Entry(*place, kind, role, content, **fields))

    def end(self) -> None:
        if self.call is None:
            return
        call, output, code = self.call, "\n".join(self.output), self.code
        self.step += 1
        id_ = f"call_{self.step}"
        name = call.pop("tool")
        arguments = {key: "\n".join(value) if isinstance(value, list) else value for key, value in call.items()}
        turn = ToolCall(id_, name, json.dumps(arguments))
        self.add(EntryKind.TURN, "assistant", " ".join(self.say), tool_calls=(turn,))
        details: Mapping[str, Any] = {"exit_code": code}
        if name == EDITOR:
            details = {key: arguments[key] for key in ("command", "path")}
            if arguments["command"] == "create":
                details = {**details, "before": None}
        shown = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>" if name == Bash.name else output
        self.add(EntryKind.OBSERVATION, "tool", shown, tool_call_id=id_, tool_name=name, details=details)
        self.say, self.call, self.output, self.code = [], None, [], 0


def conversation(text: str) -> tuple[Entry, ...]:
    """The conversation that a text in the short form stands for."""
    writing = _Writing()
    for line in text.strip("\n").split("\n"):
        mark, rest = line[:1], line[2:]
        match mark:
            case "?":
                writing.end()
                last = writing.entries[-1] if writing.entries else None
                if last is not None and last.kind is EntryKind.QUERY:
                    writing.entries[-1] = replace(last, content=f"{last.content}\n{rest}")
                else:
                    writing.position += 1
                    writing.add(EntryKind.QUERY, "user", rest, details={"workdir": WORKDIR})
            case '"':
                writing.end()
                writing.say.append(rest)
            case "$":
                writing.end()
                writing.call = {"tool": Bash.name, "command": [rest]}
            case "@":
                writing.end()
                command, _, path = rest.partition(" ")
                path = path if path.startswith("/") else f"{WORKDIR}/{path}"
                writing.call = {"tool": EDITOR, "command": _COMMANDS.get(command, command), "path": path}
            case _:
                _continued(writing, mark, rest)
    writing.end()
    return tuple(writing.entries)


def _continued(writing: _Writing, mark: str, rest: str) -> None:
    call = writing.call
    if call is None:
        raise ValueError(f"a line without a call: {mark} {rest}")
    match mark:
        case "|":
            call["command"].append(rest)
        case "-":
            call.setdefault("old_str", []).append(rest)
        case "+":
            call.setdefault("file_text" if call["command"] == "create" else "new_str", []).append(rest)
        case ">":
            writing.output.append(rest)
        case "!":
            writing.code = int(rest)
        case _:
            raise ValueError(f"no line of the short form: {mark} {rest}")
