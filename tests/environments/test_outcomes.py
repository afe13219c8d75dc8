"""Classes of tests by repeated runs, and what a run on an agent's tree says of its work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.outcomes import ClassifiedTests, StateCheck, check_state, classify, grade, removed_upstream
from environments.suites.testlogs import Status

P, F, E, S, M, T, C = (
    Status.passed,
    Status.failed,
    Status.error,
    Status.skipped,
    Status.missing,
    Status.timed_out,
    Status.collected,
)


def runs(*statuses: Status) -> list[dict[str, Status]]:
    return [{} if status is M else {"t": status} for status in statuses]


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ((F, F, F), (P, P, P), "f2p"),
        ((M, M, M), (P, P, P), "f2p"),
        ((E, F, M), (P, P, P), "f2p"),
        ((S, S, S), (P, P, P), "f2p"),
        ((Status.xfail,) * 3, (P, P, P), "f2p"),
        ((P, P, P), (P, P, P), "p2p"),
        ((P, F, P), (P, P, P), "flaky"),
        ((F, F, F), (P, F, P), "flaky"),
        ((F, F, F), (P, M, P), "flaky"),
        ((T, F, F), (P, P, P), "timed_out"),
        ((P, P, P), (P, T, P), "timed_out"),
        ((P, P, P), (M, M, M), "missing"),
        ((P, P, P), (F, F, F), "broken"),
        ((P, P, P), (M, F, M), "broken"),
        ((P, P, P), (Status.xfail,) * 3, "broken"),
        ((M, M, M), (C, C, C), "collected"),
        ((C, C, C), (C, M, C), "collected"),
        ((F, F, F), (S, S, S), "skipped"),
        ((F, F, F), (E, F, F), "failing"),
        ((F, F, F), (M, M, M), "failing"),
        ((F, F, F), (Status.xpass,) * 3, "failing"),
        ((F,), (P,), "f2p"),
    ],
)
def test_a_test_has_the_class_that_its_runs_prove(
    before: tuple[Status, ...], after: tuple[Status, ...], name: str
) -> None:
    classes = classify(runs(*before), runs(*after))
    if all(status is M for status in before + after):
        assert sum(classes.sizes().values()) == 0
    else:
        assert {key for key, size in classes.sizes().items() if size} == {name}


_RUN = st.dictionaries(st.sampled_from(["a", "b b", "c[x]", "ü\n"]), st.sampled_from(list(Status)))


@given(st.lists(_RUN, min_size=1, max_size=3), st.lists(_RUN, min_size=1, max_size=3))
def test_every_test_of_any_run_has_exactly_one_class(
    before: list[dict[str, Status]], after: list[dict[str, Status]]
) -> None:
    classes = classify(before, after)
    sorted_in = [test for name in classes.sizes() for test in getattr(classes, name)]
    assert sorted(sorted_in) == sorted({test for run in before + after for test in run})
    for test in classes.f2p:
        assert all(run.get(test) is P for run in after) and all(run.get(test) is not P for run in before)
    for test in classes.p2p:
        assert all(run.get(test) is P for run in before + after)


@given(st.lists(_RUN, min_size=1, max_size=3), st.lists(_RUN, min_size=1, max_size=3), _RUN, _RUN, st.sets(st.text()))
def test_a_grade_holds_every_gating_test_once_and_passes_only_when_all_pass(
    before: list[dict[str, Status]],
    after: list[dict[str, Status]],
    state: dict[str, Status],
    agent: dict[str, Status],
    earlier: set[str],
) -> None:
    classes = classify(before, after)
    check = check_state(classes, before, state)
    done = grade(classes, check, agent, earlier_f2p=earlier | set(classes.p2p[:1]))
    assert sorted(done.f2p_passed + done.f2p_failed) == list(classes.f2p)
    parts = done.p2p_kept + done.p2p_broken + done.earlier_broken + done.carried_failure
    assert sorted(parts) == list(classes.p2p)
    all_pass = all(agent.get(test) is P for test in classes.f2p + classes.p2p)
    assert (done.outcome == "passed") == (all_pass and not check.state_broken)
    assert set(check.carried_failure) == set(done.carried_failure) | set(done.carried_fixed)


def test_runs_are_needed_on_both_sides() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        classify([], [{}])
    with pytest.raises(ValueError, match="at least one run"):
        classify([{}], [])


CLASSES = ClassifiedTests(f2p=("new",), p2p=("early", "old", "other"), failing=("never",))
BASE = [{"new": F, "early": P, "old": P, "other": P, "never": F}] * 3
FINE = {"new": F, "early": P, "old": P, "other": P, "never": F}


def graded(state: dict[str, Status], agent: dict[str, Status]) -> tuple[str, bool]:
    done = grade(CLASSES, check_state(CLASSES, BASE, FINE | state), FINE | {"new": P} | agent, earlier_f2p=["early"])
    return done.outcome, done.own_fault


@pytest.mark.parametrize(
    ("state", "agent", "outcome"),
    [
        ({}, {}, ("passed", False)),
        ({}, {"new": F}, ("f2p_failed", True)),
        ({}, {"new": S}, ("f2p_failed", True)),
        ({}, {"new": M}, ("f2p_failed", True)),
        ({}, {"old": F}, ("p2p_broken", True)),
        ({}, {"old": S}, ("p2p_broken", True)),
        ({}, {"early": E}, ("earlier_broken", True)),
        ({"old": F}, {"old": F}, ("carried_failure", False)),
        ({"early": F}, {"early": F}, ("carried_failure", False)),
        ({"old": F}, {}, ("passed", False)),
        ({"old": F}, {"old": F, "new": F}, ("f2p_failed", True)),
        ({"old": F}, {"old": F, "other": F}, ("p2p_broken", True)),
        (dict.fromkeys(FINE, E), {}, ("state_broken", False)),
    ],
)
def test_the_outcome_says_what_stands_in_the_way_and_whose_fault_it_is(
    state: dict[str, Status], agent: dict[str, Status], outcome: tuple[str, bool]
) -> None:
    assert graded(state, agent) == outcome


def test_what_the_state_already_does_is_told() -> None:
    check = check_state(CLASSES, BASE, FINE | {"new": P, "old": F})
    assert check == StateCheck(done_early=("new",), carried_failure=("old",), state_broken=False)
    done = grade(CLASSES, check, FINE | {"new": P})
    assert (done.done_early, done.carried_fixed, done.still_failing) == (("new",), ("old",), ("never",))


def test_a_state_is_broken_only_against_tests_that_run_on_the_base() -> None:
    nothing = [{"new": M, "file": E}] * 3
    assert not check_state(ClassifiedTests(f2p=("new",), failing=("file",)), nothing, {"file": E}).state_broken
    assert check_state(ClassifiedTests(f2p=("new",)), [{"new": F}], {"file": E}).state_broken
    assert not check_state(ClassifiedTests(f2p=("new",)), [{"new": F}, {}], {"file": E}).state_broken
    one_runs = check_state(CLASSES, BASE, {"never": F})
    assert not one_runs.state_broken and one_runs.carried_failure == CLASSES.p2p


def test_earlier_tests_that_upstream_removed_are_named() -> None:
    assert removed_upstream(["gone", "early"], CLASSES) == ("gone",)
