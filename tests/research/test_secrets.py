"""The rig of secrets, on a small repository."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import research.secrets.__main__ as rig
from research.secrets.peer import missed
from research.secrets.replaced import masked
from research.secrets.texts import Text
from tests.miner.gitworld import World
from tests.prchain.secrets_table import DRAWN_TOKEN, drawn

KEY = drawn("AKIA{32:16}", 3)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    world = World(tmp_path / "o+r" / "repo")
    first = world.commit("main", {"a.txt": "one\n"}, "Begin")
    world.commit("main", {"a.txt": f"one\nkey = {KEY}\nmail joe@host.org\n"}, f"Log in with {DRAWN_TOKEN}")
    world.branch(f"try-{DRAWN_TOKEN}", first)
    return world.save()


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(rig.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_messages_names_and_added_lines_are_counted_by_kind(mirror: Path) -> None:
    rows = [line.split() for line in printed("--mirror", str(mirror)).splitlines()]
    assert ["o/r", "github", "1", "1", "1", "0", str(2 * len(DRAWN_TOKEN))] in rows
    assert ["o/r", "aws", "1", "0", "0", "1", "20"] in rows
    assert ["o/r", "address", "1", "0", "0", "1", "12"] in rows


def test_no_secret_is_shown_whole(mirror: Path) -> None:
    text = printed("--mirror", str(mirror))
    assert DRAWN_TOKEN not in text and KEY not in text
    assert f"key = {masked(KEY)}" in text
    assert masked(KEY) == f"{KEY[:4]}..(20)..{KEY[-2:]}"


def test_judgements_are_scored_by_row(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(
        line
        for line in printed("--mirror", str(mirror)).splitlines()
        if line.startswith("o/r ") and " aws " in line and ":" in line
    )
    labels = tmp_path / "labels.csv"
    labels.write_text(f"repository,row,kind,label\no/r,{row.split()[1]},aws,wrong\n")
    monkeypatch.setattr(rig, "LABELS", labels)
    rows = [line.split() for line in printed("--mirror", str(mirror), "--labels").splitlines()]
    assert ["aws", "1", "1", "0", "1"] in rows
    assert ["github", "1", "0", "0", "0"] in rows


def test_committed_judgements_name_rows_by_digest_alone() -> None:
    lines = rig.LABELS.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "repository,row,kind,label"
    assert all(len(line.split(",")) == 4 and len(line.split(",")[1]) == 8 for line in lines[1:])
    assert {line.rpartition(",")[2] for line in lines[1:]} == {"right", "wrong"}


def test_another_detector_reads_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "detect_secrets"
    for module, body in {
        "__init__": "",
        "settings": "from contextlib import nullcontext\ndef transient_settings(given): return nullcontext()\n",
        "core/__init__": "",
        "core/scan": "from types import SimpleNamespace as N\n"
        "def scan_line(line): return [N(type='word', secret_value=w) for w in line.split() if w.isupper()]\n",
        "core/plugins/__init__": "",
        "core/plugins/util": "def get_mapping_from_secret_type_to_class(): return {}\n",
    }.items():
        path = package / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    texts = [Text("message", "1", "a SECRET b\nnothing"), Text("message", "2", "a SECRET b\n" + "X" * 3000)]
    assert list(missed(sys.executable, texts)) == [("word", "SECRET", "a SECRET b")]
