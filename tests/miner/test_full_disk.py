"""A disk that fills up while `prchain mine` runs: a named failure in a line, nothing is lost, the next run goes on."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from prchain import cli
from prchain.core.git import mirror
from sql.store import Store
from sql.tables import Citation, Landing
from tests.databases import new_database
from tests.emulator import Emulator, generate_world
from tests.miner.github_lab import FACTS, assert_same, facts
from tests.samples import drawn

PULLS = 22
PAGE = 4096


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a user types to mine an emulated repository; the database comes last."""
    monkeypatch.chdir(tmp_path)
    world = generate_world(21, PULLS, git_dir=tmp_path / "r.git")
    (tmp_path / "list.txt").write_text(f"acme/widgets = {tmp_path / 'r.git'}\n")
    with Emulator(world) as github:
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        monkeypatch.setenv("GITHUB_TOKEN", "test-token")
        yield ["mine", "list.txt", "--db"]


def stored(path: Path) -> dict[str, list[Any]]:
    store = Store.open(str(path))
    found = facts(store)
    with store.reading() as tx:
        found["landings"] = sorted(tuple(row) for row in tx.rows(Landing, "number", "branch", "base_sha", "landed_sha"))
        found["citations"] = sorted(tuple(row) for row in tx.rows(Citation, "source", "target", "field", "key"))
    store.close()
    return found


def assert_named(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = capsys.readouterr()
    assert status == 1
    assert "no room is left on the disk of" in err and "make room and run the command again" in err
    assert "Traceback" not in out + err and "defect" not in out + err


def test_a_database_that_finds_no_room_at_any_moment_is_gone_on_with(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*command, "calm.db"]) == 0
    expected = stored(tmp_path / "calm.db")
    empty = Path(new_database(tmp_path / "empty.db")).stat().st_size // PAGE
    full = (tmp_path / "calm.db").stat().st_size // PAGE
    capsys.readouterr()
    room = 0

    def limit(connection: Any, record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={room}")

    for part in drawn(range(6), 3, "parts of a database"):
        database = tmp_path / f"{part}.db"
        shutil.copy(tmp_path / "empty.db", database)
        room = empty + (full - empty) * part // 6
        event.listen(Engine, "connect", limit)
        try:
            status = cli.run([*command, str(database)])
        finally:
            event.remove(Engine, "connect", limit)
        assert_named(status, capsys)
        assert cli.run([*command, str(database)]) == 0
        assert_same(stored(database), expected)
    assert {table.__tablename__ for table in FACTS} <= expected.keys()


def test_no_room_for_a_temporary_file_is_no_defect_and_is_gone_on_with(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run([*command, "calm.db"]) == 0
    capsys.readouterr()

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", refuse)
        status = cli.run([*command, "full.db"])
    assert_named(status, capsys)
    assert cli.run([*command, "full.db"]) == 0
    assert_same(stored(tmp_path / "full.db"), stored(tmp_path / "calm.db"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_for_a_mirror_is_no_failed_clone(
    code: int, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list.txt").write_text(f"acme/widgets = file://{tmp_path / 'r.git'}\n")

    def refuse(path: Path) -> Any:
        raise OSError(code, "no room", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(mirror, "_locked", refuse)
        status = cli.run([*command, "full.db", "--source", "git"])
    assert_named(status, capsys)
    assert cli.run([*command, "full.db", "--source", "git"]) == 0
    assert stored(tmp_path / "full.db")["landings"]
