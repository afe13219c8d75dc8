"""The definition of an export format: of samples, or of predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajectories.export.samples import Sample


@dataclass(frozen=True, slots=True)
class Format:
    """How samples are written for one kind of reader."""

    name: str
    row: Callable[[Sample], Mapping[str, Any]]
    """A sample's line."""
    loss: str | None
    """The key of a message that excludes it from the loss; None if the readers have no such key."""
    per_turn: Callable[[Sample], Mapping[str, Any]] | None = None
    """The line of a sample that trains on its last turn alone, if it differs from `row`."""
    columns: Mapping[str, Any] | None = None
    """The columns of a Parquet file (`trajectories.export.parquet`); None if no reader of the format takes Parquet."""
    inline_reasoning: bool = False
    """Whether reasoning is written into the content and has no field of its own."""
    takes_reasoning: bool = True
    trains: bool = True
    """Whether readers train on it; formats for viewers hold whole conversations."""
    tells_signs: bool = False
    """Whether it writes what the audit finds (`Sample.signs`), which costs a reading of each conversation."""
    tells_tokens: bool = False
    """Whether it writes token ids and log-probabilities of turns (`SampleMessage.tokens`)."""
    file_name: Callable[[Mapping[str, Any]], str] | None = None
    """From a line to the name of its file, where each has one of its own in a folder; None: all are in one file."""
    file_pattern: str = ""
    """Such names, with ``*``."""
    turns_hint: str = ""
    """The setting with which a trainer trains on the last turn of a per-turn row alone."""


@dataclass(frozen=True, slots=True)
class PredictionFormat:
    """How patches of agents are written for a harness that grades them."""

    name: str
    reader: str
    """Whose harness reads it: the possessive of its name."""
    rows: Callable[..., Iterator[Mapping[str, Any]]]
    """See `trajectories.export.tasks.predictions.predictions`."""
