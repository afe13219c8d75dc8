"""The gates: whether an attempt is accepted, by the judge, by the tests, or by both.

Pure. Judge and tests each say yes, no or nothing:

- The judge says yes if its score reaches the threshold, no if it does not, and nothing if it was not asked or the
  attempt is unscored (`trajectories.verdicts.judge.Judgement.error`).
- The tests say yes if every F2P and P2P test passes, no if one does not, and nothing if none ran, or if the state was
  broken before the attempt: then nobody can tell what the attempt did.
- Where every F2P test passed before the attempt, all passing says nothing of it, and never will: a judge who is asked
  decides alone.

With ``+audit`` an attempt that they accept is *suspected* where the rules of suspicion, or an auditor who is asked,
point at its patch: that is no verdict, neither on the work nor on the agent, and ends the stage. Without the auditor's
answer it is unscored.

``both`` and ``either`` are AND and OR of Kleene's three-valued logic: one no decides ``both`` and one yes decides
``either``, whatever the other says; nothing never counts as yes or no. Tests that were tampered with reject under every
gate, also where they do not count otherwise. So an attempt is *unscored* (`Decision.accepted`
is None) exactly if a missing answer could still change the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from environments.suites.outcomes import PASSED, STATE_BROKEN, TAMPERED, Grade
from trajectories.options import Gate
from trajectories.verdicts.judge import Judgement


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an attempt; `accepted` is None if it is unscored. `reason` is one line on judge and tests."""

    accepted: bool | None
    reason: str
    suspected: bool = False
    """Judge and tests would accept it; the audit does not."""


def decide(gate: Gate | str, threshold: float, judgement: Judgement | None, grade: Grade | None) -> Decision:
    """Decide on an attempt; see the module. Raises `ValueError` for an invalid gate or threshold."""
    gate = Gate(gate).voices
    if not 0 <= threshold <= 1:
        raise ValueError(f"a threshold is between 0 and 1, not {threshold}")
    judge = judgement.accepts(threshold) if judgement else None
    if grade is not None and grade.outcome == TAMPERED:
        return Decision(False, _tests_reason(grade))
    tests = grade_accepts(grade)
    if tests is None and grade is not None and grade.asks_nothing and gate in {Gate.BOTH, Gate.EITHER}:
        tests = judge
    reasons = (_judge_reason(judgement, threshold), _tests_reason(grade))
    match gate:
        case Gate.JUDGE:
            return Decision(judge, reasons[0])
        case Gate.TESTS:
            return Decision(tests, reasons[1])
        case Gate.BOTH:
            accepted = False if False in (judge, tests) else None if None in (judge, tests) else True
        case Gate.EITHER:
            accepted = True if True in (judge, tests) else None if None in (judge, tests) else False
    return Decision(accepted, "; ".join(reasons))


def audited(decision: Decision, found: Sequence[str], error: str | None = None) -> Decision:
    """A decision once the patch was looked over; `found` are suspicions, each a line, and `error` says why an auditor
    gave no answer."""
    if decision.accepted and not found and error is not None:
        return Decision(None, f"{decision.reason}; audit: no answer ({error})")
    if not decision.accepted or not found:
        return decision
    more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
    return Decision(None, f"{decision.reason}; audit: {found[0]}{more}", suspected=True)


def grade_accepts(grade: Grade | None) -> bool | None:
    """Whether the tests accept an attempt; None if they say nothing."""
    if grade is None or grade.outcome == STATE_BROKEN:
        return None
    if grade.outcome == PASSED and grade.asks_nothing:
        return None
    return grade.outcome == PASSED


def _judge_reason(judgement: Judgement | None, threshold: float) -> str:
    if judgement is None:
        return "judge: not asked"
    if judgement.score is None:
        return f"judge: unscored ({judgement.error})"
    sign = ">=" if judgement.score >= threshold else "<"
    return f"judge: {judgement.score:g} {sign} {threshold:g}"


def _tests_reason(grade: Grade | None) -> str:
    if grade is None:
        return "tests: none ran"
    return f"tests: {grade.outcome}" + (", as before the attempt" if grade.asks_nothing else "")
