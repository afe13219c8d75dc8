"""The table of tasks that others published, which became chains of one stage."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class ImportedTask(Base):
    """Where the task of a chain with the strategy ``imported`` is from, and what its publisher says of it."""

    __tablename__ = "imports"
    __table_args__ = (Index("ix_imports_instance", "instance_id"),)

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    """Hash of data set, instance and content; `chains.imports.instance`."""
    source: Mapped[str] = mapped_column(String(255))
    """The data set: ``owner/name`` of a hub, or the name of a file or folder."""
    revision: Mapped[str | None] = mapped_column(String(64))
    split: Mapped[str | None] = mapped_column(String(64))
    form: Mapped[str] = mapped_column(String(32))
    """A name of `chains.imports.forms`."""
    instance_id: Mapped[str] = mapped_column(String(255))
    benchmark: Mapped[bool]
    """Whether it is there to measure models: no export of samples takes it unless told."""
    licence: Mapped[str | None] = mapped_column(String(64))
    """Of the repository, in the publisher's words."""
    difficulty: Mapped[str | None] = mapped_column(String(64))
    location: Mapped[str | None] = mapped_column(Text)
    """The repository of ours that holds both ends of the stage and borrows the rest; null while it waits for one."""
    base_commit: Mapped[str] = mapped_column(String(64))
    patch: Mapped[str] = mapped_column(Text)
    breaks: Mapped[bool]
    """Whether the patch brings a fault in, which the reference takes back."""
    test_patch: Mapped[str] = mapped_column(Text)
    f2p: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list: the publisher's F2P tests, by its log parser's names."""
    p2p: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list: its P2P tests."""
    image: Mapped[str | None] = mapped_column(String(512))
    image_by: Mapped[str | None] = mapped_column(String(8))
    """``column``, or ``rule``: the publisher's way to name images."""
    workdir: Mapped[str | None] = mapped_column(String(255))
    """Where the image has the repository."""
    test_command: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of lines of shell; empty where the publisher names none."""
    log_parser: Mapped[str | None] = mapped_column(String(64))
    imported_at: Mapped[str] = mapped_column(String(32))
