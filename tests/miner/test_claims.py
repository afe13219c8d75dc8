"""Numbers that commit messages claim, and the branches they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.claims import Claim, claims, merged_branch, source_branch, source_owner
from tests.growth import assert_linear


def numbers(message: str) -> list[tuple[int, str]]:
    return [(claim.number, claim.syntax) for claim in claims(message) if not claim.weak]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Merge pull request #12 from bob/x\n\nTitle", [(12, "merge_subject")]),
        ("Merged pull request GH-12 from bob/x", [(12, "merge_subject")]),
        ("Merge PR #12: title", [(12, "merge_subject")]),
        ("Auto merge of #12 - bob:x, r=ada", [(12, "merge_queue")]),
        ("Rollup merge of #12 - bob:x, r=ada", [(12, "merge_queue")]),
        ("Merge #12 #13", [(12, "merge_queue"), (13, "merge_queue")]),
        ("Merge #12\n\n12: title r=ada", [(12, "merge_queue")]),
        ("Merge #12 r=ada", [(12, "merge_queue")]),
        ("Title (#12)", [(12, "subject_tail")]),
        ("Title (gh-12)", [(12, "subject_tail")]),
        ("Title (GH-12)", [(12, "subject_tail")]),
        ("Title [#12]", [(12, "subject_tail")]),
        ("Title (PR #12) ", [(12, "subject_tail")]),
        ("Title (#11) (#12)", [(12, "subject_tail"), (11, "subject_tail")]),
        ("A title in two\nlines (#12)\n\nbody (#13)", [(12, "subject_tail")]),
        ("\n\nTitle (#12)", [(12, "subject_tail")]),
        ("#12 from bob:x", [(12, "number_from")]),
        ("PR #12: title", [(12, "pull_prefix")]),
        ("Closes #12 from bob/x", [(12, "closes_from")]),
        ("Title\n\nCloses #12 from bob/x and squashes", [(12, "closes_from")]),
        ("Title\n\nPR-URL: https://github.com/o/r/pull/12", [(12, "trailer")]),
        ("Title\n\nPull Request resolved: https://github.com/o/r/pull/12", [(12, "trailer")]),
        ("Title\n\nCOPYBARA_INTEGRATE_REVIEW=https://github.com/o/r/pull/12 from x", [(12, "trailer")]),
        ("Title\n\nGitHub-Pull-Request: #12", [(12, "trailer")]),
        ("Title (#12)\n\nPR-URL: https://github.com/o/r/pull/12", [(12, "subject_tail")]),
        ("Title (#1234567890)", []),
        ("Title (12)", []),
        ("Title\n\nMerge pull request #12 from x/y", []),
        ("Title\n\nText (#12)", []),
        ("Title\n\nCloses #12", []),
        ("Merge branch 'x' into y", []),
        ("", []),
        ("\n", []),
        ("-", []),
    ],
)
def test_what_a_message_claims(message: str, expected: list[tuple[int, str]]) -> None:
    assert numbers(message) == expected


@pytest.mark.parametrize(
    ("message", "weak"),
    [
        ("Fix #12 for good", [12]),
        ("Fix gh-12 and #13", [12, 13]),
        ("Fix a/b#12, x#13, &#14; and /#15", []),
        ("Revert #12 (#13)", [12]),
    ],
)
def test_a_number_inside_a_subject_is_weak(message: str, weak: list[int]) -> None:
    assert [claim.number for claim in claims(message) if claim.weak] == weak


def test_numbers_before_the_last_are_inner() -> None:
    assert claims("Title (#1) (#2)") == [Claim(2, "subject_tail"), Claim(1, "subject_tail", inner=True)]


@given(st.text(alphabet=st.sampled_from("#()[]Mergpulqst 0123456789\n-:/'from"), max_size=200))
def test_each_number_is_claimed_once_whatever_the_text(message: str) -> None:
    found = [claim.number for claim in claims(message)]
    assert len(found) == len(set(found))
    assert all(0 <= number < 10**9 for number in found)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "unit", ["(#1) ", "Merge #1 ", "#1", "closes #1 from x\n", "PR: ", "\n", "(", "Merge branch '"]
)
def test_long_messages_take_time_that_grows_as_they_do(unit: str) -> None:
    assert_linear(lambda size: unit * (size // len(unit)), lambda text: (claims(text), merged_branch(text)), 100_000)


@pytest.mark.parametrize(
    ("message", "branch"),
    [
        ("Merge branch 'dev'", "dev"),
        ("Merge branch 'feature/x' into main", "feature/x"),
        ("Merge branches 'dev'", "dev"),
        ("Merge remote-tracking branch 'origin/dev'", "dev"),
        ("Merge remote-tracking branch 'refs/remotes/origin/a/b'", "a/b"),
        ("Merge branch 'main' of https://example.org/o/r", "main"),
        ("Merge pull request #1 from bob/feature/x", "feature/x"),
        ("Merge pull request #1 from bob", None),
        ("Something else", None),
        ("", None),
    ],
)
def test_the_branch_that_a_merge_names(message: str, branch: str | None) -> None:
    assert merged_branch(message) == branch


def test_the_source_of_a_pull_request() -> None:
    message = "Merge pull request #1 from bob/feature/x\n\nTitle"
    assert (source_owner(message), source_branch(message)) == ("bob", "feature/x")
    assert (source_owner("Title (#1)"), source_branch("Title (#1)")) == (None, None)
