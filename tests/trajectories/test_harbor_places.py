"""Tasks in folders and in a table hold the same files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from trajectories.export.tasks.harbor.places import TaskFolders, TaskRows, packed
from trajectories.export.write import Files

FILES = {"task.toml": b"a = 1\n", "tests/test.sh": b"#!/bin/bash\n", "steps/2/workdir/setup.sh": b"\xff\0"}


def test_a_row_is_the_folder_packed_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with Files() as files:
        rows = TaskRows(files.open(tmp_path / "stages.parquet"))
        for name in ("one", "two"):
            rows.write("stages", name, FILES)
        rows.close()
    table = parquet.read_table(tmp_path / "stages.parquet").to_pylist()
    assert [row["path"] for row in table] == ["one", "two"]
    assert table[0]["task_binary"] == table[1]["task_binary"] == packed(dict(reversed(FILES.items())))
    with tarfile.open(fileobj=io.BytesIO(table[0]["task_binary"]), mode="r:gz") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    TaskFolders(tmp_path / "out").write("stages", "one", FILES)
    for folder in (tmp_path / "unpacked", tmp_path / "out" / "stages" / "one"):
        assert {it.relative_to(folder).as_posix(): it.read_bytes() for it in folder.rglob("*") if it.is_file()} == FILES
        assert {it.name: bool(it.stat().st_mode & 0o100) for it in folder.rglob("*") if it.is_file()} == {
            "task.toml": False,
            "test.sh": True,
            "setup.sh": True,
        }


def test_a_folder_that_is_written_again_holds_nothing_of_before(tmp_path: Path) -> None:
    folders = TaskFolders(tmp_path)
    folders.write("chains", "one", {**FILES, "old": b""})
    folders.write("chains", "one", FILES)
    assert not (tmp_path / "chains" / "one" / "old").exists()
    folders.finish("chains", "prchain/chains", "Chains", {"prchain/one": "sha256:0"})
    assert 'name = "prchain/one"' in (tmp_path / "chains" / "dataset.toml").read_text()
