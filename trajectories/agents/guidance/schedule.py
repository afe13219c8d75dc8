"""After which steps a process reward model is asked: pure, from the entries of a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trajectories.agents.guidance.settings import Schedule
from trajectories.agents.guidance.window import attempts_last_steps
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.model import Entry

_ERRORS = 3
"""So many failed steps in a row call for a look."""

_STILL = 10
"""So many steps without a change of the tree do."""

_APART = 3
"""An adaptive look is not taken sooner after the last one."""


def asked_after(
    entries: Sequence[Entry],
    schedule: Schedule,
    every: int,
    fired: Callable[[], frozenset[int]] = frozenset,
) -> list[int]:
    """The numbers of the steps (`Entry.step`) of a stage after which the model is asked, in order.

    `entries` are those of one stage; steps count through its attempts. Nobody is asked after the last step of an
    attempt that another follows; of the newest attempt that is left to the loop, which knows whether it goes on.
    `fired` gives the steps at which detectors found something.
    """
    steps = steps_of(entries)
    ended = attempts_last_steps(entries)
    match schedule:
        case Schedule.NONE:
            return []
        case Schedule.EVERY:
            return [
                step.number for place, step in enumerate(steps, 1) if place % every == 0 and step.number not in ended
            ]
        case Schedule.ADAPTIVE:
            return _adaptive(steps, ended, fired())


def _adaptive(steps: Sequence[Step], ended: set[int], fired: frozenset[int]) -> list[int]:
    asked: list[int] = []
    last = changed = errors = 0
    pending = False
    for place, step in enumerate(steps, 1):
        errors = errors + 1 if step.failed else 0
        if any(entry.tree is not None for entry in step.observations):
            changed = place
        pending = pending or step.number in fired
        calls_for = pending or errors >= _ERRORS or place - max(changed, last) >= _STILL
        if calls_for and (not last or place - last >= _APART) and step.number not in ended:
            asked.append(step.number)
            last, errors, pending = place, 0, False
    return asked
