"""Two paired samples compared."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.errors import UsageError
from tests.growth import assert_linear
from trajectories.studies.comparison import Comparison, cliffs_delta, compared

_VALUES = st.lists(st.integers(0, 9).map(float), min_size=1, max_size=30)


@given(_VALUES, _VALUES)
def test_cliffs_delta_is_what_all_pairs_say(ones: list[float], others: list[float]) -> None:
    balance = sum((one > other) - (one < other) for one, other in product(ones, others))
    delta = cliffs_delta(ones, others)
    assert delta == pytest.approx(balance / (len(ones) * len(others)))
    assert delta is not None and cliffs_delta(others, ones) == pytest.approx(-delta)


def test_cliffs_delta_of_nothing_is_not_defined() -> None:
    assert cliffs_delta([], [1.0]) is None and cliffs_delta([1.0], []) is None


def test_cliffs_delta_takes_time_that_grows_with_the_samples() -> None:
    assert_linear(lambda size: [float(n % 997) for n in range(size)], lambda it: cliffs_delta(it, it), 5_000)


def test_shorter_trajectories_have_a_negative_shift_and_a_positive_delta_as_in_the_paper() -> None:
    pytest.importorskip("scipy")
    result = compared([(66.0, 57.0), (70.0, 60.0), (62.0, 54.0)])
    assert (result.plain, result.curated, result.pairs) == (66, 57, 3)
    assert result.shift == pytest.approx(-13.636, abs=1e-3) and result.cliffs_delta == 1
    assert result.mann_whitney_p == pytest.approx(0.1), "2 of the 20 ways to split six values"
    assert result.wilcoxon_p == pytest.approx(0.25), "2 of the 8 ways to sign three differences"


def mann_whitney(ones: Sequence[float], others: Sequence[float]) -> float:
    """The two-sided p value, by counting every way to split the values, of which all are different."""
    values, size = [*ones, *others], len(ones)
    middle = size * len(others) / 2

    def distance(first: Sequence[float]) -> float:
        rest = [value for value in values if value not in first]
        return abs(sum(one > other for one in first for other in rest) - middle)

    ways = list(combinations(values, size))
    return sum(distance(way) >= distance(ones) for way in ways) / len(ways)


def wilcoxon(differences: Sequence[float]) -> float:
    """The two-sided p value, by counting every way to sign the differences, whose sizes are all different."""
    ordered = sorted(differences, key=abs)
    ranked = range(1, len(ordered) + 1)
    middle = sum(ranked) / 2

    def distance(signs: Sequence[bool]) -> float:
        return abs(sum(rank for rank, sign in zip(ranked, signs, strict=True) if sign) - middle)

    own = distance([difference > 0 for difference in ordered])
    ways = list(product([False, True], repeat=len(ordered)))
    return sum(distance(way) >= own for way in ways) / len(ways)


@given(st.permutations(range(10)), st.integers(2, 5))
def test_p_values_of_a_few_pairs_without_ties_are_exact(values: list[int], size: int) -> None:
    pytest.importorskip("scipy")
    plain, curated = [float(2**it) for it in values[:size]], [float(2**it) for it in values[5 : 5 + size]]
    differences = [one - other for one, other in zip(plain, curated, strict=True)]
    result = compared(list(zip(plain, curated, strict=True)))
    assert result.mann_whitney_p == pytest.approx(mann_whitney(plain, curated))
    if len(set(map(abs, differences))) == size:
        assert result.wilcoxon_p == pytest.approx(wilcoxon(differences))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=30))
def test_any_pairs_can_be_compared_with_ties_and_without_spread(pairs: list[tuple[int, int]]) -> None:
    pytest.importorskip("scipy")
    result = compared([(one / 12, other / 12) for one, other in pairs])
    swapped = compared([(other / 12, one / 12) for one, other in pairs])
    assert result.pairs == len(pairs)
    for one, other in ((result.mann_whitney_p, swapped.mann_whitney_p), (result.wilcoxon_p, swapped.wilcoxon_p)):
        assert (one is None) == (other is None)
        assert one is None or (0 <= one <= 1 and one == pytest.approx(other))


def test_equal_differences_of_shares_are_ties_also_where_their_last_bits_differ() -> None:
    pytest.importorskip("scipy")
    pairs = [(0.3, 0.1), (0.4, 0.2), (0.2, 0.4), (0.9, 0.4)]
    assert compared(pairs).wilcoxon_p == compared([(10 * one, 10 * other) for one, other in pairs]).wilcoxon_p


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], Comparison(0, None, None, None, None, None, None)),
        ([(4.0, 3.0)], Comparison(1, 4, 3, -25, None, None, 1)),
        ([(0.0, 0.0)] * 5, Comparison(5, 0, 0, None, None, None, 0)),
        ([(2.0, 2.0)] * 5, Comparison(5, 2, 2, 0, None, None, 0)),
    ],
)
def test_too_few_pairs_or_equal_ones_have_no_p_value_and_need_no_scipy(
    pairs: list[tuple[float, float]], expected: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert compared(pairs) == expected


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(UsageError, match=r"\[studies\]"):
        compared([(1.0, 2.0), (2.0, 4.0)])
