"""Exports for mini-swe-agent's inspector: a file a trajectory, in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run
from tests.trajectories.miniworld import on_the_path
from tests.trajectories.sampleworld import SampleWorld, sample_world
from trajectories.export.formats.mini import VERSION


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleWorld]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_DB", "prchain.db")
    with sample_world(tmp_path) as world:
        world.chain("c1")
        world.trajectory("t1", "c1")
        world.trajectory("t2", "c1", sample=1, tree="another")
        yield world


def export(*flags: str) -> int:
    return run(["export", "--format", "mini", "--duplicates", "keep", "--out", "runs", *flags])


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def test_each_trajectory_is_a_file_that_the_inspector_finds_and_loads(world: SampleWorld) -> None:
    assert export() == 0
    found = sorted(Path("runs").rglob("*.traj.json"))  # as the inspector looks for them
    assert [path.name for path in found] == ["t1.traj.json", "t2.traj.json"]
    assert {path.name for path in Path("runs").iterdir()} == {path.name for path in found}
    for path in found:
        trajectory = read(path)
        assert trajectory["trajectory_format"] == VERSION
        for message in trajectory["messages"]:
            assert isinstance(message["content"], str) and message["role"] in {"system", "user", "assistant", "tool"}
            assert isinstance(message.get("reasoning_content", ""), str)
            assert all(isinstance(call["function"]["arguments"], str) for call in message.get("tool_calls", ()))
    card = read(Path("runs.card.json"))
    assert [(file["name"], file["rows"]) for file in card["files"]] == [("t1.traj.json", 1), ("t2.traj.json", 1)]
    assert card["files"][0]["bytes"] == found[0].stat().st_size


def test_a_folder_is_replaced_only_if_told_and_nothing_else_in_it_goes(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export() == 0
    for name in ("old.traj.json", "notes.txt"):
        (Path("runs") / name).write_text("{}")
    Path("runs.card.md").unlink()
    assert export() == 2
    assert "runs holds *.traj.json already" in capsys.readouterr().err
    assert export("--force") == 0
    assert {path.name for path in Path("runs").iterdir()} == {"t1.traj.json", "t2.traj.json", "notes.txt"}


def test_a_folder_is_looked_through_once_however_many_files_are_written(
    world: SampleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[Path]()
    seen = Path.iterdir

    def listed(folder: Path) -> Iterator[Path]:
        looked.append(folder)
        return seen(folder)

    Path("runs").mkdir()
    Path("runs/.t1.traj.json.7.part").touch()
    monkeypatch.setattr(Path, "iterdir", listed)
    assert export() == 0
    assert looked.count(Path("runs")) == 1
    assert not Path("runs/.t1.traj.json.7.part").exists(), "what a dead process left goes"


def test_of_nothing_no_folder_is_left(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("--outcome", "rejected") == 1
    assert not Path("runs").exists() and not Path("runs.card.md").exists()
    assert "nothing to export" in capsys.readouterr().err
    assert run(["export", "--format", "mini", "--out", "-"]) == 2
    assert "give --out a folder's name" in capsys.readouterr().err
    assert run(["export", "--format", "mini", "--out", "runs.jsonl"]) == 2
    assert "mini writes a folder" in capsys.readouterr().err
    Path("runs").write_text("a file")
    assert export() == 2
    assert "runs is no folder" in capsys.readouterr().err


@pytest.mark.mini
def test_the_inspector_itself_loads_and_shows_every_step(world: SampleWorld) -> None:
    # The inspector's screen needs typer and textual, which prchain does not: they are among the packages of our tests.
    on_the_path()
    get_content_string = import_module("minisweagent.models.utils.content_string").get_content_string
    inspector_module = import_module("minisweagent.run.utilities.inspector")

    assert export() == 0
    inspector = inspector_module.TrajectoryInspector(sorted(Path("runs").rglob("*.traj.json")))
    assert inspector.n_trajectories == 2 and inspector.n_steps > 1
    shown = "\n".join(get_content_string(message) for step in inspector.steps for message in step)
    assert "ls" in shown
