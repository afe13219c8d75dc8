"""The tables of lineage: whose lines each landed pull request changes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class LineageWalk(Base):
    """The last walk over a repository's history that found out who owns each line."""

    __tablename__ = "lineage_walks"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(64))
    """Hash of the landings that were walked and of the rules' version."""
    key_before: Mapped[str | None] = mapped_column(String(64))
    """That of the walk before, where this one went on from it."""
    commits: Mapped[int]
    """First-parent commits of all branches that landings stand on."""
    branches: Mapped[int]
    missing_blobs: Mapped[int]
    """Files' contents that the repository lacks; they were taken for empty."""
    unread: Mapped[int]
    """Text files at the newest landing of the first branch whose lines have no known owners, because what was there
    before could not be read."""


class LineageLanding(Base):
    """What became of a landed pull request when lineage was walked, and its sizes."""

    __tablename__ = "lineage_landings"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """Exactly one of `chains.lineage.outcomes`."""
    owners: Mapped[int]
    """How many other pull requests' lines it removes, changes or puts lines beside."""
    removed_lines: Mapped[int]
    real_removed: Mapped[int]
    """Of these, lines of source and tests that are code and are not put elsewhere by it."""
    added_lines: Mapped[int]
    real_added: Mapped[int]
    """Lines of source and tests that are code; moved ones too."""
    moved_lines: Mapped[int]
    """Real lines that it takes away in one place and puts in another."""
    same_as: Mapped[int | None]
    """The pull request whose change it repeats on another branch; its lines are owned by that one."""


class Lineage(Base):
    """That a later pull request changes lines of an earlier one. Lines are counted."""

    __tablename__ = "lineage"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "later"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        Index("ix_lineage_earlier", "repository_id", "earlier"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    later: Mapped[int] = mapped_column(primary_key=True)
    earlier: Mapped[int] = mapped_column(primary_key=True)
    removed_lines: Mapped[int]
    """Lines of the earlier one, in any file, that the later one removes or changes."""
    real_lines: Mapped[int]
    """Of these, lines of source and tests that are code (no comment, import, bracket, blank) and are not moved."""
    source_lines: Mapped[int]
    """Of the real ones, those in source files."""
    moved_lines: Mapped[int]
    """Real lines of the earlier one that the later one takes away in one place and puts in another."""
    inserted_lines: Mapped[int]
    """Real lines that the later one puts beside lines of the earlier one, where it removes none."""
    functions: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of functions and classes that the earlier one introduced and the later one changes."""
    names: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list of names that the earlier one introduced and the later one begins to use."""
