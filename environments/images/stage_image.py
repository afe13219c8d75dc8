"""The image that a stage works with, as a value, and what has to be known of a stage to find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from environments.images.image_plan import ImagePlan

BUILT = "built"
"""The outcome of an image that is there."""


class StageBase(Protocol):
    """What is needed of a stage: the commit it starts from, the one that landed its work (empty where that is not
    known), when it landed (ISO 8601), and its place: the id of its chain, empty where that is not known, and its
    position in it."""

    @property
    def chain(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def base(self) -> str: ...
    @property
    def landed(self) -> str: ...
    @property
    def landed_at(self) -> str: ...


@dataclass(frozen=True, slots=True)
class StageImage:
    """The plan and the image that a stage works with."""

    plan: ImagePlan
    image: str | None
    """None: no image is needed, commands use the programs of this machine."""
    notes: tuple[str, ...] = ()
    """Which of the manifests' requirements the image lacks, and why."""
    seconds: float = 0.0
    """What building took; 0 for an image that was there."""
    cached: bool = False
    repairs: int = 0
    """How many changes by a model the recipe needed in this run."""
    neighbour: str = ""
    """In words, where the image was built for another stage whose manifests say something else."""
    publisher: str = ""
    """What became of the image that a publisher names for the stage; empty where none is named."""
    base: str = ""
    """The commit that the stage starts from, where what is placed of it is to be kept (`environments.workplace`)."""
