"""``work-after-passing``: the tests have passed on the changed files, and the agent goes on without changing any.

Counted are the steps since the tests first passed on this state of the files, so to run them again does not begin anew.
Tests that pass before the attempt's first change say nothing of the task, and neither do tests chosen by name. A change
of any file begins anew, and so does a run of tests that fails. The step that hands in is none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, one_line, tree_of
from trajectories.agents.guidance.effects import Change, effect_of
from trajectories.agents.shell.programs import bash_command, read_run, tests_passed
from trajectories.agents.steps.conversation import Step

AFTER = 3
"""Steps after which it is found, and again after as many more."""

_NAME, _CATEGORY = "work-after-passing", "termination_unawareness"
_RECOVERY = "Name what of the task is still open and do that, or hand the work in."


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    return [finding for steps in work.attempts for finding in _working_on(steps, work.workdir)]


def _working_on(steps: Sequence[Step], workdir: str) -> Iterator[DetectorFinding]:
    cwd = workdir
    changed = False
    passed: int | None = None
    words = ""
    for place, step in enumerate(steps):
        changes = tree_of(step) is not None
        verdict: str | None = None
        failed = False
        for call, arguments, result in step.calls:
            changes |= effect_of(call, arguments, result, cwd).change is Change.SURE
            command = bash_command(call, arguments, result)
            if command is not None and result is not None:
                reading = read_run(command)
                outcome = tests_passed(reading, result)
                failed |= outcome is False
                verdict = command if outcome and reading.all_tests else verdict
            cwd = (result.cwd if result is not None else None) or cwd
        changed |= changes
        if changes or failed:
            passed = None
        if verdict is not None and passed is None and changed and not failed:
            passed, words = place, f"`{verdict}` passed at step {step.number}"
        if passed is not None and place > passed and (place - passed) % AFTER == 0 and not step.submits:
            evidence = one_line(f"{place - passed} steps without a change of any file since {words}")
            yield DetectorFinding(_NAME, _CATEGORY, step.number, evidence, _RECOVERY)


DETECTOR = Detector(_NAME, f"{AFTER} steps change nothing after the tests have passed", _CATEGORY, find)
