"""Whether what an export is asked for by name is known: a name that is mistyped would make an empty file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select

from prchain.errors import UsageError
from sql.chosen import repository_ids
from sql.store import Transaction
from sql.tables import Trajectory
from trajectories.outcomes import FINAL, INFRASTRUCTURE, RUNNING, SUPERSEDED

_SHOWN = 300
"""Characters of a list of names."""


def check_wanted(
    tx: Transaction, *, outcomes: Collection[str], repository: str | None = None, model: str | None = None
) -> None:
    """Raise `UsageError` for an outcome or a model that no trajectory has, and for a repository that was not mined.

    An outcome that trajectories can have is no mistake, also where none has it yet.
    """
    if repository is not None:
        repository_ids(tx, repository)
    if unknown := sorted(set(outcomes) - FINAL - INFRASTRUCTURE - {RUNNING, SUPERSEDED}):
        _check("outcome", unknown, _counts(tx, Trajectory.outcome))
    if model is not None:
        _check("model", [model], _counts(tx, Trajectory.model))


def _counts(tx: Transaction, column: Any) -> dict[str, int]:
    query = select(column, func.count()).group_by(column).order_by(column)
    return {str(name): int(count) for name, count in tx.connection.execute(query)}


def _check(what: str, names: Collection[str], counts: dict[str, int]) -> None:
    if unknown := [name for name in names if name not in counts]:
        there = ", ".join(f"{name} ({count:,})" for name, count in counts.items()) or "no trajectories at all"
        raise UsageError(f"no trajectory is of the {what} {', '.join(unknown)}; there are: {there}"[:_SHOWN])
