"""``repeated-call``: the same call gives the same result, and nothing could have changed in between.

The second time counts where everything since only looked; where something ran that may have changed things outside of
the tree, the third time does, as long as no file was written. A new tree, a written file and a new attempt begin anew.
Thoughts and submissions are no repetition, nor are commands that wait for others, nor those that write files: their
effect is not their output. Calls of one turn were made before any of their results was known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from environments.sandboxes.sandbox import WORKDIR
from prchain.core.llm.model import ToolCall
from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, call_words, one_line, tree_of
from trajectories.agents.guidance.effects import Change, effect_of, was_run
from trajectories.agents.shell.programs import bash_command, read_run
from trajectories.agents.steps.conversation import Step
from trajectories.agents.tools.submit import Submit
from trajectories.agents.tools.think import Think
from trajectories.model import Entry

_NAME, _CATEGORY = "repeated-call", "step_repetition"
_SURE = 3
"""From so many times on nothing excuses it but a change that was made."""
_RECOVERY = "Go by what the first of these calls has shown, and take the step that follows from it."


class _Earlier(NamedTuple):
    step: int
    """Of the first time."""
    last: int
    """Of the last time."""
    times: int
    made: int
    """Changes that had been made until then."""
    possible: int
    """Calls until then that may have changed something."""


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    return [finding for steps in work.attempts for finding in _repeated(steps)]


def _repeated(steps: Sequence[Step]) -> list[DetectorFinding]:
    findings: list[DetectorFinding] = []
    seen: dict[tuple[str, str, str | None, str], _Earlier] = {}
    made = possible = 0
    cwd = WORKDIR
    for step in steps:
        for call, arguments, result in step.calls:
            if result is None or not was_run(result):
                continue
            effect = effect_of(call, arguments, result, cwd)
            cwd = result.cwd or cwd
            if effect.change is Change.SURE:
                made += 1
                continue
            before = possible
            possible += effect.change is Change.MAYBE
            if _excepted(call, arguments, result):
                continue
            outcome = (call.name, " ".join(call.arguments.split()), result.error, result.content)
            earlier = seen.get(outcome)
            if earlier is None or earlier.made != made:
                seen[outcome] = _Earlier(step.number, step.number, 1, made, possible)
            elif earlier.last != step.number:
                times = earlier.times + 1
                if times >= _SURE or earlier.possible == before:
                    words = f"the same result as at step {earlier.step}: {call_words(call, arguments)}"
                    findings.append(DetectorFinding(_NAME, _CATEGORY, step.number, one_line(words), _RECOVERY))
                seen[outcome] = _Earlier(earlier.step, step.number, times, made, possible)
        made += tree_of(step) is not None
    return findings


def _excepted(call: ToolCall, arguments: Mapping[str, Any], result: Entry) -> bool:
    if call.name in {Think.name, Submit.name} or result.details.get("submitted"):
        return True
    command = bash_command(call, arguments, result)
    return command is not None and read_run(command).waits


DETECTOR = Detector(_NAME, "the same call gives the same result, and nothing has changed in between", _CATEGORY, find)
