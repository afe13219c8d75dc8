"""Predictions for SWE-bench's harness: they have its instance ids, and apply to the tree in its images."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from prchain.cli import run
from prchain.core.errors import UsageError
from prchain.core.swebench.instances import instance_id
from sql.tables import Trajectory, TrajectoryStage
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.tasks.predictions import MissingPrediction, predictions
from trajectories.outcomes import FINAL


def git(folder: Path, *arguments: str, data: bytes | None = None) -> str:
    process = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, input=data)
    return process.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository with two landed commits, and the trees with which an agent ended two stages."""
    path = tmp_path / "till"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "n")
    git(path, "config", "user.email", "n@example.org")
    commits = []
    for text in ("base\n", "base\nfirst\n", "base\nfirst\nsecond\n"):
        (path / "a.txt").write_text(text)
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", "m")
        commits.append(git(path, "rev-parse", "HEAD"))
    for text in ("base\nmine é\n", "base\nmine é\nmore\n"):
        blob = git(path, "hash-object", "-w", "--stdin", data=text.encode())
        commits.append(git(path, "mktree", data=f"100644 blob {blob}\ta.txt\n".encode()))
    return path, commits


@pytest.fixture
def world(tmp_path: Path, repository: tuple[Path, list[str]]) -> Iterator[SampleWorld]:
    path, (base, first, second, *trees) = repository
    with sample_world(tmp_path) as world:
        world.chain("c" * 16, length=2, shas=[(base, first), (first, second)], location=str(path))
        talk = Talk().system().query(1).submit().query(2).submit()
        world.trajectory("t1", "c" * 16, talk, sample=1, trees=trees)
        world.trajectory("t2", "c" * 16, talk, sample=2, trees=trees, outcome="rejected")
        yield world


def predicted(
    world: SampleWorld, folder: Path, **options: object
) -> tuple[list[dict[str, str]], list[MissingPrediction]]:
    left_out: list[MissingPrediction] = []
    with world.store.reading() as tx:
        found = predictions(
            tx,
            folder / "mirrors",
            folder,
            outcomes=FINAL,
            left_out=left_out.append,
            **options,  # type: ignore[arg-type]
        )
        return list(found), left_out


def test_a_prediction_turns_the_stages_base_into_what_the_agent_left(
    world: SampleWorld, tmp_path: Path, repository: tuple[Path, list[str]]
) -> None:
    path, (base, first, _, *trees) = repository
    found, left_out = predicted(world, tmp_path)
    assert left_out == []
    assert [prediction["instance_id"] for prediction in found] == [
        instance_id("shop/till", "c" * 16, place) for place in (1, 2)
    ]
    for prediction, start, tree in zip(found, (base, first), trees, strict=True):
        assert prediction.keys() == {"instance_id", "model_name_or_path", "model_patch"}
        git(path, "checkout", "-q", start)
        git(path, "apply", "--index", "-", data=prediction["model_patch"].encode())
        assert git(path, "write-tree") == tree
        git(path, "reset", "-q", "--hard")


def test_an_instance_has_one_prediction(world: SampleWorld, tmp_path: Path) -> None:
    assert len(predicted(world, tmp_path)[0]) == 2
    assert len(predicted(world, tmp_path, sample=2)[0]) == 2
    assert predicted(world, tmp_path, sample=9) == ([], [])
    with pytest.raises(UsageError, match="has not been mined"):
        predicted(world, tmp_path, repository="other/one")


def test_predictions_of_two_models_do_not_stand_in_one_file(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t3", "c" * 16, Talk().system().query(1).submit(), model="agent-2")
    with pytest.raises(UsageError, match="--model"):
        predicted(world, tmp_path)
    assert {prediction["model_name_or_path"] for prediction in predicted(world, tmp_path, model="agent-2")[0]} == set()
    assert len(predicted(world, tmp_path, model="agent-1")[0]) == 2


def change(world: SampleWorld, trajectory: str, **values: object) -> None:
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).where(Trajectory.id == trajectory).values(**values))


