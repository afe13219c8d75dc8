"""Which samples an export holds: shared beginnings once, the best that fits, and nothing of an earlier export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import UsageError
from tests.trajectories.sampleworld import OVERVIEW, SHORTER, SampleWorld, Talk, sample_world
from tests.trajectories.test_export import run_export
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as world:
        world.chain("c1")
        yield world


def beginning(output: str = "ok") -> Talk:
    return Talk().system().query(1).bash("ls", output).submit()


def branches(world: SampleWorld, **options: Any) -> None:
    """Two trajectories of two stages that share the first one."""
    for place, command in enumerate(("a", "b")):
        world.trajectory(f"t{place}", "c1", beginning().query(2).bash(command).submit(), sample=place, **options)


def conversation_text(row: Any) -> str:
    return json.dumps([row.get("messages"), row.get("prompt"), row.get("completion"), row.get("conversations")])


def test_stages_that_branches_share_are_written_once_where_each_is_a_sample(world: SampleWorld, tmp_path: Path) -> None:
    branches(world, context="stage")
    rows, report = run_export(world, tmp_path)
    assert [row["metadata"]["sample_id"] for row in rows] == ["t0-1", "t0-2", "t1-2"]
    assert dict(report.left_out) == {"duplicate_conversation": 1}
    assert len(run_export(world, tmp_path, duplicates="keep")[0]) == 4


def test_pieces_that_branches_share_are_written_once(world: SampleWorld, tmp_path: Path) -> None:
    for place, command in enumerate(("a", "b")):
        talk = beginning("x" * 4000).query(2).bash(command, "y" * 4000).submit()
        world.trajectory(f"t{place}", "c1", talk, sample=place)
    rows, report = run_export(world, tmp_path, max_tokens=1600, too_long="split")
    assert [row["metadata"]["sample_id"] for row in rows] == ["t0-1", "t0-2", "t1-2"]
    assert dict(report.left_out) == {"duplicate_conversation": 1}


@pytest.mark.parametrize("form", ["trl", "sharegpt", "slime"])
def test_turns_that_branches_share_have_one_row(world: SampleWorld, tmp_path: Path, form: str) -> None:
    branches(world)
    rows, report = run_export(world, tmp_path, form, rows="turns")
    assert len(rows) == len({conversation_text(row) for row in rows}) == 6
    assert [row["metadata"]["sample_id"] for row in rows] == ["t0#1", "t0#2", "t0#3", "t0#4", "t1#1", "t1#2"]
    assert report.card["turns_by_reason"] == {"context": 2, "turn": 6} and dict(report.samples) == {"train": 2}
    assert len(run_export(world, tmp_path, form, rows="turns", duplicates="keep")[0]) == 8


def test_a_conversation_whose_every_turn_has_a_row_elsewhere_is_a_duplicate(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t0", "c1", beginning().query(2).bash("a").submit())
    world.trajectory("t1", "c1", beginning(), sample=1)
    rows, report = run_export(world, tmp_path, "trl", rows="turns")
    assert len(rows) == 4 and dict(report.left_out) == {"duplicate_conversation": 1}


def test_a_longer_way_to_the_same_trees_stays_where_the_shortest_cannot_be_exported(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).bash("cat big", "y" * 40_000).submit(), trees=["T"])
    longer = Talk().system().query(1).bash("ls").bash("head big", "y").submit()
    longest = Talk().system().query(1).bash("ls").bash("ls").bash("head big", "y").submit()
    world.trajectory("t2", "c1", longer, trees=["T"], sample=1)
    world.trajectory("t3", "c1", longest, trees=["T"], sample=2)
    rows, report = run_export(world, tmp_path, max_tokens=2000)
    assert [row["metadata"]["trajectory_id"] for row in rows] == ["t2"]
    assert dict(report.left_out) == {"too_long": 1, "duplicate_trees": 1}


def test_of_prefixes_with_the_same_trees_one_with_an_overview_stays(world: SampleWorld, tmp_path: Path) -> None:
    def talk(*commands: str) -> Talk:
        prefix = Talk().system().query(1, overview=SHORTER)
        for command in commands:
            prefix.bash(command)
        return prefix.submit().query(2).bash("a").submit()

    kept: dict[str, Any] = {"outcome": "accepted_prefix", "accepted": 2, "trees": ["T", "U"]}
    world.chain("c2", first=9, overview=None)
    world.trajectory("t1", "c2", Talk().system().query(1).bash("x").submit().query(2).submit(), overview=None, **kept)
    world.trajectory("t2", "c2", talk("x", "x"), sample=1, overview=SHORTER, **kept)
    rows, report = run_export(world, tmp_path, retell=True)
    assert [row["metadata"]["trajectory_id"] for row in rows] == ["t2"] and dict(report.left_out) == {"no_overview": 1}


def test_an_overview_that_is_told_with_each_stage_is_told_anew_with_each(world: SampleWorld, tmp_path: Path) -> None:
    talk = Talk().system()
    for place in (1, 2, 3):
        talk.query(place, f"{OVERVIEW}\n\nStage {place}").bash(f"ls {place}").submit()
    kept: dict[str, Any] = {"outcome": "accepted_prefix", "accepted": 2, "overview": SHORTER, "context": "stage"}
    world.trajectory("t1", "c1", talk, **kept)
    rows, _ = run_export(world, tmp_path, retell=True)
    assert [row["messages"][1]["content"].startswith(SHORTER) for row in rows] == [True, True]
    assert OVERVIEW not in json.dumps(rows)


@pytest.mark.parametrize(("outcome", "accepted"), [("too_short", 1), ("rejected", 0)])
def test_dropping_refined_samples_never_puts_a_rejected_round_under_loss(
    world: SampleWorld, tmp_path: Path, outcome: str, accepted: int
) -> None:
    talk = beginning().query(2).bash("BAD").submit().comment().bash("BAD AGAIN").submit()
    world.trajectory("t1", "c1", talk, outcome=outcome, accepted=accepted)
    rows, report = run_export(world, tmp_path, outcomes=frozenset({outcome}), refinements="drop")
    assert rows == [] and dict(report.left_out) == {"refined": 1}


def repositories(world: SampleWorld, count: int, *, long: int = 0) -> None:
    """A trajectory in each of `count` repositories, the first `long` of them longer than 1,000 tokens."""
    for place in range(count):
        world.chain(f"d{place}", first=10 * place + 10, repository=("shop", f"r{place}"))
        talk = Talk().system().query(1).bash(f"echo {place}", "z" * 20_000 if place < long else "z").submit()
        world.trajectory(f"t{place}", f"d{place}", talk)


def test_the_share_for_validation_is_one_of_what_is_written(world: SampleWorld, tmp_path: Path) -> None:
    repositories(world, 8, long=4)
    for seed in range(6):
        _, report = run_export(world, tmp_path, validation=0.25, seed=seed, max_tokens=1000)
        assert dict(report.samples) == {"train": 3, "validation": 1} and dict(report.left_out) == {"too_long": 4}


def test_a_file_for_validation_of_an_export_before_is_never_left_beside_a_new_one(
    world: SampleWorld, tmp_path: Path
) -> None:
    repositories(world, 4)
    run_export(world, tmp_path, validation=0.25)
    stale = tmp_path / "sft.validation.jsonl"
    before = {path.name: path.read_bytes() for path in tmp_path.glob("sft*")}
    form = chosen_format("slime", ExportOptions())
    (tmp_path / "sft.jsonl").unlink()
    for card in tmp_path.glob("sft*card*"):
        card.unlink()
    with pytest.raises(UsageError, match=r"sft\.validation\.jsonl is there from another export"):
        export(world.store, form, ExportOptions(), tmp_path / "sft.jsonl")
    assert stale.read_bytes() == before[stale.name]
    rows, _ = run_export(world, tmp_path)
    assert len(rows) == 4 and not stale.exists()


def test_an_export_that_fails_leaves_the_file_for_validation_too(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repositories(world, 4)
    run_export(world, tmp_path, validation=0.25)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("sft*")}
    monkeypatch.setattr("trajectories.export.export.markdown", lambda card: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_export(world, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("sft*")} == before


def test_reasoning_that_a_format_has_no_place_for_does_not_count(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).bash("ls", reasoning="r " * 20_000).submit())
    rows, report = run_export(world, tmp_path, "openai", max_tokens=2000)
    assert len(rows) == 1 and report.card["tokens"]["max"] < 300
    assert run_export(world, tmp_path, "slime", max_tokens=2000)[0] == []


def test_what_the_whole_cost_and_left_out_is_not_told_of_a_part(world: SampleWorld, tmp_path: Path) -> None:
    talk = beginning().query(2).turn("x", ("bash", {}), details={"dropped": [3]}).observation("ok").submit()
    world.trajectory("t1", "c1", talk, context="stage")
    rows, report = run_export(world, tmp_path)
    assert [row["metadata"]["elided_turns"] for row in rows] == [0, 1]
    assert [row["metadata"]["usd"] for row in rows] == [None, None]
    assert report.card["cost"]["exported_rollouts_usd"] == 0.5
    world.trajectory("t1", "c1", talk)
    assert run_export(world, tmp_path)[0][0]["metadata"]["usd"] == 0.5


def test_rows_of_one_turn_tell_their_own_tokens(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).bash("ls", "z" * 40_000).bash("a").submit())
    rows, _ = run_export(world, tmp_path, "trl", rows="turns")
    first, second, third = (row["metadata"]["tokens"] for row in rows)
    assert first < 300 and 10_000 < second < third
    (whole,), _ = run_export(world, tmp_path)
    assert third == whole["metadata"]["tokens"]


def test_the_first_row_of_a_parquet_file_does_not_decide_which_keys_there_are(
    world: SampleWorld, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    world.trajectory("t1", "c1", Talk().system().query(1).turn("hi"), tools=())
    world.trajectory("t2", "c1", beginning(), sample=1)
    options = ExportOptions()
    export(world.store, chosen_format("swift", options), options, tmp_path / "sft.parquet")
    first, second = parquet.read_table(tmp_path / "sft.parquet").to_pylist()
    assert first["tools"] is None and second["tools"]
    form = chosen_format("swift", options)
    uneven = replace(
        form,
        row=lambda sample: {key: value for key, value in form.row(sample).items() if sample.tools or key != "tools"},
    )
    with pytest.raises(ValueError, match="no column for tools"):
        export(world.store, uneven, options, tmp_path / "sft.parquet", force=True)
