"""The data card: its figures match the files, and quoted names have no effect in Markdown."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.tables import Candidate, LlmCall, PullRequest
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.card_text import markdown
from trajectories.export.distribution import Distribution
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.overlap import Overlap


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as world:
        world.chain("c1")
        yield world


def card(world: SampleWorld, folder: Path, **options: Any) -> dict[str, Any]:
    chosen = ExportOptions(**options)
    export(world.store, chosen_format("slime", chosen), chosen, folder / "sft.jsonl", force=True)
    found = json.loads((folder / "sft.jsonl.card.json").read_text(encoding="ascii"))
    assert isinstance(found, dict)
    return found


def test_the_card_tells_what_stands_in_the_file(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    world.chain("c2", repository=("other", "one"), licence=None, first=5)
    world.trajectory("t2", "c2", Talk().system().query(1).bash("ls").submit(), model="agent-2", judge=None, usd=0.25)
    world.trajectory("t3", "c2", outcome="rejected", accepted=0, usd=1.0, sample=1)
    found = card(world, tmp_path)
    content = (tmp_path / "sft.jsonl").read_bytes()
    (file,) = found["files"]
    assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    rows = [json.loads(line) for line in content.splitlines()]
    assert file["rows"] == found["samples"] == len(rows) == 2
    assert found["tokens"]["total"] == sum(row["metadata"]["tokens"] for row in rows)
    assert found["tool_calls"]["total"] == sum(row["metadata"]["tool_calls"] for row in rows) == 14
    under_loss = sum(message["step_loss_mask"] for row in rows for message in row["messages"])
    assert found["turns_by_reason"] == {"faulty": 2, "refinement": 2, "turn": under_loss}
    loss = found["loss"]
    assert (loss["turns"], loss["turns_under_loss"]) == (under_loss + 4, under_loss)
    assert loss["tokens_under_loss"] == found["tokens_under_loss"]["total"]
    assert loss["tokens"] == sum(row["tokens"] for row in loss["by_reason"].values()) < found["tokens"]["total"]
    markdown = (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")
    assert f"Under loss are {under_loss} of {under_loss + 4} turns (" in markdown
    assert re.search(r"^\| refinement \| 2 \| \d+ \| \d+\.\d% \| of a rejected round \|$", markdown, re.M)
    assert found["stages"] == {"1": 1, "3": 1}
    assert found["hidden_tests"] == {"passed": 0, "failed": 0, "not_run": 4}
    assert found["agents"] == {"agent-1 (react)": 1, "agent-2 (react)": 1}
    assert found["judges"] == {"judge-1": 1, "none": 1}
    assert found["task_writers"] == {"writer-1": 2}
    assert found["licences"] == {"MIT": 1, "unknown": 1}
    assert [(repository["name"], repository["samples"]) for repository in found["repositories"]] == [
        ("other/one", 1),
        ("shop/till", 1),
    ]
    assert found["cost"]["rollouts_usd"] == 1.75 and found["cost"]["exported_rollouts_usd"] == 0.75
    assert found["cost"]["rollouts_usd_per_exported_trajectory"] == 0.875
    assert found["outcomes_of_all_trajectories"] == {"accepted": 2, "rejected": 1}
    assert found["settings"][0]["gate"] == "judge" and found["settings"][0]["trajectories"] == 2


def test_prompts_of_one_name_are_told_apart_by_their_owner(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    world.chain("c2", first=5)
    world.trajectory("t2", "c2", Talk().system().query(1).bash("ls").submit())
    world.trajectory("t3", "c2", Talk().system().query(1).bash("cat x").submit(), sample=1)
    assert card(world, tmp_path)["prompts"] == [
        {"name": "tasks/query", "hash": "f00d", "used_by": 2},
        {"name": "trajectories/query", "hash": "beef", "used_by": 3},
    ]
    text = (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")
    assert "| tasks/query | f00d | 2 |\n| trajectories/query | beef | 3 |\n" in text


def test_a_cost_that_is_not_known_is_null(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", usd=None)
    found = card(world, tmp_path)
    assert found["cost"]["rollouts_usd"] is None
    assert "unknown" in (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")


def test_the_card_names_the_tables_that_prices_are_from_and_the_days_of_their_calls(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.trajectory("t1", "c1")
    assert card(world, tmp_path)["prices"] == []
    table = "genai-prices 0.2.3, prices to 2026-11-09"
    world.call(table, 0.5, "2026-11-21")
    world.call(table, 0.25, "2026-11-20", state="lost")
    world.call(table, 9.0, "2026-11-19", state="released")
    world.call("settings", 0.125, "2026-11-22")
    world.call(None, None, "2026-11-22")
    world.call(None, 1.0, "2026-01-01")
    found = card(world, tmp_path)
    assert found["prices"] == [
        {"from": table, "calls": 2, "usd": 0.75, "first": "2026-11-20", "last": "2026-11-21"},
        {"from": "not recorded", "calls": 1, "usd": 1.0, "first": "2026-01-01", "last": "2026-01-01"},
        {"from": "settings", "calls": 1, "usd": 0.125, "first": "2026-11-22", "last": "2026-11-22"},
        {"from": "unknown", "calls": 1, "usd": None, "first": "2026-11-22", "last": "2026-11-22"},
    ]
    assert f"| {table} | 2 | 0.7500 | 2026-11-20 | 2026-11-21 |" in markdown(found)


def test_the_cost_of_tasks_counts_lost_calls_with_what_was_reserved(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    call = {
        "run": "r",
        "purpose": "query",
        "subject": "c1/1",
        "sample": 0,
        "attempt": 1,
        "ordinal": 1,
        "request_hash": "h",
        "prompt": "p",
        "prompt_hash": "h",
        "model": "m",
        "reserved_usd": 0.5,
        "tokens_in": 1,
        "tokens_cached": None,
        "tokens_out": 1,
        "reply": None,
        "error": None,
        "started_at": "t",
        "finished_at": None,
    }
    with world.store.transaction() as tx:
        tx.upsert(
            LlmCall,
            [
                {**call, "id": 1, "state": "stored", "usd": 0.125},
                {**call, "id": 2, "state": "lost", "usd": None},
                {**call, "id": 3, "state": "released", "usd": None},
            ],
        )
    assert card(world, tmp_path)["cost"]["tasks_usd"] == 0.625


def test_names_cannot_act_in_markdown(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c2", repository=("own|er", "<script>alert(1)</script>"), first=5)
    world.trajectory("t1", "c2", Talk().system().query(1).bash("ls").submit(), model="[x](http://bad)`\n# Title")
    found = card(world, tmp_path)
    text = markdown(found)
    assert "<script>" not in text and "[x]" not in text and "\n# Title" not in text
    for line in text.splitlines():
        if line.startswith("| own"):
            assert line.count("|") == 5


@pytest.mark.parametrize(
    "name",
    [
        "**x**",
        "~~x~~",
        "https://bad.example/?q=1",
        "WWW.bad.example",
        "@everyone",
        "_x_",
        "&lt;script&gt;",
        "joe@example",
    ],
)
def test_links_stress_and_mentions_in_a_name_stand_there_as_code(world: SampleWorld, tmp_path: Path, name: str) -> None:
    world.trajectory("t1", "c1", model=f"a {name} b")
    assert f"| `a {name} b (react)` |" in markdown(card(world, tmp_path))


def test_the_card_says_how_samples_were_counted_and_where_special_tokens_were_broken(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.trajectory("t1", "c1")
    talk = Talk().system().query(1).bash("cat x", "<|im_start|>assistant", text="It says <|im_end|>.").submit()
    world.trajectory("t2", "c1", talk, sample=1)
    found = card(world, tmp_path)
    assert found["samples_counted_by"] == {"estimate": 2}
    assert found["broken_marks"] == {"samples": 1, "texts": 2}
    text = (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")
    assert "| estimate | 2 |" in text and "in 2 texts of 1 sample," in text


def test_the_card_says_which_chains_hold_pull_requests_of_benchmarks(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    with world.store.transaction() as tx:
        tx.upsert(PullRequest, [{"repository_id": 1, "number": number} for number in (2, 99)])
        tx.upsert(
            Candidate,
            [
                {
                    "repository_id": 1,
                    "strategy": "reference",
                    "number": number,
                    "outcome": "benchmark_instance",
                    "reason": None,
                }
                for number in (2, 99)
            ],
        )
    found = card(world, tmp_path)["overlap"]
    assert found == {"benchmark_pull_requests_kept_out": 2, "exported_chains_with_one": ["c1"]}


def test_samples_that_share_thirteen_words_with_a_file_are_named(world: SampleWorld, tmp_path: Path) -> None:
    words = "the quick brown fox jumps over the lazy dog while nobody else is looking"
    world.trajectory(
        "t1", "c1", Talk().system().query(1).bash("ls").turn(f"So: {words.upper()}!", ("bash", {})).observation("o")
    )
    world.chain("c2", first=9)
    world.trajectory("t2", "c2", Talk().system().query(1).bash("cat x", words).submit())
    file = tmp_path / "bench.jsonl"
    file.write_text(
        json.dumps({"id": 1, "deep": [{"problem_statement": "short"}]})
        + "\n"
        + json.dumps({"id": 2, "deep": [{"problem_statement": f"Well, {words}."}]})
        + "\n"
    )
    found = card(world, tmp_path, overlap=file)["overlap"]["file"]
    assert found["lines"] == 2 and found["samples_looked_at"] == 2
    assert found["hits"] == [{"sample": "t1", "lines": [2], "ngrams": 2}], "what tools printed does not count"
    assert "1 of 2 samples" in (tmp_path / "sft.jsonl.card.md").read_text(encoding="utf-8")


def test_plain_text_and_broken_json_are_compared_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "texts"
    file.write_text("{ one two three four five six seven eight nine ten eleven twelve thirteen\n")
    assert Overlap.load(file).items == 1 and len(Overlap.load(file).grams) == 1


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        ([], {"mean": None, "min": None, "median": None, "p90": None, "max": None}),
        ([7], {"mean": 7, "min": 7, "median": 7, "p90": 7, "max": 7}),
        (range(1, 11), {"mean": 5.5, "min": 1, "median": 5.5, "p90": 9, "max": 10}),
        ([3, 1, 2], {"mean": 2, "min": 1, "median": 2, "p90": 3, "max": 3}),
    ],
)
def test_figures_of_a_distribution(values: Any, figures: dict[str, float]) -> None:
    assert Distribution(values).figures() == figures


@pytest.mark.parametrize(("values", "median"), [([1, 2], 1.5), ([4, 1, 3, 2], 2.5), ([2, 4], 3), ([0.8, 0.9], 0.85)])
def test_the_median_of_an_even_number_of_values_is_between_the_middle_two(values: list[float], median: float) -> None:
    assert Distribution(values).figures()["median"] == median
