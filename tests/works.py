"""The six kinds of work in small worlds: how each is opened, a hook deep in it, and the rows it leaves."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chains.tasks.run import TaskRunOptions
from environments.proofs.validate import ValidateOptions
from environments.proofs.validations import ValidationChoice
from miner.mine import MineOptions
from miner.repositories import parse_entry
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request
from prchain.core.settings import Settings
from sql.tables import (
    GraphRow,
    LlmCall,
    MineRun,
    ReferenceRun,
    StageTests,
    Task,
    TaskStage,
    Trajectory,
    TrajectoryMessage,
    Validation,
)
from tests.chains.taskworld import OVERVIEW, PLAN, crowd, crowd_query, mined, shop
from tests.environments.stageworld import stage_world
from tests.miner.gitworld import World
from tests.models import FakeModel
from tests.trajectories.graphworld import graph_facts, graph_world, keeping, node_names, steps
from tests.trajectories.rolloutworld import query, rollout_world
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.run import GraphChoice
from trajectories.options import RolloutOptions
from trajectories.rollouts.run import RolloutChoice
from trajectories.studies.verdicts.calibrate import CalibrationOptions

UNITS = 5
"""The number of units in every world here."""

Act = Callable[[str], None]
"""Called deep in the work on a unit, with its key; may raise."""


@dataclass(frozen=True)
class Case:
    """One world: what a run is opened with, and what it leaves."""

    environment: Mapping[str, str]
    """Environment variables with its settings."""
    opening: tuple[Any, ...]
    """Arguments of `open_run` besides settings: plain values that can be pickled."""
    facts: Callable[[], Any]
    """The rows that the work leaves, by natural key, without times."""
    running: Callable[[], int]
    """The number of rows marked as running."""
    specs: tuple[Any, ...] = ()
    """The units, for a run that takes them as an argument."""


@dataclass(frozen=True)
class Kind:
    """One kind of work."""

    name: str
    module: str
    """The module of its `open_run`."""
    make_case: Callable[[Path], AbstractContextManager[Case]]
    command: tuple[str, ...]
    """Arguments of `prchain` for a run over the world."""
    hook: Callable[[Any, Act], None]

    def open(self, case: Case) -> AbstractContextManager[Any]:
        """The work, opened from settings and options."""
        opened: AbstractContextManager[Any] = importlib.import_module(self.module).open_run(
            Settings.load(), *case.opening
        )
        return opened


def units(work: Any, case: Case) -> list[Any]:
    """The units to work on."""
    if case.specs:
        return list(case.specs)
    pending = work.pending()
    found: Any = pending[0] if isinstance(pending, tuple) else getattr(pending, "units", pending)
    return list(found)


def run(work: Any, case: Case, workers: int = 1) -> Any:
    """Run the work; returns the report."""
    return work.run(list(case.specs), workers) if case.specs else work.run(workers)


def _hook_model(gateway: Gateway, act: Act, key: Callable[[Request], str]) -> None:
    route = gateway.default
    assert isinstance(route, Route)
    model = route.model

    def answer(request: Request) -> Reply:
        act(key(request))
        return model.complete(request)

    gateway.default = replace(route, model=FakeModel(answer, model.name))
    gateway.pause = lambda tries: None


def _script(folder: Path, lines: Sequence[Mapping[str, Any]]) -> str:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps({"repeat": True, **line}) + "\n" for line in lines))
    return str(path)


def _environment(store: Any, folder: Path, **variables: str) -> dict[str, str]:
    return {
        "PRCHAIN_DB": store.url.render_as_string(hide_password=False),
        "PRCHAIN_DATA_DIR": str(folder / "data"),
        **variables,
    }


# ---- mine


@contextmanager
def _mine(folder: Path) -> Iterator[Case]:
    from tests.miner.test_mine import Lab

    specs = []
    for number in range(UNITS):
        world = World(folder / f"r{number}.git")
        world.commit("main", {"a.py": "x = 1\n"}, "start")
        for pull in (1, 2):
            head = world.propose(pull, {f"p{pull}.py": f"y = {number}\n"})
            world.squash("main", head, f"Add p{pull} (#{pull})")
        world.save()
        specs.append(parse_entry(f"o/r{number} = {world.path}", "github.com", folder))
    lab = Lab(folder)
    (folder / "repos.txt").write_text("".join(f"o/r{n} = r{n}.git\n" for n in range(UNITS)))
    running = lambda: sum(outcome == "running" for (outcome,) in lab.rows(MineRun, "outcome"))  # noqa: E731
    yield Case(_environment(lab.store, folder), (MineOptions(source="git"),), lab.facts, running, tuple(specs))
    lab.store.close()


def _hook_mine(work: Any, act: Act) -> None:
    real = work._read_git

    def read_git(spec: Any, *rest: Any) -> Any:
        act(spec.key)
        return real(spec, *rest)

    work._read_git = read_git


# ---- tasks


@contextmanager
def _tasks(folder: Path) -> Iterator[Case]:
    with mined(folder, crowd(folder, UNITS), [[number] for number in range(1, UNITS + 1)]) as world:
        lines: list[dict[str, Any]] = [
            {"purpose": "plan", "reply": PLAN},
            {"purpose": "overview", "reply": {"overview": OVERVIEW}},
        ]
        lines += [
            {"purpose": "query", "contains": f"src/part{n}.py", "reply": {"query": crowd_query(n)}}
            for n in range(1, UNITS + 1)
        ]
        environment = _environment(world.store, folder, PRCHAIN_LLM_SCRIPT=_script(folder, lines))
        task = ("chain_id", "outcome", "reason", "overview", "findings", "attempts", "model", "prompts")
        stage = ("chain_id", "position", "outcome", "plan", "query", "interface", "files", "findings", "attempts")
        facts = lambda: (world.rows(Task, *task), world.rows(TaskStage, *stage))  # noqa: E731
        yield Case(environment, (TaskRunOptions(),), facts, lambda: 0)


def _hook_tasks(work: Any, act: Act) -> None:
    _hook_model(work.gateway, act, lambda request: request.subject.partition("/")[0])


# ---- proofs


@contextmanager
def _proofs(folder: Path) -> Iterator[Case]:
    # Chains of one stage each, some of them twice: proofs of many stages are tested with the proofs.
    with stage_world(folder, chains=[(1,), (2,), (3,), (1,), (2,)]) as world:
        recipes = str(folder / "recipes")
        environment = _environment(world.store, folder, PRCHAIN_ENVIRONMENTS_RECIPES_DIR=recipes)
        runs = ("chain_id", "position", "side", "ordinal", "key", "statuses", "exit_code", "complete", "tampered")
        stages = ("chain_id", "position", "outcome", "reason", "files", "classes", "removed", "tampered", "command")
        facts = lambda: (  # noqa: E731
            world.rows(ReferenceRun, *runs),
            world.rows(StageTests, *stages),
            world.rows(Validation, "chain_id", "outcome", "reason", "backend"),
        )
        options = ValidateOptions(backend="local", runs=1, test_timeout=60.0)
        yield Case(environment, (options, ValidationChoice()), facts, lambda: 0)


def _hook_proofs(work: Any, act: Act) -> None:
    real = work.prover._stage

    def stage(chain: Any, *rest: Any) -> Any:
        act(chain.chain.id)
        return real(chain, *rest)

    work.prover._stage = stage


# ---- calibration


@contextmanager
def _calibration(folder: Path) -> Iterator[Case]:
    from tests.trajectories.test_calibrate import prove

    with mined(folder, shop(folder), [(1, 2, 3), (1,), (2,)]) as world:
        chains = list(world.chains)
        for chain, proved in zip(chains, ((1, 2, 3), (1,), (1,)), strict=True):
            world.chains[0] = chain
            prove(world, dict.fromkeys(proved, "proved"))
        lines = [{"purpose": "judge", "reply": {"comment": "Seen.", "score": 0.9}}]
        environment = _environment(world.store, folder, PRCHAIN_LLM_SCRIPT=_script(folder, lines))
        key = ("purpose", "subject", "sample", "attempt", "ordinal", "request_hash")
        facts = lambda: sorted(world.rows(LlmCall, *key, state="stored"))  # noqa: E731
        yield Case(environment, (CalibrationOptions(repeats=1),), facts, lambda: 0)


def _hook_calibration(work: Any, act: Act) -> None:
    def key(request: Request) -> str:
        _, chain, position, _ = request.subject.split("/")
        return f"{chain} stage {position}"

    _hook_model(work.judge.gateway, act, key)


# ---- rollouts


@contextmanager
def _rollouts(folder: Path) -> Iterator[Case]:
    with rollout_world(folder, [(1, 2), (2,), (3,), (4,), (5,)]) as world:
        lines: list[dict[str, Any]] = [
            {"purpose": "agent", "contains": "WROTE-IT", "tool_calls": [{"name": "submit"}]},
            {
                "purpose": "agent",
                "tool_calls": [{"name": "bash", "arguments": {"command": "echo 1 > n.py; echo WROTE-$(echo IT)"}}],
            },
            {"purpose": "judge", "reply": {"comment": "Good.", "score": 1.0}},
        ]
        environment = _environment(world.store, folder, PRCHAIN_LLM_SCRIPT=_script(folder, lines))

        def facts() -> Any:
            names = [name for (name,) in world.rows(Trajectory, "id")]
            return {name: world.whole(name) for name in names}

        def running() -> int:
            names = {name for (name,) in world.rows(TrajectoryMessage, "trajectory_id")}
            return len(world.rows(Trajectory, "id", outcome="running")) if names else 0

        options = RolloutOptions(backend="local", refinements=0)
        yield Case(environment, (options, RolloutChoice()), facts, running)


def _hook_rollouts(work: Any, act: Act) -> None:
    store = work.context.store

    @functools.cache
    def chain_of(trajectory: str) -> str:
        with store.reading() as tx:
            [(chain, sample)] = tx.rows(Trajectory, "chain_id", "sample", id=trajectory)
        return f"{chain} sample {sample}"

    _hook_model(work.context.gateway, act, lambda request: chain_of(request.subject.partition("/")[0]))


# ---- process graphs


@contextmanager
def _graphs(folder: Path) -> Iterator[Case]:
    with graph_world(folder, [(number,) for number in range(1, UNITS + 1)]) as world:
        lines: list[dict[str, Any]] = []
        for number in range(1, UNITS + 1):
            nodes = steps(number)
            # The second round shows what the first one came to, and the query of the chain as both do.
            lines += [
                {"purpose": "proposer", "contains": nodes[0]["statement"], "reply": {"nodes": []}},
                {"purpose": "proposer", "contains": query(number), "reply": {"nodes": nodes}},
                {"purpose": "critic", "contains": query(number), "reply": keeping(node_names(nodes))},
            ]
        environment = _environment(world.store, folder, PRCHAIN_LLM_SCRIPT=_script(folder, lines))
        running = lambda: len(world.rows(GraphRow, "id", outcome="running"))  # noqa: E731
        opening = (GraphOptions(backend="local"), GraphChoice())
        yield Case(environment, opening, lambda: graph_facts(world.store), running)


def _hook_graphs(work: Any, act: Act) -> None:
    store = work.context.store

    @functools.cache
    def chain_of(graph: str) -> str:
        with store.reading() as tx:
            [(chain, position)] = tx.rows(GraphRow, "chain_id", "position", id=graph)
        return f"{chain} stage {position}"

    _hook_model(work.context.gateway, act, lambda request: chain_of(request.subject.partition("/")[0]))


KINDS = {
    kind.name: kind
    for kind in (
        Kind("mine", "miner.mine", _mine, ("mine", "repos.txt", "--source", "git"), _hook_mine),
        Kind("tasks", "chains.tasks.run", _tasks, ("tasks", "build"), _hook_tasks),
        Kind(
            "proofs",
            "environments.proofs.validations",
            _proofs,
            ("environments", "validate", "--backend", "local", "--runs", "1"),
            _hook_proofs,
        ),
        Kind(
            "calibration",
            "trajectories.studies.verdicts.calibrate",
            _calibration,
            ("judge", "calibrate", "--repeats", "1"),
            _hook_calibration,
        ),
        Kind(
            "rollouts",
            "trajectories.rollouts.run",
            _rollouts,
            ("rollouts", "run", "--backend", "local", "--refinements", "0"),
            _hook_rollouts,
        ),
        Kind(
            "graphs",
            "trajectories.curation.graphs.run",
            _graphs,
            ("curate", "graphs", "--backend", "local"),
            _hook_graphs,
        ),
    )
}
