"""Work that only one thread of one process may do on a database at a time.

The lock is the system's or the server's, not a row: it is gone when its holder is, however that ended.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from prchain.core.errors import StoreInUse
from sql.engine import shown, sqlite_file
from sql.failures import named_failures, named_file_failures
from sql.store import Store

log = logging.getLogger(__name__)

_BETWEEN_TRIES = 0.2
"""Seconds between two looks at a lock that somebody holds."""


@contextmanager
def exclusive_lock(store: Store, work: str, command: str) -> Iterator[None]:
    """Hold the lock for `work` on the database until the end of the block; `command` names the holder in messages.

    For SQLite it is a lock on the file ``DATABASE.WORK.lock``, which is taken away afterwards (a kill leaves it, and
    the next holder takes it away). For PostgreSQL it is an advisory lock of a session of its own
    (https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS). Raises `StoreInUse` at once where
    another one holds it, another thread of this process too, and `StoreUnavailable`.
    """
    file = sqlite_file(store.url)
    with ExitStack() as stack:
        if not (_lock_file(stack, file, work) if file else _lock_server(stack, store, work)):
            raise StoreInUse(
                f"another `{command}` is at work on {shown(store.url)}; wait until it has ended, or stop it first"
            )
        yield


@contextmanager
def wait_for_lock(store: Store, work: str, command: str) -> Iterator[None]:
    """As `exclusive_lock`, but waits for the holder of the lock. Raises `StoreUnavailable`."""
    started, waited = monotonic(), False
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(exclusive_lock(store, work, command))
                break
            except StoreInUse:
                if not waited:
                    log.info("waiting for another run that holds %s", work)
                waited = True
                sleep(_BETWEEN_TRIES)
        if waited:
            log.info("holding %s after %.1f s", work, monotonic() - started)
        yield


def _lock_file(stack: ExitStack, file: Path, work: str) -> bool:
    real = file.resolve()  # whatever link the database is opened by
    place = real.with_name(f"{real.name}.{work}.lock")
    with named_file_failures(real):
        while True:
            stream = stack.enter_context(place.open("a"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if _is_at(place, stream.fileno()):
                break
            stream.close()  # its holder took the file away after we had opened it: it locks nothing any more
    # Closing alone would not end it at once: a program that another thread is just starting has the descriptor, too.
    stack.callback(fcntl.flock, stream, fcntl.LOCK_UN)
    stack.callback(place.unlink, missing_ok=True)  # before the lock ends, and so by its holder alone
    return True


def _is_at(place: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), place.stat())
    except FileNotFoundError:
        return False


def _lock_server(stack: ExitStack, store: Store, work: str) -> bool:
    with named_failures(store.url):
        # Without a transaction: an open one would keep the server from clearing away old rows for hours.
        engine = store.engine.execution_options(isolation_level="AUTOCOMMIT")
        connection = stack.enter_context(engine.connect())
        connection.detach()  # out of the pool: the lock ends with the session, however that ends
        schema = connection.execute(text("SELECT current_schema()")).scalar_one()
        digest = hashlib.sha256(f"prchain {schema} {work}".encode()).digest()
        number = int.from_bytes(digest[:8], "big", signed=True)
        lock, unlock = text("SELECT pg_try_advisory_lock(:number)"), text("SELECT pg_advisory_unlock(:number)")
        if not connection.execute(lock, {"number": number}).scalar_one():
            return False
        # Closing alone would not end it at once: a busy server notices some time later that the session is gone.
        stack.callback(_give_back, connection, unlock, number)
        return True


def _give_back(connection: Connection, unlock: TextClause, number: int) -> None:
    with suppress(DBAPIError):  # where the session is gone already, the lock is, too
        connection.execute(unlock, {"number": number})
