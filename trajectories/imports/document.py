"""A trajectory of others as its document tells it, in our values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trajectories.model import Entry
from trajectories.rows import StageRow, VerdictRow


@dataclass(frozen=True, slots=True)
class ForeignTrajectory:
    """What a document holds, without secrets."""

    content: str
    """See `sql.tables.rolled.ImportedTrajectory`, as for the next ones."""
    form: str
    agent: str
    agent_version: str
    entries: tuple[Entry, ...]
    stages: tuple[StageRow, ...]
    """One, but where prchain wrote the document."""
    verdicts: tuple[VerdictRow, ...] = ()
    """Those that the document tells, where prchain wrote it."""
    model: str | None = None
    judge: str | None = None
    session: str | None = None
    document: str | None = None
    source: str | None = None
    licence: str | None = None
    repository: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    overview: str | None = None
    sample: int = 0
    usd: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    told: Mapping[str, Any] = field(default_factory=dict)
    """See `trajectories.provenance.TrajectoryOrigin`."""
    left_out: Counter[str] = field(default_factory=Counter)
