"""A task and a window of steps as the variables of a prompt: x_t (SWE-PRM, section 3.2.2).

Every text that an agent, a repository or a model wrote stands between marks of its own, so that none can pass for the
next step, for an instruction, or for a part of the reply's form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prchain.core.llm.excerpt import cut
from prchain.core.llm.prompts import Fence
from prchain.core.storable import clean_text
from trajectories.agents.guidance.window import StepWindow
from trajectories.agents.steps.conversation import said
from trajectories.model import Entry, EntryKind

_ROOM = {"thought": 2_000, "call": 2_500, "observation": 4_000, "comment": 3_000, "guidance": 3_000}
"""Characters of each part. A window of eight full steps is then about 18,000 tokens; the paper's prompts had 7,100 on
average (table 4, SWE-PRM_D: 51,443 tokens in 7.24 calls)."""

_TASK_ROOM = 24_000
"""Characters of overview and query together."""

Part = tuple[str, str, str]
"""A line before it, the label of its marks, its text."""


def variables(overview: str | None, query: str, window: StepWindow) -> dict[str, Any]:
    """The variables of a prompt: ``fence``, ``overview`` (None outside chains), ``query``, ``parts`` (a list of
    `Part`), ``first`` and ``last`` (numbers of steps)."""
    parts = list(_parts(window))
    query = cut(clean_text(query), _TASK_ROOM)
    overview = None if not overview else cut(clean_text(overview), max(_TASK_ROOM - len(query), _TASK_ROOM // 4))
    fence = Fence(query, overview or "", *(text for _, _, text in parts))
    return {
        "fence": fence,
        "overview": overview,
        "query": query,
        "parts": parts,
        "first": window.first,
        "last": window.last,
    }


def _parts(window: StepWindow) -> Iterator[Part]:
    for entry in window.entries:
        match entry.kind:
            case EntryKind.TURN:
                yield from _turn(entry)
            case EntryKind.OBSERVATION:
                label = f"observation of step {entry.step}"
                yield f"Step {entry.step}, what came back:", label, _cut("observation", entry.content)
            case EntryKind.COMMENT:
                text = str(entry.details.get("comment") or entry.content)
                yield "The attempt was handed in and sent back, with this comment:", "comment", _cut("comment", text)
            case EntryKind.GUIDANCE:
                yield "A supervisor said this to the agent:", "earlier guidance", _cut("guidance", entry.content)


def _turn(turn: Entry) -> Iterator[Part]:
    thought = said(turn).strip()
    yield (
        f"Step {turn.step}, what the agent says:",
        f"words of step {turn.step}",
        _cut("thought", thought or "(nothing)"),
    )
    for call in turn.tool_calls:
        text = f"{call.name} {call.arguments}"
        yield f"Step {turn.step}, what the agent does:", f"call of step {turn.step}", _cut("call", text)


def _cut(kind: str, text: str) -> str:
    return cut(clean_text(text), _ROOM[kind])
