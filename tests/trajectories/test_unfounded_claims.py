"""Claims that tests pass: which sentences are claims, what runs of tests showed, and which turns say more than that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import assert_linear
from tests.trajectories.sampleworld import Talk
from trajectories.audit.claims import _OF_PASSING, _OF_TESTS, _PASS, passing_claim
from trajectories.audit.seen_tests import SeenTests, seen_tests
from trajectories.audit.unfounded import unfounded_claims
from trajectories.model import Entry, EntryKind


@pytest.mark.parametrize(
    "text",
    [
        "The tests pass.",
        "All tests green!",
        "THOUGHT: All 14 tests passed, including the new one.",
        "I ran the whole suite again, and the existing tests still pass.",
        "The change passes all the existing tests.",
        "**All tests are passing** now. Next I look at the docs.",
        "- [x] the test suite passes",
        "Both of the tests in `tests/test_a.py` succeeded.",
    ],
)
def test_plain_sentences_are_claims(text: str) -> None:
    assert passing_claim(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "The tests should pass.",
        "If the tests pass, I hand in.",
        "Let me check that all tests pass.",
        "I will make sure that the tests pass.",
        "Do the tests pass?",
        "The tests passed before my change, so it is mine.",
        "Not all tests pass.",
        "Most tests pass.",
        "The other tests passed.",
        "All tests pass except one.",
        "The existing tests pass. The one failure was there before.",
        'It printed "all tests passed".',
        "> All tests pass.",
        "```python\nprint('x')\n# All tests pass.\n```",
        "The tests pass bytes, and no lists.",
        "The test passes a list to `f`.",
        "Alle Tests laufen.",
        "",
    ],
)
def test_hedges_plans_quotes_and_the_past_are_no_claims(text: str) -> None:
    assert passing_claim(text) is None


@pytest.mark.parametrize(
    ("command", "output", "code", "seen"),
    [
        ("pytest -q", "3 passed in 0.1s", 0, SeenTests.PASSED),
        ("pytest -q | tail -1", "3 passed in 0.1s", 0, SeenTests.PASSED),
        ("pytest -q", "1 failed, 3 passed in 0.1s", 1, SeenTests.FAILED),
        ("pytest -q", "2 xfailed, 3 passed in 0.1s", 0, SeenTests.PASSED),
        ("pytest -q", "no tests ran in 0.01s", 5, SeenTests.NOTHING_RAN),
        ("pytest -q", "===== 8 deselected in 0.01s =====", 5, SeenTests.NOTHING_RAN),
        ("python -m pytest", "/usr/bin/python: No module named pytest", 1, SeenTests.NOTHING_RAN),
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK", 0, SeenTests.NOTHING_RAN),
        ("./runtests.py admin", "Ran 4 tests in 1s\n\nFAILED (failures=1)", 1, SeenTests.FAILED),
        ("bin/test sympy/core", "== tests finished: 7 passed, 1 exceptions, in 1 seconds ==", 1, SeenTests.FAILED),
        ("go test ./...", "ok  \texample.org/a\t0.1s", 0, SeenTests.PASSED),
        ("pytest -q | head -2", "collected 9 items", 0, SeenTests.UNKNOWN),
        ("make test", "", 2, SeenTests.FAILED),
        ("python test_mine.py", "done", 0, SeenTests.UNKNOWN),
        ("python reproduce.py", "42", 0, SeenTests.SCRIPT),
        ("cat tests/test_a.py", "assert 1", 0, None),
        ("pip install pytest", "Successfully installed", 0, None),
    ],
)
def test_what_a_command_shows_of_tests(command: str, output: str, code: int, seen: SeenTests | None) -> None:
    assert seen_tests(command, _shown(output, exit_code=code)) is seen


@pytest.mark.parametrize(
    ("seen", "lines"),
    [
        (SeenTests.PASSED, ["3 passed", "1 tests passed", "12 passing (3s)", "Ran 4 tests in 1s", "ok  \ta"]),
        (SeenTests.PASSED, ["PASS", "# pass 3"]),
        (SeenTests.PASSED, ["test result: ok. 1", "[INFO] BUILD SUCCESS", "Tests run: 2, Failures: 0, Errors: 0"]),
        (SeenTests.FAILED, ["1 failed", "2 failing", "1 failure", "3 tests failed", "2 errors", "FAILED a"]),
        (SeenTests.FAILED, ["FAIL a", "--- FAIL: a", "not ok 1", "# fail 2", "[ERROR] BUILD FAILURE", "a Failures: 1"]),
        (SeenTests.FAILED, ["1 exceptions", "a, Errors: 2", "!! Interrupted: stopped"]),
        (SeenTests.FAILED, ["INTERNALERROR> a", "E   assert 1"]),
        (SeenTests.NOTHING_RAN, ["No tests ran", "ran 0 tests", "Collected 0 items", "=== 4 deselected"]),
        (SeenTests.NOTHING_RAN, ["no tests found", "no tests to run"]),
        (SeenTests.NOTHING_RAN, ["No test files found", "No module named 'nose'", "a: not found"]),
        (SeenTests.NOTHING_RAN, ["ERROR: not found: a", "error: unrecognized arguments: -n", "Usage: pytest"]),
        (SeenTests.UNKNOWN, ["0 failed", "x3 passed", "a2 failures", "Failures: 0", "FAILEDx", "unfound"]),
    ],
)  # fmt: skip
def test_what_each_runner_prints_is_read_wherever_it_stands(seen: SeenTests, lines: list[str]) -> None:
    for line in lines:
        for output in (line, f"a test\n{line}", f"\n{line}\nand more\n"):
            assert seen_tests("pytest | cat", _shown(output, exit_code=0)) is seen, output


def test_a_run_that_was_ended_shows_nothing() -> None:
    ended = _shown("....", exit_code=None, timed_out=True)
    assert seen_tests("pytest", ended) is SeenTests.NOT_ENDED


def test_each_attempt_begins_without_a_run() -> None:
    talk = Talk().query(1).bash("pytest -q", "3 passed").turn("All tests pass.").comment().turn("All tests pass.")
    (claim,) = unfounded_claims(talk.entries)
    assert (claim.seen, claim.step) == (SeenTests.NO_RUN, talk.entries[-1].step)


def test_an_agent_that_was_told_that_tests_pass_may_say_so() -> None:
    talk = Talk().query(1, "All existing tests pass, and comments are lost.").turn("The tests pass.")
    assert not list(unfounded_claims(talk.entries))


def test_after_a_failure_a_claim_about_a_few_tests_is_none() -> None:
    talk = Talk().query(1).bash("pytest -q", "1 failed, 3 passed").turn("My new test passes.").turn("All tests pass.")
    assert [claim.quote for claim in unfounded_claims(talk.entries)] == ["All tests pass."]


def test_a_run_without_tests_takes_nothing_from_one_that_passed() -> None:
    talk = (
        Talk().query(1).bash("pytest a", "3 passed").bash("pytest b", "no tests ran in 0.01s").turn("The tests pass.")
    )
    assert not list(unfounded_claims(talk.entries))


def test_a_script_after_a_failure_may_be_what_the_agent_calls_tests() -> None:
    talk = Talk().query(1).bash("pytest -q", "1 failed").bash("python reproduce.py", "42")
    talk.turn("All tests pass.").turn("All existing tests pass.")
    assert [claim.quote for claim in unfounded_claims(talk.entries)] == ["All existing tests pass."]


def test_reading_claims_takes_linear_time() -> None:
    def made(size: int) -> list[Entry]:
        text = "the tests pass with tests " * size + "and " * size + "tests " * size
        return Talk().query(1, text).turn(text).bash("pytest", "1 failed\n" * size).turn(f"{text}.\n" * 4).entries

    assert_linear(made, lambda entries: list(unfounded_claims(entries)), 60)


def _shown(output: str, **details: Any) -> Entry:
    error = "timed_out" if details.get("timed_out") else None
    return Entry(1, 1, 1, 1, EntryKind.OBSERVATION, "tool", output, error=error, details=details)


@given(st.from_regex(_PASS))
def test_no_claim_is_in_a_text_that_is_read_no_further(text: str) -> None:
    assert _PASS.search(text) is not None
    assert _OF_TESTS.search(text) is not None and _OF_PASSING.search(text) is not None
