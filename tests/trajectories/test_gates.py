"""Gates: every combination of answers of judge and tests, against the definitions."""

from __future__ import annotations

from itertools import product

import pytest

from environments.suites import outcomes
from environments.suites.outcomes import Grade
from trajectories.options import Gate
from trajectories.verdicts.gates import Decision, audited, decide, grade_accepts
from trajectories.verdicts.judge import Judgement

THRESHOLD = 0.8
OUTCOMES = (
    outcomes.PASSED,
    outcomes.STATE_BROKEN,
    outcomes.F2P_FAILED,
    outcomes.P2P_BROKEN,
    outcomes.EARLIER_BROKEN,
    outcomes.CARRIED_FAILURE,
)
JUDGES: list[tuple[Judgement | None, bool | None]] = [
    (None, None),
    (Judgement(None, None, "bad_reply", usd=None), None),
    (Judgement(0.0, "empty"), False),
    (Judgement(0.79999, "nearly"), False),
    (Judgement(0.8, "just so"), True),
    (Judgement(1.0, "fine"), True),
]
GRADES: list[tuple[Grade | None, bool | None]] = [
    (None, None),
    *((Grade(name), None if name == outcomes.STATE_BROKEN else name == outcomes.PASSED) for name in OUTCOMES),
]
RULES = {
    Gate.JUDGE: lambda judge, tests: judge,
    Gate.TESTS: lambda judge, tests: tests,
    Gate.BOTH: lambda judge, tests: judge and tests,
    Gate.EITHER: lambda judge, tests: judge or tests,
}


def expected_decision(gate: Gate, judge: bool | None, tests: bool | None) -> bool | None:
    """The decision if it is the same for every possible value of the missing answers; else None."""
    decisions = {
        RULES[gate.voices](*filled)
        for filled in product(*((True, False) if voice is None else (voice,) for voice in (judge, tests)))
    }
    return decisions.pop() if len(decisions) == 1 else None


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize(("judgement", "judge"), JUDGES)
@pytest.mark.parametrize(("grade", "tests"), GRADES)
def test_a_gate_decides_what_its_name_says_and_is_silent_only_where_a_voice_is_missing(
    gate: Gate, judgement: Judgement | None, judge: bool | None, grade: Grade | None, tests: bool | None
) -> None:
    decision = decide(gate, THRESHOLD, judgement, grade)
    assert decision.accepted is expected_decision(gate, judge, tests)
    assert decide(str(gate), THRESHOLD, judgement, grade) == decision


@pytest.mark.parametrize("gate", Gate)
def test_the_reason_says_what_each_voice_of_the_gate_said_and_no_other(gate: Gate) -> None:
    reason = decide(gate, 0.8, Judgement(0.75, "no"), Grade(outcomes.F2P_FAILED)).reason
    assert ("judge: 0.75 < 0.8" in reason) == (gate.voices is not Gate.TESTS)
    assert ("tests: f2p_failed" in reason) == (gate.voices is not Gate.JUDGE)
    assert "\n" not in reason


def test_the_reason_names_what_is_missing() -> None:
    assert decide("both", 0.8, Judgement(None, None, "context_too_long"), None) == Decision(
        None, "judge: unscored (context_too_long); tests: none ran"
    )
    assert decide("judge", 0.8, None, None).reason == "judge: not asked"
    assert decide("either", 0.8, Judgement(0.8, "x"), Grade("passed")).reason == "judge: 0.8 >= 0.8; tests: passed"


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        decide("judge", threshold, None, None)


def test_a_gate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody"):
        decide("nobody", 0.8, None, None)


@pytest.mark.parametrize(("judgement", "judge"), JUDGES)
def test_without_a_threshold_every_verdict_passes_and_what_is_none_still_does_not(
    judgement: Judgement | None, judge: bool | None
) -> None:
    assert decide("judge", 0.0, judgement, None).accepted is (None if judge is None else True)


@pytest.mark.parametrize("gate", [Gate.BOTH, Gate.EITHER])
@pytest.mark.parametrize(("judgement", "judge"), JUDGES)
def test_where_all_f2p_passed_before_tests_say_nothing_and_a_judge_decides_alone(
    gate: Gate, judgement: Judgement | None, judge: bool | None
) -> None:
    early = Grade(outcomes.PASSED, f2p_passed=("new",), done_early=("new",))
    assert decide(gate, THRESHOLD, judgement, early).accepted is judge
    assert decide(Gate.TESTS, THRESHOLD, judgement, early).accepted is None
    assert decide(
        Gate.TESTS, THRESHOLD, None, Grade(outcomes.PASSED, f2p_passed=("a", "b"), done_early=("a",))
    ).accepted
    broke = Grade(outcomes.P2P_BROKEN, f2p_passed=("new",), done_early=("new",))
    assert decide(Gate.TESTS, THRESHOLD, None, broke).accepted is False, "what it broke is its own"


def test_every_outcome_of_a_grade_is_known_here() -> None:
    assert {name: grade_accepts(Grade(name)) for name in OUTCOMES} == {
        "passed": True,
        "state_broken": None,
        "f2p_failed": False,
        "p2p_broken": False,
        "earlier_broken": False,
        "carried_failure": False,
    }


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize("judgement", [judgement for judgement, _ in JUDGES])
def test_tests_that_were_tampered_with_reject_under_every_gate(gate: Gate, judgement: Judgement | None) -> None:
    grade = Grade(outcomes.TAMPERED, cheats=("x",))
    assert decide(gate, THRESHOLD, judgement, grade) == Decision(False, "tests: tampered")


def test_a_suspicion_takes_an_acceptance_back_and_gives_no_verdict_in_its_place() -> None:
    accepted = decide("tests+audit", 0.8, None, Grade(outcomes.PASSED))
    assert audited(accepted, []) == accepted and accepted.accepted is True
    found = audited(accepted, ["machinery_imported: a.py:1: import pytest", "more"])
    assert (found.accepted, found.suspected) == (None, True)
    assert found.reason == "tests: passed; audit: machinery_imported: a.py:1: import pytest, and 1 more"
    missing = audited(accepted, [], "bad_reply")
    assert (missing.accepted, missing.suspected) == (None, False), "who was to answer did not"
    assert missing.reason == "tests: passed; audit: no answer (bad_reply)"
    assert audited(accepted, ["a.py:1: x"], "bad_reply").suspected
    refused = decide("tests+audit", 0.8, None, Grade(outcomes.F2P_FAILED))
    assert audited(refused, ["x"]) == refused, "what the tests refuse is the agent's failure still"
