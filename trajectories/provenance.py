"""Where trajectories of others are from: reading their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sql.store import Transaction
from sql.tables import ImportedTrajectory

UNKNOWN = "unknown"
"""Of an import: what nobody said."""


def repository_of(told: str | None) -> str:
    """What lists and cards call the repository of an import."""
    return told or UNKNOWN


def project_of(repository: str) -> str | None:
    """The repository as the audit takes it: None where it is not known."""
    return None if repository == UNKNOWN else repository


@dataclass(frozen=True, slots=True)
class TrajectoryOrigin:
    """A row of ``imported_trajectories`` (`sql.tables.rolled.ImportedTrajectory`, whose columns these are)."""

    trajectory_id: str
    content: str
    form: str
    source: str | None
    licence: str | None
    session: str | None
    document: str | None
    agent: str
    agent_version: str
    repository: str | None
    told: Mapping[str, Any] = field(default_factory=dict)
    """What prchain wrote of it elsewhere, as far as it is known: ``program``, ``outcome``, ``language``, ``chain``,
    ``trajectory``, ``parent`` (id and turns), ``proofs`` (stage to what its proof is worth). Of what was recorded
    ``parent``, ``last_reply`` (which of the run's replies its last one is) and ``with_tools``."""
    left_out: Mapping[str, int] = field(default_factory=dict)


def read_provenance(tx: Transaction, trajectory_id: str) -> TrajectoryOrigin | None:
    """Where a trajectory is from; None for one of ours."""
    return next(tx.read(TrajectoryOrigin, ImportedTrajectory, trajectory_id=trajectory_id), None)


def all_provenance(tx: Transaction) -> Iterator[TrajectoryOrigin]:
    """Where all imports are from."""
    return tx.read(TrajectoryOrigin, ImportedTrajectory)
