"""Makes a SQLAlchemy engine from a database's URL; its transactions begin and isolate as they say.

Python's SQLite driver begins a transaction late, by rules of its own. Here it never does: the engine sends BEGIN
itself, IMMEDIATE for a transaction that writes, so that a writer queues before it has read anything, and plain for one
that reads, which then sees one state of the database from its first row to its last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from prchain.core.errors import SettingsError, StoreUnavailable

BUSY_SECONDS = 60
"""How long a SQLite writer waits for a writer in another process."""

_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",  # with WAL a killed process loses nothing; only a power cut can undo the last commits
    "foreign_keys=ON",
    "cache_size=-32768",
    "journal_size_limit=67108864",
)

_WRITES = "prchain writes"
"""What a connection of SQLite is set to, in its `info`."""


def parse_url(database: str) -> URL:
    """Return the URL of a database given as SQLAlchemy URL or, for SQLite, as the bare path of its file.

    Raises `SettingsError` for anything but a SQLite file or a PostgreSQL database.
    """
    if "://" not in database:
        url = URL.create("sqlite", database=database)
    else:
        try:
            url = make_url(database)
        except (ArgumentError, ValueError) as error:
            raise SettingsError("the database's URL cannot be read; write sqlite:///PATH or a path") from error
    if url.drivername in _POSTGRESQL:
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise SettingsError(f"{url.drivername} databases are not supported; use sqlite:///PATH or postgresql://...")
    if not url.database or url.database == ":memory:" or "mode" in url.query:
        raise SettingsError("the database must be a file, so that a killed run can go on; write sqlite:///PATH")
    return url


def shown(url: URL) -> str:
    """The database as messages name it: a path, or a URL without credentials and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database; None for PostgreSQL."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def make_engine(url: URL) -> Engine:
    """An engine for the URL that has not connected yet; `reader` and `writer` give the two faces of it."""
    sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS}} if sqlite else {"pool_pre_ping": True}
    try:
        # Parameters are rows, and rows hold mined text: they do not belong into the message of an error.
        engine = create_engine(url, hide_parameters=True, max_overflow=-1, **options)
    except (ImportError, NoSuchModuleError) as error:
        raise StoreUnavailable(
            f"the driver for {url.drivername} is missing; run: pip install 'prchain[postgres]'"
        ) from error
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def reader(engine: Engine) -> Engine:
    """The engine with transactions that see one state of the database and refuse to write."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(writes=False)
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writer(engine: Engine) -> Engine:
    """The engine with transactions that write."""
    return engine.execution_options(writes=True)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", True)
    if connection.info.get(_WRITES) is not writes:  # of the driver's connection, which keeps it
        connection.info.pop(_WRITES, None)
        connection.exec_driver_sql(f"PRAGMA query_only={'OFF' if writes else 'ON'}")
        connection.info[_WRITES] = writes
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
