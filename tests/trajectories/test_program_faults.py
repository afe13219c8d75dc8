"""Agent programs under faults: what is the agent's failure, what is the machines', and what holds in either case."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prchain.core import errors
from prchain.core.llm.model import Reply, Request, Usage
from prchain.core.runs import DEFECT
from sql.tables import TrajectoryStage
from tests.models import FakeModel
from tests.trajectories.rolloutworld import PolicyModel, PolicyReply, RolloutWorld, rollout_world
from tests.trajectories.test_programs import finishes
from tests.trajectories.toyagent import install_toy
from trajectories.model import AgentLimits, EntryKind
from trajectories.programs import attempt
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

pytestmark = pytest.mark.drawn(4, "faults of agent programs")
"""All of them are one table."""

ALONE: dict[str, Any] = {"scaffold": "toy", "context": "stage", "refinements": 0}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2)]) as made:
        yield made


def rolled(world: RolloutWorld, model: FakeModel | None = None, mode: str = "works", **options: Any) -> str:
    install_toy(world.folder, mode)
    context = replace(world.context(model or PolicyModel(finishes), **{**ALONE, **options}), retries=0)
    return roll(context, world.chains[0], 0)


def failing(error: Exception, *, first: int) -> PolicyModel:
    """A model that fails from the request of that number on."""
    asked: list[Request] = []

    def before(request: Request) -> None:
        asked.append(request)
        if len(asked) >= first:
            raise error

    return PolicyModel(finishes, before)


@pytest.mark.parametrize(
    "error",
    # Answers that are cut off, 429 and 500 come over the wire in `test_program_endpoint_faults`.
    [errors.EndpointTimeout("no answer"), errors.BadReply("no reply")],
    ids=lambda error: error.name,
)
def test_a_failure_of_the_endpoint_ends_the_attempt_as_no_fault_of_the_agents(
    world: RolloutWorld, error: errors.PrchainError
) -> None:
    name = rolled(world, failing(error, first=2))
    assert world.outcome(name)[0] == error.name
    assert world.stages(name) == [(1, "running")], "the next run goes on with it"
    assert rolled(world) == name and world.outcome(name)[0] == "accepted"


@pytest.mark.parametrize(
    "error", [errors.EndpointRefused("no"), errors.ContextTooLong("too long")], ids=lambda error: error.name
)
def test_what_the_endpoint_refuses_is_told_to_the_agent_and_its_way_to_take_it_is_its_own(
    world: RolloutWorld, error: errors.PrchainError
) -> None:
    name = rolled(world, failing(error, first=2))
    outcome, _, reason = world.outcome(name)
    assert outcome == "agent_failed" and "HTTP Error 400" in str(reason)


def test_a_defect_of_ours_is_no_fault_of_the_agents(world: RolloutWorld) -> None:
    name = rolled(world, failing(ZeroDivisionError("by zero"), first=2))
    assert world.outcome(name)[0] == DEFECT


def test_a_models_refusal_is_a_turn(world: RolloutWorld) -> None:
    name = rolled(
        world, FakeModel(lambda request: Reply("", "fake", "stop", refusal="I will not", usage=Usage(1, 0, 1)))
    )
    with world.store.reading() as tx:
        turn = next(entry for entry in read_entries(tx, name) if entry.kind is EntryKind.TURN)
    assert (turn.content, turn.error) == ("I will not", "refusal")
    assert world.rows(TrajectoryStage, "endings", trajectory_id=name, position=1) == [(["submitted"],)]


def test_one_that_stumbles_keeps_its_steps(world: RolloutWorld) -> None:
    name = rolled(world, mode="stumbles")
    outcome, _, reason = world.outcome(name)
    assert outcome == "agent_failed" and "exit code 1; it last printed: toy agent: hello I stumbled" in str(reason)
    ((endings, steps, tree),) = world.rows(
        TrajectoryStage, "endings", "steps", "end_tree", trajectory_id=name, position=1
    )
    assert (endings, steps) == (["failed"], 1) and tree


def test_one_that_is_killed_is_its_own_failure_and_keeps_its_steps(world: RolloutWorld) -> None:
    name = rolled(world, mode="dies")
    outcome, _, reason = world.outcome(name)
    assert outcome == "agent_failed" and "it ended with exit code 137" in str(reason), "128 and the signal"
    assert world.rows(TrajectoryStage, "endings", "steps", trajectory_id=name, position=1) == [(["failed"], 1)]


def test_one_that_hangs_is_ended_by_the_clock_with_what_it_started(world: RolloutWorld) -> None:
    name = rolled(world, mode="hangs", stage_limits=AgentLimits(seconds=3))
    assert world.rows(TrajectoryStage, "endings", "steps", trajectory_id=name, position=1) == [(["time_limit"], 1)]
    assert not [it for it in children(os.getpid()) if b"agent.py" in words_of(it)]


def test_one_that_asks_nothing_any_more_is_ended(world: RolloutWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "SILENCE", 1.0)
    name = rolled(world, mode="hangs")
    outcome, _, reason = world.outcome(name)
    assert outcome == "agent_failed" and "it asked nothing for" in str(reason)


def test_a_relay_that_is_killed_is_no_fault_of_the_agents(world: RolloutWorld) -> None:
    def kills(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        if messages[-1]["role"] == "tool":
            (relay,) = [child for child in children(os.getpid()) if b"The relay:" in words_of(child)]
            os.kill(relay, signal.SIGKILL)
        return finishes(messages)

    name = rolled(world, PolicyModel(kills))
    assert world.outcome(name)[::2] == ("sandbox_error", "the relay in the sandbox has ended")
    assert rolled(world) == name and world.outcome(name)[0] == "accepted"


def children(process: int) -> list[int]:
    found = [int(path.parts[2]) for path in Path("/proc").glob("[0-9]*/task/[0-9]*/children")]
    parents: dict[int, int] = {}
    for pid in set(found):
        try:
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()[1])
        except OSError:
            continue
    return [pid for pid, parent in parents.items() if parent == process]


def words_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_budget_holds_with_eight_workers(world: RolloutWorld) -> None:
    install_toy(world.folder)
    under_way, most = [0], [0]

    def before(request: Request) -> None:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.2)
        under_way[0] -= 1

    # A call reserves 0.0165 USD, and costs 0.0001.
    context = replace(world.context(PolicyModel(finishes, before), budget=0.04, **ALONE), retries=0)
    report = world.run(context, samples=8).run(8)
    assert 0 < context.gateway.spending().usd <= 0.04 and most[0] <= 2
    outcomes = {result.outcome for result in report.results}
    assert outcomes <= {"accepted", "budget_exceeded"}


def test_temperature_top_p_length_and_model_are_ours_where_they_are_set(world: RolloutWorld) -> None:
    asked: list[Request] = []
    rolled(world, PolicyModel(finishes, asked.append), mode="wishes", temperature=0.25, top_p=0.5, max_tokens=77)
    for request in (it for it in asked if it.body is not None):
        assert (request.temperature, request.top_p, request.max_tokens) == (0.25, 0.5, 77)
        assert json.loads(json.dumps(request.body))["temperature"] == 1.7, "the agent's own"
