"""The ledger of what models were asked."""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.tables.base import Base


class LlmCall(Base):
    """One call to a model: reserved before it is sent, settled when the reply is stored."""

    __tablename__ = "llm_calls"
    __table_args__ = (
        Index("ix_llm_calls_key", "purpose", "subject", "sample", "attempt", "ordinal", "request_hash"),
        Index("ix_llm_calls_run", "run", "state"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    run: Mapped[str] = mapped_column(String(32))
    """Which run of which command made it; a budget is a run's."""
    purpose: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(String(255))
    """What it was for, e.g. a chain's id and a stage."""
    sample: Mapped[int]
    attempt: Mapped[int]
    ordinal: Mapped[int]
    """Which paid call of this question: a reply that did not parse is asked for again."""
    request_hash: Mapped[str] = mapped_column(String(64))
    """SHA-256 of everything that was sent."""
    state: Mapped[str] = mapped_column(String(16))
    """``reserved`` (in flight, or lost in a kill), ``stored``, ``released`` (refused unpaid, or never sent) or ``lost``
    (sent, and perhaps paid, without a reply). Reserved and lost calls count with what was reserved for them."""
    prompt: Mapped[str] = mapped_column(String(64))
    prompt_hash: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(255))
    priced_by: Mapped[str | None] = mapped_column(String(64))
    """Where its price is from: ``settings``, ``script``, or a table of prices with its version and date; null where the
    price is not known, and of calls by earlier versions."""
    reserved_usd: Mapped[float | None]
    """The most it can cost; null where the price is not known."""
    usd: Mapped[float | None]
    """What it cost by its usage; null where the price is not known, or nothing came back."""
    tokens_in: Mapped[int | None]
    tokens_cached: Mapped[int | None]
    """Of `tokens_in`, those read from the endpoint's cache."""
    tokens_out: Mapped[int | None]
    reply: Mapped[str | None] = mapped_column(Text)
    """JSON of the reply (`prchain.core.llm.model.Reply`); null where nothing came back."""
    error: Mapped[str | None] = mapped_column(Text)
    started_at: Mapped[str] = mapped_column(String(32))
    finished_at: Mapped[str | None] = mapped_column(String(32))
