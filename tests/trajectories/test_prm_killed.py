"""Guided rollouts whose process is killed at any moment, or which many workers share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Request
from prchain.core.llm.price import Price
from sql.tables import LlmCall, PrmFinding, PrmWindow, TaskStage, Trajectory
from tests.memory_ledger import MemoryLedger
from tests.trajectories.kills import ENOUGH
from tests.trajectories.prmkills import guided_context, guided_model
from tests.trajectories.rolloutworld import OVERVIEW, RolloutWorld, rollout_world
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import Schedule
from trajectories.agents.guidance.window import stage_entries
from trajectories.agents.scaffolds.scaffold import ObservedAttempt
from trajectories.model import EntryKind
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

ROOT = Path(__file__).parents[2]

_FOLDER = re.compile(r"/[^\s\"]+/testbed")


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[tuple[RolloutWorld, RolloutWorld]]:
    with ExitStack() as stack:
        for name in ("calm", "rough"):
            (tmp_path / name).mkdir()
        calm, rough = (stack.enter_context(rollout_world(tmp_path / name, [(1,)])) for name in ("calm", "rough"))
        yield calm, rough


def whole(world: RolloutWorld, trajectory: str) -> str:
    """All of a rollout, wherever its sandboxes lay."""
    return _FOLDER.sub("/testbed", json.dumps(world.whole(trajectory), default=str))


def windows(world: RolloutWorld) -> str:
    """The rows of windows and findings, without times, wherever the sandboxes lay."""
    columns = [it.name for it in PrmWindow.__table__.columns if it.name != "seconds"]
    findings = [it.name for it in PrmFinding.__table__.columns]
    rows = [sorted(world.rows(table, *names)) for table, names in ((PrmWindow, columns), (PrmFinding, findings))]
    return _FOLDER.sub("/testbed", json.dumps(rows))


def test_killed_at_points_in_turn_a_guided_rollout_leaves_the_rows_of_a_calm_one_and_pays_no_stored_reply_twice(
    worlds: tuple[RolloutWorld, RolloutWorld],
) -> None:
    calm, rough = worlds
    name = roll(guided_context(calm, guided_model()), calm.chains[0], 0)
    process = subprocess.run(
        [sys.executable, "-m", "tests.trajectories.prmkills", str(rough.folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    points = [json.loads(line) for line in (rough.folder / "points").read_text().splitlines()]
    assert len(points) >= ENOUGH
    assert {point[0] for point in points} == {"before", "after", "request", "command"}
    assert whole(rough, name) == whole(calm, name)
    assert windows(rough) == windows(calm)
    faults = {row[0] for row in calm.rows(PrmWindow, "fault")}
    assert faults == {None, "unreadable"} and {"on_track", None} <= {row[0] for row in calm.rows(PrmWindow, "why_not")}
    stored = Counter(rough.calls())
    assert max(stored.values()) == 1
    assert Counter(call[:-1] for call in stored) == Counter(call[:-1] for call in calm.calls())


def test_what_was_asked_is_what_one_finds_looking_back_on_the_whole(tmp_path: Path) -> None:
    with rollout_world(tmp_path, [(1, 2)]) as world:
        name = roll(guided_context(world, guided_model()), world.chains[0], 0)
        with world.store.reading() as tx:
            entries = read_entries(tx, name)
        for position in (1, 2):
            own = stage_entries(entries, position)
            asked = world.rows(PrmWindow, "last_step", trajectory_id=name, position=position)
            due = asked_after(own, Schedule.EVERY, 2)
            assert sorted(row[0] for row in asked) == [step for step in due if step != own[-1].step] != []


def test_taken_up_after_each_of_its_steps_an_attempt_asks_and_says_what_it_did_before(tmp_path: Path) -> None:
    asked: list[str] = []

    def asks(request: Request) -> None:
        if request.purpose == "prm":
            asked.append(request.messages[-1].content)

    with rollout_world(tmp_path, [(1,)]) as world:
        name = roll(guided_context(world, guided_model(asks)), world.chains[0], 0)
        kind = guided_context(world, None).observers[0]
        with world.store.reading() as tx:
            entries = read_entries(tx, name)
        said = [(entry.step, entry.content) for entry in entries if entry.kind is EntryKind.GUIDANCE]
        ledger = MemoryLedger()
        again: list[str] = []
        model = guided_model(lambda request: again.append(request.messages[-1].content))
        repeated = []
        for entry in entries:
            if entry.kind is EntryKind.OBSERVATION and entry.step != entries[-1].step:
                gateway = Gateway(ledger, default=Route(model, Price(1.0, 2.0)))
                task_overview, query = OVERVIEW, world.rows(TaskStage, "query", position=1)[0][0]
                attempt = ObservedAttempt(gateway, f"{name}/1", 0, 1, entry.attempt, task_overview, query)
                advice = kind.observe(attempt)([it for it in entries if it.ordinal <= entry.ordinal])
                if advice is not None and advice.guidance:
                    repeated.append((entry.step, advice.guidance))
        assert again == asked and repeated == said != []


def test_eight_workers_on_a_budget_leave_the_rows_of_one_worker_and_the_ledger_agrees(tmp_path: Path) -> None:
    for name in ("one", "eight"):
        (tmp_path / name).mkdir()
    chains = [(1,), (2,), (3,), (4,)]
    with rollout_world(tmp_path / "one", chains) as one, rollout_world(tmp_path / "eight", chains) as eight:
        for world, workers in ((one, 1), (eight, 8)):
            report = world.run(guided_context(world, guided_model(), budget=1.0), samples=2).run(workers)
            assert report.done and set(report.outcomes) == {"accepted"}
        assert windows(one) == windows(eight)
        for (name,) in one.rows(Trajectory, "id"):
            assert whole(one, name) == whole(eight, name)
        ((spent,),) = [(sum(row[0] for row in eight.rows(LlmCall, "usd")),)]
        assert spent == pytest.approx(sum(row[0] for row in eight.rows(Trajectory, "usd")), abs=1e-8)
