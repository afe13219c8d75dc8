"""The candidates of a window: what each came to, and what the choice among them depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trajectories.agents.scaffolds.scaffold import Record
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.windows.establishing import EstablishedNode
from trajectories.curation.windows.grounding import RewriteFault
from trajectories.curation.windows.options import LengthUnit
from trajectories.curation.windows.progress import Premature, Standing, StepProgress, advanced
from trajectories.curation.windows.selection import ScoredCandidate
from trajectories.model import Ending, Entry

OPEN = "open"
"""It has all steps of its window, and goes on."""
NO_PLACE = "no_place"
"""Of a variant: no step of its seed and no node could be picked."""
NO_REPLY = "no_reply"
"""The curator wrote no step."""
MALFORMED = "malformed"
"""The rewritten step breaks a rule of its form (C3 to C5)."""
UNGROUNDED = "ungrounded"
"""The rewritten step says what the conversation has not shown (Ground)."""

DROPPED = frozenset({NO_PLACE, NO_REPLY, MALFORMED, UNGROUNDED})
"""Variants without steps: they are no candidates."""

GOES_ON = frozenset({OPEN, str(Ending.SUBMITTED)})
"""What can be committed whole."""


@dataclass(frozen=True, slots=True)
class WindowCandidate:
    """One candidate; the fields are those of `sql.tables.CurationCandidate`, whose words describe them."""

    number: int
    seed: int
    outcome: str
    reason: str | None = None
    place: int | None = None
    target: str | None = None
    entries: tuple[Entry, ...] = ()
    progress: tuple[StepProgress, ...] = ()
    established: tuple[EstablishedNode, ...] = ()
    grounded: bool | None = None
    effectiveness: float = 0.0
    length: int = 0
    tree: str | None = None
    rewrite: Mapping[str, Any] | None = None
    faults: tuple[RewriteFault, ...] = ()
    notes: tuple[str, ...] = ()
    verifier_calls: int = 0
    leftovers: tuple[int, ...] = ()
    usd: float | None = 0.0
    seconds: float = 0.0
    records: tuple[Record, ...] = field(default=(), compare=False, repr=False)
    """What observers keep of their own, until the candidate is stored."""

    @property
    def is_seed(self) -> bool:
        """Whether no step was rewritten."""
        return self.number == self.seed

    @property
    def steps(self) -> list[Step]:
        """Its steps."""
        return steps_of(self.entries)

    @property
    def scored(self) -> ScoredCandidate:
        """What the choice depends on."""
        count = sum(len(step.counted) for step in self.progress)
        return ScoredCandidate(self.number, self.is_seed, self.effectiveness, count, self.length)


def length_of(steps: Sequence[Step], unit: LengthUnit) -> int:
    """Len of steps, in the unit."""
    if unit is LengthUnit.STEPS:
        return len(steps)
    own = sum(step.response_tokens for step in steps)
    return own + (sum(step.observation_tokens for step in steps) if unit is LengthUnit.ALL else 0)


def standings(
    graph: ProcessGraph, start: Standing, steps: Sequence[Step], found: Sequence[EstablishedNode], premature: Premature
) -> tuple[list[Standing], list[StepProgress]]:
    """Where a trajectory stands before the first of these steps and after each, and what each came to."""
    places, progress = [start], []
    for step in steps:
        names = [it.node for it in found if it.step == step.number]
        after, came_to = advanced(graph, places[-1], names, premature)
        places.append(after)
        progress.append(came_to)
    return places, progress


def committable(candidates: Sequence[WindowCandidate]) -> list[WindowCandidate]:
    """The candidates of which one is committed: those that go on; where there is none, those that ended otherwise."""
    whole = [candidate for candidate in candidates if candidate.outcome in GOES_ON]
    return whole or [candidate for candidate in candidates if candidate.outcome not in DROPPED]


def entries_before(entries: Sequence[Entry], step: int) -> list[Entry]:
    """The entries before a step."""
    return [entry for entry in entries if entry.step < step]


def first_steps(candidate: WindowCandidate, count: int) -> list[Entry]:
    """The entries of a candidate's first steps."""
    steps = candidate.steps
    return list(candidate.entries) if count >= len(steps) else entries_before(candidate.entries, steps[count].number)


def tree_after(entries: Sequence[Entry], before: str) -> str:
    """The tree after entries that follow the tree `before`."""
    return next((entry.tree for entry in reversed(entries) if entry.tree), before)
