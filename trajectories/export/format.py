"""What a format is: one of samples, or one of predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trajectories.export.samples import Sample


@dataclass(frozen=True, slots=True)
class Format:
    """How samples are written for one kind of reader."""

    name: str
    row: Callable[[Sample], Mapping[str, Any]]
    """A sample's line."""
    loss: str | None
    """The key of a message that takes it out of the loss; None where readers know none."""
    per_turn: Callable[[Sample], Mapping[str, Any]] | None = None
    """The line of a sample that trains on its last turn alone, where it differs from `row`."""
    columns: Mapping[str, Any] | None = None
    """The columns of a Parquet file (`trajectories.export.parquet`); None where no reader of the format takes one."""
    inline_reasoning: bool = False
    """Whether reasoning has no field of its own, but a place in the content."""
    takes_reasoning: bool = True
    trains: bool = True
    """Whether readers train on it; other formats are for people and their viewers, and get conversations whole."""
    turns_hint: str = ""
    """What a trainer has to be told to train on a per-turn row's last turn alone."""


@dataclass(frozen=True, slots=True)
class PredictionFormat:
    """How what agents did is written for a harness that grades it."""

    name: str
    reader: str
    """Whose harness reads it: the possessive of its name."""
    rows: Callable[..., Iterator[Mapping[str, Any]]]
    """See `trajectories.export.predictions.predictions`."""
