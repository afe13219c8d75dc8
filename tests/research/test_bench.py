"""The benches at a size at which they take seconds: they measure what they say, and fail where a goal is missed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import EngineUnavailable
from research.bench import (
    atif_bench,
    chains_bench,
    comments_bench,
    entities_bench,
    git_bench,
    help_bench,
    import_bench,
    placing_bench,
    prefix_bench,
    prm_bench,
    recording_bench,
    remains_bench,
    rollout_bench,
    sandbox_bench,
    window_bench,
)
from research.bench.__main__ import main
from research.bench.generated import generate
from research.bench.measures import Measure, as_json, as_table
from research.bench.watched import worked_stage
from trajectories.agents.guidance.evidence import WindowText
from trajectories.agents.guidance.reply import read_reply
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.agents.guidance.window import StepWindow
from trajectories.model import EntryKind


def _figures(text: str) -> dict[str, float]:
    return {row["name"]: row["value"] for row in json.loads(text)}


@pytest.mark.whole
def test_all_benches_run_and_print_their_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rounds", "1", "--landed", "60", "--pulls", "60", "--chained", "2000", "--json"]) == 0
    figures = _figures(capsys.readouterr().out)
    assert figures["landed pull requests"] == 60, "the git source finds every landing of the generated history"
    assert 30 < figures["peak memory of Python"] < git_bench.PEAK_GOAL
    assert figures["ratio of the two"] == pytest.approx(
        figures["prchain mine --source git"] / figures["git log --all --raw"], rel=1e-3
    )
    assert figures["points for 1,000 pull requests"] > 40
    assert figures["GraphQL requests"] >= 3
    assert figures["requests of a second, unchanged run"] < 100
    assert figures["edges"] == 20_000 and figures["pull requests in the largest component"] > 500
    assert 300 < figures["chains"] < 1000 and figures["total confidence"] > figures["chains"] * 0.6
    assert 30 < figures["peak memory of edges to chains"] < chains_bench.EVIDENCE_PEAK_GOAL


def test_the_help_bench_names_the_slowest_page() -> None:
    figures = {measure.name: measure for measure in help_bench.run([("view",), ("rollouts", "run")], rounds=1)}
    assert figures["pages"].value == 2
    assert figures["the slowest page"].note == "prchain rollouts run --help"
    assert 0 < figures["prchain --version"].value < figures["the slowest page"].value < 60


@pytest.mark.whole
def test_the_prefix_bench_asks_by_the_demo_s_commands_and_meets_its_goals() -> None:
    measures = prefix_bench.run(steps=40)
    shares = {measure.name: measure for measure in measures if "demo" in measure.bench}
    assert shares.keys() >= {"plan", "overview", "query", "agent", "judge", "judge, attempts after the first"}
    assert all(0 < measure.value <= 100 for measure in measures)
    for name, at_least in (
        ("agent", 85),
        ("agent, of the prompt before", prefix_bench.AGENT_GOAL),
        ("judge, attempts after the first", prefix_bench.RETRY_GOAL),
    ):
        assert shares[name].value >= at_least and shares[name].passed is not False
    assert not shares["judge, attempts after the first"].note.startswith("0 calls")
    [long] = [measure for measure in measures if "40 steps" in measure.bench]
    assert long.value > 90


def test_a_cache_serves_what_a_prompt_and_an_earlier_one_begin_with() -> None:
    def body(*texts: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text} for text in texts]}

    first, shared = "a" * 640, "a" * 320
    sent = prefix_bench.served([("plan", body(first)), ("plan", body(shared + "b" * 9)), ("query", body(first))])
    assert [request.served for request in sent] == [0, 320, 640], "in whole blocks"
    again = prefix_bench.served([("agent", body(first)), ("agent", body(first, "more"))])
    assert again[1].served > 600 and again[0].opening == again[1].opening
    verdicts = [("judge", body(f"<<<reference {code * 16}\nx")) for code in ("a", "b", "a")]
    assert len(prefix_bench.retries(prefix_bench.served([*verdicts, ("judge", body("another question"))]))) == 1


def test_the_entities_bench_times_each_kind_of_text() -> None:
    measures = entities_bench.run(turns=1)
    assert measures[0].name == "100 kB of Python"
    assert all(0 < measure.value < 5_000 and measure.goal == entities_bench.GOAL for measure in measures)


def test_the_recording_bench_measures_calls_of_the_size_that_it_says() -> None:
    figures = recording_bench.run(size=40_000, calls=24)
    assert [it.name for it in figures].count("processor time") == 2
    assert all(0 < it.value < 1_000 for it in figures if it.name in {"processor time", "time"})
    sent = next(it.value for it in figures if it.name == "sent in all")
    assert 0.3 < sent < 0.7, "24 calls, of 20 kB in the middle"
    (kept,) = [it.value for it in figures if it.name == "kept of it as a branch"]
    assert kept < sent / 10


def test_the_import_bench_stores_every_row_and_measures_the_process_that_does() -> None:
    figures = {measure.name: measure for measure in import_bench.run(rows=40)}
    assert figures["peak memory"].passed and figures["peak memory"].value > 30
    assert figures["time"].note == "4 MB read" and figures["read, of processor time"].value > 0


@pytest.mark.whole
def test_the_atif_bench_imports_every_document_that_it_exported() -> None:
    measures = atif_bench.run(trajectories=20, tokens=2_000)
    assert [measure.passed for measure in measures if measure.name == "peak memory"] == [True, True]
    assert {measure.bench.partition(" of ")[0] for measure in measures} == {"export", "import"}


@pytest.mark.whole
@pytest.mark.docker
@pytest.mark.usefixtures("bubblewrap")
def test_the_sandbox_bench_measures_what_it_says(tmp_path: Path) -> None:
    mirror = placing_bench.generated(tmp_path / "made", 20).mirror
    measures = sandbox_bench.run(mirror=mirror, turns=10, sizes={"1 MB": (1, 1)}, trees={"tiny": 30}, placings=2)
    commands = {measure.name: measure.value for measure in measures if measure.bench.startswith("a trivial command")}
    assert 0 < commands["our channel"] < commands["docker exec by CLI"]
    notes = [measure.note for measure in measures if measure.bench.startswith("snapshot and restore")]
    assert notes[:4] == ["1 MB"] * 4, "both ways keep as much"
    assert {measure.bench for measure in measures if measure.name == "our set-up in a new container"} == {
        "a stage on a tiny tree of 30 files, median of 2, of the rest 2",
        "a stage on the tip of mirror.git, median of 2, of the rest 2",
    }
    for backend in ("docker", "local"):
        search = {
            measure.name: measure.value for measure in measures if measure.bench.startswith(f"a search in {backend}")
        }
        assert all(0 < search[name] < 60 for name in ("snapshot", "branch", "restore", "forget", "move_tree to B_t"))
        assert all(0 <= search[f"100 snapshots{how} restored"] < 1000 for how in (", each", " of a copy, none"))
        assert search["20 branches of one snapshot, alive at once"] < 120
    assert [measure.value for measure in measures if measure.name == "load average before"] > [0]


@pytest.mark.docker
@pytest.mark.usefixtures("bubblewrap")
def test_stages_and_branches_leave_nothing_behind() -> None:
    measures = remains_bench.run(stages=4, branches=6)
    assert [measure.value for measure in measures if measure.goal is not None] == [0] * 10


@pytest.mark.drawn(2)
@pytest.mark.parametrize("backend", [pytest.param("docker", marks=pytest.mark.docker), "local"])
@pytest.mark.usefixtures("bubblewrap")
def test_the_window_bench_counts_every_second_of_a_window_once(backend: str) -> None:
    measures = window_bench.run(files=[6], backends=[backend])
    window = {
        measure.name: measure for measure in measures if measure.bench == f"a curated window in {backend}, 6 files"
    }
    parts = [window[name] for name in (*window_bench.PARTS, window_bench.REST)]
    assert sum(part.value for part in parts) == pytest.approx(window["in all"].value)
    assert all(0 < part.value < 60 for part in parts)
    steps = 10 + 10 + 6 + 6
    for name in ("leftovers", window_bench.COMMANDS):
        assert window[name].note.startswith(f"{steps} times"), "variants begin at the fifth step of their seeds"
    assert window["snapshot"].note.startswith(f"{steps + 1} times"), "and the window's own"
    times = {"branch": 4, "close of a branch": 4, "restore": 1, window_bench.MADE: 4 + 1}
    times |= {window_bench.FIRST_TREE: 4, window_bench.LATER_TREE: steps - 4, window_bench.COPIED: 4, "names of S_t": 1}
    assert {name: int(window[name].note.split()[0]) for name in times} == times
    assert window["snapshots of a window"].note == f"{steps} of them"
    assert 0 < window["snapshots of a window"].value * 25 == pytest.approx(window["snapshots of 100 candidates"].value)


def test_the_window_bench_names_a_backend_that_does_not_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str | None) -> None:
        raise EngineUnavailable(f"no engine answers at {url}")

    monkeypatch.setattr("environments.sandboxes.docker.connect", connect)
    [named, *machine] = window_bench.run(files=[6], backends=["docker"])
    assert named.name == "not measured" and named.note == "no engine answers at None"
    assert {measure.bench for measure in machine} == {"the machine meanwhile"}


@pytest.mark.mini
def test_the_rollout_bench_measures_both_loops_on_the_same_replies() -> None:
    measures = rollout_bench.run(turns=2, steps=4)
    figures = {measure.name: measure.value for measure in measures if measure.bench.startswith("a step")}
    for name in (rollout_bench.OWN, rollout_bench.MINI, rollout_bench.ALONE, rollout_bench.SAVING):
        assert 0.05 < figures[f"{name}, CPU"] < 1000 and 0.05 < figures[name] < 10_000
    assert [measure.goal for measure in measures if measure.name == f"{rollout_bench.OWN}, CPU"] == [10.0]


@pytest.mark.whole
def test_the_prm_bench_watches_replays_and_reads() -> None:
    assessment = read_reply(prm_bench.reply_of(3_000), load_taxonomy(), action=False)
    assert len(prm_bench.reply_of(3_000)) == 3_000 and len(assessment.detections) == 3
    measures = prm_bench.run(steps=12, turns=1, replayed=10, replayed_steps=7)
    figures = {measure.name: measure.value for measure in measures}
    for name in (prm_bench.OWN, prm_bench.LEAKS, prm_bench.LEAKING, prm_bench.STORED, prm_bench.ADAPTIVE):
        assert 0.01 < figures[name] < 1000
    assert figures[prm_bench.OWN] < figures[prm_bench.LEAKING]
    assert [measure.goal for measure in measures if measure.name == prm_bench.OWN] == [2.0]
    assert 0 < figures["read"] < 100 and 30 < figures["peak memory"] < 1000
    assert {measure.note for measure in measures if measure.name == "a trajectory"} == {
        "1 windows each, ledger and rows in SQLite included"
    }


def test_what_watches_is_measured_on_words_that_the_agent_did_say() -> None:
    entries = worked_stage(10, 10_000)
    assert entries == worked_stage(10, 10_000) != worked_stage(10, 10_000, seed=1)
    shown = [entry.content for entry in entries if entry.kind is EntryKind.OBSERVATION]
    assert all(10_000 <= len(text) < 11_000 for text in shown) and len(set(shown)) == 10
    window = StepWindow.of(entries, 8)
    assert window is not None
    for detection in read_reply(prm_bench.reply_of(3_000), load_taxonomy(), action=False).detections:
        assert WindowText(window).step_of(detection.evidence) == 10


def test_a_missed_goal_fails_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(git_bench, "PEAK_GOAL", 1.0)
    assert main(["--only", "git", "--rounds", "1", "--landed", "10"]) == 1
    table = capsys.readouterr().out
    assert "FAIL" in table and "points" not in table


def test_a_history_without_all_its_blobs_is_measured_without_renames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, partial = generate(tmp_path / "whole.git", 60), tmp_path / "partial.git"
    config = ["-c", "uploadpack.allowFilter=true"]
    clone = ["git", *config, "clone", "--quiet", "--mirror", "--filter=blob:none", f"file://{whole}", str(partial)]
    subprocess.run(
        ["git", "-C", str(whole), "config", "uploadpack.allowFilter", "true"], check=True, capture_output=True
    )
    subprocess.run(clone, check=True, capture_output=True)
    subprocess.run(["git", "-C", str(partial), "config", "remote.origin.url", "file:///nowhere"], check=True)
    assert main(["--only", "git", "--mirror", str(partial), "--rounds", "1"]) == 0
    assert "with --no-renames" in capsys.readouterr().out


def test_a_generated_history_is_the_same_every_time(tmp_path: Path) -> None:
    tips = [
        subprocess.run(
            ["git", "-C", str(generate(tmp_path / name, 5)), "for-each-ref"], check=True, capture_output=True
        ).stdout
        for name in ("one.git", "two.git")
    ]
    assert tips[0] == tips[1] and b"refs/pull/" in tips[0] and b"refs/generated" not in tips[0]


def test_a_table_says_pass_or_fail_only_where_there_is_a_goal() -> None:
    measures = [
        Measure("time", "fast enough", 3.0, "s", 4.0),
        Measure("time", "too slow", 5.0, "s", 4.0),
        Measure("time", "for your information", 7.0),
        Measure("size", "enough", 9_000, goal=9_000, at_least=True),
    ]
    lines = as_table(measures).splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("  ")] == ["PASS", "FAIL", "7", "PASS"]
    assert [row["passed"] for row in json.loads(as_json(measures))] == [True, False, None, True]


def test_one_pull_request_with_very_many_comments_is_read_whole() -> None:
    stored, memory, *_ = comments_bench.run(comments=300)
    assert stored.passed is None or stored.value >= 300
    assert memory.unit == "MiB" and 0 < memory.value < comments_bench.MEMORY_GOAL
