"""Telling copies from own words: subjects without what a copy changes, commits that others brought or landed first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.copies import CommitText, Provenance, copied_commits, has_bullet, line_at, plain_subject
from tests.growth import assert_linear


def commit(
    sha: str, message: str, *, parents: int = 1, author: str = "A", at: str = "2024-01-01T00:00:00Z"
) -> CommitText:
    return CommitText(sha, author, at, parents, message)


@pytest.mark.parametrize(
    "line",
    [
        "Write a parser",
        "* Write a parser (#12)",
        "- Write a parser (#12) (#34)",
        "12. Write a  parser [#12]",
        "  • WRITE A PARSER (gh-12)",
        "Write a parser (PR #12)",
        '"Write a parser"',
        "Write a parser …",
        "Write a parser (12)",
        "Write a parser (#12)   ",
    ],
)
def test_a_subject_is_compared_without_what_copies_change(line: str) -> None:
    assert plain_subject(line) == "write a parser"


@pytest.mark.parametrize("line", ["Write a parser (#12) again", "Write #12", "Write a parser (#x)", "(#12): parse"])
def test_numbers_within_a_subject_stay(line: str) -> None:
    assert plain_subject(line) == line.lower()


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", [" ", "(#1) ", "(#1)", "[1]", "* ", "\t(", "1. ", '"', "#1 "])
def test_the_time_for_a_line_grows_as_it_does(unit: str) -> None:
    def work(middle: str) -> None:
        for line in (f"a{middle}b", f"a{middle}", middle):
            plain_subject(line)
            has_bullet(line)
            line_at(line, len(line) // 2)

    assert_linear(lambda size: unit * size, work, 25_000)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.integers(0, 80))
def test_a_line_is_found_by_a_position_in_it(text: str, position: int) -> None:
    position = min(position, len(text))
    line = line_at(text, position)
    assert "\n" not in line
    assert line in text.split("\n")
    assert plain_subject(plain_subject(text)) == plain_subject(plain_subject(plain_subject(text)))


def test_a_merge_within_a_pull_request_is_no_own_text() -> None:
    own = [commit("a", "Merge branch 'main'\n\n* Write a parser (#1)", parents=2), commit("b", "Own words on #1")]
    provenance = Provenance()
    provenance.add(2, True, None, own)
    assert copied_commits(2, own, provenance) == {"a": "merge_message"}


def test_a_commit_belongs_to_the_pull_request_that_brought_it_first() -> None:
    shared = commit("a", "Work on #9")
    provenance = Provenance()
    provenance.add(1, True, None, [shared])
    provenance.add(2, True, None, [shared, commit("b", "Also on #9")])
    assert copied_commits(1, [shared], provenance) == {}
    assert copied_commits(2, [shared], provenance) == {"a": "shared_commit"}


def test_a_commit_with_author_date_and_subject_of_a_landed_one_is_its_copy() -> None:
    provenance = Provenance()
    provenance.add(1, True, commit("m", "Fix #9 for good (#1)"), [commit("a", "Fix #9 for good")])
    copy = commit("c", "Fix #9 for good (#1)")
    assert copied_commits(2, [copy], provenance) == {"c": "landed_copy"}


@pytest.mark.parametrize(
    "other",
    [
        commit("c", "Fix #9 for good", author="B"),
        commit("c", "Fix #9 for good", at="2024-01-01T00:00:01Z"),
        commit("c", "Fix #9 for better"),
    ],
)
def test_a_commit_that_differs_in_author_date_or_subject_is_no_copy(other: CommitText) -> None:
    provenance = Provenance()
    provenance.add(1, True, commit("m", "Fix #9 for good (#1)"), [commit("a", "Fix #9 for good")])
    assert copied_commits(2, [other], provenance) == {}


def test_a_merge_that_landed_has_no_copies() -> None:
    provenance = Provenance()
    provenance.add(1, True, commit("m", "Bring #9 back", parents=2), [])
    assert copied_commits(2, [commit("c", "Bring #9 back")], provenance) == {}


def test_a_copy_of_what_never_landed_is_no_landed_copy() -> None:
    provenance = Provenance()
    provenance.add(1, False, None, [commit("a", "Fix #9 for good")])
    assert copied_commits(2, [commit("c", "Fix #9 for good")], provenance) == {}


@pytest.mark.parametrize(
    ("landing", "own", "line"),
    [
        ("Write a parser (#1)", [], "* Write a parser (#1)"),
        ("Merge pull request #1 from o/b\n\nWrite a parser", [], "Write a parser"),
        ("Landed by a script (#1)", ["Write a parser"], "- write a parser #1".replace(" #1", "")),
        ("Write a parser that reads everything there is (#1)", [], "* Write a parser that reads everything th…"),
    ],
)
def test_a_pull_request_is_known_by_the_subjects_of_its_landing_and_of_its_only_commit(
    landing: str, own: list[str], line: str
) -> None:
    provenance = Provenance()
    provenance.add(1, True, commit("m", landing), [commit(f"c{i}", message) for i, message in enumerate(own)])
    assert provenance.is_subject_of(1, line)
    assert not provenance.is_subject_of(2, line)


@pytest.mark.parametrize("line", ["Write", "", "(#1)", "Write a parser and a lexer (#1)", "Write a pars"])
def test_short_or_other_lines_are_no_subject(line: str) -> None:
    provenance = Provenance()
    provenance.add(1, True, commit("m", "Write a parser (#1)"), [commit("a", "step one"), commit("b", "step two")])
    assert not provenance.is_subject_of(1, line)


def test_the_subjects_of_many_own_commits_are_not_the_pull_requests_own() -> None:
    provenance = Provenance()
    provenance.add(1, False, None, [commit("a", "The first step"), commit("b", "The second step")])
    assert not provenance.is_subject_of(1, "The first step")
