"""The scan for later work in exported tasks: what it takes for later, and in what it finds it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
import zipfile
import zlib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prchain.core.git.trees import TreeStore
from research.harbor import parity, scan
from research.harbor.scan import _layer_files, finds, later_lines, script_files
from tests.databases import new_database
from tests.trajectories.harborworld import BASE, LANDED, tree_of
from trajectories.export.tasks.harbor.chain_image import archive_of
from trajectories.export.tasks.harbor.inside import environment

NEW = LANDED["area.py"] + LANDED["tests/test_area.py"]


def store_of(folder: Path) -> tuple[TreeStore, str, str]:
    store = TreeStore.open(folder / "own.git")
    base, landed = (store.commit(tree_of(store, files)) for files in (BASE, LANDED))
    return store, base, landed


def test_later_is_what_references_bring_and_nothing_before_has(tmp_path: Path) -> None:
    store, base, landed = store_of(tmp_path)
    later = later_lines(store, [base], [(base, landed)])
    assert b"return abs(a * b)" in later and b"return a * b" not in later
    assert later_lines(store, [base, landed], [(base, landed)]) == frozenset()


def test_a_file_with_all_later_lines_is_a_find_and_one_by_chance_is_none() -> None:
    later = frozenset(f"a line number {number} of the reference".encode() for number in range(9))
    assert finds(later, b"\n".join(sorted(later)[:3])) == 3
    assert finds(later, b"\n".join(sorted(later)[:2])) == 0
    assert finds(later, b"") == 0 and finds(frozenset(), b"") == 0
    assert finds(frozenset(sorted(later)[:1]), sorted(later)[0]) == 1


def test_layers_are_read_with_what_git_packed_in_them(tmp_path: Path) -> None:
    store, base, landed = store_of(tmp_path)
    (tmp_path / "pack").mkdir()
    (name,) = store.pack(landed, tmp_path / "pack")
    pack = (tmp_path / "pack" / f"pack-{name}.pack").read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("area.py", NEW)
        for path, content in (
            ("r/a.pack", pack),
            ("r/loose", zlib.compress(NEW.encode())),
            ("plain", NEW.encode()),
            ("a.whl", wheel.getvalue()),
            ("a.gz", gzip.compress(NEW.encode())),
            ("other", b"PK\x03\x04 and no archive"),
        ):
            header = tarfile.TarInfo(path)
            header.size = len(content)
            layer.addfile(header, io.BytesIO(content))
    out.seek(0)
    later = later_lines(store, [base], [(base, landed)])
    found = {place for place, content in _layer_files(out, "layer") if finds(later, content)}
    assert found == {f"layer:{name}" for name in ("r/a.pack", "r/loose", "plain", "a.whl", "a.gz")}


def test_an_environment_that_root_alone_reads_is_known_by_its_place(tmp_path: Path) -> None:
    store, base, landed = store_of(tmp_path)
    later = later_lines(store, [base], [(base, landed)])
    (tmp_path / "vendored.py").write_text(NEW)
    packed = io.BytesIO()
    environment.pack(environment.Plan((f"{tmp_path}/vendored.py",)), packed)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        for number, mode in ((2, 0o600), (3, 0o640)):
            header = tarfile.TarInfo(archive_of(number)[1:])
            header.size, header.mode = len(packed.getvalue()), mode
            layer.addfile(header, io.BytesIO(packed.getvalue()))
    out.seek(0)
    found = [place for place, content in _layer_files(out, "layer") if finds(later, content)]
    assert found == [f"{archive_of(2)}:{tmp_path}/vendored.py", f"layer:{archive_of(3)[1:]}"]


def test_what_describes_an_image_is_read_too(tmp_path: Path) -> None:
    store, base, landed = store_of(tmp_path)
    config = json.dumps({"config": {"Labels": {"x": NEW}}, "history": [{"created_by": "make"}]})
    later = later_lines(store, [base], [(base, landed)])
    found = [place for place, text in _layer_files(io.BytesIO(config.encode()), "x.json") if finds(later, text)]
    assert found == ["x.json"]
    assert not [text for _, text in _layer_files(io.BytesIO(b""), "empty") if finds(later, text)]


def test_the_script_between_steps_is_unpacked(tmp_path: Path) -> None:
    store, base, landed = store_of(tmp_path)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("step.json", "{}")
        packed.writestr("upstream", NEW)
    script = b"#!/bin/bash\nexit 0\n# packed\n" + base64.encodebytes(out.getvalue())
    later = later_lines(store, [base], [(base, landed)])
    assert [place for place, content in script_files(script) if finds(later, content)] == ["setup.sh:upstream"]


@pytest.mark.docker
@pytest.mark.parametrize(("main", "says"), [
    (scan.main, "0 tasks, 0 finds"), (parity.main, "0 of 0 grades agree"),
])  # fmt: skip
def test_without_a_proved_chain_nothing_was_shown(main: click.Command, says: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--db", new_database(tmp_path / "x.db")])
    assert done.exit_code == 1 and says in done.output
