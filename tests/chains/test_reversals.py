"""Add, revert, land again: what is left of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains.edges.footprints import PatchFootprint, PatchOverlap, footprint_of
from chains.edges.link import undoes
from chains.edges.reversals import Reversal, Reversals, find_reversals, is_whole
from prchain.core.git import FilePatch, Hunk


def always(source: int, target: int) -> bool:
    return True


def a_trace(*lines: str) -> PatchFootprint:
    return footprint_of([FilePatch("src/a.py", hunks=(Hunk(1, 1, 1, 1, "", lines),))])


def come_to(*turns: tuple[int, int] | Reversal, whole: Callable[[int, int], bool] = always) -> Reversals:
    """What turns come to; a pair is a revert."""
    return find_reversals([turn if isinstance(turn, Reversal) else Reversal(*turn, "reverts") for turn in turns], whole)


def test_a_revert_and_what_it_takes_back_are_both_told() -> None:
    found = come_to((2, 1))
    assert (found.reverts, found.reverted, found.stands_for) == ({2: 1}, {1: 2}, {})


def test_a_revert_of_a_revert_lets_the_first_change_stand() -> None:
    found = come_to((2, 1), (3, 2))
    assert (set(found.reverts), set(found.reverted)) == ({2, 3}, {2})


def test_a_revert_of_a_revert_of_a_revert_takes_the_first_change_out_again() -> None:
    found = come_to((2, 1), (3, 2), (4, 3))
    assert set(found.reverted) == {1, 3}


def test_one_that_takes_two_back_is_remembered_for_both() -> None:
    assert set(come_to((3, 1), (3, 2)).reverted) == {1, 2}
    assert set(come_to((3, 1), (3, 2), (4, 3)).reverted) == {3}


def test_a_revert_on_a_release_branch_leaves_the_trunk_as_it_is() -> None:
    found = come_to(Reversal(3, 1, "reverts", counts=False))
    assert (found.reverts, found.reverted) == ({3: 1}, {})


@pytest.mark.parametrize("cited", [1, 2])
def test_what_lands_again_stands_for_the_first_whether_it_cites_the_change_or_its_revert(cited: int) -> None:
    found = come_to((2, 1), Reversal(3, cited, "relands"))
    assert (found.reverted, found.stands_for) == ({1: 2}, {1: 3})


def test_of_several_landings_the_last_that_stands_stands_for_the_first() -> None:
    found = come_to((2, 1), Reversal(3, 1, "relands"), (4, 3), Reversal(5, 3, "relands"))
    assert found.stands_for == {1: 5, 3: 5}
    gone = come_to((2, 1), Reversal(3, 1, "relands"), (4, 3))
    assert gone.stands_for == {}


def test_a_partial_revert_is_a_change_like_any_other() -> None:
    found = come_to((2, 1), whole=lambda source, target: False)
    assert not found.reverts and not found.reverted


@given(st.lists(st.tuples(st.integers(2, 9), st.integers(1, 8)).filter(lambda pair: pair[0] > pair[1]), max_size=12))
def test_any_history_comes_to_an_end(turns: list[tuple[int, int]]) -> None:
    found = come_to(*sorted(turns))
    assert set(found.reverted) <= {target for _, target in turns}


CHANGE = a_trace("+first_new_statement = 1", "+second_new_statement = 2", "-ancient_statement = 0")


@pytest.mark.parametrize(
    ("subject", "lines", "whole"),
    [
        ('Revert "Round amounts"', ("-first_new_statement = 1",), True),
        ("Revert #17 (#18)", ("+something_else_entirely = 1",), True),
        ("Go back", ("-first_new_statement = 1", "-second_new_statement = 2", "+ancient_statement = 0"), True),
        ("Partially revert #17", ("-first_new_statement = 1",), False),
        ("Revert the unintended change of the order", ("-first_new_statement = 1", "+third_statement_x = 1"), False),
        ("Rework", ("-first_new_statement = 1", *(f"+quite_other_statement_{n} = {n}" for n in range(9))), False),
    ],
)
def test_whole_is_what_says_so_or_mostly_undoes(subject: str, lines: tuple[str, ...], whole: bool) -> None:
    assert is_whole(subject, a_trace(*lines), CHANGE) is whole


@pytest.mark.parametrize(
    ("taken_away", "restored", "is_said", "is_undone"),
    [
        (0.9, 0.9, False, True),
        (0.9, 0.1, False, False),
        (0.9, 0.1, True, True),
        (0.3, 0.9, True, False),
    ],
)
def test_work_that_reverts_another_beside_its_own_takes_it_back(
    taken_away: float, restored: float, is_said: bool, is_undone: bool
) -> None:
    """structlog#680: "Revert #657" is one of its commits, and nothing of #657 is left."""
    overlap = PatchOverlap(taken_away=taken_away, restored=restored)
    assert undoes(overlap, is_said=is_said) is is_undone
    assert not undoes(None, is_said=is_said)
