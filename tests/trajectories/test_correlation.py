"""Coverage against resolving: quintiles and coefficients."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.studies.curation.correlation import CoverageBin, correlation, pearson, quintiles, ranks, spearman

_RUNS = st.lists(st.tuples(st.integers(0, 8).map(lambda eighths: eighths / 8), st.booleans()), max_size=40)
_SAMPLES = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=30)


def test_quintiles_go_from_the_lowest_coverage_to_the_highest() -> None:
    runs = [(number / 10, number >= 7) for number in range(10)]
    bins = quintiles(runs)
    assert [(it.runs, it.lowest, it.highest) for it in bins] == [(2, n / 10, (n + 1) / 10) for n in range(0, 10, 2)]
    assert [it.rate for it in bins] == [0, 0, 0, 0.5, 1]


def test_runs_of_one_coverage_in_several_bins_share_their_resolved_ones() -> None:
    bins = quintiles([(0.5, True)] * 5 + [(0.5, False)] * 5)
    assert [(it.runs, it.rate) for it in bins] == [(2, 0.5)] * 5


def test_of_fewer_runs_than_bins_some_bins_are_empty() -> None:
    assert quintiles([(0.2, True)]) == (*[CoverageBin(0, None, None, 0.0, None)] * 4, CoverageBin(1, 0.2, 0.2, 1, 1))


@given(_RUNS, st.randoms(use_true_random=False))
def test_bins_are_equal_sizes_sum_to_all_and_heed_no_order(
    runs: list[tuple[float, bool]], shuffler: random.Random
) -> None:
    result = correlation(runs)
    sizes = [it.runs for it in result.bins]
    assert sum(sizes) == result.runs == len(runs) and max(sizes) - min(sizes) <= 1
    assert math.fsum(it.resolved for it in result.bins) == pytest.approx(result.resolved)
    assert all(it.rate is None or 0 <= it.rate <= 1 for it in result.bins)
    shuffled = list(runs)
    shuffler.shuffle(shuffled)
    again = correlation(shuffled)
    assert (again.bins, again.resolved) == (result.bins, result.resolved)
    for one, other in ((again.pearson, result.pearson), (again.spearman, result.spearman)):
        assert (one is None) == (other is None) and (one is None or one == pytest.approx(other))


def exact(pairs: list[tuple[Fraction, Fraction]]) -> float | None:
    """Pearson's r by its definition, in exact numbers up to the root."""
    mean_x, mean_y = (sum(column, Fraction()) / len(pairs) for column in zip(*pairs, strict=True))
    xx = sum((x - mean_x) ** 2 for x, _ in pairs)
    yy = sum((y - mean_y) ** 2 for _, y in pairs)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return float(xy) / math.sqrt(xx * yy) if xx and yy else None


@given(_SAMPLES)
def test_both_coefficients_are_those_of_their_definitions(pairs: list[tuple[int, int]]) -> None:
    ones, others = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    expected = exact([(Fraction(x), Fraction(y)) for x, y in pairs])
    r = pearson(ones, others)
    assert r is None if expected is None else r == pytest.approx(expected)

    def rank(value: float, sample: list[float]) -> Fraction:
        below, level = sum(it < value for it in sample), sum(it == value for it in sample)
        return Fraction(2 * below + level + 1, 2)

    ranked = [(rank(x, ones), rank(y, others)) for x, y in zip(ones, others, strict=True)]
    assert ranks(ones) == [float(x) for x, _ in ranked]
    expected, rho = exact(ranked), spearman(ones, others)
    assert rho is None if expected is None else rho == pytest.approx(expected)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=30))
def test_no_coverage_gives_a_coefficient_beyond_one(runs: list[tuple[float, bool]]) -> None:
    result = correlation(runs)
    assert all(it is None or -1 <= it <= 1 for it in (result.pearson, result.spearman))


@pytest.mark.parametrize(
    "runs", [[], [(0.3, True)], [(0.1, True)] * 3, [(0.1, True), (0.2, True)], [(0.1, True), (0.1, False)]]
)
def test_where_a_side_does_not_vary_there_is_no_coefficient(runs: list[tuple[float, bool]]) -> None:
    result = correlation(runs)
    assert (result.pearson, result.spearman) == (None, None)


def test_numbers_far_apart_have_a_coefficient_too() -> None:
    assert pearson([0, 1e-300], [0, 1]) == pytest.approx(1)
    assert pearson([-1e308, 1e308, 1e308], [3, 2, 2]) == pytest.approx(-1)


def test_what_is_no_finite_number_or_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        correlation([(math.nan, True)])
    with pytest.raises(ValueError, match="pairs"):
        pearson([1, 2], [1])
