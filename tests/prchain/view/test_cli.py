"""The command: what it writes and prints, and one line for what it cannot do."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from prchain.cli import run
from tests.databases import new_database, open_new
from tests.trajectories.sampleworld import SampleWorld


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("prchain: error: ")]
    assert len(lines) == 1 and "Traceback" not in captured.err
    return lines[0]


def test_it_writes_a_folder_and_says_which_file_to_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        world.trajectory("a" * 16, world.chain("b" * 16))
    command = ["view", "--db", str(tmp_path / "prchain.db"), "--out", str(tmp_path / "out")]
    assert run([*command, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert Path(row["first"]).is_file()
    assert row["files"] == len((tmp_path / "out" / "files.txt").read_text().splitlines())
    assert run(command) == 0
    assert f"open {tmp_path / 'out' / 'index.html'}" in capsys.readouterr().out


def test_no_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["view", "--db", str(tmp_path / "none.db"), "--out", str(tmp_path / "out")]) == 1
    assert "there is no database at" in one_line(capsys)
    assert not (tmp_path / "out").exists()


def test_a_file_without_a_byte_stays_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.db").touch()
    assert run(["view", "--db", str(tmp_path / "new.db"), "--out", str(tmp_path / "out")]) == 1
    assert "or is empty; any command that opens it" in one_line(capsys)
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("new.db", 0)]


@pytest.mark.parametrize(("version", "words"), [("9999", "newer"), ("0001", "mine into a new database")])
def test_a_database_of_another_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, words: str
) -> None:
    file = new_database(tmp_path / "prchain.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE prchain_version SET version_num = ?", (version,))
    assert run(["view", "--db", file, "--out", str(tmp_path / "out")]) == 1
    assert words in one_line(capsys)


def test_a_folder_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = new_database(tmp_path / "prchain.db")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert run(["view", "--db", file, "--out", str(tmp_path / "out")]) == 2
    assert "holds something else than a view; --out takes a new or an empty folder" in one_line(capsys)


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = new_database(tmp_path / "prchain.db")
    (tmp_path / "file").write_text("no folder")
    assert run(["view", "--db", file, "--out", str(tmp_path / "file" / "out")]) == 2
    assert "cannot be written: Not a directory" in one_line(capsys)


def test_a_repository_that_was_not_mined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = new_database(tmp_path / "prchain.db")
    assert run(["view", "--db", file, "--repository", "no/where", "--out", str(tmp_path / "out")]) == 2
    assert "no/where has not been mined" in one_line(capsys)


def test_a_port_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = new_database(tmp_path / "prchain.db")
    assert run(["view", "--db", file, "--port", "70000"]) == 2
    assert "--port" in one_line(capsys)


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = new_database(tmp_path / "prchain.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["view", "--db", file, "--port", str(taken.getsockname()[1])]) in {1, 2}
    assert "Address already in use" in one_line(capsys)


@pytest.mark.parametrize(("sign", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_server_that_is_ended_says_what_is_true_of_it(tmp_path: Path, sign: signal.Signals, word: str) -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from prchain.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "view", "--db", new_database(tmp_path / "prchain.db")]
    with subprocess.Popen(command, text=True, stdout=-1, stderr=-1) as process:
        try:
            assert process.stdout is not None and "Ctrl-C ends it" in process.stdout.readline()
            process.send_signal(sign)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, told) == (128 + sign, f"prchain: {word}; the pages are not served any more\n")
