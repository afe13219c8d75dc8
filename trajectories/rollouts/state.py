"""The fixed context of a rollout, and its state so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prchain.core.llm.gateway import Gateway
from sql.store import Store
from trajectories.agents.scaffolds.scaffold import ObserverKind, Scaffold
from trajectories.model import Entry
from trajectories.options import RolloutOptions
from trajectories.rollouts.chain_context import ChainContext
from trajectories.rows import StageRow, VerdictRow
from trajectories.verdicts.auditor import Auditor
from trajectories.verdicts.judge import Judge


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """What all stages of one trajectory use."""

    trajectory: str
    sample: int
    store: Store
    gateway: Gateway
    chain_context: ChainContext
    scaffold: Scaffold
    judge: Judge | None
    options: RolloutOptions
    observers: Sequence[ObserverKind] = ()
    losses: int = 0
    """How often in a row a sandbox was lost at the current step."""
    tell: Callable[[str], None] = lambda words: None
    """Reports the progress to people."""
    auditor: Auditor | None = None
    """Reads what would be accepted; None where rules alone do."""


@dataclass
class RolloutState:
    """The rows of a trajectory, kept in step with the database."""

    entries: list[Entry] = field(default_factory=list)
    stages: dict[int, StageRow] = field(default_factory=dict)
    verdicts: dict[tuple[int, int], VerdictRow] = field(default_factory=dict)

    def of(self, position: int) -> list[Entry]:
        """The entries of one stage."""
        return [entry for entry in self.entries if entry.position == position]

    def attempts(self, position: int) -> int:
        """How many attempts at a stage have a verdict."""
        return sum(stage == position for stage, _ in self.verdicts)

    def tree(self, position: int) -> str:
        """The newest stored tree of a stage that has begun."""
        trees = [entry.tree for entry in self.of(position) if entry.tree is not None]
        start = self.stages[position].start_tree
        assert start is not None
        return trees[-1] if trees else start
