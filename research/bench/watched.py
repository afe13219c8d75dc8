"""Made conversations of an agent, for benches of what watches one: long outputs, and code that is read and edited."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from environments.sandboxes.sandbox import ExecResult
from prchain.core.llm.model import ToolCall
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.observations import command_details, command_observation
from trajectories.model import Entry, EntryKind

QUERY = "Make the parser keep the comments of a file, and test that it does."
OVERVIEW = "A series of changes to how files are read, parsed and written again."
WORKDIR = "/testbed"
TOOLS: Sequence[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": name, "description": "A tool.", "parameters": {"type": "object", "properties": own}},
    }
    for name, own in {
        "bash": {"command": {"type": "string"}},
        EDITOR: {"command": {"type": "string"}, "path": {"type": "string"}},
    }.items()
]

_FILES = 23
"""So many files are looked at in turn; a prime number, so that each is looked at in different ways."""


def worked_stage(steps: int, observation: int, *, seed: int = 0) -> list[Entry]:
    """The entries of a stage of so many steps, none of which hands in; each shows about `observation` characters.

    The agent searches, reads lines, looks at a file, edits it and runs its tests, and comes back to files that it has
    seen. The same at every call with the same seed.
    """
    opening = {"workdir": WORKDIR, "query": QUERY, "overview": OVERVIEW}
    entries = [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "You work in a sandbox."),
        Entry(1, 1, 1, 0, EntryKind.QUERY, "user", f"{OVERVIEW}\n\n<task>{QUERY}</task>", details=opening),
    ]
    for step in range(1, steps + 1):
        entries += _step(entries, step, observation, seed)
    return entries


def _step(entries: Sequence[Entry], step: int, size: int, seed: int) -> list[Entry]:
    file = f"src/reader/part_{step % _FILES}.py"
    path = f"{WORKDIR}/{file}"
    text = source((step + 1_000 * seed) * 7_919, size + 200)
    code, details, tree = 0, {}, None
    match step % 5:
        case 1:
            lines = [f"{file}:{number}:{line}" for number, line in enumerate(text.split("\n"), 1)]
            tool, text = "bash", "\n".join(lines)
            arguments = {
                "command": f"cd {WORKDIR} && grep -rn 'comment' src --include='*.py' | head -{step + 1_000 * seed}"
            }
        case 2:
            tool, arguments = "bash", {"command": f"sed -n '{step},{step + 250 + seed}p' {file}"}
        case 3:
            tool, arguments = EDITOR, {"command": "view", "path": path}
            view = {"path": path, "first": 1, "last": text.count("\n") + 1, "lines": 900, "content": f"hash{step}"}
            details = {"command": "view", "path": path, "view": view}
        case 4:
            tool, tree = EDITOR, f"{step + 1_000 * seed:040x}"
            arguments = {"command": "str_replace", "path": path, "old_str": text[:300], "new_str": text[200:700]}
            details = {"command": "str_replace", "path": path, "before": text[:200]}
        case _:
            tool, code = "bash", 1
            arguments = {
                "command": f"python -m pytest -q tests/reader/test_part_{step % _FILES}.py 2>&1 | tail -{200 + seed}"
            }
            text += "\n== 2 failed, 31 passed in 4.02s =="
    words = (
        f"`{_name(entries)}` is used in the module that was shown; src/reader/part_{(step - 1) % _FILES}.py calls it. "
        f"I look at what it does with a comment at the end of a line. Then the tests of step {step} show whether that "
        "holds for blocks as well, and what is left to do in the writer."
    )
    call = ToolCall(f"call_{step}", tool, json.dumps(arguments))
    if tool == "bash":
        result = ExecResult(code, text.encode())
        text, omitted = command_observation(result, most=size, timeout=60)
        details = command_details(result, omitted)
    else:
        text = text[:size]
    return [
        Entry(len(entries), 1, 1, step, EntryKind.TURN, "assistant", words, tool_calls=(call,)),
        Entry(
            len(entries) + 1,
            1,
            1,
            step,
            EntryKind.OBSERVATION,
            "tool",
            text,
            tool_call_id=call.id,
            tool_name=tool,
            details=details,
            tree=tree,
            cwd=WORKDIR if tool == "bash" else None,
        ),
    ]


def _name(entries: Sequence[Entry]) -> str:
    """A name that the last entry shows."""
    names = re.findall(r"def (\w+_\w+)\(", entries[-1].content)
    return names[-1] if names else "read_comments"


def source(start: int, size: int, package: str = "prchain") -> str:
    """So many characters of a package's code."""
    text = _sources(package)
    start %= len(text) - size
    return text[start : start + size]


@cache
def _sources(package: str) -> str:
    folder = Path(__file__).parents[2] / package
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
