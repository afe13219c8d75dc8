"""The only code that opens sessions.

A `Store` is one database by URL. Work is done inside `Store.transaction()`, which either commits whole or leaves
nothing behind:

    with store.transaction() as tx:
        tx.upsert(PullRequest, rows)
        tx.upsert(Cursor, [cursor])

SQLite allows one writer at a time, so transactions of one process queue on a lock of the store instead of polling
each other's file locks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import URL, ColumnElement, Connection, Delete, Engine, Select, Table, bindparam, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from prchain.core.errors import StoreUnavailable
from sql.engine import make_engine, parse_url, reader, shown, sqlite_file, writer
from sql.failures import named_failures, named_file_failures
from sql.migrate import check_version, migrate, too_old
from sql.tables import Base

Row = Mapping[str, Any]

_T = TypeVar("_T")

_BATCH = 10_000
"""Rows sent or fetched at once: enough for speed, few enough to keep memory flat."""

_MANY = 1_000
"""Rows written by one call from which on the planner has to know about them."""


class Transaction:
    """One open transaction; rows go in and out as mappings from column name to value.

    `connection` is SQLAlchemy's, for queries that these methods do not cover.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def upsert(self, table: type[Base], rows: Iterable[Row]) -> int:
        """Insert rows; where the primary key is there already, update the columns that the row names and no others.

        Every row of one call names the same columns. Returns the number of rows given.
        """
        return self._write(table, rows, update=True)

    def insert_new(self, table: type[Base], rows: Iterable[Row]) -> int:
        """Insert rows whose primary key is not there yet; leave the others as they are. Returns the rows given."""
        return self._write(table, rows, update=False)

    def bulk(self, table: type[Base], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many new rows given as tuples in the order of `columns`; the fastest way in.

        Columns that are not named become null: the defaults of `sql.tables` are not filled in. JSON is given
        as the text that is to be stored.
        """
        quote = self.connection.dialect.identifier_preparer.quote
        into = f"{quote(_table(table).name)} ({', '.join(map(quote, columns))})"
        if self.connection.dialect.name == "sqlite":
            statement = f"INSERT INTO {into} VALUES ({', '.join('?' * len(columns))})"
            for batch in _batches(map(tuple, rows)):
                self.connection.exec_driver_sql(statement, batch)
        else:
            cursor = self.connection.connection.cursor()
            with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            cursor.close()
        self._analyze(table)

    def delete(self, table: type[Base], **equals: Any) -> None:
        """Delete the rows whose columns equal the given values."""
        self.connection.execute(_deleting(_table(table), *_names(equals)), _given(equals))

    def rows(self, table: type[Base], *columns: str, **equals: Any) -> Iterator[Sequence[Any]]:
        """Yield tuples of the named columns, in primary-key order, of the rows whose columns equal the given values.

        Rows stream: memory does not grow with their number. Texts sort as the database's collation says.
        """
        query = _selecting(_table(table), columns, *_names(equals))
        # A caller that wants only the first row leaves the rest: the server's cursor is closed then, too.
        with self.connection.execute(query, _given(equals), execution_options={"yield_per": _BATCH}) as result:
            yield from result

    def read(self, kind: type[_T], table: type[Base], **equals: Any) -> Iterator[_T]:
        """Yield a row's columns as a `kind`, a dataclass whose fields are named as columns; else as `rows`."""
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        yield from (kind(*row) for row in self.rows(table, *names, **equals))

    def count(self, table: type[Base], **equals: Any) -> int:
        """How many rows have columns that equal the given values."""
        query = _counting(_table(table), *_names(equals))
        return int(self.connection.execute(query, _given(equals)).scalar_one())

    def _write(self, table: type[Base], rows: Iterable[Row], *, update: bool) -> int:
        target = _table(table)
        row_count = 0
        for batch in _batches(map(dict, rows)):
            statement = _inserting(target, self.connection.dialect.name, tuple(batch[0]) if update else ())
            self.connection.execute(statement, batch)
            row_count += len(batch)
        if row_count >= _MANY:
            self._analyze(table)
        return row_count

    def _analyze(self, table: type[Base]) -> None:
        """Let PostgreSQL look at a table that has just grown, long before its own daemon would.

        Until then it takes the table for empty, and checks each foreign key into it by reading it through: 20,000
        landings took 11 s instead of 0.1.
        """
        if self.connection.dialect.name == "postgresql":
            self.connection.exec_driver_sql(f"ANALYZE {_table(table).name}")


class Store:
    """A database of prchain, opened by URL and migrated to this version."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._reader = reader(engine)
        self._writer = writer(engine)
        self._lock = threading.Lock()
        self._writing_thread: int | None = None

    @property
    def url(self) -> URL:
        """The database's URL; `sql.engine.shown` gives it without credentials."""
        return self.engine.url

    @classmethod
    def open(cls, database: str, *, create: bool = True) -> Store:
        """Open the database, given as SQLAlchemy URL or as a SQLite file's path, and apply pending migrations.

        Where there is none it is made, with the folder of its file; with `create` false that is `StoreUnavailable`.
        Raises `SettingsError` for a URL that cannot be used, and `StoreUnavailable`, `StoreCorrupt`, `StoreTooNew` or
        `DiskFull`, each with one line.
        """
        url = parse_url(database)
        file = sqlite_file(url)
        if file:
            with named_file_failures(file):
                if not create and not file.exists():
                    raise StoreUnavailable(_no_database(url))
                file.parent.mkdir(parents=True, exist_ok=True)
        return cls._opened(url, migrate)

    @classmethod
    def open_for_reading(cls, database: str) -> Store:
        """Open a database that is there, and change nothing in it: no migration is applied.

        Raises as `open`, and `StoreTooOld` for a database that would have to be migrated.
        """
        url = parse_url(database)
        if file := sqlite_file(url):
            with named_file_failures(file):
                if not file.exists():
                    raise StoreUnavailable(_no_database(url))
                if not file.stat().st_size:
                    raise too_old(url)  # SQLite would make a database of it
        return cls._opened(url, check_version)

    @classmethod
    def _opened(cls, url: URL, prepare: Callable[[Engine], None]) -> Store:
        store = cls(make_engine(url))
        try:
            with named_failures(url):
                prepare(store.engine)
        except BaseException:
            store.close()
            raise
        return store

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that writes: committed at the end of the block, rolled back when the block raises.

        Transactions do not nest. Raises `StoreError`.
        """
        if self._writing_thread == threading.get_ident():
            raise RuntimeError("a transaction of this thread is open already")
        with self._lock, named_failures(self.url), self._writer.begin() as connection:
            self._writing_thread = threading.get_ident()
            try:
                yield Transaction(connection)
            finally:
                self._writing_thread = None

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one state of the database, never waits for a writer and refuses to write.

        Raises `StoreError`.
        """
        with named_failures(self.url), self._reader.connect() as connection:
            yield Transaction(connection)

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def _no_database(url: URL) -> str:
    return f"there is no database at {shown(url)}; `prchain mine LIST` makes one, --db names another"


def _table(table: type[Base]) -> Table:
    target = table.__table__
    assert isinstance(target, Table)
    return target


_Names = tuple[str, ...]

_statement = lru_cache(maxsize=512)
"""Keeps statements: SQLAlchemy takes as long to make a small one as the database to answer it."""


def _names(equals: Mapping[str, Any]) -> tuple[_Names, _Names]:
    """The columns that have a value, and those that are null."""
    return tuple(name for name in equals if equals[name] is not None), tuple(
        name for name in equals if equals[name] is None
    )


def _given(equals: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in equals.items() if value is not None}


def _holds(target: Table, given: _Names, null: _Names) -> list[ColumnElement[bool]]:
    return [*(target.c[name] == bindparam(name) for name in given), *(target.c[name].is_(None) for name in null)]


@_statement
def _selecting(target: Table, columns: _Names, given: _Names, null: _Names) -> Select[Any]:
    chosen = [target.c[name] for name in columns]
    return select(*chosen).where(*_holds(target, given, null)).order_by(*target.primary_key.columns)


@_statement
def _counting(target: Table, given: _Names, null: _Names) -> Select[Any]:
    return select(func.count()).select_from(target).where(*_holds(target, given, null))


@_statement
def _deleting(target: Table, given: _Names, null: _Names) -> Delete:
    return delete(target).where(*_holds(target, given, null))


@_statement
def _inserting(target: Table, dialect: str, updates: _Names) -> Insert:
    """Rows with a primary key that is there change those of these columns that are not part of it."""
    insert = (sqlite if dialect == "sqlite" else postgresql).insert(target)
    keys = [column.name for column in target.primary_key.columns]
    changed = [name for name in updates if name not in keys]
    statement: Insert = (
        insert.on_conflict_do_update(index_elements=keys, set_={name: insert.excluded[name] for name in changed})
        if changed
        else insert.on_conflict_do_nothing(index_elements=keys)
    )
    return statement


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
