"""Checks the names of outcomes, repositories and models in options: a mistyped name would make an empty file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select

from prchain.core.errors import UsageError
from sql.chosen import repository_ids
from sql.store import Transaction
from sql.tables import Trajectory
from trajectories.outcomes import FINAL, INFRASTRUCTURE, RUNNING, SUPERSEDED, WITHOUT_CHAIN

_MESSAGE_LENGTH = 300
"""The most characters of a message that lists names."""


def check_requested(
    tx: Transaction,
    *,
    outcomes: Collection[str],
    repository: str | None = None,
    model: str | None = None,
    scaffolds: Collection[str] | None = None,
) -> None:
    """Raise `UsageError` for an outcome, a model or a scaffold that no trajectory has, and for a repository that was
    not mined.

    An outcome that trajectories can have is accepted, even if none has it yet.
    """
    if repository is not None:
        repository_ids(tx, repository)
    if unknown := sorted(set(outcomes) - FINAL - INFRASTRUCTURE - {RUNNING, SUPERSEDED, *WITHOUT_CHAIN}):
        _check("outcome", unknown, _counts(tx, Trajectory.outcome))
    if model is not None:
        _check("model", [model], _counts(tx, Trajectory.model))
    if scaffolds is not None:
        _check("scaffold", sorted(scaffolds), _counts(tx, Trajectory.scaffold))


def _counts(tx: Transaction, column: Any) -> dict[str, int]:
    query = select(column, func.count()).group_by(column).order_by(column)
    return {str(name): int(count) for name, count in tx.connection.execute(query)}


def _check(field: str, names: Collection[str], counts: dict[str, int]) -> None:
    if unknown := [name for name in names if name not in counts]:
        names_in_use = ", ".join(f"{name} ({count:,})" for name, count in counts.items()) or "no trajectories at all"
        raise UsageError(
            f"no trajectory is of the {field} {', '.join(unknown)}; there are: {names_in_use}"[:_MESSAGE_LENGTH]
        )
