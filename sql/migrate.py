"""Bringing a database to this version's tables, one migration in one transaction.

A migration and the record that it was applied commit together: a process killed at any moment leaves the database
before or after a migration, never within. Alembic's own handling of SQLite would not (it lets DDL commit by itself), so
the transaction is ours: BEGIN IMMEDIATE on SQLite, an advisory lock on PostgreSQL, and the version read again inside
it, so that of two processes that open a database at once, one migrates and the other finds it done.

For developers, `python -m sql.migrate` compares what the migrations make with `sql.tables` and, where they differ,
prints the body of the migration that is missing and exits with 1.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, inspect, text

from prchain.core.errors import StoreCorrupt, StoreTooNew, StoreTooOld
from sql.engine import make_engine, parse_url, reader, shown, writer
from sql.json_text import JsonText
from sql.tables import Base

MIGRATIONS = Path(__file__).with_name("migrations")

VERSION_TABLE = "prchain_version"
"""Holds one row, the newest migration applied."""

_LOCK = 0x70726368
"""PostgreSQL's advisory lock of migrations: the bytes of ``prch``."""


def migrate(engine: Engine, folder: Path = MIGRATIONS) -> None:
    """Apply the migrations of `folder` that the database lacks.

    Raises `StoreTooNew` for a database that a newer prchain has migrated, `StoreTooOld` for one of before the first
    migration of the folder, and `StoreCorrupt` for one that belongs to another program; all are left untouched.
    """
    versions = known_versions(folder)
    while _next_version(engine, versions):
        with writer(engine).begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            pending = _pending(connection, versions)
            if pending:
                _apply(connection, folder, pending[0])


def check_version(engine: Engine, folder: Path = MIGRATIONS) -> None:
    """Make sure that the database needs no migration. Raises as `migrate`, and `StoreTooOld` for one that does."""
    if _next_version(engine, known_versions(folder)):
        raise too_old(engine.url)


def too_old(url: URL) -> StoreTooOld:
    """What is said of a database that would have to be migrated."""
    return StoreTooOld(
        f"{shown(url)} was written by an older prchain, or is empty; any command that opens it, such as "
        "`prchain status`, brings it up to date"
    )


def known_versions(folder: Path = MIGRATIONS) -> list[str]:
    """The versions that the migrations of `folder` lead to, oldest first; from their file names, ``mNNNN_name.py``."""
    names = sorted(path.name for path in (folder / "versions").glob("m*.py"))
    return [match[1] for name in names if (match := re.match(r"m(\d{4})_", name))]


def _next_version(engine: Engine, versions: list[str]) -> str | None:
    with reader(engine).connect() as connection:
        pending = _pending(connection, versions)
    return pending[0] if pending else None


def _pending(connection: Connection, versions: list[str]) -> list[str]:
    where = shown(connection.engine.url)
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables:
        strangers = set(tables) if connection.dialect.name == "sqlite" else set(tables) & set(Base.metadata.tables)
        if strangers:
            raise StoreCorrupt(f"{where} is a database of another program (it has {min(strangers)}); name another one")
        return versions
    current = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if current is None:
        return versions
    if current < versions[0]:
        raise StoreTooOld(
            f"{where} was made before prchain's first release (its tables are at {current}, the oldest known are at "
            f"{versions[0]}); mine into a new database, `--db NAME`, with the same data_dir, so that mirrors are kept"
        )
    if current not in versions:
        raise StoreTooNew(
            f"{where} was written by a newer prchain (its tables are at {current}, this one knows {versions[-1]}); "
            "update prchain"
        )
    return versions[versions.index(current) + 1 :]


def _apply(connection: Connection, folder: Path, version: str) -> None:
    # Alembic takes longer to import than most commands take to run, and a migrated database does not need it.
    from alembic.operations import Operations  # noqa: PLC0415
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    script = ScriptDirectory(str(folder))
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "transactional_ddl": True})
    with Operations.context(context):
        script.get_revision(version).module.upgrade()
    context.stamp(script, version)


def drift(connection: Connection) -> str:
    """The body of the migration that `sql.tables` lacks, as alembic would write it; empty where nothing differs."""
    from alembic.autogenerate import produce_migrations, render_python_code  # noqa: PLC0415
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    context = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    )
    upgrade = produce_migrations(context, Base.metadata).upgrade_ops
    if upgrade is None or upgrade.is_empty():
        return ""
    return render_python_code(upgrade, render_item=_stored_type)


def _stored_type(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """For alembic: a column of JSON is a text to the database; the rest as alembic has it."""
    return "sa.Text()" if kind == "type" and isinstance(item, JsonText) else False


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(parse_url(f"{folder}/drift.db"))
        migrate(engine)
        with reader(engine).connect() as connection:
            missing = drift(connection)
        engine.dispose()
    print(missing or "the migrations make exactly the tables of sql/tables")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
