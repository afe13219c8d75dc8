"""Which trajectories a view shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select, tuple_

from prchain.core.errors import UsageError
from prchain.view.options import ViewOptions
from sql.store import Transaction
from sql.tables import Chain, ImportedTrajectory, Repository, Trajectory
from trajectories.privileged import DISCLOSED
from trajectories.provenance import UNKNOWN

_NO_CHAIN = func.coalesce(Trajectory.chain_id, "")
_REPOSITORY = func.coalesce(Repository.owner + "/" + Repository.name, ImportedTrajectory.repository, UNKNOWN)
ORDER = (_NO_CHAIN, Trajectory.sample, Trajectory.id)
"""Of trajectories in lists: those of one chain stand together."""


@dataclass(frozen=True, slots=True)
class ShownTrajectory:
    """A trajectory in a list."""

    id: str
    chain_id: str | None
    sample: int
    repository: str
    scaffold: str
    model: str
    outcome: str
    reason: str | None
    accepted: int
    stages: int
    steps: int
    tokens_in: int
    tokens_out: int
    usd: float | None
    seconds: float
    started_at: str


def _wanted(options: ViewOptions, *columns: Any) -> Select[Any]:
    query = (
        select(*columns)
        .outerjoin(Chain, Chain.id == Trajectory.chain_id)
        .outerjoin(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTrajectory, ImportedTrajectory.trajectory_id == Trajectory.id)
    )
    if options.outcome is not None:
        query = query.where(Trajectory.outcome == options.outcome)
    if options.repository is not None:
        query = query.where(func.lower(_REPOSITORY) == options.repository.lower())
    if not options.reference:
        query = query.where(Trajectory.scaffold != DISCLOSED)  # its agents were told of the reference
    return query


def shown_ids(tx: Transaction, options: ViewOptions) -> frozenset[str] | None:
    """The trajectories that a view shows; None for all of them."""
    if options.outcome is None and options.repository is None and options.limit is None and options.reference:
        return None
    query = _wanted(options, Trajectory.id).order_by(Trajectory.started_at.desc(), Trajectory.id).limit(options.limit)
    return frozenset(str(id_) for (id_,) in tx.connection.execute(query))


def check_outcome(tx: Transaction, outcome: str | None) -> None:
    """Raises `UsageError` where no trajectory ended so."""
    found = [str(name) for (name,) in tx.connection.execute(select(Trajectory.outcome).distinct())]
    if outcome is not None and outcome not in found:
        known = f"; the outcomes are {', '.join(sorted(found))}" if found else ""
        raise UsageError(f"no trajectory ended as {outcome!r}{known}")


def every_id(tx: Transaction, options: ViewOptions) -> list[str]:
    """The ids of the trajectories that a view shows, in the order of lists."""
    shown = shown_ids(tx, options)
    rows = tx.connection.execute(select(Trajectory.id).order_by(*ORDER))
    return [str(id_) for (id_,) in rows if shown is None or id_ in shown]


def shown_of_chain(tx: Transaction, chain_id: str, shown: frozenset[str] | None) -> list[str]:
    """The ids of the trajectories over a chain that a view shows (`shown_ids`), in the order of lists."""
    query = select(Trajectory.id).where(Trajectory.chain_id == chain_id).order_by(*ORDER)
    ids = [str(id_) for (id_,) in tx.connection.execute(query)]
    return [id_ for id_ in ids if shown is None or id_ in shown]


def list_page(
    tx: Transaction, options: ViewOptions, after: str | None, most: int
) -> tuple[Sequence[ShownTrajectory], bool]:
    """The trajectories of one page of the list, those after the one named, and whether there are more."""
    columns = (
        *(getattr(Trajectory, name) for name in ("id", "chain_id", "sample")),
        _REPOSITORY.label("repository"),
        *(getattr(Trajectory, name) for name in ("scaffold", "model", "outcome", "reason", "accepted")),
        func.coalesce(Chain.length, 0).label("stages"),
        *(getattr(Trajectory, name) for name in ("steps", "tokens_in", "tokens_out", "usd", "seconds", "started_at")),
    )
    query = _wanted(options, *columns).order_by(*ORDER)
    if after is not None:
        key = tx.connection.execute(select(*ORDER).where(Trajectory.id == after)).one_or_none()
        if key is None:
            return (), False
        query = query.where(tuple_(*ORDER) > tuple_(*key))
    shown = shown_ids(tx, options)
    if shown is None:
        rows = list(tx.connection.execute(query.limit(most + 1)).mappings())
    else:
        rows = [row for row in tx.connection.execute(query).mappings() if row["id"] in shown][: most + 1]
    return tuple(ShownTrajectory(**row) for row in rows[:most]), len(rows) > most
