"""How much to ask for at once: less after a failure, more again after a while, and never to and fro."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class RequestSize(NamedTuple):
    """One size of request: how many nodes, and how many items of each of their connections."""

    first: int
    inner: int


SWEEP = tuple(RequestSize(first, 30) for first in (20, 10, 5, 2)) + tuple(
    RequestSize(1, inner) for inner in (30, 10, 3, 1)
)
"""Whole pull requests. 20 cost one point; a single one that is still too much is read with shorter connections."""
MORE = tuple(RequestSize(first, 100) for first in (20, 10, 5, 2)) + tuple(
    RequestSize(1, inner) for inner in (100, 30, 10, 3, 1)
)
"""Further pages of connections, several pull requests at once."""
LISTING = tuple(RequestSize(first, 0) for first in (100, 50, 25, 10, 5, 1))
"""Numbers and times of pull requests only."""

PATIENCE = 4


class Pace:
    """Where on a ladder of ever smaller steps a stream is.

    A failure goes one step down. Going up takes `PATIENCE` successes in a row, twice as many after each failure of the
    step above, so that a size that fails for good is tried ever more rarely.
    """

    def __init__(self, ladder: Sequence[RequestSize], remembered: int | None = None) -> None:
        self._ladder = ladder
        self._at = 0
        if remembered is not None:
            fitting = (i for i, step in enumerate(ladder) if step.first <= remembered)
            self._at = next(fitting, len(ladder) - 1)
        self._failures = [0] * len(ladder)
        self._successes = 0
        self._before = len(ladder) - 1

    @property
    def step(self) -> RequestSize:
        """What to ask for now."""
        return self._ladder[self._at]

    def shrink(self) -> bool:
        """Go one step down after a failure; False when there is none."""
        self._failures[self._at] += 1
        self._successes = 0
        if self._at + 1 == len(self._ladder):
            return False
        self._at += 1
        return True

    def single(self) -> bool:
        """Go down to one node, to find the one that fails whatever is asked for; False when there already."""
        if self.step.first == 1:
            return False
        self._before = min(self._at, self._before)
        self._successes = 0
        self._at = next(i for i, step in enumerate(self._ladder) if step.first == 1)
        return True

    def forgive(self) -> None:
        """That one is found and left out: go back to where `single` came from."""
        self._at = min(self._at, self._before)
        self._before = len(self._ladder) - 1

    def succeeded(self) -> None:
        """Count a success; go one step up when there were enough of them."""
        self._successes += 1
        if self._at > 0 and self._successes >= PATIENCE * 2 ** self._failures[self._at - 1]:
            self._at -= 1
            self._successes = 0
