"""The ledger of calls in the database, where several processes of one run can share it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, bindparam, case, func, insert, select, text, update

from prchain.core.llm.gateway import Gateway
from prchain.core.llm.ledger import CallKey, CallNote, Spending, StoredReply, refuse
from prchain.core.llm.model import Reply
from prchain.core.llm.setup import make_gateway
from prchain.core.settings import Settings
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from sql.store import Store, Transaction
from sql.tables import LlmCall

_PAID = ("reserved", "stored", "lost")
"""States of calls that were, or may have been, paid for."""

# Statements that every call takes are made once: that takes as long as running them.
_CALLS = cast(Table, LlmCall.__table__)
_KEY = ("purpose", "subject", "sample", "attempt", "ordinal", "request_hash")
"""Columns that are fields of `CallKey`."""

_UNDER_WAY = LlmCall.state == "reserved"
_COUNTED = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)

_FIND = (
    select(LlmCall.reply, _COUNTED.label("usd"), LlmCall.started_at, LlmCall.finished_at)
    .where(*(_CALLS.c[name] == bindparam(name) for name in _KEY), LlmCall.state == "stored")
    .order_by(LlmCall.id)
    .limit(1)
)
_RESERVE = insert(_CALLS).returning(_CALLS.c.id)
_END = update(_CALLS).where(_CALLS.c.id == bindparam("call"))
_SPENT = select(func.sum(_COUNTED)).where(LlmCall.run == bindparam("run"), LlmCall.state.in_(_PAID))


class SqlLedger:
    """`prchain.core.llm.ledger.Ledger` over the table ``llm_calls``.

    `run` names the run: 32 characters at most. Processes that share it share the run's budget.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run

    def find(self, key: CallKey) -> StoredReply | None:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        with self._store.reading() as tx:
            row = tx.connection.execute(_FIND, _columns(key)).one_or_none()
        if row is None:
            return None
        return StoredReply(Reply.from_json(row.reply), row.usd, _seconds(row.started_at, row.finished_at))

    def reserve(self, key: CallKey, note: CallNote, usd: float | None, budget_usd: float | None) -> int:
        """See `prchain.core.llm.ledger.Ledger`. Raises `BudgetExceeded` and `StoreError`."""
        row = {
            "run": self._run,
            **_columns(key),
            "state": "reserved",
            "prompt": note.prompt,
            "prompt_hash": note.prompt_hash,
            "model": note.model,
            "priced_by": note.priced_by,
            "reserved_usd": usd,
            "started_at": now(),
        }
        with self._store.transaction() as tx:
            if budget_usd is not None:
                self._queue(tx)
                spent = self._spent(tx)
                if spent + (usd or 0.0) > budget_usd:
                    refuse(spent, usd or 0.0, budget_usd)
            return int(tx.connection.execute(_RESERVE, row).scalar_one())

    def settle(self, call: int, reply: Reply, usd: float | None) -> None:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        self._end(
            call,
            state="stored",
            usd=usd,
            tokens_in=reply.usage.tokens_in,
            tokens_cached=reply.usage.tokens_cached,
            tokens_out=reply.usage.tokens_out,
            reply=reply.to_json(),
        )

    def release(self, call: int, error: str) -> None:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        self._end(call, state="released", error=clean_text(error))

    def lose(self, call: int, error: str) -> None:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        self._end(call, state="lost", error=clean_text(error))

    def spending(self) -> Spending:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        query = select(
            func.count(),
            func.coalesce(func.sum(_COUNTED), 0.0),
            func.coalesce(func.sum(case((_COUNTED.is_(None), 1), else_=0)), 0),
            func.coalesce(func.sum(LlmCall.tokens_in), 0),
            func.coalesce(func.sum(LlmCall.tokens_cached), 0),
            func.coalesce(func.sum(LlmCall.tokens_out), 0),
            func.coalesce(func.sum(case((_UNDER_WAY, 1), else_=0)), 0),
            func.coalesce(func.sum(case((_UNDER_WAY, _COUNTED), else_=0.0)), 0.0),
        ).where(LlmCall.run == self._run, LlmCall.state.in_(_PAID))
        refused = select(func.count()).where(LlmCall.run == self._run, LlmCall.state.not_in(_PAID))
        with self._store.reading() as tx:
            calls, usd, unpriced, *others, reserved = tx.connection.execute(query).one()
            unpaid = tx.connection.execute(refused).scalar_one()
        tokens_in, cached, tokens_out, under_way = map(int, others)
        return Spending(
            calls, float(usd), int(unpriced), tokens_in, cached, tokens_out, int(unpaid), under_way, float(reserved)
        )

    def _queue(self, tx: Transaction) -> None:
        """Let no other process of this run add up its spending before this transaction has ended.

        SQLite has one writer at a time. On PostgreSQL two transactions would each miss the row that the other adds.
        """
        if tx.connection.dialect.name == "postgresql":
            number = int.from_bytes(hashlib.sha256(self._run.encode()).digest()[:8], "big", signed=True)
            tx.connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    def _spent(self, tx: Transaction) -> float:
        total = tx.connection.execute(_SPENT, {"run": self._run}).scalar_one()
        return float(total or 0.0)

    def _end(self, call: int, **values: Any) -> None:
        with self._store.transaction() as tx:
            tx.connection.execute(_END, {**values, "call": call, "finished_at": now()})


@contextmanager
def open_gateway(
    settings: Settings,
    store: Store,
    purposes: Sequence[str] = (),
    *,
    budget_usd: float | None = None,
    run: str | None = None,
) -> Iterator[Gateway]:
    """The models of the settings over the store's ledger, closed afterwards.

    `run` names the run whose budget it is; None: a new one. Raises `UsageError` and `SettingsError` where one of the
    `purposes` has no model, or with a budget no price.
    """
    gateway = make_gateway(settings, SqlLedger(store, run or uuid.uuid4().hex), budget_usd=budget_usd)
    with closing(gateway):
        gateway.check(*purposes)
        yield gateway


def _columns(key: CallKey) -> dict[str, Any]:
    return {name: getattr(key, name) for name in _KEY}


def _seconds(began: str, ended: str | None) -> float:
    """Between two times of a row; 0 where the clock was set back meanwhile."""
    if ended is None:
        return 0.0
    return max((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds(), 0.0)
