"""The controls that curated data is compared with: as many samples as another file, one short sample a chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.cli import run
from prchain.core.errors import UsageError
from tests.trajectories.sampleworld import SHORTER, SampleWorld, Talk, sample_world
from tests.trajectories.test_export import run_export
from trajectories.export.draw import drawn
from trajectories.export.options import ExportOptions
from trajectories.outcomes import REJECTED

IDS = st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, max_size=20)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleWorld]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_DB", "prchain.db")
    with sample_world(tmp_path) as world:
        yield world


def pool(world: SampleWorld, count: int, *, long: int = 0) -> None:
    """A trajectory of each of `count` chains, the first `long` of them longer than 1,000 tokens."""
    for place in range(count):
        world.chain(f"c{place}", first=10 * place + 1, repository=("shop", f"r{place}"))
        output = "z" * 20_000 if place < long else "z"
        world.trajectory(f"t{place}", f"c{place}", Talk().system().query(1).bash(f"echo {place}", output).submit())


def sample_ids(rows: list[Any]) -> list[str]:
    return [row["metadata"]["sample_id"] for row in rows]


@given(IDS, st.integers(1, 20), st.integers())
def test_what_is_drawn_follows_from_seed_and_names_alone(ids: list[str], count: int, seed: int) -> None:
    chosen = drawn(ids, count, seed)
    assert chosen <= set(ids) and len(chosen) == min(count, len(ids))
    assert chosen == drawn(reversed(ids), count, seed) <= drawn(ids, count + 1, seed)
    assert chosen == drawn(chosen, count, seed)


def test_as_many_samples_are_drawn_as_asked_for_and_the_others_are_counted(world: SampleWorld, tmp_path: Path) -> None:
    pool(world, 12)
    rows, report = run_export(world, tmp_path, at_most=5, seed=3)
    assert dict(report.samples) == {"train": 5} and dict(report.left_out) == {"not_drawn": 7}
    assert report.card["left_out"] == {"not_drawn": 7} and report.card["options"]["at_most"] == 5
    assert "not_drawn" in (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")
    assert set(sample_ids(rows)) == drawn((f"t{place}" for place in range(12)), 5, 3)
    assert len({frozenset(sample_ids(run_export(world, tmp_path, at_most=5, seed=seed)[0])) for seed in range(5)}) > 1


def test_more_than_there_are_leaves_nothing_out(world: SampleWorld, tmp_path: Path) -> None:
    pool(world, 3)
    rows, report = run_export(world, tmp_path, at_most=9)
    assert len(rows) == 3 and not report.left_out


def test_samples_are_drawn_of_what_would_be_written_and_the_split_is_one_of_them(
    world: SampleWorld, tmp_path: Path
) -> None:
    pool(world, 12, long=4)
    for seed in range(4):
        _, report = run_export(world, tmp_path, at_most=4, seed=seed, max_tokens=1000, validation=0.25)
        assert dict(report.samples) == {"train": 3, "validation": 1}
        assert dict(report.left_out) == {"too_long": 4, "not_drawn": 4}


def test_pieces_of_a_trajectory_are_drawn_each_by_itself(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c0")
    talk = Talk().system().query(1).bash("a").submit().query(2).bash("b").submit().query(3).bash("c").submit()
    world.trajectory("t0", "c0", talk, context="stage")
    rows, report = run_export(world, tmp_path, at_most=2)
    assert set(sample_ids(rows)) == drawn(("t0-1", "t0-2", "t0-3"), 2, 0)
    assert dict(report.left_out) == {"not_drawn": 1}


def test_turns_shared_with_a_sample_that_was_not_drawn_are_taught_by_the_one_that_was(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.chain("c0")
    for place in range(2):
        talk = Talk().system().query(1).bash("ls").submit().query(2).bash(f"echo {place}").submit()
        world.trajectory(f"t{place}", "c0", talk, sample=place)
    seed = next(seed for seed in range(99) if drawn(("t0", "t1"), 1, seed) == {"t1"})
    rows, report = run_export(world, tmp_path, "trl", rows="turns", at_most=1, seed=seed)
    assert sample_ids(rows) == ["t1#1", "t1#2", "t1#3", "t1#4"] and dict(report.left_out) == {"not_drawn": 1}


def test_duplicates_are_no_part_of_the_draw(world: SampleWorld, tmp_path: Path) -> None:
    pool(world, 4)
    for place in range(4):
        talk = Talk().system().query(1).bash(f"echo {place}", "z").submit()
        world.trajectory(f"u{place}", f"c{place}", talk, sample=1)
    rows, report = run_export(world, tmp_path, at_most=3)
    assert len(rows) == 3 and dict(report.left_out) == {"duplicate_conversation": 4, "not_drawn": 1}


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_that_cannot_be_drawn_is_refused_in_one_line(
    number: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(world, 1)
    assert run(["export", "--out", "sft.jsonl", "--at-most", number]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "--at-most" in line]
    assert number in line and not Path("sft.jsonl").exists()


def test_options_know_no_draw_of_nothing() -> None:
    with pytest.raises(UsageError, match="--at-most must be 1 or more"):
        ExportOptions(at_most=0)


def test_the_command_draws_and_says_how_many_it_left_out(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(world, 5)
    assert run(["export", "--out", "sft.jsonl", "--at-most", "2", "--seed", "7"]) == 0
    assert "left out: 3 not_drawn" in capsys.readouterr().out
    rows = [json.loads(line) for line in Path("sft.jsonl").read_text(encoding="ascii").splitlines()]
    assert set(sample_ids(rows)) == drawn((f"t{place}" for place in range(5)), 2, 7)
    assert run(["export", "--format", "swebench", "--out", "p.jsonl", "--at-most", "2"]) == 2
    assert "leave out --at-most" in capsys.readouterr().err


def passing(
    world: SampleWorld, name: str, sample: int, *tokens: int | None, stages: int = 1, output: str = "ok", **row: Any
) -> None:
    """A trajectory of chain c0: a turn for each of the tokens in the first stage, and one of 1 token in each other."""
    talk = Talk().system().query(1)
    for place, count in enumerate(tokens):
        talk.turn(f"{name} {place}", ("bash", {"command": "ls"}), tokens_out=count).observation(output)
    for position in range(2, stages + 1):
        talk.query(position).turn(f"{name} {position}", tokens_out=1)
    world.trajectory(name, "c0", talk, sample=sample, **row)


def kept_of_chain(world: SampleWorld, folder: Path, **options: Any) -> tuple[list[str], dict[str, int]]:
    rows, report = run_export(world, folder, per_chain="shortest", **options)
    return [row["metadata"]["trajectory_id"] for row in rows], dict(report.left_out)


def test_of_each_chain_the_trajectory_with_the_fewest_response_tokens_stays(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c0")
    world.chain("c1", first=9)
    passing(world, "t0", 0, 900)
    passing(world, "t1", 1, 100, 100, 100)
    passing(world, "t2", 2, 200, 200)
    world.trajectory("t3", "c1")
    assert kept_of_chain(world, tmp_path) == (["t1", "t3"], {"not_shortest": 2})
    assert len(run_export(world, tmp_path)[0]) == 4


def test_where_tokens_of_a_turn_are_not_known_the_steps_of_the_chain_are_compared(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.chain("c0")
    passing(world, "t0", 0, 1, 1, 1)
    passing(world, "t1", 1, 900, 900)
    assert kept_of_chain(world, tmp_path)[0] == ["t0"]
    passing(world, "t2", 2, 1, None, 1)
    assert kept_of_chain(world, tmp_path) == (["t1"], {"not_shortest": 2})


def test_of_equally_short_trajectories_the_lowest_sample_stays_then_the_lowest_id(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.chain("c0")
    passing(world, "t0", 1, 50)
    passing(world, "t3", 0, 50)
    passing(world, "t2", 0, 25, 25, model="agent-2")
    assert kept_of_chain(world, tmp_path)[0] == ["t2"]


def test_a_prefix_is_not_taken_for_a_short_way_through_the_chain(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c0")
    passing(world, "t0", 0, 10, stages=2, outcome="accepted_prefix", accepted=2)
    passing(world, "t1", 1, 500, stages=3)
    passing(world, "t2", 2, 400, stages=3)
    kept, left_out = kept_of_chain(world, tmp_path)
    assert (kept, left_out) == (["t2"], {"not_shortest": 2})


def test_only_what_was_said_in_exported_stages_is_length(world: SampleWorld, tmp_path: Path) -> None:
    def prefix(name: str, sample: int, first: int, last: int) -> None:
        talk = Talk().system().query(1, overview=SHORTER).turn(name, tokens_out=first).query(2).turn("x", tokens_out=1)
        talk.query(3).turn("I give up.", tokens_out=last)
        world.trajectory(name, "c0", talk, sample=sample, outcome="accepted_prefix", accepted=2, overview=SHORTER)

    world.chain("c0")
    prefix("t0", 0, 100, 1)
    prefix("t1", 1, 50, 900)
    assert kept_of_chain(world, tmp_path)[0] == ["t1"]


def test_the_next_shortest_stays_where_the_shortest_cannot_be_exported(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c0")
    passing(world, "t0", 0, 5, 5, output="z" * 20_000)
    passing(world, "t1", 1, 20)
    passing(world, "t2", 2, 30)
    assert kept_of_chain(world, tmp_path, max_tokens=1000) == (["t1"], {"too_long": 1, "not_shortest": 1})


def test_one_trajectory_a_chain_stays_whatever_counts_as_a_duplicate(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c0")
    for place in range(3):
        passing(world, f"t{place}", place, 30 - place, trees=["T"])
    for duplicates in ("trees", "conversation", "keep"):
        assert kept_of_chain(world, tmp_path, duplicates=duplicates) == (["t2"], {"not_shortest": 2})


def test_samples_are_drawn_of_the_shortest_ones(world: SampleWorld, tmp_path: Path) -> None:
    pool(world, 6)
    passing(world, "u0", 1, 0)
    kept, left_out = kept_of_chain(world, tmp_path, at_most=6)
    assert len(kept) == 6 and left_out == {"not_shortest": 1}
    kept, left_out = kept_of_chain(world, tmp_path, at_most=2, validation=0.5)
    assert len(kept) == 1 and left_out == {"not_shortest": 1, "not_drawn": 4}


def test_trajectories_that_did_not_pass_have_no_shortest(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.chain("c0")
    passing(world, "t0", 0, 1, outcome=REJECTED, accepted=0)
    arguments = ["export", "--out", "sft.jsonl", "--duplicates", "trees:per_chain=shortest"]
    assert run([*arguments, "--outcome", "accepted rejected"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "prchain: error: per_chain=shortest compares trajectories that passed: give no --outcome but accepted and "
        "accepted_prefix"
    ]
    passing(world, "t1", 1, 5)
    passing(world, "t2", 2, 4)
    assert run([*arguments, "--outcome", "accepted"]) == 0
    assert "left out: 1 not_shortest" in capsys.readouterr().out
