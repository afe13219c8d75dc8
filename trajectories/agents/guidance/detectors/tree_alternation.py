"""``tree-alternation``: the tree goes back and forth between two states, A, B, A, B.

To make a change, take it back and make it again decides the same question anew each time, as if the outcome of the
first try had been lost: `context_handling_failure`. It is no `step_repetition`, because each step does change
something, and no `goal_deviation`, because the change itself may well be what the task is about. To take a change back
once (A, B, A), for instance to see a test fail without it, is good work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby

from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, call_words, one_line, tree_of
from trajectories.agents.steps.conversation import Step

_NAME, _CATEGORY = "tree-alternation", "context_handling_failure"
_MOST_CALLS = 3
_RECOVERY = "Say what each of the two states has shown, choose one of them by that, and go on from there."


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    groups = groupby(work.steps, key=lambda step: step.turn.position)
    return [finding for _, steps in groups for finding in _alternations(steps)]


def _alternations(steps: Iterable[Step]) -> Iterator[DetectorFinding]:
    last: deque[tuple[str, int]] = deque(maxlen=4)
    for step in steps:
        tree = tree_of(step)
        if tree is None or (last and last[-1][0] == tree):
            continue
        last.append((tree, step.number))
        trees = [name for name, _ in last]
        if len(trees) == 4 and trees[:2] == trees[2:]:
            at = ", ".join(str(number) for _, number in last)
            calls = "; ".join(call_words(call, arguments) for call, arguments, _ in step.calls[:_MOST_CALLS])
            words = f"steps {at} switch between the same two states of the files; the last by {calls}"
            yield DetectorFinding(_NAME, _CATEGORY, step.number, one_line(words), _RECOVERY)


DETECTOR = Detector(_NAME, "changes are made, taken back and made again: the tree alternates", _CATEGORY, find)
