"""Migrations make the tables of `sql.tables`, each in one transaction, whatever happens in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from prchain.core.errors import StoreTooNew, StoreTooOld
from sql.engine import make_engine, parse_url, writer
from sql.migrate import MIGRATIONS, VERSION_TABLE, drift, known_versions, main, migrate
from sql.store import Store
from sql.tables import Base, ChainBuild, Trajectory, TrajectoryMessage, TrajectoryStage
from tests.samples import drawn
from tests.sql.rows import fill

ROOT = Path(__file__).parents[2]

SECOND = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table("second", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("INSERT INTO second (id) VALUES (1)")
    op.add_column("pull_requests", sa.Column("added", sa.Text()))
    op.execute("UPDATE pull_requests SET added = 'by 0002'")
    op.execute("DROP VIEW citation_edges")
"""

COMMIT = -1
"""Where to die: after the last statement, before the commit."""

KILLED_AT = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import event
from sql import migrate
from sql.engine import make_engine, parse_url
from tests.sql.test_migrate import COMMIT

url, folder, kill_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
engine = make_engine(parse_url(url))
statements = 0
within = False

def statement(*_):
    global statements
    if within:
        statements += 1
        if statements == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

# Counted are the statements of the writing transaction; the commit comes after its event.
@event.listens_for(engine, "begin")
def begin(connection):
    global within
    within = connection.get_execution_options().get("writes", False)

@event.listens_for(engine, "commit")
def commit(connection):
    global within
    if within and kill_at == COMMIT:
        os.kill(os.getpid(), signal.SIGKILL)
    within = False

event.listen(engine, "after_cursor_execute", statement)
migrate.migrate(engine, folder)
print(statements)
"""


def tables_and_views(url: str) -> set[str]:
    engine = make_engine(parse_url(url))
    names = set(inspect(engine).get_table_names()) | set(inspect(engine).get_view_names())
    engine.dispose()
    return names


def migrate_and_die(url: str, folder: Path, kill_at: int) -> int:
    """Migrate in another process that kills itself after its statement number `kill_at`, or before its commit.

    Returns how many statements the migration took, 0 where it was killed.
    """
    process = subprocess.run(
        [sys.executable, "-c", KILLED_AT, url, str(folder), str(kill_at)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode in {0, -signal.SIGKILL}, process.stderr
    return int(process.stdout) if process.returncode == 0 else 0


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A folder of migrations that goes one beyond ours."""
    folder = tmp_path / "newer"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    latest = known_versions()[-1]
    following = f"{int(latest) + 1:04d}"
    source = SECOND.replace('"0002"', f'"{following}"').replace('"0001"', f'"{latest}"')
    (folder / "versions" / f"m{following}_second.py").write_text(source)
    return folder


def test_migrations_make_exactly_the_tables_of_the_models(store: Store) -> None:
    with store.reading() as tx:
        assert drift(tx.connection) == ""


def test_a_table_that_the_migrations_lack_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import Column, Integer, MetaData, Table

    grown = MetaData(naming_convention=Base.metadata.naming_convention)
    for table in Base.metadata.sorted_tables:
        table.to_metadata(grown)
    Table("forgotten", grown, Column("id", Integer, primary_key=True))
    monkeypatch.setattr(Base, "metadata", grown)
    with store.reading() as tx:
        assert "op.create_table('forgotten'" in drift(tx.connection)


def test_the_check_for_developers_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert "exactly" in capsys.readouterr().out


def test_opening_again_changes_nothing(bare_database_url: str) -> None:
    with_rows = Store.open(bare_database_url)
    with with_rows.transaction() as tx:
        fill(tx)
    with_rows.close()
    before = tables_and_views(bare_database_url)
    Store.open(bare_database_url).close()
    assert tables_and_views(bare_database_url) == before
    assert {"landed_pull_requests", "citation_edges", VERSION_TABLE} <= before


def test_a_database_from_a_newer_version_is_refused_and_left_alone(bare_database_url: str, newer: Path) -> None:
    Store.open(bare_database_url).close()
    engine = make_engine(parse_url(bare_database_url))
    migrate(engine, newer)
    engine.dispose()
    before = tables_and_views(bare_database_url)
    with pytest.raises(StoreTooNew, match="update prchain") as caught:
        Store.open(bare_database_url)
    assert "\n" not in str(caught.value)
    assert tables_and_views(bare_database_url) == before


