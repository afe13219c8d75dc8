"""`prchain evaluate` over stored rollouts whose figures are known by construction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, update

from prchain.core.errors import UsageError
from sql.tables import LlmCall, Trajectory, TrajectoryStage, Verdict
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.tasks.predictions import chosen_rollouts
from trajectories.identity import LENGTH
from trajectories.outcomes import FINAL
from trajectories.studies.evaluation.cli import evaluate
from trajectories.studies.evaluation.stored import TaskSet, chains_of, evaluated_runs

CHAINS = ("a" * 16, "b" * 16, "c" * 16)
"""One stage, one stage, two stages."""


def talk(stages: int, steps: int) -> Talk:
    found = Talk().system()
    for position in range(1, stages + 1):
        found.query(position)
        for step in range(steps - 1):
            found.bash(f"echo {step}")
        found.submit()
    return found


def add(
    world: SampleWorld,
    place: int,
    chain: str,
    *,
    sample: int = 0,
    model: str = "m1",
    resolved: bool,
    stages: int = 1,
    steps: int = 3,
    tests: str | None = None,
    **options: str,
) -> str:
    """A rollout that worked on so many stages; the last one is `resolved`, those before it are."""
    name = f"{place:0{LENGTH}x}"
    kept = stages if resolved else stages - 1
    outcome = "accepted" if resolved else "rejected" if stages == 1 else "too_short"
    talked, chosen = talk(stages, steps), dict[str, Any](model=model, outcome=outcome, **options)
    world.trajectory(name, chain, talked, sample=sample, accepted=kept, usd=0.5, **chosen)
    with world.store.transaction() as tx:
        tx.connection.execute(update(TrajectoryStage).where(TrajectoryStage.trajectory_id == name).values(steps=steps))
        if tests is not None:
            tx.connection.execute(update(Verdict).where(Verdict.trajectory_id == name).values(tests=tests))
        texts = dict.fromkeys(("run", "request_hash", "prompt", "prompt_hash"), "x")
        told: dict[str, Any] = {"sample": sample, "attempt": 1, "ordinal": 0, "tokens_in": 100, "tokens_out": 10}
        call = {**texts, **told, "purpose": "agent", "model": model, "state": "stored", "usd": 0.25}
        for position in range(1, stages + 1):
            subject = {"subject": f"{name}/{position}", "started_at": "2024-01-01T00:00:00Z"}
            tx.connection.execute(insert(LlmCall).values({**call, **subject}))
    return name


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleWorld]:
    with sample_world(tmp_path_factory.mktemp("evaluate")) as world:
        for place, (chain, length) in enumerate(zip(CHAINS, (1, 1, 2), strict=True)):
            world.chain(chain, length=length, repository=("shop", "till" if place < 2 else "desk"))
            world.select(chain, "single")
        one, two, three = CHAINS
        add(world, 1, one, sample=0, resolved=True)
        add(world, 2, one, sample=1, resolved=False, steps=9)
        add(world, 3, two, sample=0, resolved=True, tests="regressed")  # what the gate accepts, the tests do not
        add(world, 4, three, sample=0, resolved=False)  # and so the second stage is not tried
        down = add(world, 5, two, sample=1, resolved=False)
        add(world, 6, one, model="m2", resolved=True, steps=5)
        add(world, 7, two, model="m2", resolved=True, steps=5)
        add(world, 8, three, model="m2", resolved=True, stages=2, steps=5)
        with world.store.transaction() as tx:
            lost = {"outcome": "endpoint_unreachable"}
            tx.connection.execute(update(TrajectoryStage).where(TrajectoryStage.trajectory_id == down).values(lost))
            tx.connection.execute(update(Trajectory).where(Trajectory.id == down).values(lost))
        yield world


def figures(world: SampleWorld, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(evaluate, ["--db", str(world.store.url.database), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    row: dict[str, Any] = json.loads(result.output)
    return row


def test_the_figures_are_those_that_were_made(world: SampleWorld) -> None:
    first, second = figures(world, "--k", "1,2")["groups"]
    assert (first["group"], first["instances"], first["runs"], first["resolved"]) == ("m1", 4, 5, 1)
    # Of the four stages one is resolved in one of two runs.
    assert first["pass_at"]["1"]["value"] == pytest.approx(0.5 / 4) and first["pass_at"]["1"]["interval"] == "bootstrap"
    assert (first["pass_at"]["2"]["value"], first["pass_at"]["2"]["of"]) == (1.0, 1)
    assert (first["not_reached"], first["apart"]) == (1, {"endpoint_unreachable": 1})
    assert first["steps"] == pytest.approx((3 + 9 + 3 + 3) / 4) and first["patch_rate"] == pytest.approx(4 / 5)
    assert first["at_steps"]["10"] == pytest.approx(1 / 5)
    assert (second["pass_at"]["1"]["value"], second["pass_at"]["1"]["interval"]) == (1.0, "wilson")
    assert (second["steps"], second["usd"], second["usd_resolved"]) == (5, 0.25, 0.25)
    assert (second["tokens_in"], second["calls"]) == (100, 5)


def test_runs_are_parted_by_repository_and_by_stage(world: SampleWorld) -> None:
    by_repository = {it["group"]: it["resolved"] for it in figures(world, "--by", "repository")["groups"]}
    assert by_repository == {"m1, shop/desk": 0, "m1, shop/till": 1, "m2, shop/desk": 2, "m2, shop/till": 2}
    by_position = {it["group"]: it["runs"] for it in figures(world, "--by", "position", "--model", "m1")["groups"]}
    assert by_position == {"m1, 1": 4, "m1, 2": 1}


def test_two_models_are_compared_and_a_drawing_is_written(world: SampleWorld, tmp_path: Path) -> None:
    drawing = tmp_path / "pass.svg"
    compared = figures(world, "--compare", "m1", "m2", "--svg", str(drawing))["compared"]
    assert (compared["instances"], compared["only_one"]) == (4, [])
    assert compared["only_other"] == [f"{CHAINS[1]}/1", f"{CHAINS[2]}/1", f"{CHAINS[2]}/2"]
    measures = compared["measures"]
    assert measures["resolved"]["difference"] == pytest.approx(100 - 100 * 0.5 / 4)
    # The second stage of the third chain was not tried by one of them.
    assert (measures["steps"]["one"], measures["steps"]["other"]) == ((6 + 3 + 3) / 3, 5)
    assert drawing.read_text().startswith("<svg") and "12.5" in drawing.read_text()


def test_people_read_tables_of_at_most_80_columns(world: SampleWorld) -> None:
    database = ["--db", str(world.store.url.database)]
    result = CliRunner().invoke(evaluate, [*database, "--compare", "m1", "m2"])
    assert result.exit_code == 0 and "1 apart, scored as nothing: 1 endpoint_unreachable" in result.output
    assert "1 stage not tried, as an earlier one failed: unresolved" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


# ---- what is no sample of one thing, or says nothing of the agent


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleWorld]:
    with sample_world(tmp_path_factory.mktemp("odd")) as world:
        for chain, length in zip(CHAINS, (1, 1, 3), strict=True):
            world.chain(chain, length=length, repository=("shop", "till"))
            world.select(chain, "single")
        one, two, three = CHAINS
        # An instance that two data sets publish.
        world.imported(one, "Lite")
        world.imported(two, "Verified")
        add(world, 1, one, model="twice", resolved=True)
        add(world, 2, two, model="twice", resolved=False)
        left: list[tuple[str, str]] = []
        unsupported = add(world, 3, three, model="state", resolved=True, stages=2)
        limited = add(world, 4, three, model="limit", resolved=True, stages=1)
        unscored = add(world, 5, one, model="unscored", resolved=True, tests="passed")
        silent = add(world, 6, two, model="unscored", resolved=False)
        fresh = add(world, 7, one, model="options", resolved=False)
        add(world, 8, one, model="options", resolved=True)
        for place, name in ((10, "sandbox_lost"), (11, "defect"), (12, "superseded")):
            cut = add(world, place, three, model="cut", resolved=True, stages=2, sample=place)
            left += [(cut, name)]
        curated = add(world, 9, two, model="twice", resolved=True, sample=1)
        stages, whole = TrajectoryStage.trajectory_id, Trajectory.id
        with world.store.transaction() as tx:

            def put(table: Any, name: str, at: int | None = None, **values: Any) -> None:
                where = [(whole if table is Trajectory else stages) == name]
                where += [TrajectoryStage.position == at] if at else []
                tx.connection.execute(update(table).where(*where).values(**values))

            put(Trajectory, unsupported, outcome="too_short", accepted=1)
            put(TrajectoryStage, unsupported, 2, outcome="merge_unsupported", attempts=0)
            put(Trajectory, limited, outcome="too_short", accepted=1)
            for name in (unscored, silent):
                put(Trajectory, name, outcome="unscored")
                put(TrajectoryStage, name, outcome="unscored")
            tx.connection.execute(update(Verdict).where(Verdict.trajectory_id == silent).values(tests=None))
            # As a machine leaves them: only the trajectory has the failure's name.
            for cut, name in left:
                put(Trajectory, cut, outcome=name, accepted=1)
                put(TrajectoryStage, cut, 2, outcome="running", attempts=0)
            put(Trajectory, fresh, options={"context": "stage"})
            put(Trajectory, curated, scaffold="curated")
        yield world


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleWorld]:
    with sample_world(tmp_path_factory.mktemp("carried")) as world:
        for chain in CHAINS[:2]:
            world.chain(chain, length=2, repository=("shop", "till"))
            world.select(chain, "single")
        place = 0
        for carry, resolved in (("agent", (False, False)), ("reference", (True, True)), ("none", (True, False))):
            for chain, last in zip(CHAINS[:2], resolved, strict=True):
                place += 1
                name = add(world, place, chain, resolved=last, stages=2, carry=carry, on_fail="continue")
                broke = {"earlier_broken": ["t"] if not last else [], "carried_failure": [], "carried_fixed": []}
                with world.store.transaction() as tx:
                    where = (Verdict.trajectory_id == name, Verdict.position == 2)
                    tests = "passed" if last else "earlier_broken"
                    tx.connection.execute(update(Verdict).where(*where).values(grade=broke, tests=tests))
                    tx.connection.execute(update(LlmCall).values(tokens_in=None, tokens_out=None))
        yield world


def test_whose_work_a_stage_begins_with_is_compared_on_the_same_stages(carried: SampleWorld) -> None:
    row = figures(carried, "--by", "carry")
    assert row["parted_by_option"] == [] and [it["group"] for it in row["groups"]] == [
        "m1, carry=agent",
        "m1, carry=none",
        "m1, carry=reference",
    ]
    (found,) = row["carried"]
    assert (found["group"], found["instances"], found["chains"]) == ("m1", 4, 2)
    assert {name: it["by_position"] for name, it in found["carries"].items()} == {
        "agent": {"1": 1.0, "2": 0.0},
        "reference": {"1": 1.0, "2": 1.0},
        "none": {"1": 1.0, "2": 0.5},
    }
    assert [(it["one"], it["other"], it["later"]) for it in found["differences"]] == [
        ("agent", "reference", 100),
        ("agent", "none", 50),
        ("reference", "none", -50),
    ]
    assert found["carries"]["agent"]["broke_earlier"] == 1.0
    assert (row["groups"][0]["later"], row["groups"][0]["broke_earlier"]) == (2, 2)


def test_people_read_how_errors_propagate_and_that_no_tokens_were_told(carried: SampleWorld) -> None:
    result = CliRunner().invoke(evaluate, ["--db", str(carried.store.url.database), "--by", "carry"])
    assert "on 4 stages of 2 chains with runs of each" in result.output and "reference less agent" in result.output
    assert "+50.0" in result.output and "of 2 later stages with tests 2 broke tests of earlier ones" in result.output
    assert "m1, carry=agent: no tokens were told by what answered" in result.output and "50.0%" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_an_instance_that_two_data_sets_publish_is_two(odd: SampleWorld) -> None:
    (group,) = figures(odd, "--model", "twice", "--k", "1,2")["groups"]
    assert (group["instances"], group["pass_at"]["1"]["value"], "2" in group["pass_at"]) == (2, 0.5, False)
    with odd.store.reading() as tx:
        assert {it.name for it in evaluated_runs(tx, CHAINS, "twice")} == {"Lite shop__till-1", "Verified shop__till-1"}


def test_runs_with_several_options_are_parted(odd: SampleWorld) -> None:
    row = figures(odd, "--model", "options", "--k", "1,2")
    assert row["parted_by_option"] == ["options"]
    assert {it["group"]: it["pass_at"]["1"]["value"] for it in row["groups"]} == {
        "options, context=chain": 1.0,
        "options, context=stage": 0.0,
    }


def test_what_the_agent_did_not_fail_stands_apart_under_its_name(odd: SampleWorld) -> None:
    found = {model: figures(odd, "--model", model)["groups"][0] for model in ("state", "limit", "unscored", "cut")}
    assert {model: (it["runs"], it["resolved"], it["not_reached"], it["apart"]) for model, it in found.items()} == {
        "state": (1, 1, 0, {"merge_unsupported": 2}),
        "limit": (1, 1, 0, {"not_reached": 2}),
        "cut": (2, 2, 0, {"defect": 2, "sandbox_lost": 2}),
        "unscored": (1, 1, 0, {"unscored": 1}),  # by its hidden tests; of the other nothing was said
    }


def test_predictions_are_of_the_runs_that_were_evaluated(odd: SampleWorld, tmp_path: Path) -> None:
    with odd.store.reading() as tx:
        runs = {it.trajectory for it in evaluated_runs(tx, CHAINS, "twice")}
        chosen = chosen_rollouts(tx, outcomes=FINAL, only=runs)
    assert {it.id for it in chosen} == runs and len(runs) == 2
    arguments = ["--db", str(odd.store.url.database), "--predictions-out", str(tmp_path / "p.jsonl")]
    result = CliRunner().invoke(evaluate, arguments)
    assert "Pass@1" in result.output and "predictions are of one model a file" in str(result.exception)


def test_what_is_not_there_is_told(world: SampleWorld) -> None:
    with world.store.reading() as tx, pytest.raises(UsageError, match="no task of the strategy was imported from x"):
        chains_of(tx, TaskSet("single", source="x"))
    result = CliRunner().invoke(evaluate, ["--db", str(world.store.url.database), "--compare", "m1", "m3"])
    assert isinstance(result.exception, UsageError) and "there is no group 'm3'; there are: m1; m2" in str(
        result.exception
    )
    nothing = CliRunner().invoke(evaluate, ["--db", str(world.store.url.database), "--strategy", "lineage"])
    assert nothing.exit_code == 1 and "no rollout over these tasks has ended" in nothing.output
