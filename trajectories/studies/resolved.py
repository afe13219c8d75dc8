"""What *resolved* means in every figure, and what was resolved within so many steps. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from environments.suites.outcomes import PASSED
from trajectories.outcomes import ACCEPTED

STEPS = (10, 25, 50, 100, 200, 400)
"""Numbers of steps at which is told what was resolved (daVinci-Agency, figure 7)."""


def is_resolved(tests: str | None, outcome: str) -> bool:
    """Whether a stage is resolved: where its hidden tests passed on the last attempt (`tests` is their grade), or,
    where none ran, where the gate accepted it (`outcome` is the stage's)."""
    return tests == PASSED if tests is not None else outcome == ACCEPTED


def within(taken: Sequence[int], runs: int, limits: Sequence[int]) -> dict[int, float]:
    """The share of so many runs that resolved with a limit's steps or fewer; `taken` holds the steps of those that
    resolved. Empty without runs."""
    return {most: sum(it <= most for it in taken) / runs for most in limits} if runs else {}
