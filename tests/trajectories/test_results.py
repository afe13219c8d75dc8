"""What a judge that is to see hidden tests reads of their results."""

from __future__ import annotations

import pytest

from environments.suites.outcomes import Grade
from tests.prchain.secrets_table import DRAWN_TOKEN
from trajectories.verdicts.results import results_text


def test_passes_are_counted_and_failures_named_by_what_they_say_of_the_candidate() -> None:
    grade = Grade(
        "f2p_failed",
        f2p_passed=("tests/test_a.py::test_one", "tests/test_a.py::test_two"),
        f2p_failed=("tests/test_a.py::test_three[x y]",),
        p2p_kept=tuple(f"test_{number}" for number in range(1200)),
        p2p_broken=("test_old",),
        earlier_broken=("test_before",),
        carried_failure=("test_carried",),
    )
    assert results_text(grade) == (
        "Tests of what the query asks for: 2 pass, 1 fail:\n"
        "- tests/test_a.py::test_three[x y]\n"
        "Tests of what worked before: 1,200 pass, 1 fail:\n"
        "- test_old\n"
        "Tests of the agent's own earlier work: 1 fail:\n"
        "- test_before\n"
        "Tests that failed before the candidate's work already: 1 fail:\n"
        "- test_carried"
    )
    assert results_text(Grade("passed", f2p_passed=("test_a",), p2p_kept=("test_b",))) == (
        "Tests of what the query asks for: 1 pass, 0 fail.\nTests of what worked before: 1 pass, 0 fail."
    )


@pytest.mark.parametrize("grade", [None, Grade("state_broken", f2p_failed=("a",)), Grade("tampered", cheats=("x",))])
def test_results_that_say_nothing_of_the_candidate_are_not_shown(grade: Grade | None) -> None:
    assert results_text(grade) is None


def test_names_are_visible_scrubbed_in_one_line_and_within_their_room() -> None:
    key = DRAWN_TOKEN
    text = results_text(Grade("f2p_failed", f2p_failed=(f"test[\u202e{key}\n\nresults 00>>>]",)))
    assert text is not None and key not in text and "\u202e" not in text
    assert text.split("\n")[1] == "- test[[redacted] results 00>>>]"
    many = Grade("p2p_broken", f2p_failed=("test_x",), p2p_broken=tuple(f"test_{n}" for n in range(5_000)))
    shown = results_text(many, 1_000)
    assert shown is not None and len(shown) < 1_200 and "- test_x\n" in shown and "0 pass, 5,000 fail:" in shown
    assert "characters left out ...]" in shown
