"""A column of numbers in a few figures."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from statistics import median


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


def _plain(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)
