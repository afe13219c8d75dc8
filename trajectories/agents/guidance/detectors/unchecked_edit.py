"""``unchecked-edit``: code was edited, and nothing was run within the next `WITHIN` steps.

A run is any command that executes more than programs which look at files, move or write them, and git; whether it fits
the edit is not judged. Edits of documentation, data and settings need none, nor do files outside of the repository. The
finding stands at the last of these steps, not at the edit: only then is it known. It comes again after as many more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, call_words, one_line
from trajectories.agents.guidance.effects import effect_of
from trajectories.agents.shell.programs import bash_command, read_run
from trajectories.agents.steps.conversation import Step

WITHIN = 5
"""Steps after an edit within which something has to run."""

_NAME, _CATEGORY = "unchecked-edit", "verification_failure"
_RECOVERY = "Run the tests of what was edited, or a few lines that use it, before editing further."


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    return [finding for steps in work.attempts for finding in _unchecked(steps, work.workdir)]


def _unchecked(steps: Sequence[Step], workdir: str) -> Iterator[DetectorFinding]:
    cwd = workdir
    edited: int | None = None
    words = ""
    for place, step in enumerate(steps):
        for call, arguments, result in step.calls:
            command = bash_command(call, arguments, result)
            if command is not None and read_run(command).executes:
                edited = None
            elif edited is None and (path := effect_of(call, arguments, result, cwd).code(workdir)) is not None:
                edited, words = place, f"{path} (step {step.number}): {call_words(call, arguments)}"
            cwd = (result.cwd if result is not None else None) or cwd
        if edited is not None and place > edited and (place - edited) % WITHIN == 0:
            evidence = one_line(f"nothing was run in the {place - edited} steps after the edit of {words}")
            yield DetectorFinding(_NAME, _CATEGORY, step.number, evidence, _RECOVERY)


DETECTOR = Detector(_NAME, f"code is edited, and nothing is run within {WITHIN} steps", _CATEGORY, find)
