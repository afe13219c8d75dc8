"""Chains are cut where they last too long."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chains.choice.span import within_span


def days(one: int, other: int) -> float:
    return other - one


@given(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=8).map(sorted).map(tuple), st.integers(0, 60))
def test_parts_last_no_longer_lose_no_stage_and_are_cut_at_the_widest_gap(chain: tuple[int, ...], most: int) -> None:
    parts = within_span([chain], days, most, shortest=1)
    assert tuple(number for part in parts for number in part) == chain
    assert all(days(part[0], part[-1]) <= most for part in parts)
    if len(parts) > 1:
        cuts = {(one[-1], other[0]) for one, other in pairwise(parts)}
        assert any(days(*cut) == max(days(*pair) for pair in pairwise(chain)) for cut in cuts)


def test_what_is_left_too_short_is_no_chain() -> None:
    assert within_span([(1, 2, 90), (100, 200)], days, 10, shortest=2) == [(1, 2)]