@pytest.mark.parametrize("version", ["0001", "0002", "0003"])
def test_a_database_of_before_the_baseline_is_refused_with_what_to_do_and_left_alone(
    bare_database_url: str, version: str
) -> None:
    Store.open(bare_database_url).close()
    engine = make_engine(parse_url(bare_database_url))
    with writer(engine).begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    engine.dispose()
    with pytest.raises(StoreTooOld, match="mine into a new database") as caught:
        Store.open(bare_database_url)
    assert "\n" not in str(caught.value) and version in str(caught.value)
    assert {"landed_pull_requests", "trajectories"} <= tables_and_views(bare_database_url)


def test_a_database_of_the_baseline_gets_what_came_later_and_keeps_its_rows(
    bare_database_url: str, tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline"
    later = [f"m{version}_*" for version in known_versions()[1:]]
    shutil.copytree(MIGRATIONS, baseline, ignore=shutil.ignore_patterns("__pycache__", *later))
    engine = make_engine(parse_url(bare_database_url))
    migrate(engine, baseline)
    chain = "INSERT INTO chains (id, repository_id, length) VALUES ('c', 1, 2)"
    row = (
        "INSERT INTO trajectories (id, chain_id, sample, scaffold, model, options, options_hash, prompts, tools, "
        "outcome, accepted, tokens_in, tokens_out, steps, seconds, tries, started_at) VALUES ('t', 'c', 0, 'react', "
        "'m', '{}', 'h', '{}', '[]', 'accepted', 2, 1, 1, 1, 1.0, 0, '')"
    )
    message = (
        "INSERT INTO trajectory_messages (trajectory_id, ordinal, position, attempt, step, kind, role, content, "
        "tool_calls, details, seconds, at) VALUES ('t', 0, 1, 1, 0, 'query', 'user', 'Do it.', '[]', '{}', 0.0, '')"
    )
    repository = "INSERT INTO repositories (id, host, owner, name, location) VALUES (1, 'h', 'o', 'n', 'l')"
    selection = (
        "INSERT INTO selections (strategy, chain_id, score, outcome, selected_at) "
        "VALUES ('reference', 'c', 1.0, 'selected', '2026-01-02')"
    )
    with writer(engine).begin() as connection:
        for statement in (repository, chain, selection, row, message):
            connection.execute(text(statement))
    engine.dispose()
    store = Store.open(bare_database_url)
    with store.reading() as tx:
        assert list(tx.rows(Trajectory, "id", "outcome", "decided_by")) == [("t", "accepted", None)]
        assert tx.count(TrajectoryMessage) == 1
        assert list(tx.rows(ChainBuild, "repository_id", "strategy", "built_at")) == [(1, "reference", "2026-01-02")]
        assert drift(tx.connection) == ""
    store.close()


def test_what_was_recorded_gets_an_outcome_of_its_own_and_keeps_its_id(bare_database_url: str, tmp_path: Path) -> None:
    before = tmp_path / "before"
    later = [f"m{version}_*" for version in known_versions() if version > "0022"]
    shutil.copytree(MIGRATIONS, before, ignore=shutil.ignore_patterns("__pycache__", *later))
    engine = make_engine(parse_url(bare_database_url))
    migrate(engine, before)
    with writer(engine).begin() as connection:
        for name, form in (("r", "chat/completions"), ("i", "ATIF-v1.7")):
            for statement in (
                "INSERT INTO trajectories (id, sample, scaffold, model, options, options_hash, prompts, tools, "
                "outcome, accepted, tokens_in, tokens_out, steps, seconds, tries, started_at) VALUES (:id, 0, "
                "'imported', 'm', '{}', '', '{}', '[]', 'imported', 0, 1, 1, 1, 0.0, 0, '')",
                "INSERT INTO trajectory_stages (trajectory_id, position, outcome, endings, attempts, steps, seconds, "
                "conflicts, reset_tests, \"check\") VALUES (:id, 1, 'imported', '[]', 1, 1, 0.0, '[]', '[]', '{}')",
                "INSERT INTO imported_trajectories (trajectory_id, content, form, agent, agent_version, told, "
                "left_out, imported_at) VALUES (:id, 'c', :form, 'a', '', '{}', '{}', '')",
            ):
                connection.execute(
                    text(statement), {"id": name, "form": form} if ":form" in statement else {"id": name}
                )
    engine.dispose()
    store = Store.open(bare_database_url)
    with store.reading() as tx:
        expected = {("r", "recorded"), ("i", "imported")}
        assert set(map(tuple, tx.rows(Trajectory, "id", "outcome"))) == expected
        assert set(map(tuple, tx.rows(TrajectoryStage, "trajectory_id", "outcome"))) == expected
    store.close()


@pytest.mark.drawn(2)
def test_kill_9_in_the_first_migration_leaves_nothing_or_all_of_it(bare_database_url: str, tmp_path: Path) -> None:
    first = tmp_path / "first"
    later = [f"m{version}_*" for version in known_versions()[1:]]
    shutil.copytree(MIGRATIONS, first, ignore=shutil.ignore_patterns("__pycache__", *later))
    # A rehearsal on SQLite counts the statements; both databases are then killed at points all along.
    statements = migrate_and_die(str(tmp_path / "rehearsal.db"), first, 0)
    assert statements > 15
    whole = tables_and_views(str(tmp_path / "rehearsal.db"))
    for kill_at in (1, statements // 3, statements // 2, statements - 2, COMMIT):
        assert migrate_and_die(bare_database_url, first, kill_at) == 0
        assert tables_and_views(bare_database_url) == set()
    engine = make_engine(parse_url(bare_database_url))
    migrate(engine, first)
    engine.dispose()
    assert tables_and_views(bare_database_url) == whole


@pytest.mark.drawn(2)
def test_kill_9_in_a_later_migration_leaves_rows_and_tables_before_or_after_it(
    bare_database_url: str, newer: Path, tmp_path: Path
) -> None:
    rehearsal = str(tmp_path / "rehearsal.db")
    Store.open(rehearsal).close()
    statements = migrate_and_die(rehearsal, newer, 0)
    store = Store.open(bare_database_url)
    with store.transaction() as tx:
        fill(tx, pulls=2)
    store.close()
    before = tables_and_views(bare_database_url)
    for kill_at in (*drawn(range(1, statements), 3, "statements of a migration"), COMMIT):
        assert migrate_and_die(bare_database_url, newer, kill_at) == 0
        assert tables_and_views(bare_database_url) == before
        Store.open(bare_database_url).close()  # this version still takes it for its own
    assert migrate_and_die(bare_database_url, newer, 0) > 0
    assert tables_and_views(bare_database_url) == before - {"citation_edges"} | {"second"}
    engine = make_engine(parse_url(bare_database_url))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT DISTINCT added FROM pull_requests")).all() == [("by 0002",)]
    engine.dispose()


def test_a_migration_that_fails_leaves_nothing_behind(bare_database_url: str, newer: Path) -> None:
    Store.open(bare_database_url).close()
    before = tables_and_views(bare_database_url)
    last = max((newer / "versions").glob("m*.py"))
    last.write_text(last.read_text() + "    raise ZeroDivisionError\n")
    engine = make_engine(parse_url(bare_database_url))
    with pytest.raises(ZeroDivisionError):
        migrate(engine, newer)
    engine.dispose()
    assert tables_and_views(bare_database_url) == before
    Store.open(bare_database_url).close()


@pytest.mark.drawn(2)
def test_processes_that_open_a_new_database_at_once_all_succeed(bare_database_url: str) -> None:
    code = "import sys; from sql.store import Store; Store.open(sys.argv[1]).close()"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, bare_database_url],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    assert [process.communicate()[1] for process in running] == [""] * 6
    store = Store.open(bare_database_url)
    with store.reading() as tx:
        assert tx.connection.execute(text(f"SELECT count(*) FROM {VERSION_TABLE}")).scalar() == 1
        assert drift(tx.connection) == ""
    store.close()


def test_an_empty_record_of_versions_is_taken_for_none(bare_database_url: str) -> None:
    engine = make_engine(parse_url(bare_database_url))
    with writer(engine).begin() as connection:
        connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL)"))
    engine.dispose()
    Store.open(bare_database_url).close()
    assert "pull_requests" in tables_and_views(bare_database_url)
