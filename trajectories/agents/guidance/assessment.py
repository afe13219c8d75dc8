"""What a process reward model says of a window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TaskStatus(StrEnum):
    """How the work stands."""

    ON_TRACK = "on_track"
    NEEDS_CORRECTION = "needs_correction"
    CRITICAL = "critical_intervention_required"


@dataclass(frozen=True, slots=True)
class Detection:
    """A category that a model detected."""

    category: str
    """`trajectories.agents.guidance.taxonomy.Category.name`."""
    evidence: str
    """Empty where the reply has none."""
    recovery: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """A reply that could be read."""

    guidance: str
    status: TaskStatus | None = None
    """None: the style is simple, and says nothing of it."""
    detections: tuple[Detection, ...] = ()
    """In the order of the taxonomy."""
    action: str | None = None
    """The recommended next call; None where none was asked for, or given."""
