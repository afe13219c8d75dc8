"""The table of what people say of chains."""

from __future__ import annotations

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.tables.base import Base


class ChainLabel(Base):
    """That somebody would keep or drop a chain.

    No foreign key: a chain that a build does not choose any more is deleted, one that a later build chooses again has
    the same id, and what somebody said of it still holds.
    """

    __tablename__ = "chain_labels"

    chain_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    labeller: Mapped[str] = mapped_column(String(64), primary_key=True)
    label: Mapped[str] = mapped_column(String(16))
    """``keep`` or ``drop``."""
    note: Mapped[str | None] = mapped_column(Text)
    labelled_at: Mapped[str] = mapped_column(String(32))
