"""What all detectors find in a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from trajectories.agents.guidance.detector import DetectorFinding, WatchedWork
from trajectories.agents.guidance.detectors import DETECTORS
from trajectories.model import Entry


def find_all(entries: Sequence[Entry], first_step: int) -> tuple[DetectorFinding, ...]:
    """The findings of all detectors at the steps from `first_step` on, in the order of steps, then of detectors.

    `entries` are those of the stage from its query on, oldest first. Where the agent also reads earlier stages, give
    those too: what they have shown is known to the agent. Pure, and raises nothing.
    """
    work = WatchedWork(entries, first_step)
    found = [
        finding for detector in DETECTORS.values() for finding in detector.find(work) if finding.step >= first_step
    ]
    return tuple(sorted(found, key=lambda finding: (finding.step, finding.detector)))
