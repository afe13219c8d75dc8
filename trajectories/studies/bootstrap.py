"""Percentile bootstraps of means over units that are drawn whole (stages, instances). Pure; equal units give equal
intervals."""

from __future__ import annotations

import random
from collections.abc import Sequence

RESAMPLES = 2_000

_OUTSIDE = 0.025
"""The part of the resamples on either side of an interval."""


def mean_intervals(
    columns: Sequence[Sequence[float]], counts: Sequence[int], resamples: int = RESAMPLES
) -> list[tuple[float | None, float | None]]:
    """The bounds of the 95 % interval of each column's mean; None for a single unit.

    A column has the sum of each unit, `counts` how many values it is a sum of. The same units are drawn for all
    columns.
    """
    if len(counts) < 2:
        return [(None, None)] * len(columns)
    generator = random.Random(0)
    places = range(len(counts))
    means: list[list[float]] = [[] for _ in columns]
    for _ in range(resamples):
        drawn = generator.choices(places, k=len(counts))
        count = sum(map(counts.__getitem__, drawn))
        for column, of_column in zip(columns, means, strict=True):
            of_column.append(sum(map(column.__getitem__, drawn)) / count)
    cut = int(resamples * _OUTSIDE)
    return [((ordered := sorted(of_column))[cut], ordered[-1 - cut]) for of_column in means]
