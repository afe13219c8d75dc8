"""A column of numbers in a few figures."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from statistics import median

_STEPS = (1, 2, 5)
"""A bin's width is one of these times a power of 10."""


class Distribution:
    """Numbers in the order they were added; 8 bytes each."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self._values = array("d", values)

    def add(self, value: float) -> None:
        """Add a number."""
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def total(self) -> float:
        """The sum."""
        return sum(self._values)

    @property
    def mean(self) -> float | None:
        """The mean; None for no numbers."""
        return self.total / len(self._values) if self._values else None

    def figures(self) -> dict[str, float | None]:
        """Mean, smallest, median, 90th percentile and largest.

        The median of an even number of values is the mean of the middle two; the percentile is the nearest rank, so it
        is always one of the values.
        """
        ordered = sorted(self._values)

        def rank(share: float) -> float | None:
            return _plain(ordered[max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1)]) if ordered else None

        mean = self.mean
        return {
            "mean": None if mean is None else round(mean, 2),
            "min": rank(0.0),
            "median": _plain(median(ordered)) if ordered else None,
            "p90": rank(0.9),
            "max": rank(1.0),
        }

    def histogram(self, most: int = 12) -> list[dict[str, int]]:
        """The counts in at most `most` bins of one round width, both ends inclusive, of whole numbers that are not
        negative; empty bins between others are among them."""
        if not self._values:
            return []
        low, high = int(min(self._values)), int(max(self._values))
        width = next(
            step * 10**power for power in range(20) for step in _STEPS
            if high // (step * 10**power) - low // (step * 10**power) < most
        )  # fmt: skip
        counts = Counter(int(value) // width for value in self._values)
        return [
            {"from": place * width, "to": (place + 1) * width - 1, "count": counts[place]}
            for place in range(low // width, high // width + 1)
        ]


def _plain(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)
