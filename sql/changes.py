"""Whether anything was written to a database since one looked: a stamp that is another one after each transaction."""

from __future__ import annotations

from pathlib import Path

from sql.engine import sqlite_file
from sql.store import Store

_HEADER = 96
"""Bytes of the header of SQLite's WAL index, twice: it counts transactions (sqlite.org/walformat.html, 2.1)."""


def stamp_of(store: Store) -> str:
    """The stamp of the database as it is now. Two that are the same say that nothing was committed between them; others
    may mean that something was. Taken before a read, it says until when what was read holds. Raises `StoreError`."""
    file = sqlite_file(store.url)
    if file is None:
        with store.reading() as tx:
            # Who is committed, and who is under way: a commit changes the one or the other.
            return str(tx.connection.exec_driver_sql("SELECT pg_current_snapshot()::text").scalar_one())
    return "/".join([*(_state(file.with_name(f"{file.name}{end}")) for end in ("", "-wal")), _index(file)])


def _state(file: Path) -> str:
    try:
        found = file.stat()
    except OSError:
        return ""
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def _index(file: Path) -> str:
    try:
        with file.with_name(f"{file.name}-shm").open("rb") as stream:
            return stream.read(_HEADER).hex()
    except OSError:
        return ""
