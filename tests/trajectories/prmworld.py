"""Conversations for the tests of process reward models."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from prchain.core.llm.model import ToolCall
from trajectories.model import Entry, EntryKind


@dataclass(frozen=True)
class Attempt:
    """An attempt of so many steps. `changed` and `failed` name steps of the stage; `guided`: guidance follows each such
    number of them."""

    steps: int
    changed: Collection[int] = ()
    failed: Collection[int] = ()
    guided: int = 0


def stage(*attempts: Attempt, position: int = 1, after: int = 0, query: str = "Mend the parser.") -> list[Entry]:
    """The entries of a stage whose steps are numbered from `after` + 1 on; a comment opens each later attempt."""
    entries: list[Entry] = []

    def add(attempt: int, step: int, kind: EntryKind, content: str, **fields: object) -> None:
        role = {EntryKind.TURN: "assistant", EntryKind.OBSERVATION: "tool"}.get(kind, "user")
        entries.append(Entry(len(entries), position, attempt, step, kind, role, content, **fields))  # type: ignore[arg-type]

    count = 0
    add(1, after, EntryKind.QUERY, query)
    for number, attempt in enumerate(attempts, 1):
        if number > 1:
            add(number, after + count, EntryKind.COMMENT, "Not yet.", details={"comment": "Not yet."})
        for place in range(1, attempt.steps + 1):
            count += 1
            step = after + count
            call = ToolCall(f"c{step}", "bash", json.dumps({"command": f"cat file_{count}.py"}))
            add(number, step, EntryKind.TURN, f"Let me look at file {count}.", tool_calls=(call,))
            add(
                number,
                step,
                EntryKind.OBSERVATION,
                f"def function_{count}():\n    return {count}\n",
                tool_call_id=call.id,
                tool_name="bash",
                error="failed" if count in attempt.failed else None,
                tree=f"tree{count}" if count in attempt.changed else None,
            )
            if attempt.guided and count % attempt.guided == 0 and place < attempt.steps:
                add(number, step, EntryKind.GUIDANCE, f"Guidance after {count}.", details={"observer": "prm"})
    return entries