def test_models_of_other_repositories_do_not_count(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("d" * 16, repository=("other", "one"))
    world.trajectory("t3", "d" * 16, Talk().system().query(1).submit(), model="agent-2")
    assert len(predicted(world, tmp_path, repository="Shop/Till")[0]) == 2


def test_predictions_of_rollouts_made_in_two_ways_do_not_stand_in_one_file(
    world: SampleWorld, tmp_path: Path, repository: tuple[Path, list[str]]
) -> None:
    second = repository[1][4]
    talk = Talk().system().query(1).submit().query(2).submit()
    world.trajectory("s1", "c" * 16, talk, trees=[second, second], outcome="rejected", gate="both")
    with pytest.raises(
        UsageError, match=r"choose with --predictions like=ID: t1 \(gate \"judge\"; 2 in all\), s1 \(gate \"both\"; 1"
    ):
        predicted(world, tmp_path)
    ours, theirs = (predicted(world, tmp_path, like=like)[0] for like in ("t2", "s"))
    assert len(ours) == len(theirs) == 2 and ours[0] != theirs[0]
    alike = {"gate": "judge", "threshold": 0.8, "refinements": 3}
    change(world, "s1", options=alike, judge="judge-2")
    with pytest.raises(UsageError, match='judge "judge-2"'):
        predicted(world, tmp_path)
    assert predicted(world, tmp_path, like="s1")[0] == theirs
    change(world, "s1", judge=None)
    assert predicted(world, tmp_path, like="s1")[0] == theirs
    with pytest.raises(UsageError, match="no trajectory"):
        predicted(world, tmp_path, like="nope")


def test_a_branch_never_stands_before_what_it_was_branched_off(
    world: SampleWorld, tmp_path: Path, repository: tuple[Path, list[str]]
) -> None:
    alone = predicted(world, tmp_path)[0]
    other = repository[1][4]
    talk = Talk().system().query(1).submit().query(2).submit()
    hot: dict[str, Any] = {"temperature": 1}
    for name, parent, options in (("a1", "t1", {}), ("a0", "a1", hot)):
        world.trajectory(name, "c" * 16, talk, sample=0, trees=[other, other], **options)
        change(world, name, parent_id=parent, parent_step=1)
    assert predicted(world, tmp_path)[0] == alone, "also where the branch has the lower sample, or other options"
    branched = predicted(world, tmp_path, like="a0")[0]
    assert len(branched) == 2 and branched != alone, "it is taken where it is asked for"


def test_a_stage_that_nobody_tried_has_no_prediction(world: SampleWorld, tmp_path: Path) -> None:
    with world.store.transaction() as tx:
        where = (TrajectoryStage.trajectory_id == "t1", TrajectoryStage.position == 2)
        values = {"outcome": "state_broken", "attempts": 0}
        tx.connection.execute(update(TrajectoryStage).where(*where).values(**values))
    found, left_out = predicted(world, tmp_path)
    assert [prediction["instance_id"] for prediction in found] == [instance_id("shop/till", "c" * 16, 1)]
    assert left_out == [MissingPrediction(instance_id("shop/till", "c" * 16, 2), "not_tried")]


def test_who_stops_at_one_prediction_leaves_no_cursor_open(
    world: SampleWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with world.store.reading() as tx:
        found = predictions(tx, tmp_path / "mirrors", tmp_path, outcomes=FINAL)
        next(found)
    world.store.close()
    del found
    assert caplog.text == ""


def test_stages_without_a_tree_and_trees_that_are_gone_are_named(world: SampleWorld, tmp_path: Path) -> None:
    with world.store.transaction() as tx:
        for position, tree in ((1, None), (2, "1" * 40)):
            where = (TrajectoryStage.trajectory_id == "t1", TrajectoryStage.position == position)
            tx.connection.execute(update(TrajectoryStage).where(*where).values(end_tree=tree))
    found, left_out = predicted(world, tmp_path)
    assert found == [] and len(left_out) == 2 and left_out[0].outcome == "no_tree"


def test_the_command_writes_predictions(
    world: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "preds.jsonl"
    db = ["--db", str(tmp_path / "prchain.db")]
    assert run(["export", "--format", "swebench", "--out", str(out), *db]) == 0
    assert "2 predictions written" in capsys.readouterr().out
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == 2
    assert run(["export", "--format", "swebench", "--out", str(out), *db]) == 2
    assert run(["export", "--predictions", "sample=1", "--out", str(out), "--force", *db]) == 2
    assert run(["export", "--format", "swebench", "--predictions", "like=t2,sample=2", "--out", "-", *db]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
