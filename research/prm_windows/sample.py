"""The sample of windows that readers label, and how it is shown to them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from prchain.excerpt import cut
from research.prm_windows.public import PublicTrajectory
from trajectories.model import EntryKind
from trajectories.prm.agreement import ReadWindow
from trajectories.prm.settings import EVERY, WINDOW
from trajectories.prm.window import StepWindow
from trajectories.steps import Step, said, steps_of

SIZE = 60
EACH = 2
"""The most windows of one trajectory."""

_PART, _BEFORE, _TASK = 1_200, 60, 2_500
"""Characters of a part of the window, of an output before it, and of the task."""


@dataclass(frozen=True)
class SampledWindow:
    """One window of a trajectory."""

    trajectory: PublicTrajectory
    last: int

    @property
    def key(self) -> ReadWindow:
        """As labels name it."""
        return ReadWindow(self.trajectory.name, 1, 1, self.last)

    @property
    def window(self) -> StepWindow:
        """Its steps."""
        found = StepWindow.of(
            [it for it in self.trajectory.entries if it.kind is not EntryKind.SYSTEM], WINDOW, self.last
        )
        assert found is not None
        return found


def windows_of(trajectory: PublicTrajectory) -> list[SampledWindow]:
    """All windows that a process reward model would read."""
    count = len(steps_of(trajectory.entries))
    return [SampledWindow(trajectory, last) for last in range(EVERY, count, EVERY)]


def drawn(trajectories: Iterable[PublicTrajectory], size: int = SIZE) -> list[SampledWindow]:
    """A sample that depends on names alone."""
    windows = [window for trajectory in trajectories for window in windows_of(trajectory)]
    windows.sort(key=lambda it: sha256(f"{it.trajectory.name}/{it.last}".encode()).digest())
    taken: Counter[str] = Counter()
    chosen: list[SampledWindow] = []
    for window in windows:
        if len(chosen) < size and taken[window.trajectory.name] < EACH:
            taken[window.trajectory.name] += 1
            chosen.append(window)
    return chosen


def show(windows: Iterable[SampledWindow], folder: Path) -> None:
    """Write each window as a text, and ``index.csv``: number, trajectory, last step."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(("number", "trajectory", "last_step"))
    for number, window in enumerate(windows, 1):
        (folder / f"{number:02}.txt").write_text(text_of(window), encoding="utf-8")
        writer.writerow((number, window.trajectory.name, window.last))
    (folder / "index.csv").write_text(rows.getvalue(), encoding="utf-8")


def text_of(sampled: SampledWindow) -> str:
    """A window for readers: the task, what was done before it in short, and its steps."""
    window = sampled.window
    query = next(it.content for it in sampled.trajectory.entries if it.kind is EntryKind.QUERY)
    before = [step for step in steps_of(sampled.trajectory.entries) if step.number < window.first]
    parts = ["# The task", cut(query, _TASK), "# Before the window, in short", *(_step(it, _BEFORE) for it in before)]
    return "\n\n".join(
        [*parts, f"# The window: steps {window.first} to {window.last}", *(_step(it, _PART) for it in window.steps)]
    )


def _step(step: Step, most: int) -> str:
    calls = [cut(f"call: {call.arguments}", max(most, 3 * _BEFORE)) for call in step.turn.tool_calls]
    tree = "  (files may have changed)" if any(it.tree for it in step.observations) else ""
    shown = [cut(it.content, most) for it in step.observations]
    return "\n".join([f"## step {step.number}{tree}", cut(said(step.turn), most), *calls, *shown])
