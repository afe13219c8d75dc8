"""The cost of an agent's step besides its model and its command: our loop against mini-swe-agent's own.

All give the same replies and run the same commands on this machine, in turns, so that other load affects all alike. A
step of ours has three transactions of a SQLite file (a call's reservation, its reply, the step itself). mini-swe-agent
alone keeps its conversation in memory, and with an output file writes all of it anew at each step.
The tree's id is not part of a step here: trees are not tracked.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ExecResult, SandboxConfig
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from research.bench.durations import Duration, clock, fastest
from research.bench.measures import Measure
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import Chain, Repository
from tests.models import FakeModel
from tests.trajectories.miniworld import on_the_path
from trajectories.agents.scaffolds.kinds.mini import MiniScaffold
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.mini_package import MiniPackage
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.agents.tools.observations import SUBMISSION
from trajectories.model import Ending, Entry, EntryKind
from trajectories.rollouts.recorder import StoreRecorder
from trajectories.rows import begin_trajectory, write_entries

GOAL = 10.0
"""Milliseconds of our loop per step, without model and command: wall time, and CPU time.

On a machine with more load than processors, wall time measures other work; then only CPU time gives a verdict.
"""
STEPS = 116
"""Calls of tools in a trajectory, on average (daVinci-Agency, section 4.1)."""
OUTPUT = 2_700
"""Bytes that a command prints, so that so many steps make a conversation of some 85,000 tokens (the same)."""
TURNS = 5

OWN, MINI = "our loop", "mini-swe-agent as our scaffold"
ALONE, SAVING = "mini-swe-agent alone", "mini-swe-agent alone, saving each step"


class Run:
    """The time of each step of one attempt. A step begins with its call of the model."""

    def __init__(self) -> None:
        self.loops: list[Duration] = []
        """Without model and command."""
        self.commands: list[Duration] = []
        self._started = clock()
        self._excluded = self._command = Duration()

    def begin(self) -> None:
        """Begin the attempt, after its set-up."""
        self._started = clock()

    @contextmanager
    def model_call(self) -> Iterator[None]:
        """Around a call of the model. Time before the first step counts as part of it."""
        if self._command != Duration():
            self.end_step()
        with self._exclude():
            yield

    @contextmanager
    def command_run(self) -> Iterator[None]:
        """Around a command."""
        started = clock()
        with self._exclude():
            yield
        self._command += clock() - started

    def end_step(self) -> None:
        """End a step."""
        now = clock()
        self.loops.append(now - self._started - self._excluded)
        self.commands.append(self._command)
        self._started, self._excluded, self._command = now, Duration(), Duration()

    @contextmanager
    def _exclude(self) -> Iterator[None]:
        started = clock()
        yield
        self._excluded += clock() - started


Runner = Callable[[Path, list[str]], Run]


def run(*, turns: int = TURNS, steps: int = STEPS) -> list[Measure]:
    """Measure, with mini-swe-agent where it is installed."""
    runners: dict[str, Runner] = {OWN: lambda folder, script: _ours(ReactScaffold(tools="bash"), folder, script)}
    try:
        package = on_the_path()
    except UsageError as error:
        missing = str(error)
    else:
        missing = ""
        runners[MINI] = lambda folder, script: _ours(MiniScaffold(), folder, script)
        runners[ALONE] = lambda folder, script: _mini_alone(package, folder, script, saves=False)
        runners[SAVING] = lambda folder, script: _mini_alone(package, folder, script, saves=True)
    runs: dict[str, list[Run]] = {name: [] for name in runners}
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        script = _script(Path(folder), steps)
        for turn in range(turns + 1):
            for name, runner in runners.items():
                workdir = Path(tempfile.mkdtemp(dir=folder))
                result = runner(workdir, script)
                if turn:  # the first loads and compiles
                    runs[name].append(result)
    return _measures(runs, steps, turns, missing)


def _measures(runs: Mapping[str, list[Run]], steps: int, turns: int, missing: str) -> list[Measure]:
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    bench = f"a step without model and command, mean of {steps}, each the fastest of {turns}"
    loops = {name: fastest([run.loops for run in own]) for name, own in runs.items()}
    out = []
    for name, loop in loops.items():
        goal = GOAL if name == OWN else None
        typical = median(duration.wall for run in runs[name] for duration in run.loops)
        note = f"median of all {typical:.2f} ms" + ("; no verdict: other work keeps this machine busy" if busy else "")
        out.append(Measure(bench, name, loop.wall, "ms", None if busy else goal, note=note))
        out.append(Measure(bench, f"{name}, CPU", loop.cpu, "ms", goal))
    if missing:
        return [*out, Measure(bench, "mini-swe-agent was not measured", 0, note=missing)]
    for name in (ALONE, SAVING):
        out.append(
            Measure(
                bench,
                f"{OWN} / {name}",
                loops[OWN].wall / loops[name].wall,
                "x",
                note=f"CPU {loops[OWN].cpu / loops[name].cpu:.2f} x",
            )
        )
    bench = f"the command of a step, which prints {OUTPUT:,} bytes"
    for name in (OWN, ALONE):
        duration = fastest([run.commands for run in runs[name]])
        note = "a folder of its own, output and time limited" if name == OWN else "a subprocess"
        out.append(Measure(bench, name, duration.wall, "ms", note=note))
    bench = "the machine meanwhile"
    load = Measure(bench, "load average", os.getloadavg()[0], note=f"{os.cpu_count()} processors")
    return [*out, load]


# ---- ours


def _model(script: list[str], run: Run) -> FakeModel:
    commands = iter(script)

    def answer(request: Request) -> Reply:
        with run.model_call():
            call = ToolCall("call_1", "bash", json.dumps({"command": next(commands)}))
            return Reply("On it.", "said", "tool_calls", tool_calls=(call,), usage=Usage(100, 0, 10))

    return FakeModel(answer, "said")


class _Sandbox(LocalSandbox):
    measured: Run

    def exec(self, command: str, **options: Any) -> ExecResult:
        with self.measured.command_run():
            return super().exec(command, **options)


def begin_rows(store: Store, scaffold: str, opening: Sequence[Entry], name: str = "bench") -> None:
    """Write the rows of a trajectory that begins with `opening`, and of what it belongs to."""
    repository = {
        "id": 1,
        "host": "h",
        "owner": "o",
        "name": "n",
        "location": "l",
        "default_branch": None,
        "node_id": None,
    }
    trajectory = {
        "id": name,
        "chain_id": "bench",
        "sample": 0,
        "parent_id": None,
        "parent_step": None,
        "scaffold": scaffold,
        "model": "said",
        "judge": None,
        "options": {},
        "options_hash": "",
        "prompts": {},
        "tools": [],
    }
    with store.transaction() as tx:
        tx.upsert(Repository, [repository])
        tx.upsert(Chain, [{"id": "bench", "repository_id": 1, "length": 1, "licence": None, "language": None}])
        begin_trajectory(tx, trajectory)
        write_entries(tx, name, opening)


def _ours(scaffold: ReactScaffold, folder: Path, script: list[str]) -> Run:
    run = Run()
    _work_through(scaffold, folder, script, _model(script, run), run)
    return run


def scripted_attempt(folder: Path, steps: int = STEPS) -> FakeModel:
    """The model of one attempt of our agent, with the requests that it was asked; `folder` is empty."""
    script = _script(folder, steps)
    run = Run()
    model = _model(script, run)
    _work_through(ReactScaffold(tools="bash"), folder, script, model, run)
    return model


def _script(folder: Path, steps: int) -> list[str]:
    text = folder / "text"
    text.write_text("0123456789 abcdefghijklmnopqrstuvwxyz\n" * (OUTPUT // 38))
    return [f"cat {shlex.quote(str(text))}"] * (steps - 1) + [f"echo {SUBMISSION}"]


def _work_through(scaffold: ReactScaffold, folder: Path, script: Sequence[str], model: FakeModel, run: Run) -> None:
    """An attempt of ours, with ledger and rows in a database."""
    opening = [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "You work in a sandbox."),
        Entry(1, 1, 1, 0, EntryKind.QUERY, "user", "Mend the parser."),
    ]
    store = Store.open(f"sqlite:///{folder / 'bench.db'}")
    (folder / "work").mkdir()
    sandbox = _Sandbox(SandboxConfig(None, workdir=str(folder / "work")), unsafe=True)
    sandbox.measured = run
    try:
        begin_rows(store, scaffold.name, opening)
        gateway = Gateway(SqlLedger(store, "bench"), Route(model, Price(1.0, 2.0)), budget_usd=1000.0)
        recorder = StoreRecorder(store, "bench", opening)
        with sandbox:
            run.begin()
            result = scaffold.attempt(gateway, sandbox, AttemptSpec("bench/1", 0, 1, 1, opening), recorder)
            run.end_step()
        assert (result.ending, result.used.steps) == (Ending.SUBMITTED, len(script))
    finally:
        store.close()


# ---- mini-swe-agent alone


def _mini_alone(package: MiniPackage, folder: Path, script: list[str], *, saves: bool) -> Run:
    """An attempt of mini-swe-agent's own loop, with its model of fixed replies and its local environment."""
    models, local = (import_module(f"minisweagent.{name}") for name in ("models.test_models", "environments.local"))
    run = Run()
    outputs = []
    for command in script:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        wire = {"id": "call_1", "type": "function", "function": function}
        outputs.append(models.make_toolcall_output("On it.", [wire], [{"command": command, "tool_call_id": "call_1"}]))

    model = models.DeterministicToolcallModel(
        outputs=outputs, observation_template=package.observation, cost_per_call=0.0
    )
    environment = local.LocalEnvironment(cwd=str(folder), env=package.environment)
    model.query = _measured_calls(run.model_call, model.query)
    environment.execute = _measured_calls(run.command_run, environment.execute)
    agent = package.agent(
        model,
        environment,
        system_template=package.system,
        instance_template=package.task,
        cost_limit=0,
        output_path=folder / "agent.traj.json" if saves else None,
    )
    run.begin()
    result = agent.run("Mend the parser.")
    run.end_step()
    assert (result["exit_status"], agent.n_calls) == ("Submitted", len(script))
    return run


def _measured_calls(
    measured: Callable[[], AbstractContextManager[None]], function: Callable[..., Any]
) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        with measured():
            return function(*arguments, **options)

    return called
