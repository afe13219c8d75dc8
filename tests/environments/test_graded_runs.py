"""Results of hidden tests over several runs of one tree."""

from __future__ import annotations

from environments.graded_runs import united
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun


def run(*, copied: tuple[str, ...] = (), **statuses: Status) -> TestRun:
    return TestRun(statuses, "", 0.0, 0, copied=copied)


def test_a_flaky_test_passes_where_one_run_lets_it() -> None:
    first, second = run(a=Status.passed, b=Status.failed), run(a=Status.failed, b=Status.passed)
    assert united(first, second) == {"a": Status.passed, "b": Status.passed}


def test_a_pass_does_not_count_where_the_other_run_lets_its_canary_pass() -> None:
    first = run(a=Status.passed, b=Status.failed, copied=("b",))
    second = run(a=Status.failed, b=Status.passed, copied=("a",))
    assert united(first, second) == {"a": Status.failed, "b": Status.failed}


def test_a_pass_in_both_runs_counts() -> None:
    passed = run(a=Status.passed, copied=("a",))
    assert united(passed, passed) == {"a": Status.passed}


def test_a_test_that_one_run_does_not_name_is_of_the_other() -> None:
    assert united(run(a=Status.error), run(b=Status.failed)) == {"a": Status.error, "b": Status.failed}
    assert united(run(a=Status.passed), run(copied=("a",))) == {"a": Status.missing}
