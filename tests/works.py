"""The five kinds of work in small worlds: what each is opened from, a place deep in it, and the rows it leaves."""

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
from prchain.llm.gateway import Gateway, Route
from prchain.llm.model import Reply, Request
from prchain.settings import Settings
from sql.tables import (
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
from tests.trajectories.rolloutworld import rollout_world
from trajectories.options import RolloutOptions
from trajectories.rollouts.run import RolloutChoice
from trajectories.verdicts.calibrate import CalibrationOptions

UNITS = 5
"""Of every world here."""

Act = Callable[[str], None]
"""Is called deep in the work on a unit, with its key; may raise."""


@dataclass(frozen=True)
class Given:
    """One world: what a run is opened from, and what it leaves."""

    environment: Mapping[str, str]
    """Variables that its settings stand in."""
    opening: tuple[Any, ...]
    """What `open_run` takes besides settings: plain values that can be pickled."""
    facts: Callable[[], Any]
    """The rows that the work leaves, by natural key, without times."""
    running: Callable[[], int]
    """How many rows say that they are being worked on."""
    specs: tuple[Any, ...] = ()
    """The units, where a run is given them."""


@dataclass(frozen=True)
class Kind:
    """One kind of work."""

    name: str
    module: str
    """Where its `open_run` is."""
    given: Callable[[Path], AbstractContextManager[Given]]
    command: tuple[str, ...]
    """What `prchain` is told for a run over the world."""
    hook: Callable[[Any, Act], None]

    def open(self, given: Given) -> AbstractContextManager[Any]:
        """The work, opened from settings and options."""
        opened: AbstractContextManager[Any] = importlib.import_module(self.module).open_run(
            Settings.load(), *given.opening
        )
        return opened


def units(work: Any, given: Given) -> list[Any]:
    """What there is to work on."""
    if given.specs:
        return list(given.specs)
    pending = work.pending()
    found: Any = pending[0] if isinstance(pending, tuple) else getattr(pending, "units", pending)
    return list(found)


def run(work: Any, given: Given, workers: int = 1) -> Any:
    """Run it; the report."""
    return work.run(list(given.specs), workers) if given.specs else work.run(workers)


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


def _environment(store: Any, folder: Path, **more: str) -> dict[str, str]:
    return {
        "PRCHAIN_DB": store.url.render_as_string(hide_password=False),
        "PRCHAIN_DATA_DIR": str(folder / "data"),
        **more,
    }


# ---- mine


@contextmanager
def _mine(folder: Path) -> Iterator[Given]:
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
    yield Given(_environment(lab.store, folder), (MineOptions(source="git"),), lab.facts, running, tuple(specs))
    lab.store.close()


def _hook_mine(work: Any, act: Act) -> None:
    real = work._read_git

    def read_git(spec: Any, *rest: Any) -> None:
        act(spec.key)
        real(spec, *rest)

    work._read_git = read_git


# ---- tasks


@contextmanager
def _tasks(folder: Path) -> Iterator[Given]:
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
        yield Given(environment, (TaskRunOptions(),), facts, lambda: 0)


def _hook_tasks(work: Any, act: Act) -> None:
    _hook_model(work.gateway, act, lambda request: request.subject.partition("/")[0])


# ---- proofs


@contextmanager
def _proofs(folder: Path) -> Iterator[Given]:
    # Chains of one stage each, some of them twice: what a proof of many stages does is tested where proofs are.
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
        yield Given(environment, (options, ValidationChoice()), facts, lambda: 0)


def _hook_proofs(work: Any, act: Act) -> None:
    real = work.prover._stage

    def stage(chain: Any, *rest: Any) -> Any:
        act(chain.chain.id)
        return real(chain, *rest)

    work.prover._stage = stage


# ---- calibration


@contextmanager
def _calibration(folder: Path) -> Iterator[Given]:
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
        yield Given(environment, (CalibrationOptions(repeats=1),), facts, lambda: 0)


def _hook_calibration(work: Any, act: Act) -> None:
    def key(request: Request) -> str:
        _, chain, position, _ = request.subject.split("/")
        return f"{chain} stage {position}"

    _hook_model(work.judge.gateway, act, key)


# ---- rollouts


@contextmanager
def _rollouts(folder: Path) -> Iterator[Given]:
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
            said = {name for (name,) in world.rows(TrajectoryMessage, "trajectory_id")}
            return len(world.rows(Trajectory, "id", outcome="running")) if said else 0

        options = RolloutOptions(backend="local", refinements=0)
        yield Given(environment, (options, RolloutChoice()), facts, running)


def _hook_rollouts(work: Any, act: Act) -> None:
    store = work.context.store

    @functools.cache
    def chain_of(trajectory: str) -> str:
        with store.reading() as tx:
            [(chain, sample)] = tx.rows(Trajectory, "chain_id", "sample", id=trajectory)
        return f"{chain} sample {sample}"

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
            "trajectories.verdicts.calibrate",
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
    )
}
