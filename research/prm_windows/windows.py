"""The windows of real trajectories, the sample of them that is labelled, and their texts for readers."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from research.prm_windows.conversation import RealTrajectory
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import EVERY, WINDOW, Schedule
from trajectories.agents.guidance.window import StepWindow, stage_entries
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.model import Entry
from trajectories.studies.guidance.agreement import ReadWindow, WindowReading

SAMPLE = 60
EACH = 2
"""Windows of one trajectory in the sample, at most."""
FOUND = 12
"""Windows with a finding of each detector that are labelled beside the sample, at most."""

_WHOLE = 3_000
"""Characters of a part of a step in the window."""
_SHORT = 500
"""Characters of a command and of an output before the window."""


@dataclass(frozen=True)
class RealWindow:
    """A window of a trajectory."""

    trajectory: RealTrajectory
    steps: StepWindow

    @property
    def place(self) -> ReadWindow:
        """Which window it is."""
        return ReadWindow(self.trajectory.name, 1, 1, self.steps.last)


def windows_of(trajectory: RealTrajectory) -> Iterator[RealWindow]:
    """The windows that a replay reads: after every fifth step but the last one, of eight steps or as many as there are
    (SWE-PRM, section 4.2)."""
    entries = stage_entries(trajectory.entries, 1)
    for last in asked_after(entries, Schedule.EVERY, EVERY):
        window = StepWindow.of(entries, WINDOW, last)
        if window is not None and last != trajectory.turns:
            yield RealWindow(trajectory, window)


def sample(windows: Iterable[RealWindow]) -> list[RealWindow]:
    """The windows that are labelled: the first ones in the order of their hashes, at most `EACH` of a trajectory."""
    taken: Counter[str] = Counter()
    drawn: list[RealWindow] = []
    for window in sorted(windows, key=_hash):
        name = window.trajectory.name
        if len(drawn) < SAMPLE and taken[name] < EACH:
            taken[name] += 1
            drawn.append(window)
    return drawn


def with_findings(
    windows: Iterable[RealWindow], readings: Mapping[ReadWindow, WindowReading], sampled: Sequence[RealWindow]
) -> list[RealWindow]:
    """Windows beside the sample where detectors find something, for a precision that the sample is too small to tell.

    For each detector the first `FOUND` in the order of their hashes, one of a trajectory.
    """
    places = {window.place for window in sampled}
    taken: dict[str, set[str]] = {}
    drawn: list[RealWindow] = []
    for window in sorted(windows, key=_hash):
        name, found = window.trajectory.name, readings[window.place].categories or ()
        wanted = [one for one in found if name not in taken.setdefault(one, set()) and len(taken[one]) < FOUND]
        if wanted and window.place not in places:
            drawn.append(window)
            for one in wanted:
                taken[one].add(name)
    return drawn


def _hash(window: RealWindow) -> str:
    return hashlib.sha256(f"{window.place.trajectory} {window.place.last_step}".encode()).hexdigest()


def write_texts(windows: Sequence[RealWindow], folder: Path) -> None:
    """Write a text for readers for each window, in the order of their hashes, and ``index.csv``, which says what each
    is, into a new folder: readers may be at work in one that is there. Raises `OSError`."""
    folder.mkdir(parents=True)
    with (folder / "index.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("number", "trajectory", "last_step"))
        for number, window in enumerate(sorted(windows, key=_hash), 1):
            rows.writerow((f"{number:03}", window.place.trajectory, window.place.last_step))
            (folder / f"{number:03}.txt").write_text(text_of(window), encoding="utf-8")


def text_of(window: RealWindow) -> str:
    """A window as a text: the task, the steps before it in short, and its own steps. What a detector says of it is not
    in the text."""
    earlier = [step for step in steps_of(window.trajectory.entries) if step.number < window.steps.first]
    parts = ["# The task", window.trajectory.task, "# The steps before the window, in short"]
    parts += map(_in_short, earlier) if earlier else ["(none)"]
    parts += [f"# The window: steps {window.steps.first} to {window.steps.last}"]
    parts += map(_whole, window.steps.steps)
    return "\n\n".join(parts) + "\n"


def _in_short(step: Step) -> str:
    lines = [f"[{step.number}] {_cut(command, _SHORT)}" for command in _commands(step)] or [
        f"[{step.number}] (no call)"
    ]
    return "\n".join([*lines, *(_cut(entry.content, _SHORT) for entry in step.observations)])


def _whole(step: Step) -> str:
    said = [_cut(part, _WHOLE) for part in (step.turn.reasoning, step.turn.content) if part]
    lines = [f"## Step {step.number}", *(said or ["(no words)"])]
    lines += [f"-- call:\n{_cut(command, _WHOLE)}" for command in _commands(step)] or ["-- no call"]
    lines += [f"-- result{_error(entry)}:\n{_cut(entry.content, _WHOLE)}" for entry in step.observations]
    return "\n\n".join(lines)


def _commands(step: Step) -> list[str]:
    return [str(arguments.get("command", call.arguments)) for call, arguments, _ in step.calls]


def _error(entry: Entry) -> str:
    return " (handed in)" if entry.details.get("submitted") else f" ({entry.error})" if entry.error else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [... {len(text) - most:,} more characters]"
