"""The ledger of calls in the database, where several processes of one run can share it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, insert, select, text, update
from sqlalchemy.sql.elements import ColumnElement

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

_UNDER_WAY = LlmCall.state == "reserved"
_COUNTED = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)


class SqlLedger:
    """`prchain.core.llm.ledger.Ledger` over the table ``llm_calls``.

    `run` names the run: 32 characters at most. Processes that share it share the run's budget.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run

    def find(self, key: CallKey) -> StoredReply | None:
        """See `prchain.core.llm.ledger.Ledger`. Raises `StoreError`."""
        columns = (LlmCall.reply, _COUNTED.label("usd"), LlmCall.started_at, LlmCall.finished_at)
        stored = select(*columns).where(*_has_key(key), LlmCall.state == "stored")
        with self._store.reading() as tx:
            row = tx.connection.execute(stored.order_by(LlmCall.id).limit(1)).one_or_none()
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
            return int(tx.connection.execute(insert(LlmCall).values(row).returning(LlmCall.id)).scalar_one())

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
        ).where(*self._paid())
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
        total = tx.connection.execute(select(func.sum(_COUNTED)).where(*self._paid())).scalar_one()
        return float(total or 0.0)

    def _paid(self) -> tuple[ColumnElement[bool], ...]:
        return LlmCall.run == self._run, LlmCall.state.in_(_PAID)

    def _end(self, call: int, **values: Any) -> None:
        with self._store.transaction() as tx:
            tx.connection.execute(update(LlmCall).where(LlmCall.id == call).values(**values | {"finished_at": now()}))


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


def _columns(key: CallKey) -> Mapping[str, Any]:
    return {
        "purpose": key.purpose,
        "subject": key.subject,
        "sample": key.sample,
        "attempt": key.attempt,
        "ordinal": key.ordinal,
        "request_hash": key.request_hash,
    }


def _has_key(key: CallKey) -> tuple[ColumnElement[bool], ...]:
    return tuple(getattr(LlmCall, name) == value for name, value in _columns(key).items())


def _seconds(began: str, ended: str | None) -> float:
    """Between two times of a row; 0 where the clock was set back meanwhile."""
    if ended is None:
        return 0.0
    return max((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds(), 0.0)
