"""Sums over the rows of trajectories: cost and tokens of their calls, hidden test results of their stages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select

from environments.suites.outcomes import PASSED
from sql.store import Transaction
from sql.tables import LlmCall, Trajectory, Verdict
from trajectories.extensions import not_extended
from trajectories.outcomes import KEPT
from trajectories.privileged import DISCLOSED


def calls_of(tx: Transaction, trajectory_id: str) -> dict[str, Any]:
    """The sums of a trajectory's calls: ``usd`` (None where a price is not known), ``tokens_in``, ``tokens_out``.

    Of every purpose: agent, judge, observers. Calls in flight and lost calls count with the amount reserved for them.
    Calls of its parent are not counted.
    """
    query = select(LlmCall.usd, LlmCall.reserved_usd, LlmCall.tokens_in, LlmCall.tokens_out).where(
        LlmCall.subject.startswith(f"{trajectory_id}/", autoescape=True),
        LlmCall.state != "released",
    )
    calls = list(tx.connection.execute(query))
    spent = [reserved if usd is None else usd for usd, reserved, _, _ in calls]
    return {
        "usd": None if any(amount is None for amount in spent) else round(sum(amount or 0.0 for amount in spent), 9),
        "tokens_in": sum(tokens or 0 for _, _, tokens, _ in calls),
        "tokens_out": sum(tokens or 0 for _, _, _, tokens in calls),
    }


def price_sources(tx: Transaction) -> list[dict[str, Any]]:
    """Where the prices of all calls that were or may have been paid for are from, each source in a row.

    ``from`` is ``settings``, ``script``, a table of prices with its version and date, ``unknown``, or ``not recorded``
    (by earlier versions); ``calls`` and ``usd`` (None where the price is not known) are sums; ``first`` and ``last``
    are the days, in UTC, of the first and the last call.
    """
    amount = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)
    days = func.min(LlmCall.started_at), func.max(LlmCall.started_at)
    query = (
        select(LlmCall.priced_by, amount.is_(None), func.count(), func.sum(amount), *days)
        .where(LlmCall.state != "released")
        .group_by(LlmCall.priced_by, amount.is_(None))
    )
    rows = [
        {
            "from": source or ("unknown" if unknown else "not recorded"),
            "calls": int(calls),
            "usd": None if unknown else round(float(usd), 6),
            "first": first[:10],
            "last": last[:10],
        }
        for source, unknown, calls, usd, first, last in tx.connection.execute(query)
    ]
    return sorted(rows, key=lambda row: (row["from"], row["usd"] is None))


def hidden_tests(tx: Transaction, trajectories: Collection[str] | None = None) -> dict[str, int]:
    """Hidden test results of accepted stages: how many ``passed``, ``failed``, and were ``not_run``.

    Of the trajectories with these ids; None: of those with an outcome in `KEPT` whose
    agents were not told a part of a process graph, and that no other one extends.
    """
    query = (
        select(Verdict.tests, func.count())
        .join(Trajectory, Trajectory.id == Verdict.trajectory_id)
        .where(Verdict.accepted.is_(True))
        .group_by(Verdict.tests)
    )
    if trajectories is None:
        query = query.where(
            Trajectory.outcome.in_(sorted(KEPT)),
            Verdict.position <= Trajectory.accepted,
            Trajectory.scaffold != DISCLOSED,
            not_extended(),
        )
    else:
        query = query.where(Trajectory.id.in_(sorted(trajectories)))
    counts = {"passed": 0, "failed": 0, "not_run": 0}
    for outcome, count in tx.connection.execute(query):
        counts["not_run" if outcome is None else "passed" if outcome == PASSED else "failed"] += count
    return counts
