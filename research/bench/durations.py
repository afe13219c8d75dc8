"""Durations of a bench's steps, as wall time and as processor time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter, process_time
from typing import NamedTuple


class Duration(NamedTuple):
    """Milliseconds of wall time, and of this process's CPU time."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: object) -> Duration:
        assert isinstance(other, Duration)
        return Duration(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.wall - other.wall, self.cpu - other.cpu)


def clock() -> Duration:
    """What the clocks show now; the difference of two is a duration."""
    return Duration(perf_counter() * 1000, process_time() * 1000)


def fastest(runs: Sequence[Sequence[Duration]]) -> Duration:
    """The mean over steps; of each step the fastest of the runs counts.

    Other work of the machine makes steps slower and never faster. A step late in a conversation costs more than an
    early one, so each step is compared with itself.
    """
    steps = list(zip(*runs, strict=True))
    return Duration(
        fmean(min(x.wall for x in step) for step in steps), fmean(min(x.cpu for x in step) for step in steps)
    )
