"""The figures of rollouts beside the paper's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from prchain.cli import run
from sql.tables import Trajectory, Verdict
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.distribution import Distribution
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.studies.statistics.stats import PAPER, print_stats, stats


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as world:
        world.chain("c1")
        yield world


def figures(world: SampleWorld) -> dict[str, Any]:
    with world.store.reading() as tx:
        return stats(tx)


def test_figures_of_samples_are_of_accepted_stages_of_kept_trajectories(world: SampleWorld) -> None:
    world.trajectory("t1", "c1")
    whole = figures(world)
    assert (whole["samples"], whole["queries"], whole["trajectories"]) == (1, 3, 1)
    assert whole["tool_calls"]["mean"] == 12 and whole["stages"] == {"3": 1}
    world.trajectory("t2", "c1", sample=1, outcome="accepted_prefix", accepted=2)
    world.trajectory("t3", "c1", sample=2, outcome="rejected", accepted=0)
    both = figures(world)
    assert both["samples"] == 2 and both["stages"] == {"2": 1, "3": 1}
    assert both["tool_calls"]["min"] == 10 and both["outcomes"]["rejected"] == 1
    assert both["cost"] == {"usd": 1.5, "usd_per_sample": 0.75}, "rejected rollouts were paid, too"


def test_arguments_that_speak_of_arguments_are_no_calls(world: SampleWorld) -> None:
    talk = Talk().system().query(1).turn("", ("bash", {"command": "echo '{\"arguments\": 1}'"})).observation("ok")
    world.trajectory("t1", "c1", talk)
    assert figures(world)["tool_calls"]["mean"] == 1


def test_a_tool_that_is_named_as_the_key_of_arguments_counts_once(world: SampleWorld) -> None:
    talk = (
        Talk().system().query(1).turn("", ("arguments", {"arguments": '"arguments": 1'}), ("arguments", '"arguments":'))
    )
    world.trajectory("t1", "c1", talk.observation("ok", call=0).observation("ok", call=1))
    assert figures(world)["tool_calls"]["mean"] == 2


def test_verdicts_that_a_branch_shares_with_its_parent_count_once(world: SampleWorld) -> None:
    world.trajectory("t1", "c1")
    alone = figures(world)
    for name, parent in (("t2", "t1"), ("t3", "t2")):
        world.trajectory(name, "c1", sample=1, trees=["t1-1", f"{name}-2", f"{name}-3"])
        with world.store.transaction() as tx:
            values = {"parent_id": parent, "parent_step": 8}
            tx.connection.execute(update(Trajectory).where(Trajectory.id == name).values(**values))
            # Stage 1 had ended at the step of the branch; later verdicts have times of their own.
            later = (Verdict.trajectory_id == name, Verdict.position > 1)
            tx.connection.execute(update(Verdict).where(*later).values(at=f"2024-01-0{name[1]}T00:00:00Z"))
    both = figures(world)
    assert [entry["accepted"] + entry["rejected"] for entry in alone["acceptance"]] == [3, 1]
    assert [entry["accepted"] + entry["rejected"] for entry in both["acceptance"]] == [3 + 2 + 2, 1 + 1 + 1]
    assert (alone["scores"]["count"], both["scores"]["count"]) == (4, 10)


def test_acceptance_is_told_by_round_and_unscored_attempts_count_in_no_rate(world: SampleWorld) -> None:
    world.trajectory("t1", "c1")
    world.trajectory("t2", "c1", sample=1)
    with world.store.transaction() as tx:
        where = (Verdict.trajectory_id == "t2", Verdict.position == 1)
        tx.connection.execute(update(Verdict).where(*where).values(accepted=None, score=None))
    first, second = figures(world)["acceptance"]
    assert first == {"round": 1, "accepted": 3, "rejected": 2, "unscored": 1, "rate": 0.6}
    assert second == {"round": 2, "accepted": 2, "rejected": 0, "unscored": 0, "rate": 1.0}
    scores = figures(world)["scores"]
    assert scores["count"] == 7 and scores["tenths"]["0.9"] == 5 and scores["tenths"]["0.3"] == 2


def test_a_perfect_score_is_in_the_last_tenth(world: SampleWorld) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).bash("ls").submit())
    with world.store.transaction() as tx:
        tx.connection.execute(update(Verdict).values(score=1.0))
    assert figures(world)["scores"]["tenths"]["0.9"] == 1


def refined_talk() -> Talk:
    """Thirteen turns: six of a rejected round, one that failed, and six under loss."""
    talk = Talk().system().query(1)
    for number in range(5):
        talk.bash(f"cat {number}", "text " * 40)
    talk.submit().comment().turn("I only talk.", error="no_call").observation("Call a tool.")
    for number in range(5):
        talk.bash(f"pytest {number}")
    return talk.submit()


def test_the_share_under_loss_is_told_with_what_takes_the_rest_out(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t1", "c1", refined_talk(), accepted=1)
    loss = figures(world)["loss"]
    assert (loss["turns"], loss["turns_under_loss"], loss["turn_share"]) == (13, 6, 0.4615)
    assert loss["token_share"] == pytest.approx(loss["tokens_under_loss"] / loss["tokens"], abs=1e-4) and loss["tokens"]
    assert list(loss["by_reason"])[:2] == ["turn", "observation"]
    assert {reason: row["messages"] for reason, row in loss["by_reason"].items()} == {
        "turn": 6,
        "refinement": 6,
        "faulty": 1,
        "system": 1,
        "user": 2,
        "observation": 12,
    }, "what the last turn was answered is no part of a sample"
    print_stats(figures(world))
    output = capsys.readouterr().out
    assert "Under loss are 6 of 13 turns (46.2%) and " in output and output.count("%)") >= 2
    assert re.search(r"^refinement +6 +\d+ +\d+\.\d% +of a rejected round$", output, re.M)


def test_stats_and_the_card_have_one_number_for_one_thing(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", refined_talk(), accepted=1)
    world.trajectory("t2", "c1", sample=1)
    world.trajectory("t3", "c1", sample=2, outcome="rejected", accepted=0)
    chosen = ExportOptions(duplicates="keep")
    export(world.store, chosen_format("slime", chosen), chosen, tmp_path / "a.jsonl")
    card = json.loads((tmp_path / "a.jsonl.card.json").read_text())
    found = figures(world)
    assert found["loss"] == card["loss"] and found["loss"]["tokens_under_loss"]
    for name in ("tokens", "tool_calls"):
        figures_of_card = {key: value for key, value in card[name].items() if key != "total"}
        assert {key: value for key, value in found[name].items() if key != "by"} == figures_of_card
    assert found["tokens"]["by"].startswith(card["tokens_by"])


def view(first: int, last: int, content: str = "c0") -> dict[str, Any]:
    return {"view": {"path": "a", "first": first, "last": last, "lines": 99, "content": content}}


FOLDER = {"view": {"path": "src", "folder": True}}


@pytest.mark.parametrize(
    ("views", "redundant"),
    [
        ([(view(1, 9), None), (view(1, 9), None), (view(10, 19), None)], 1),
        ([(view(1, 99), None), (view(5, 6), None), (view(90, 120), None)], 1),
        ([(view(1, 9), None), ({}, "changed"), (view(1, 9), None)], 1),
        ([(view(1, 9), None), ({}, "changed"), (view(1, 9, "c1"), None)], 0),
        ([(FOLDER, None), (FOLDER, None), ({}, "changed"), (FOLDER, None)], 1),
    ],
)
def test_a_view_is_redundant_when_all_of_it_had_been_shown_as_it_is(
    world: SampleWorld, views: list[tuple[dict[str, Any], str | None]], redundant: int
) -> None:
    talk = Talk().system().query(1)
    for details, tree in views:
        talk.bash("view", details=details, tree=tree)
    world.trajectory("t1", "c1", talk)
    world.trajectory("t2", "c1", Talk().system().query(1).bash("x", details=view(1, 9)).submit(), sample=1)
    found = figures(world)["views"]
    assert found["all"] == sum(bool(details) for details, _ in views) + 1
    assert found["redundant"] == redundant, "what another trajectory was shown does not count"


def test_an_empty_database_has_no_means_and_no_rates(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    row = figures(world)
    assert row["samples"] == 0 and row["acceptance"] == []
    assert row["tokens"]["mean"] is None and row["cost"]["usd_per_sample"] is None
    print_stats(row)
    output = capsys.readouterr().out
    assert "none" in output and "price unknown" not in output
    assert "cost of all rollouts: 0.0000 USD; for each sample: -\n" in output


def test_rollouts_without_a_sample_have_no_cost_of_each(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.trajectory("t1", "c1", outcome="rejected", accepted=0, usd=0.25)
    print_stats(figures(world))
    assert "cost of all rollouts: 0.2500 USD; for each sample: -\n" in capsys.readouterr().out


def test_tool_calls_of_a_sample_have_one_decimal(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    for place, count in enumerate((1, 2)):
        talk = Talk().system().query(1)
        for number in range(count):
            talk.bash(f"echo {number}")
        world.trajectory(f"t{place}", "c1", talk, sample=place)
    print_stats(figures(world))
    assert re.search(r"^tool calls a sample, mean +1\.5 +116$", capsys.readouterr().out, re.M)


def test_the_command_prints_ours_beside_the_papers(
    world: SampleWorld, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t1", "c1")
    assert run(["stats", "--db", database_url]) == 0
    output = capsys.readouterr().out
    assert "61,810" in output and "239" in output and "84,820" in output and "1,762" in output
    assert "round 2: 100% accepted (1 of 1 verdict; 0 unscored)" in output
    assert run(["stats", "--json", "--db", database_url]) == 0
    assert json.loads(capsys.readouterr().out)["paper"] == dict(PAPER)


def test_histograms_are_of_all_samples_in_round_bins() -> None:
    drawn = Distribution((0, 999, 1_000, 4_999, 9_500))
    assert drawn.histogram(5) == [
        {"from": 0, "to": 1_999, "count": 3},
        {"from": 2_000, "to": 3_999, "count": 0},
        {"from": 4_000, "to": 5_999, "count": 1},
        {"from": 6_000, "to": 7_999, "count": 0},
        {"from": 8_000, "to": 9_999, "count": 1},
    ]
    assert Distribution().histogram() == []
    assert Distribution((7,)).histogram() == [{"from": 7, "to": 7, "count": 1}]


@given(st.lists(st.integers(0, 10**7), min_size=1), st.integers(1, 20))
def test_every_number_is_in_one_bin_of_a_histogram(numbers: list[int], most: int) -> None:
    bins = Distribution(numbers).histogram(most)
    assert len(bins) <= most and sum(it["count"] for it in bins) == len(numbers)
    assert [it["count"] for it in bins] == [sum(it["from"] <= number <= it["to"] for number in numbers) for it in bins]
    assert bins[0]["count"] and bins[-1]["count"]


def test_the_command_draws_lengths_and_domains(
    world: SampleWorld, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t1", "c1")
    world.trajectory("t2", "c1", sample=1, outcome="accepted_prefix", accepted=2)
    drawing = tmp_path / "lengths.svg"
    command = ["stats", "--svg", str(drawing), "--db", database_url]
    assert run([*command, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert sum(it["count"] for it in row["histograms"]["tool_calls"]) == row["samples"] == 2
    texts = [it.text for it in ElementTree.fromstring(drawing.read_text()).iter() if it.tag.endswith("text")]
    assert "Samples by tool calls: 11.0 on average" in texts and texts.count("12") == 1
    assert run([*command, "--by", "model"]) == 0, "its own drawing is replaced"
    assert "Samples by domain" in drawing.read_text()
    drawing.write_text("notes")
    capsys.readouterr()
    assert run(command) == 2
    assert "is no drawing; give another name" in capsys.readouterr().err and drawing.read_text() == "notes"


def test_the_tables_that_prices_are_from_are_named(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    table = "genai-prices 0.2.3, prices to 2026-11-09"
    world.call(table, 0.5, "2026-11-20")
    world.call(table, 0.25, "2026-11-21")
    world.call(None, None, "2026-11-21")
    print_stats(figures(world))
    assert capsys.readouterr().out.endswith(
        f"prices from {table}: 2 calls, 0.7500 USD, 2026-11-20 to 2026-11-21\n"
        "prices from unknown: 1 call, price unknown, 2026-11-21\n"
    )


def test_a_price_that_is_not_known_makes_no_sum(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.trajectory("t1", "c1", usd=None)
    assert figures(world)["cost"] == {"usd": None, "usd_per_sample": None}
    print_stats(figures(world))
    assert "cost of all rollouts: price unknown; for each sample: price unknown" in capsys.readouterr().out
