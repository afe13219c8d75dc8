"""Which candidate of a window is committed (P2T, section 4.2 and appendices E, G and H): the shortest whose
effectiveness clears the floor, else the most effective one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

_TOLERANCE = 1e-9
"""Shares like 1/3 + 1/6 are no exact halves in floating point."""


class FloorUnit(StrEnum):
    """What the floor is compared with."""

    PROGRESS = "progress"
    """Eff: the sum of Prog over the steps, which are shares of the frontier already (appendix I)."""
    NODES = "nodes"
    """Newly established nodes, against the floor times the nodes of the frontier at the window's start (appendix H)."""


class CommitRule(StrEnum):
    """Which of the candidates above the floor is committed."""

    SHORTEST = "shortest"
    RANDOM = "random"
    """Any: the ablation of section 5.4, where all that clear the floor are effective alike."""
    TIED = "tied"
    """Any of the most effective ones: the same, where only equal Eff is."""


class HowChosen(StrEnum):
    """Why a candidate was committed."""

    FLOOR = "floor"
    """The shortest above the floor."""
    FALLBACK = "fallback"
    """None cleared the floor: the most effective one."""
    RANDOM = "random"
    """Any of those above the floor, or of the most effective ones."""
    PLAIN = "plain"
    """The only one: nothing of the graph was left to establish."""


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """What the choice depends on. `seed` says that no step was rewritten; `length` is in the unit that was chosen."""

    number: int
    seed: bool
    effectiveness: float
    nodes: int
    length: int


@dataclass(frozen=True, slots=True)
class FloorRule:
    """The floor of one window; `frontier` is the number of its nodes at the window's start."""

    floor: float
    unit: FloorUnit
    frontier: int

    @property
    def height(self) -> float:
        """The floor in its unit."""
        return self.floor if self.unit is FloorUnit.PROGRESS else self.floor * max(1, self.frontier)

    def clears(self, candidate: ScoredCandidate) -> bool:
        """Whether a candidate reaches the floor."""
        value = candidate.effectiveness if self.unit is FloorUnit.PROGRESS else candidate.nodes
        return value >= self.height - _TOLERANCE


def non_dominated(candidates: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    """The candidates that no other one beats in effectiveness and length both."""

    def beaten(one: ScoredCandidate) -> bool:
        return any(
            other.effectiveness >= one.effectiveness
            and other.length <= one.length
            and (other.effectiveness, -other.length) != (one.effectiveness, -one.length)
            for other in candidates
        )

    return [candidate for candidate in candidates if not beaten(candidate)]


def choose(
    candidates: Sequence[ScoredCandidate], rule: FloorRule, commit: CommitRule = CommitRule.SHORTEST, key: str = ""
) -> tuple[ScoredCandidate, HowChosen]:
    """The candidate to commit, and why. `key` decides a random choice: the same one for the same key.

    Ties go to the shorter, the more effective, the seed, the lower number. Raises `ValueError` without candidates.
    """
    if not candidates:
        raise ValueError("a window without candidates has nothing to commit")
    above = [candidate for candidate in candidates if rule.clears(candidate)]
    if above and commit is not CommitRule.SHORTEST:
        if commit is CommitRule.TIED:
            most = max(candidate.effectiveness for candidate in above)
            above = [candidate for candidate in above if candidate.effectiveness >= most - _TOLERANCE]
        return min(above, key=lambda it: sha256(f"{key}/{it.number}".encode()).digest()), HowChosen.RANDOM
    front = non_dominated(candidates)
    cleared = [candidate for candidate in front if rule.clears(candidate)]
    if cleared:
        return min(cleared, key=_shortest), HowChosen.FLOOR
    most = max(candidate.effectiveness for candidate in front)
    return min((it for it in front if it.effectiveness == most), key=_shortest), HowChosen.FALLBACK


def _shortest(candidate: ScoredCandidate) -> tuple[int, float, bool, int]:
    return candidate.length, -candidate.effectiveness, not candidate.seed, candidate.number
