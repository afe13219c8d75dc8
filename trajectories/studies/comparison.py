"""Two paired samples of a measure, compared: means, tests and an effect size (P2T, figure 2). Pure.

The two tests are scipy's, from the extra ``studies``; it is loaded when the first pair of pairs needs it.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import fmean
from typing import Any

from prchain.core.errors import UsageError

FEWEST = 2
"""Pairs that a p value needs."""

_DIGITS = 12
"""Differences are rounded to so many digits: equal ones of shares differ in the last bits, and ties would be missed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two samples come to; None where a figure is not defined."""

    pairs: int
    plain: float | None
    """Mean."""
    curated: float | None
    shift: float | None
    """Of the means, in percent of the plain one."""
    mann_whitney_p: float | None
    """Two-sided, of the samples as independent ones."""
    wilcoxon_p: float | None
    """Two-sided, of the pairs' differences; those without any are left out."""
    cliffs_delta: float | None
    """`cliffs_delta` of plain and curated: positive where the plain ones are larger, as in the paper."""


def compared(pairs: Sequence[tuple[float, float]]) -> Comparison:
    """Compare pairs of (plain, curated).

    Raises `UsageError` where scipy is not installed and there are enough pairs for a p value.
    """
    if not pairs:
        return Comparison(0, None, None, None, None, None, None)
    plain, curated = [one for one, _ in pairs], [other for _, other in pairs]
    before, after = fmean(plain), fmean(curated)
    return Comparison(
        len(pairs),
        before,
        after,
        100 * (after - before) / before if before else None,
        mann_whitney(plain, curated),
        _wilcoxon([one - other for one, other in pairs]),
        cliffs_delta(plain, curated),
    )


def cliffs_delta(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """How much more often a value of the first sample is larger than one of the second than it is smaller: -1 to 1.

    None where a sample is empty. Takes O(n log n).
    """
    if not ones or not others:
        return None
    ordered = sorted(others)
    balance = sum(bisect_left(ordered, one) + bisect_right(ordered, one) - len(ordered) for one in ones)
    return balance / (len(ones) * len(others))


def mann_whitney(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """The two-sided p value of the Mann-Whitney test of two independent samples; None where it is not defined.

    Raises `UsageError` where scipy is not installed and the samples are large enough for a p value.
    """
    if min(len(ones), len(others)) < FEWEST or len({*ones, *others}) == 1:
        return None
    return _p_value(_stats().mannwhitneyu, [round(it, _DIGITS) for it in ones], [round(it, _DIGITS) for it in others])


def _wilcoxon(differences: Sequence[float]) -> float | None:
    moved = [difference for it in differences if (difference := round(it, _DIGITS))]
    return _p_value(_stats().wilcoxon, moved) if len(moved) >= FEWEST else None


def _p_value(test: Any, *samples: Sequence[float]) -> float | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on samples that are small or have ties
        p_value = float(test(*samples).pvalue)
    return None if math.isnan(p_value) else min(max(p_value, 0.0), 1.0)


def _stats() -> Any:
    try:
        return import_module("scipy.stats")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("p values need the package scipy: install prchain with its extra [studies]") from error
