"""Databases for tests: migrated once in each process, then copied."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sql.store import Store


def new_database(file: Path) -> str:
    """Make a database of this version without rows in a new file; returns its path.

    Migrations are tested in `tests/sql/test_migrate.py`; they take twenty times as long as a copy of the result.
    """
    with file.open("xb") as out:
        out.write(_migrated())
    return str(file)


def open_new(file: Path) -> Store:
    """A store in a new database."""
    return Store.open(new_database(file))


def store_at(file: Path) -> Store:
    """A store in the database of a file, which is a new one unless it is there."""
    return Store.open(str(file)) if file.exists() else open_new(file)


@cache
def _migrated() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "migrated.db"
        Store.open(str(file)).close()
        return file.read_bytes()
