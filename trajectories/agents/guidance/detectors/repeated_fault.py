"""``repeated-fault``: a tool refuses with the same error twice in a row, or three times in five calls.

What several calls of one turn have in common counts once: none of them could know of the others' results. Replies that
were cut off or refused, and calls that were not run, are no tool's fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, call_words, one_line
from trajectories.agents.scaffolds.turns import NOT_RUN
from trajectories.agents.steps.conversation import Step
from trajectories.model import TurnFault

WINDOW = 5
"""Calls."""
OFTEN = 3

_NAME, _CATEGORY = "repeated-fault", "tool_selection_error"
_NO_FAULTS = frozenset({NOT_RUN, TurnFault.CUT_OFF.value, TurnFault.REFUSAL.value})
_RECOVERY = "Read what the error asks for and call the tool so, or reach the same by another tool."

_Fault = tuple[str, str]
"""A tool, and the name of the error."""


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    return [finding for steps in work.attempts for finding in _repeated(steps)]


def _repeated(steps: Sequence[Step]) -> Iterator[DetectorFinding]:
    last: deque[_Fault | None] = deque(maxlen=WINDOW)
    for step in steps:
        calls: dict[_Fault | None, str] = {}
        for call, arguments, result in step.calls:
            if result is not None:
                wrong = result.error is not None and result.error not in _NO_FAULTS
                fault = (call.name, result.error) if wrong and result.error is not None else None
                if fault not in calls:
                    calls[fault] = f"{call_words(call, arguments)}: {result.content}" if fault else ""
        for fault, words in calls.items():
            before = last[-1] if last else None
            last.append(fault)
            if fault is not None and (before == fault or last.count(fault) >= OFTEN):
                evidence = one_line(f"{fault[1]} once more, by {words}")
                yield DetectorFinding(_NAME, _CATEGORY, step.number, evidence, _RECOVERY)


DETECTOR = Detector(_NAME, "a tool refuses with the same error again and again", _CATEGORY, find)
