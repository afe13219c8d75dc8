"""Add, revert, land again: what is left of it."""

from __future__ import annotations

import pytest

from chains.edges.reversals import find_reversals, is_whole
from chains.edges.traces import Trace, trace
from prchain.git import FilePatch, Hunk

ORDER = {number: ("main", number, number) for number in range(1, 9)}


def always(source: int, target: int) -> bool:
    return True


def a_trace(*lines: str) -> Trace:
    return trace([FilePatch("src/a.py", hunks=(Hunk(1, 1, 1, 1, "", lines),))])


def test_a_revert_and_what_it_takes_back_are_both_told() -> None:
    found = find_reversals([(2, 1, "reverts")], ORDER, always)
    assert (found.reverts, found.reverted, found.stands_for) == ({2: 1}, {1: 2}, {})


def test_a_revert_of_a_revert_lets_the_first_change_stand() -> None:
    found = find_reversals([(3, 2, "reverts"), (2, 1, "reverts")], ORDER, always)
    assert (set(found.reverts), found.reverted) == ({2, 3}, {})


@pytest.mark.parametrize("cited", [1, 2])
def test_what_lands_again_stands_for_the_first_whether_it_cites_the_change_or_its_revert(cited: int) -> None:
    found = find_reversals([(2, 1, "reverts"), (3, cited, "relands")], ORDER, always)
    assert (found.reverted, found.stands_for) == ({1: 2}, {1: 3})


def test_a_partial_revert_is_a_change_like_any_other() -> None:
    found = find_reversals([(2, 1, "reverts")], ORDER, lambda source, target: False)
    assert not found.reverts and not found.reverted


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
