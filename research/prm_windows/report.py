"""The figures: how often each detector finds something, and how it fares against labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from prchain.core.console.terminal import counted, say, say_table
from research.prm_windows.conversation import RealTrajectory
from research.prm_windows.labels import reader_agreements
from research.prm_windows.windows import RealWindow
from trajectories.agents.guidance.detecting import find_all
from trajectories.agents.guidance.detector import DetectorFinding
from trajectories.agents.guidance.detectors import DETECTORS
from trajectories.studies.guidance.agreement import ReadWindow, WindowReading, print_scores, scores
from trajectories.studies.guidance.label_file import WindowLabel, settled

Found = Mapping[str, Sequence[DetectorFinding]]
"""Trajectory to all findings in it. Of a step they follow from what came up to its end, so those of a window are those
that were known when it ended."""


def find(trajectories: Sequence[RealTrajectory]) -> Found:
    """What the detectors find."""
    return {trajectory.name: find_all(trajectory.entries, 0) for trajectory in trajectories}


def read_by_code(windows: Sequence[RealWindow], found: Found) -> dict[ReadWindow, WindowReading]:
    """Which detectors find something at the steps of each window, in the place of categories."""
    readings = {}
    for window in windows:
        first, last = window.steps.first, window.steps.last
        names = {finding.detector for finding in found[window.trajectory.name] if first <= finding.step <= last}
        readings[window.place] = WindowReading(None, frozenset(names))
    return readings


def print_counts(
    trajectories: Sequence[RealTrajectory], windows: Sequence[RealWindow], drawn: Sequence[RealWindow], found: Found
) -> None:
    """Print how many findings there are of each detector, and in how many windows and trajectories."""
    turns = sum(trajectory.turns for trajectory in trajectories)
    tasks = len({trajectory.task for trajectory in trajectories})
    say(f"{counted(len(trajectories), 'trajectory')} on {counted(tasks, 'task')}, {counted(turns, 'step')}")
    say(f"{counted(len(windows), 'window')}, {len(drawn):,} in the sample")
    say()
    readings = read_by_code(windows, found)
    findings = Counter(finding.detector for some in found.values() for finding in some)
    within = Counter(name for reading in readings.values() for name in reading.categories or ())
    sampled = Counter(name for window in drawn for name in readings[window.place].categories or ())
    having = Counter(name for some in found.values() for name in {finding.detector for finding in some})
    rows = [(name, findings[name], within[name], sampled[name], having[name]) for name in DETECTORS]
    say_table(("detector", "findings", "windows", "sampled", "trajectories"), rows)


def print_labels(
    windows: Sequence[RealWindow], drawn: Sequence[RealWindow], found: Found, labels: Sequence[WindowLabel]
) -> None:
    """Print how the detectors fare against the labels on which all readers agree, and how far readers agree.

    Recall is that in the sample alone: the other windows were chosen because something was found there.
    """
    say()
    if not labels:
        say("no labels yet")
        return
    answers = settled(labels)
    labelled = len({label.window for label in labels})
    say(f"{counted(len(labels), 'label')} of {counted(labelled, 'window')}; {answers.disputed:,} disputed, left out")
    say()
    readings, sampled = read_by_code(windows, found), {window.place for window in drawn}
    in_sample = {key: label for key, label in answers.labels.items() if key[0] in sampled}
    say("In the sample:")
    print_scores(scores(readings, in_sample, DETECTORS))
    say()
    say("Precision where something was found, in and beside the sample:")
    for name, it in scores(readings, answers.labels, DETECTORS).items():
        share = it.precision
        words = "-" if share is None else f"{share.value:.0%} ({share.low:.0%}-{share.high:.0%})"
        say(f"  {name}: {it.tp} of {it.tp + it.fp}, {words}")
    for (one, other), agreements in reader_agreements(labels).items():
        say()
        say(f"only 1: {one or '(no name)'}; only 2: {other or '(no name)'}")
        rows = [
            (name, it.windows, it.both, it.only_one, it.only_other, "-" if it.kappa is None else f"{it.kappa:.2f}")
            for name, it in agreements.items()
        ]
        say_table(("detector", "windows", "both", "only 1", "only 2", "kappa"), rows)
