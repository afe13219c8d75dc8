"""What is known of one thing that is under way, whoever shows it."""

from __future__ import annotations

import math
from collections.abc import Callable

from prchain.core.errors import PrchainError

Cost = Callable[[], str | None]
"""Says what was paid so far, in words; None where nothing is known of it. May read a database."""

_SECONDS_BETWEEN_SUMS = 2.0
"""The cost is asked for at most once in this time."""


_LONG = 10.0
"""Seconds from which on a line says how long something has taken; a bar says it always."""


class TaskState:
    """Counts, words and cost of one task. Its users lock it, but for `add_up`."""

    def __init__(self, name: str, total: int | None, cost: Cost | None, clock: Callable[[], float]) -> None:
        self.name = name
        self.count = 0
        self.phase = ""
        self.note = ""
        self.units: dict[str, tuple[str, float]] = {}
        """Of each unit under way: what is being done for it, and since when."""
        self.cost = ""
        self.ended = False
        self.began = self.phase_began = clock()
        self._total = total
        self._cost = cost
        self._added_up = -math.inf
        self._clock = clock

    @property
    def total(self) -> int | None:
        """How many there are; never less than were counted, since estimates can be."""
        return None if self._total is None else max(self._total, self.count)

    @property
    def words(self) -> tuple[str, ...]:
        """What is happening just now: the phase, and what is done for each unit."""
        return (*filter(None, (self.phase,)), *(f"{key}: {words}" for key, (words, _) in self.units.items()))

    def aged_words(self) -> tuple[str, ...]:
        """The same, with how long it has taken of what takes long."""
        now = self._clock()
        units = [
            f"{key}: {words}" + (f", {duration_text(now - since)}" if now - since >= _LONG else "")
            for key, (words, since) in self.units.items()
        ]
        return (*filter(None, (self.phase,)), *units)

    def advance(self, count: int) -> None:
        """So many more are done; a count never goes back."""
        self.count += max(count, 0)

    def update(self, total: int | None, note: str | None) -> None:
        """See `prchain.core.console.progress.ProgressTask`."""
        self._total = self._total if total is None else total
        self.note = self.note if note is None else note

    def begin(self, phase: str, total: int | None) -> None:
        """Another phase, which counts anew."""
        self.phase, self.phase_began, self._total, self.count, self.note = phase, self._clock(), total, 0, ""

    def tell(self, unit: str, words: str) -> None:
        """What is being done for a unit; without words nothing more is."""
        if not words:
            self.units.pop(unit, None)
        elif words != self.units.get(unit, ("", 0.0))[0]:
            self.units[unit] = (words, self._clock())

    def add_up(self) -> None:
        """Ask for the cost, where it is time. Nobody holds a lock meanwhile: a database may be slow."""
        now = self._clock()
        if self._cost is None or self.ended or now - self._added_up < _SECONDS_BETWEEN_SUMS:
            return
        self._added_up = now
        try:
            self.cost = self._cost() or ""
        except PrchainError:  # whoever works meets it too, and says so
            return


def duration_text(seconds: float) -> str:
    """Seconds for people: ``40 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 >= 60 else "")
