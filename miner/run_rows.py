"""The row of one run over one repository (`mine_runs`), from its beginning to its end."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import update

from miner.source import ApiUsage
from prchain.core.secrets.scrub import Counts
from prchain.core.timestamps import now
from sql.store import Transaction
from sql.tables import MineRun

COSTS = ("graphql_requests", "rest_requests", "points")
"""The columns of what a run cost, which a report has too."""


def begin(tx: Transaction, spec: str, source: str) -> int:
    """Make the row of a run over a line of the list; returns its id."""
    run_id = max((i for (i,) in tx.rows(MineRun, "id")), default=0) + 1
    row = {
        "id": run_id,
        "spec": spec,
        "source": source,
        "started_at": now(),
        "outcome": "running",
        **asdict(ApiUsage()),
    }
    # An earlier run of this line that did not end was killed, or still runs and will store how it ended.
    unfinished = update(MineRun).where(MineRun.spec == spec, MineRun.outcome == "running")
    tx.connection.execute(unfinished.values(outcome="interrupted"))
    tx.upsert(MineRun, [row])
    return run_id


def note_repository(tx: Transaction, run_id: int, repository_id: int) -> None:
    """Store which repository the run is over, when that is known."""
    tx.connection.execute(update(MineRun).where(MineRun.id == run_id).values(repository_id=repository_id))


def note_cost(tx: Transaction, run_id: int, usage: ApiUsage, replaced: Counts) -> None:
    """Store what the run has cost so far, and how many secrets it replaced."""
    values = {**asdict(usage), "replaced": replaced or None}
    tx.connection.execute(update(MineRun).where(MineRun.id == run_id).values(**values))


def end(tx: Transaction, run_id: int, outcome: str, reason: str | None) -> None:
    """Store how the run ended."""
    values = {"finished_at": now(), "outcome": outcome, "reason": reason}
    tx.connection.execute(update(MineRun).where(MineRun.id == run_id).values(**values))


def end_running(tx: Transaction, spec: str, outcome: str, reason: str) -> dict[str, Any]:
    """Store how the run over a line ended that did not end by itself; returns what it cost, by `COSTS`."""
    spent = list(tx.rows(MineRun, *COSTS, spec=spec, outcome="running"))
    running = update(MineRun).where(MineRun.spec == spec, MineRun.outcome == "running")
    tx.connection.execute(running.values(finished_at=now(), outcome=outcome, reason=reason))
    return dict(zip(COSTS, spent[-1], strict=True)) if spent else {}
