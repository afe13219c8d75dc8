"""Where two trajectories begin to do something else. Pure, from their entries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from trajectories.model import Entry, EntryKind


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent did in one step: the calls of its turn, or its words where it made none."""

    step: int
    position: int
    attempt: int
    words: str

    @property
    def done(self) -> tuple[int, int, str]:
        """What two steps have in common that are alike: stage, attempt and what was done."""
        return self.position, self.attempt, self.words


def acts(entries: Sequence[Entry]) -> list[Act]:
    """The steps of a trajectory, in order. What an agent thought or said beside its calls makes no difference."""
    return [
        Act(entry.step, entry.position, entry.attempt, _words(entry))
        for entry in entries
        if entry.kind is EntryKind.TURN
    ]


def _words(turn: Entry) -> str:
    if not turn.tool_calls:
        return turn.content
    return "\n".join(f"{call.name}: {_arguments(call.arguments)}" for call in turn.tool_calls)


def _arguments(text: str) -> str:
    """Arguments as people read them, the same whatever order they were written in; what is no JSON as it is."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(given, dict):
        return text
    if len(given) == 1 and isinstance(value := next(iter(given.values())), str):
        return value
    return ", ".join(f"{name}={json.dumps(given[name], ensure_ascii=False, sort_keys=True)}" for name in sorted(given))


def shared_steps(one: Sequence[Act], other: Sequence[Act]) -> int:
    """How many steps both begin with."""
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left.done != right.done:
            break
        shared += 1
    return shared


def nearest(acts_: Sequence[Act], earlier: Sequence[Sequence[Act]]) -> tuple[int, int] | None:
    """Of some trajectories, the place of the one that goes the longest way together with another, and how many steps
    that is: the first of equals. None where there is none."""
    shared = [shared_steps(it, acts_) for it in earlier]
    if not shared:
        return None
    return shared.index(max(shared)), max(shared)
