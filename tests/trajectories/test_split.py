"""Training and validation: whole groups, the same for the same seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.export.split import related_chains, validation_groups

SIZES = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.integers(1, 50), max_size=12)


@given(SIZES, st.floats(0.01, 0.9), st.integers())
def test_groups_are_whole_and_no_more_than_the_share_where_that_is_possible(
    sizes: dict[str, int], share: float, seed: int
) -> None:
    chosen = validation_groups(sizes, share, seed)
    assert chosen <= sizes.keys()
    assert chosen == validation_groups(dict(reversed(sizes.items())), share, seed)
    if len(sizes) < 2:
        assert not chosen
    else:
        assert chosen and chosen < sizes.keys()
        count = sum(sizes[group] for group in chosen)
        assert count <= share * sum(sizes.values()) or (len(chosen) == 1 and count == min(sizes.values()))


def test_another_seed_chooses_other_groups() -> None:
    sizes = dict.fromkeys(map(str, range(40)), 1)
    assert len({validation_groups(sizes, 0.2, seed) for seed in range(5)}) == 5


def test_no_share_is_no_validation() -> None:
    assert validation_groups({"a": 1, "b": 1}, 0.0, 0) == frozenset()


@pytest.mark.parametrize(
    ("pulls", "together"),
    [
        ({"a": [("r", 1), ("r", 2)], "b": [("r", 2), ("r", 3)], "c": [("r", 9)]}, [{"a", "b"}, {"c"}]),
        ({"a": [("r", 1)], "b": [("r", 2)], "c": [("r", 1), ("r", 2)]}, [{"a", "b", "c"}]),
        ({"a": [("r", 1)], "b": [("other", 1)]}, [{"a"}, {"b"}]),
        ({"a": [], "b": []}, [{"a"}, {"b"}]),
    ],
)
def test_chains_that_share_work_are_one_group(
    pulls: dict[str, list[tuple[str, int]]], together: list[set[str]]
) -> None:
    groups = related_chains(pulls, [(chain, pull) for chain, members in pulls.items() for pull in members])
    found = {name: {chain for chain, group in groups.items() if group == name} for name in groups.values()}
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, together))
