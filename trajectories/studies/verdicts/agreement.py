"""Figures on the quality of a judge: pure functions over scores and known truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from statistics import fmean, median

THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
"""0.5 to 0.95."""


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """A threshold, and its decisions on scored attempts whose truth is known.

    `accepted` is the share that reaches it; `precision` the share of these that are good, `recall` the share of the
    good ones that reach it; each None if it would be a share of nothing.
    """

    threshold: float
    accepted: float | None
    precision: float | None
    recall: float | None


def curve(scored: Sequence[tuple[float, bool]], thresholds: Sequence[float] = THRESHOLDS) -> tuple[ThresholdPoint, ...]:
    """A point for each threshold, from pairs of score and truth."""
    good = sum(truth for _, truth in scored)
    points = []
    for threshold in thresholds:
        reached = [truth for score, truth in scored if score >= threshold]
        right = sum(reached)
        points.append(
            ThresholdPoint(
                threshold, _share(len(reached), len(scored)), _share(right, len(reached)), _share(right, good)
            )
        )
    return tuple(points)


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """The distribution of scores of one kind; figures are None without scores."""

    count: int
    unscored: int
    accepted: float | None
    """Share of the scores that reach the threshold."""
    least: float | None
    median: float | None
    most: float | None


def spread(scores: Iterable[float | None], threshold: float) -> ScoreSpread:
    """The distribution of scores; None is an unscored attempt, which counts as neither accepted nor rejected."""
    values = list(scores)
    known = _scored(values)
    accepted = _share(sum(score >= threshold for score in known), len(known))
    if not known:
        return ScoreSpread(len(values), len(values), None, None, None, None)
    return ScoreSpread(len(values), len(values) - len(known), accepted, min(known), median(known), max(known))


@dataclass(frozen=True, slots=True)
class Agreement:
    """How equal verdicts are that should be equal: over all pairs of scored verdicts on the same case.

    `same` is the share of pairs with the same decision at the threshold, `apart` the mean distance of their scores;
    both None without pairs.
    """

    pairs: int
    same: float | None
    apart: float | None


def agreement(groups: Iterable[Sequence[float | None]], threshold: float) -> Agreement:
    """Agreement within groups of repeated verdicts on one case."""
    pairs = [pair for group in groups for pair in combinations(_scored(group), 2)]
    return _agreement(pairs, threshold)


def agreement_across(
    sides: Iterable[tuple[Sequence[float | None], Sequence[float | None]]], threshold: float
) -> Agreement:
    """Agreement between two ways of asking about one case: each verdict of one is compared with each of the other."""
    pairs = [pair for first, second in sides for pair in product(_scored(first), _scored(second))]
    return _agreement(pairs, threshold)


def grouped(values: Iterable[tuple[Hashable, float | None]]) -> Mapping[Hashable, list[float | None]]:
    """Scores by key, in the given order."""
    found: dict[Hashable, list[float | None]] = defaultdict(list)
    for key, score in values:
        found[key].append(score)
    return found


def _scored(scores: Iterable[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


def _agreement(pairs: Sequence[tuple[float, float]], threshold: float) -> Agreement:
    if not pairs:
        return Agreement(0, None, None)
    same = sum((score >= threshold) == (other >= threshold) for score, other in pairs)
    return Agreement(len(pairs), same / len(pairs), fmean(abs(score - other) for score, other in pairs))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
