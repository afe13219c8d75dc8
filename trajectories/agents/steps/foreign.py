"""Calls of other agents' tools as calls of ours, for code that reads what an agent ran and edited.

Names and arguments are those of Claude Code, Codex, Gemini CLI, mini-swe-agent, OpenHands, SWE-agent and Terminus, as
Harbor 0.26.0 writes them into ATIF. Calls of other tools stay as they are.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, takewhile
from typing import Any

from prchain.core.llm.model import ToolCall
from trajectories.agents.scaffolds.turns import read_object
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.edits import EDITOR
from trajectories.model import Entry, EntryKind

_SHELLS = frozenset(
    {
        *("bash", "bash_command", "exec_command", "execute_bash", "execute_command", "local_shell"),
        *("run_shell_command", "run_terminal_cmd", "shell", "shell_command", "terminal"),
    }
)
_COMMANDS = ("command", "cmd", "keystrokes")
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "file_editor"})
_FILE_TOOLS = {
    **dict.fromkeys(("edit", "edit_file", "replace"), "str_replace"),
    **dict.fromkeys(("write", "write_file", "create_file"), "create"),
    **dict.fromkeys(("read", "read_file"), "view"),
}
_ARGUMENTS = {
    "path": ("path", "file_path", "absolute_path"),
    "old_str": ("old_string", "old_str"),
    "new_str": ("new_string", "new_str"),
    "file_text": ("content", "file_text"),
}


def as_ours(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries with calls of ours where those of others mean the same. Calls of ours stay as they are.

    Where commands of a step share one screen (Terminus), the last of them has it as its answer, the others nothing.
    """
    given = list(entries)
    for place, entry in enumerate(given):
        if entry.kind is not EntryKind.TURN or not entry.tool_calls:
            yield entry
            continue
        calls = tuple(map(_ours, entry.tool_calls))
        yield entry if calls == entry.tool_calls else replace(entry, tool_calls=calls)
        answers = list(takewhile(lambda it: it.kind is EntryKind.OBSERVATION, islice(given, place + 1, None)))
        screen = next((it for it in answers if it.tool_call_id is None), None)
        answered = {it.tool_call_id for it in answers}
        blind = [call for call in calls if call.name == Bash.name and call.id not in answered]
        if screen is not None:
            for call in blind:
                shown = screen.content if call is blind[-1] else ""
                yield replace(screen, role="tool", content=shown, tool_call_id=call.id, tool_name=call.name)


def is_read(call: ToolCall) -> bool:
    """Whether a call (as `as_ours` gives it) is one whose effect code reads."""
    return call.name in {Bash.name, EDITOR}


def _ours(call: ToolCall) -> ToolCall:
    name = call.name.lower()
    if call.name in {Bash.name, EDITOR}:
        return call
    if name not in _SHELLS and name not in _EDITORS and name not in _FILE_TOOLS:
        return call
    told = read_object(call.arguments)
    if not isinstance(told, Mapping):
        return call
    if name in _SHELLS:
        command = next((text for it in _COMMANDS if (text := _command(told.get(it))) is not None), None)
        return call if command is None else ToolCall(call.id, Bash.name, json.dumps({"command": command}))
    if name in _EDITORS:
        return ToolCall(call.id, EDITOR, call.arguments)
    found = {
        ours: next((text for it in theirs if isinstance(text := told.get(it), str)), None)
        for ours, theirs in _ARGUMENTS.items()
    }
    arguments = {"command": _FILE_TOOLS[name], **{it: text for it, text in found.items() if text is not None}}
    return ToolCall(call.id, EDITOR, json.dumps(arguments)) if "path" in arguments else call


def _command(value: Any) -> str | None:
    """A command's text; of a list of words as Codex has it, the shell's own text, or the words."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    is_script = len(value) == 3 and value[0].rpartition("/")[2] in {"bash", "sh", "zsh"} and value[1].startswith("-")
    return value[2] if is_script else shlex.join(value)
