"""The gates: whether a stage is accepted, by the judge, by its tests, or by both.

Pure. Each of the two says yes, no or nothing:

- The judge says yes where its score reaches the threshold, no where it does not, and nothing where it was not asked or
  the attempt is unscored (`trajectories.verdicts.judge.Judgement.error`).
- Tests say yes where every F2P and P2P test passes, no where one does not, and nothing where none ran. Of an attempt on
  a state that was broken before it they say nothing either: nobody can tell what it did.

``both`` and ``either`` are the and and the or of three values (Kleene's): one no is enough against ``both`` and one yes
enough for ``either``, whatever the other would say; nothing is never taken for a yes or a no. So an attempt is
*unscored* (`Decision.accepted` is None) exactly where a voice that could still turn the decision is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from environments.suites.outcomes import PASSED, STATE_BROKEN, Grade
from trajectories.options import Gate
from trajectories.verdicts.judge import Judgement


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an attempt; `accepted` is None where it is unscored. `reason` is one line of what was said."""

    accepted: bool | None
    reason: str


def decide(gate: Gate | str, threshold: float, judgement: Judgement | None, grade: Grade | None) -> Decision:
    """Decide on an attempt; see the module. Raises `ValueError` for a gate or a threshold that is none."""
    gate = Gate(gate)
    if not 0 <= threshold <= 1:
        raise ValueError(f"a threshold is between 0 and 1, not {threshold}")
    judge = judgement.accepts(threshold) if judgement else None
    tests = voice_of_tests(grade)
    said = (_words_of_judge(judgement, threshold), _words_of_tests(grade))
    match gate:
        case Gate.JUDGE:
            return Decision(judge, said[0])
        case Gate.TESTS:
            return Decision(tests, said[1])
        case Gate.BOTH:
            accepted = False if False in (judge, tests) else None if None in (judge, tests) else True
        case Gate.EITHER:
            accepted = True if True in (judge, tests) else None if None in (judge, tests) else False
    return Decision(accepted, "; ".join(said))


def voice_of_tests(grade: Grade | None) -> bool | None:
    """Whether the tests accept an attempt; None where they say nothing of it."""
    if grade is None or grade.outcome == STATE_BROKEN:
        return None
    return grade.outcome == PASSED


def _words_of_judge(judgement: Judgement | None, threshold: float) -> str:
    if judgement is None:
        return "judge: not asked"
    if judgement.score is None:
        return f"judge: unscored ({judgement.error})"
    sign = ">=" if judgement.score >= threshold else "<"
    return f"judge: {judgement.score:g} {sign} {threshold:g}"


def _words_of_tests(grade: Grade | None) -> str:
    return "tests: none ran" if grade is None else f"tests: {grade.outcome}"
