"""Each way a database fails is one named failure with one line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from prchain.core.errors import DiskFull, SettingsError, StoreCorrupt, StoreError, StoreUnavailable
from sql import failures
from sql.store import Store
from sql.tables import PullRequest
from tests.databases import open_new
from tests.sql.rows import fill, pull_request


def failure(kind: type[StoreError], database: str) -> str:
    with pytest.raises(kind) as caught:
        Store.open(database)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    file = tmp_path / "filled.db"
    store = open_new(file)
    with store.transaction() as tx:
        fill(tx, pulls=2000)
    store.close()
    return file


def test_a_bare_path_is_a_sqlite_file_whose_folder_is_made(tmp_path: Path) -> None:
    Store.open(str(tmp_path / "new" / "folder" / "x.db")).close()
    assert (tmp_path / "new" / "folder" / "x.db").is_file()


def test_looking_at_a_database_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no database at"):
        Store.open(str(tmp_path / "new" / "x.db"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_or_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "x.db", Path("/proc/prchain/x.db"), tmp_path):
        assert str(place) in failure(StoreUnavailable, str(place))


@pytest.mark.parametrize(
    ("place", "right", "said"),
    [
        ("folder", os.W_OK, "{folder} cannot be written, and SQLite keeps its log beside the file"),
        ("file", os.W_OK, "{file} cannot be written, and SQLite keeps its log beside the file"),
        ("file", os.R_OK, "you may not read the file"),
    ],
)
def test_a_database_that_may_not_be_written_or_read_is_called_what_it_is(
    place: str, right: int, said: str, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may do all of it, so the system's answer is played; SQLite then says only `unable to open`."""
    store = Store.open(str(filled))
    places = {"file": filled, "folder": filled.parent}
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (places[place], right))
    refused = sqlite3.OperationalError("unable to open database file")
    refused.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    with pytest.raises(StoreUnavailable) as caught, failures.named_failures(store.url):
        raise refused
    assert said.format(**places) in str(caught.value)
    store.close()


def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_text("Dear diary, " * 1000)
    assert "not a database" in failure(StoreCorrupt, f"sqlite:///{file}")
    assert file.read_text() == "Dear diary, " * 1000


def test_a_database_of_another_program_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    connection.close()
    assert "another program" in failure(StoreCorrupt, str(file))


@pytest.mark.parametrize("size", [50, 4096, 20_000])
def test_a_truncated_database(filled: Path, size: int) -> None:
    os.truncate(filled, size)
    failure(StoreCorrupt, str(filled))


def test_damage_that_is_met_while_reading(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[4096 * 8 :] = os.urandom(4096) * (len(content) // 4096 - 8)
    filled.write_bytes(content)
    with pytest.raises(StoreCorrupt), Store.open(str(filled)).reading() as tx:
        tx.connection.execute(text("SELECT * FROM pull_requests ORDER BY outcome, number")).all()


def test_a_disk_that_fills_up_in_mid_transaction_keeps_what_was_committed(filled: Path) -> None:
    store = Store.open(str(filled))
    with pytest.raises(DiskFull), store.transaction() as tx:
        pages = tx.connection.execute(text("PRAGMA page_count")).scalar_one()
        tx.connection.execute(text(f"PRAGMA max_page_count={pages + 2}"))
        tx.upsert(PullRequest, [pull_request(number, reason="x" * 1000) for number in range(3000, 9000)])
    with store.reading() as tx:
        assert sum(1 for _ in tx.rows(PullRequest, "number")) == 2000
    store.close()


FILE_SIZE_LIMIT = """
import resource, signal, sys
from prchain.cli import run
from sql.store import Store
from sql.tables import PullRequest
from tests.sql.rows import fill, pull_request
from prchain.core.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
try:
    store = Store.open(sys.argv[1])
    with store.transaction() as tx:
        fill(tx, pulls=3)
    with store.transaction() as tx:
        tx.upsert(PullRequest, [pull_request(n, reason="x" * 1000) for n in range(4, 50_000)])
except StoreError as error:
    print(error.name)
"""


def test_writes_that_the_system_refuses_leave_what_was_committed(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    process = subprocess.run(
        [sys.executable, "-c", FILE_SIZE_LIMIT, str(file)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("store_unavailable\n", "")
    store = Store.open(str(file))
    with store.reading() as tx:
        assert [number for (number,) in tx.rows(PullRequest, "number")] == [1, 2, 3]
    store.close()


def test_no_room_for_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    assert "make room" in failure(DiskFull, str(tmp_path / "x.db"))


def test_an_input_output_error_on_a_full_disk_is_called_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    store = open_new(tmp_path / "x.db")
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR | (19 << 8)
    with pytest.raises(StoreUnavailable), failures.named_failures(store.url):
        raise error
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(DiskFull), failures.named_failures(store.url):
        raise error
    store.close()


def test_a_writer_in_another_process_that_does_not_end(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sql.engine.BUSY_SECONDS", 0.1)
    other = sqlite3.connect(filled, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = Store.open(str(filled))
    with pytest.raises(StoreUnavailable, match="another process"), store.transaction():
        pass
    other.rollback()
    with store.transaction() as tx:
        tx.upsert(PullRequest, [pull_request(9000)])
    store.close()
    other.close()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db", "postgresql://host:port/db", "://", "oracle://x"]
)
def test_a_url_that_cannot_be_used_is_a_setting_to_correct(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Store.open(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2hunter2@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?password=hunter2hunter2"]
)
def test_a_server_that_cannot_be_reached_is_named_without_its_password(url: str) -> None:
    pytest.importorskip("psycopg")
    line = failure(StoreUnavailable, url)
    assert "127.0.0.1:1/db" in line
    assert "hunter2" not in line


@pytest.mark.postgres
def test_a_wrong_database_or_login_on_a_running_server_is_named(postgres_url: str) -> None:
    from sqlalchemy import make_url

    url = make_url(postgres_url)
    failure(StoreUnavailable, url.set(database="there_is_no_such_database").render_as_string(hide_password=False))
    wrong = url.set(username="nobody_of_that_name", password="hunter2hunter2").render_as_string(hide_password=False)
    assert "hunter2" not in failure(StoreUnavailable, wrong)


@pytest.mark.postgres
def test_a_connection_that_breaks_in_mid_transaction_is_named_and_the_next_one_works(postgres_url: str) -> None:
    store = Store.open(postgres_url)
    with pytest.raises(StoreUnavailable), store.transaction() as tx:
        fill(tx)
        tx.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with store.transaction() as tx:
        fill(tx, pulls=1)
    with store.reading() as tx:
        assert [number for (number,) in tx.rows(PullRequest, "number")] == [1]
    store.close()
