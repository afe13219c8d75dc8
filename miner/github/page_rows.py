"""What pages are parsed into: rows by table, and the rest of a connection that is still owed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from miner.archive import Json
from sql.tables import Base

Row = dict[str, Any]


@dataclass(frozen=True)
class Connection:
    """One nested list of a pull request: its GraphQL field, and the ``more_*`` file that pages through it."""

    field: str
    file: str
    rows: Callable[[Key, list[Json], int], PageRows]
    total_holds: bool = True
    """Whether ``totalCount`` counts what the connection lists. That of ``timelineItems`` counts all kinds of events,
    whichever ``itemTypes`` are asked for (seen by others against GitHub; its documentation does not say)."""
    archived_without: bool = False
    """Whether older archived pages lack the field, because it was not asked for then."""
    total_column: str | None = None
    """The column of `PullRequest` that has ``totalCount``."""


@dataclass(frozen=True)
class Key:
    """Whose rows: repository, its ``owner/name``, and the pull request's number."""

    repository_id: int
    repository: str
    number: int

    @property
    def columns(self) -> Row:
        return {"repository_id": self.repository_id, "number": self.number}


@dataclass(frozen=True)
class PendingConnection:
    """The rest of a connection that did not fit into the answer."""

    connection: str
    node_id: str
    number: int
    after: str | None
    offset: int
    """How many items were listed before it."""
    hidden: int = 0
    """How many of these were null."""
    again: bool = False
    """Whether it was read to its end before, and lacked something."""


@dataclass
class PageRows:
    """Rows by table, in an order in which foreign keys hold, and what is still owed to complete them."""

    tables: dict[type[Base], dict[tuple[Any, ...], Row]] = field(default_factory=dict)
    owed: list[PendingConnection] = field(default_factory=list)

    def add(self, table: type[Base], row: Row, *key: Any) -> None:
        """Put in a row; a later one with the same key takes its place."""
        self.tables.setdefault(table, {})[key] = row

    def merge(self, other: PageRows) -> PageRows:
        """Put in all rows of `other`; returns itself."""
        for table, rows in other.tables.items():
            self.tables.setdefault(table, {}).update(rows)
        self.owed.extend(other.owed)
        return self

    def of(self, table: type[Base]) -> list[Row]:
        """The rows of one table."""
        return list(self.tables.get(table, {}).values())
