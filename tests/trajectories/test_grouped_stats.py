"""The figures of rollouts by model, options and repository: what is resolved, covered and paid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from prchain.cli import run
from prchain.core.errors import UsageError
from sql.tables import LlmCall, PullRequest, Trajectory, TrajectoryStage, Verdict
from tests.trajectories.sampleworld import SampleWorld, long_talk, sample_world
from trajectories.studies.statistics.groups import grouped_stats, option_labels, read_domains, read_steps
from trajectories.studies.statistics.spent import Spent, shared_out
from trajectories.studies.statistics.stats import stats


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as world:
        world.chain("c1")
        yield world


def by(world: SampleWorld, kind: Any, **options: Any) -> dict[str, Any]:
    """The row of each group by its name."""
    with world.store.reading() as tx:
        return {row["group"]: row for row in grouped_stats(tx, kind, **options)["groups"]}


def call(world: SampleWorld, purpose: str, subject: str, usd: float | None, state: str = "stored") -> None:
    row = {
        "run": "r",
        "purpose": purpose,
        "subject": subject,
        "sample": 0,
        "attempt": 0,
        "ordinal": 0,
        "request_hash": "h",
        "state": state,
        "prompt": "p",
        "prompt_hash": "h",
        "model": "m",
        "reserved_usd": usd,
        "usd": usd,
        "started_at": "2024-01-01T00:00:00Z",
    }
    with world.store.transaction() as tx:
        tx.connection.execute(insert(LlmCall).values(row))


def steps_of(world: SampleWorld, trajectory: str, *steps: int) -> None:
    with world.store.transaction() as tx:
        for position, count in enumerate(steps, 1):
            where = (TrajectoryStage.trajectory_id == trajectory, TrajectoryStage.position == position)
            tx.connection.execute(update(TrajectoryStage).where(*where).values(steps=count))


def graded(world: SampleWorld, trajectory: str, position: int, outcome: str) -> None:
    with world.store.transaction() as tx:
        where = (Verdict.trajectory_id == trajectory, Verdict.position == position)
        tx.connection.execute(update(Verdict).where(*where).values(tests=outcome))


class TestResolved:
    def test_the_shares_grow_with_the_steps_that_are_allowed(self, world: SampleWorld) -> None:
        world.trajectory("t1", "c1")
        world.trajectory("t2", "c1", sample=1, outcome="rejected", accepted=0)
        steps_of(world, "t1", 10, 20, 30)
        row = by(world, "model", steps=(9, 10, 25, 59, 60))["agent-1"]
        stages = row["resolved_stages"]
        assert (stages["of"], stages["resolved"]) == (6, 3)
        assert stages["at"] == {"9": 0.0, "10": 0.1667, "25": 0.3333, "59": 0.5, "60": 0.5}
        assert row["resolved_chains"]["at"] == {"9": 0.0, "10": 0.0, "25": 0.0, "59": 0.0, "60": 0.5}

    def test_hidden_tests_decide_where_they_ran(self, world: SampleWorld) -> None:
        world.trajectory("t1", "c1")
        world.trajectory("t2", "c1", sample=1, outcome="rejected", accepted=0)
        graded(world, "t1", 1, "failed")
        graded(world, "t2", 1, "passed")
        row = by(world, "model")["agent-1"]
        assert row["resolved_stages"]["resolved"] == 3 and row["resolved_chains"]["resolved"] == 0

    @pytest.mark.parametrize("left_out", ["branch", "curated", "sandbox_lost"])
    def test_only_plain_rollouts_from_the_beginning_that_ended_count(self, world: SampleWorld, left_out: str) -> None:
        world.trajectory("t1", "c1")
        scaffold = "curated" if left_out == "curated" else "react"
        outcome = "sandbox_lost" if left_out == "sandbox_lost" else "accepted"
        world.trajectory("t2", "c1", sample=1, scaffold=scaffold, outcome=outcome)
        if left_out == "branch":
            with world.store.transaction() as tx:
                values = {"parent_id": "t1", "parent_step": 1}
                tx.connection.execute(update(Trajectory).where(Trajectory.id == "t2").values(**values))
        assert by(world, "model")["agent-1"]["resolved_chains"]["of"] == 1


class TestCost:
    def test_all_purposes_count_and_the_sums_are_those_of_the_ledger(self, world: SampleWorld) -> None:
        world.trajectory("t1", "c1", model="a")
        world.trajectory("t2", "c1", sample=1, model="b", outcome="rejected", accepted=0)
        world.trajectory("t3", "c1", sample=2, model="b")
        for purpose, subject, usd in (
            ("agent", "t1/1", 1.0),
            ("judge", "t1/1", 0.5),
            ("agent", "t2/1", 2.0),
            ("agent", "t3/2", 4.0),
            ("query", "c1/1", 0.3),
            ("overview", "c1/overview", 0.3),
            ("judge", "calibrate/c1/1/empty", 0.6),
            ("repair", "shop/till", 0.9),
            ("prm", "replay/t1/1", 0.25),
            ("agent", "gone/1", 0.125),
        ):
            call(world, purpose, subject, usd)
        call(world, "agent", "t1/1", 99.0, state="released")
        rows = by(world, "model")
        a, b = rows["a"]["cost"], rows["b"]["cost"]
        assert a["usd"] == pytest.approx(1.0 + 0.5 + 0.25 + 2.1 / 3) and b["usd"] == pytest.approx(6.0 + 2.1 * 2 / 3)
        assert a["by_purpose"]["repair"] == pytest.approx(0.3) and b["usd_per_sample"] == pytest.approx(b["usd"])
        with world.store.reading() as tx:
            rest, whole = grouped_stats(tx, "model")["rest"], stats(tx)["all_purposes"]
        assert rest["usd"] == 0.125 and whole["usd"] == pytest.approx(a["usd"] + b["usd"] + 0.125)
        assert whole["usd_per_sample"] == pytest.approx(whole["usd"] / 2)
        (alone,) = by(world, "repository").values()
        assert alone["cost"]["usd"] == pytest.approx(whole["usd"] - 0.125)

    def test_an_unknown_price_makes_the_sum_of_its_group_unknown(self, world: SampleWorld) -> None:
        world.trajectory("t1", "c1", model="a")
        world.trajectory("t2", "c1", sample=1, model="b")
        call(world, "agent", "t1/1", None)
        call(world, "agent", "t2/1", 1.0)
        rows = by(world, "model")
        assert rows["a"]["cost"]["usd_per_sample"] is None and rows["b"]["cost"]["usd_per_sample"] == 1.0
        assert rows["a"]["cost"]["by_purpose"] == {"agent": None}

    def test_what_nobody_had_a_part_in_is_told_apart(self) -> None:
        groups, rest = shared_out(iter([Spent("c9/1", "query", 1.0), Spent("t1/1", "agent", 2.0)]), {"t1": "g"}, {}, {})
        assert groups["g"].usd == 2.0 and rest.usd == 1.0


class TestSamples:
    def test_a_prefix_and_its_extension_are_one_sample(self, world: SampleWorld) -> None:
        world.trajectory("t1", "c1", outcome="accepted_prefix", accepted=2)
        world.trajectory("t2", "c1", sample=1, trees=["t1-1", "t1-2", "x"])
        step = max(entry.step for entry in long_talk().entries if entry.position <= 2)
        with world.store.transaction() as tx:
            values = {"parent_id": "t1", "parent_step": step}
            tx.connection.execute(update(Trajectory).where(Trajectory.id == "t2").values(**values))
            whole = stats(tx)
        assert whole["samples"] == 1 and whole["stages"] == {"3": 1} and whole["hidden_tests"]["not_run"] == 3
        assert by(world, "model")["agent-1"]["samples"] == 1

    def test_domains_are_the_languages_or_what_a_file_tells(self, world: SampleWorld, tmp_path: Path) -> None:
        world.chain("c2", repository=("lab", "sums"), first=20)
        world.trajectory("t1", "c1")
        world.trajectory("t2", "c2")
        assert by(world, "model")["agent-1"]["domains"] == {"python": 2}
        file = tmp_path / "domains.toml"
        file.write_text('"Shop/Till" = "trade"\n')
        domains = read_domains(file)
        assert by(world, "model", domains=domains)["agent-1"]["domains"] == {"trade": 1, "unknown": 1}
        assert by(world, "repository", domains=domains)["lab/sums"]["domains"] == {"unknown": 1}


def test_pull_requests_and_queries_are_told_by_repository_beside_the_papers(world: SampleWorld) -> None:
    world.chain("c2", repository=("lab", "sums"), first=20, length=2)
    with world.store.transaction() as tx:
        tx.upsert(PullRequest, [{"repository_id": 1, "number": number, "outcome": "landed"} for number in range(4)])
        row = grouped_stats(tx, "repository")
    found = {it["group"]: (it["pull_requests"], it["queries"]) for it in row["groups"]}
    assert found == {"shop/till": (4, 3), "lab/sums": (0, 2)}
    assert row["sum"] == {"pull_requests": 4, "queries": 5} and row["paper"]["queries"] == 1_762


def test_options_are_named_by_those_in_which_some_differ() -> None:
    assert option_labels([{"gate": "both"}, {"threshold": 0.5}]) == [
        "gate=both, threshold=0.8",
        "gate=judge, threshold=0.5",
    ]
    assert option_labels([{}, {"gate": "judge"}]) == ["all alike", "all alike"]


def test_the_command_prints_groups_and_takes_a_list_of_steps(
    world: SampleWorld, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t1", "c1", gate="both")
    world.trajectory("t2", "c1", sample=1, gate="judge", outcome="rejected", accepted=0)
    call(world, "agent", "t1/1", 1.25)
    assert run(["stats", "--db", database_url, "--by", "option", "--steps", "1,50"]) == 0
    output = capsys.readouterr().out
    assert "\n2: gate=judge\n" in output and "1.2500" in output and "1 of 1" in output
    assert "stages resolved at" in output and all(len(line) <= 100 for line in output.splitlines())
    assert run(["stats", "--db", database_url, "--by", "repository"]) == 0
    assert "61,810" in capsys.readouterr().out
    assert run(["stats", "--db", database_url, "--by", "model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "model"
    assert run(["stats", "--db", database_url, "--steps", "5"]) == 2
    assert "give --by, too" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["", "x", "5,0", "5,-1", "1.5"])
def test_steps_are_whole_numbers_above_0(words: str) -> None:
    with pytest.raises(UsageError, match="--steps takes"):
        read_steps(words)


@pytest.mark.parametrize("text", ["[a]\n", "shop = 1\n", '"shop/till" = 3\n', "= =", '"shop" = "trade"'])
def test_a_file_of_domains_that_cannot_be_meant_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "domains.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"domains\.toml"):
        read_domains(file)
