"""``seen-lines``: lines of a file are viewed that the stage has shown before, and that have not changed since.

Views are those of `trajectories.agents.steps.redundancy`: of the editor, of ``cat``, ``head`` and ``sed -n``. One
that hands the work in, as ``cat`` of a patch does for some agents, is none.
"""

from __future__ import annotations

from itertools import groupby

from trajectories.agents.guidance.detector import Detector, DetectorFinding, WatchedWork, one_line
from trajectories.agents.shell.printing import END
from trajectories.agents.steps.redundancy import FileView, exploration

_NAME, _CATEGORY = "seen-lines", "step_repetition"
_MOST_RANGES = 3
_RECOVERY = "Work from the lines as they were shown, and open only what has not been seen yet."


def find(work: WatchedWork) -> list[DetectorFinding]:
    """See `Detector.find`."""
    submitting = {entry.step for entry in work.entries if entry.details.get("submitted")}
    covered = [view for view in exploration(work.entries).views if view.covered and view.step not in submitting]
    findings = []
    for step, group in groupby(covered, key=lambda view: view.step):
        first, *others = group
        more = f", and {len(others)} more in this step" if others else ""
        words = f"shown before and not changed since: {_words(first)}{more}"
        findings.append(DetectorFinding(_NAME, _CATEGORY, step, one_line(words), _RECOVERY))
    return findings


def _words(view: FileView) -> str:
    ranges = [
        f"{first} to {'the end' if last >= END else last}" for first, last in view.lines[:_MOST_RANGES] if first < END
    ]
    return f"{view.path}, lines {', '.join(ranges)}" if ranges else view.path


DETECTOR = Detector(_NAME, "lines are viewed that were shown before and have not changed", _CATEGORY, find)
