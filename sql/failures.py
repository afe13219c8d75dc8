"""Turns what a database driver raises into one of `prchain.core.errors`."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from prchain.core.errors import DiskFull, StoreCorrupt, StoreError, StoreUnavailable, no_room
from prchain.core.secrets.scrub import redact
from sql.engine import BUSY_SECONDS, shown, sqlite_file

_LITTLE_ROOM = 1 << 20

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNUSABLE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


_UNWRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


@contextmanager
def named_failures(url: URL) -> Iterator[None]:
    """Raise what the database at `url` fails with inside the block as a `StoreError` of one line.

    A failure that only a defect of prchain explains (a wrong statement, a broken key) passes unchanged.
    """
    try:
        yield
    except DBAPIError as error:
        _raise_named(error.orig, error, url)
        raise
    except _driver_errors(url) as error:
        _raise_named(error, error, url)
        raise


@contextmanager
def named_file_failures(file: Path) -> Iterator[None]:
    """Raise an `OSError` of the block, which makes or looks at `file`, as a `StoreError` of one line."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        if full := no_room(error, file):
            raise full from error
        raise _unavailable(str(file), str(error.strerror)) from error


def _driver_errors(url: URL) -> type[Exception]:
    """The base of the errors that reach us past SQLAlchemy, from a COPY or while rows are fetched."""
    if url.get_backend_name() == "sqlite":
        return sqlite3.Error
    import psycopg  # noqa: PLC0415  an optional dependency

    return psycopg.Error


def _raise_named(original: BaseException | None, cause: Exception, url: URL) -> None:
    failure = _of_sqlite(original, url) if isinstance(original, sqlite3.Error) else _of_postgresql(original, url)
    if failure:
        raise failure from cause


def _of_sqlite(error: sqlite3.Error, url: URL) -> StoreError | None:
    where = shown(url)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _room(url) < _LITTLE_ROOM):
        return _disk_full(where)
    if code in _CORRUPT:
        return StoreCorrupt(f"{where} is not a database or is damaged ({error}); move it away and mine again")
    if code in _BUSY:
        return StoreUnavailable(
            f"{where} is being written by another process and stayed locked for {BUSY_SECONDS} s; wait for it to end"
        )
    if code in _UNWRITABLE and (file := sqlite_file(url)) and file.exists() and not os.access(file, os.R_OK):
        return _unavailable(where, "you may not read the file; give the right to read and write it")
    if code in _UNWRITABLE and (file := sqlite_file(url)) and (unwritable := _unwritable(file)):
        return _unavailable(
            where,
            f"{unwritable} cannot be written, and SQLite keeps its log beside the file; give the right to write there, "
            "or copy the file to where you may",
        )
    return _unavailable(where, str(error)) if code in _UNUSABLE else None


def _unwritable(file: Path) -> Path | None:
    """The folder or the file, where this user may not write it; None where that is not so, or the file is not there."""
    if not file.exists():
        return None
    return next((path for path in (file.parent, file) if not os.access(path, os.W_OK)), None)


def _of_postgresql(error: BaseException | None, url: URL) -> StoreError | None:
    state = getattr(error, "sqlstate", None) or ""
    where = shown(url)
    reason = next(iter(str(error).strip().splitlines()), "no reason given")
    reason = redact(reason, tuple(str(word) for word in (url.password, url.query.get("password")) if word))
    if state == "53100":
        return _disk_full(where)
    if state in {"XX001", "XX002"}:
        return StoreCorrupt(f"{where} is damaged ({reason}); restore it from a backup or mine into a new database")
    if state in {"40001", "40P01"}:
        return StoreUnavailable(f"{where}: another process wrote the same rows ({reason}); run the command again")
    # Class 08 is a broken connection, 28 a refused login, 3D an unknown database, 42501 a missing right, 53 a lack of
    # resources, 55P03 a lock, 57 an operator's doing, 58 a failure outside the server. Without a state: no connection.
    connectionless = not state and type(error).__name__ == "OperationalError"
    if connectionless or state[:2] in {"08", "28", "3D", "53", "57", "58"} or state in {"42501", "55P03", "25006"}:
        return _unavailable(where, reason)
    return None


def _room(url: URL) -> int:
    file = sqlite_file(url)
    try:
        return shutil.disk_usage(file.parent).free if file else _LITTLE_ROOM
    except OSError:
        return _LITTLE_ROOM


def _disk_full(where: str) -> DiskFull:
    return DiskFull(
        f"no room is left on the disk of {where}; make room and run the command again, it goes on from there"
    )


def _unavailable(where: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database {where} cannot be used: {reason}")
