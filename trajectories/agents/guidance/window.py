"""The windows of a stage's work: which steps a process reward model reads, and after which steps (SWE-PRM, 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.model import Entry, EntryKind


@dataclass(frozen=True)
class StepWindow:
    """The last steps of a stage up to one of them. `entries` also hold the comments and the guidance between them."""

    entries: tuple[Entry, ...]
    steps: tuple[Step, ...]

    @property
    def first(self) -> int:
        """`Entry.step` of its first step."""
        return self.steps[0].number

    @property
    def last(self) -> int:
        """The same of its last one."""
        return self.steps[-1].number

    @classmethod
    def of(cls, stage_entries: Sequence[Entry], size: int, last: int | None = None) -> Self | None:
        """The last `size` steps of a stage's entries, up to the step numbered `last`; None where there is no step."""
        entries = [entry for entry in stage_entries if last is None or entry.step <= last]
        steps = steps_of(entries)[-size:]
        if not steps:
            return None
        if last is not None:
            # What was said after the last step is not known yet.
            end = max(entry.ordinal for entry in (steps[-1].turn, *steps[-1].observations))
            entries = [entry for entry in entries if entry.ordinal <= end]
        first = steps[0].turn.ordinal
        return cls(tuple(entry for entry in entries if entry.ordinal >= first), tuple(steps))


def stage_entries(entries: Sequence[Entry], position: int) -> list[Entry]:
    """The entries of one stage, without the system message."""
    return [entry for entry in entries if entry.position == position and entry.kind is not EntryKind.SYSTEM]


def attempts_last_steps(entries: Sequence[Entry]) -> set[int]:
    """The steps with which attempts ended that others follow: nobody was asked after them."""
    last: dict[int, int] = {}
    for entry in entries:
        if entry.kind is EntryKind.TURN:
            last[entry.attempt] = entry.step
    newest = max((entry.attempt for entry in entries), default=0)
    return {step for attempt, step in last.items() if attempt != newest}
