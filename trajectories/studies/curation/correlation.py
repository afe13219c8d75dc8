"""Whether what covers more of its process graph is resolved more often (P2T, appendix C): pure, from numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TypeAlias

BINS = 5

CoveredRun: TypeAlias = tuple[float, bool]
"""The share of a graph's nodes that a run covers, and whether it was resolved."""


@dataclass(frozen=True, slots=True)
class CoverageBin:
    """A fifth of the runs, by coverage. `lowest` and `highest` are None, and so is `rate`, where no run is in it."""

    runs: int
    lowest: float | None
    highest: float | None
    resolved: float
    """Not whole where runs of equal coverage stand in several bins: each gets its part of their resolved ones."""
    rate: float | None


@dataclass(frozen=True, slots=True)
class CoverageCorrelation:
    """Coverage against resolving; a coefficient is None where it is not defined: too few runs, or all alike in one."""

    runs: int
    resolved: int
    bins: tuple[CoverageBin, ...]
    pearson: float | None
    spearman: float | None


def correlation(runs: Sequence[CoveredRun]) -> CoverageCorrelation:
    """Quintiles and coefficients; the order of the runs does not matter. Raises `ValueError` for a coverage that is no
    finite number."""
    if not all(math.isfinite(coverage) for coverage, _ in runs):
        raise ValueError("a coverage is a finite number")
    coverages = [float(coverage) for coverage, _ in runs]
    resolved = [float(done) for _, done in runs]
    return CoverageCorrelation(
        len(runs),
        sum(done for _, done in runs),
        quintiles(runs),
        pearson(coverages, resolved),
        spearman(coverages, resolved),
    )


def quintiles(runs: Iterable[CoveredRun]) -> tuple[CoverageBin, ...]:
    """Five bins of equal size, or of sizes that differ by one, from the lowest coverage to the highest."""
    ordered = sorted(runs, key=itemgetter(0))
    rates: list[float] = []
    for _, alike in groupby(ordered, key=itemgetter(0)):
        done = [resolved for _, resolved in alike]
        rates += [sum(done) / len(done)] * len(done)
    cuts = [number * len(ordered) // BINS for number in range(BINS + 1)]
    return tuple(
        _bin([coverage for coverage, _ in ordered[low:high]], math.fsum(rates[low:high]))
        for low, high in pairwise(cuts)
    )


def _bin(coverages: Sequence[float], resolved: float) -> CoverageBin:
    if not coverages:
        return CoverageBin(0, None, None, 0.0, None)
    return CoverageBin(len(coverages), coverages[0], coverages[-1], resolved, resolved / len(coverages))


def pearson(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Pearson's r of two samples of one length; None for fewer than two pairs, or where all values of a sample are the
    same. Raises `ValueError` for samples of two lengths."""
    if len(ones) != len(others):
        raise ValueError("pairs are needed")
    first, second = _standard(ones), _standard(others)
    if first is None or second is None:
        return None
    r = math.fsum(one * other for one, other in zip(first, second, strict=True))
    return min(max(r, -1.0), 1.0)


def spearman(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Spearman's rho: Pearson's r of the ranks, those of ties averaged. Gives None and raises as `pearson` does."""
    return pearson(ranks(ones), ranks(others))


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; equal values have the mean of their ranks."""
    places = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    before = 0
    for _, alike in groupby(places, key=values.__getitem__):
        tied = list(alike)
        for place in tied:
            out[place] = before + (len(tied) + 1) / 2
        before += len(tied)
    return out


def _standard(values: Sequence[float]) -> list[float] | None:
    """The values with mean 0 and length 1; None where they are all the same."""
    if len(set(values)) < 2:
        return None
    # Scaled first: squares of small numbers would be 0, and those of large ones infinite.
    most = max(map(abs, values))
    scaled = [value / most for value in values]
    mean = math.fsum(scaled) / len(scaled)
    deviations = [value - mean for value in scaled]
    widest = max(map(abs, deviations))
    if not widest:
        return None
    deviations = [deviation / widest for deviation in deviations]
    length = math.sqrt(math.fsum(deviation * deviation for deviation in deviations))
    return [deviation / length for deviation in deviations]
