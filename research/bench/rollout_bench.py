"""What a step of an agent costs besides its model and its command: our loop against mini-swe-agent's own.

All say the same replies and run the same commands on this machine, in turns, so that whatever else it does hits all of
them alike. A step of ours has three transactions of a SQLite file (a call's reservation, its reply, the step itself);
mini-swe-agent alone keeps its conversation in memory, and writes the whole of it anew with each step where it is given
a file.
The tree's id is no part of a step here: nobody tracks trees.
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
from statistics import fmean, median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ExecResult, SandboxConfig
from prchain.errors import UsageError
from prchain.llm.gateway import Gateway, Route
from prchain.llm.model import Reply, Request, ToolCall, Usage
from prchain.llm.price import Price
from research.bench.measures import Measure
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import Chain, Repository
from tests.models import FakeModel
from tests.trajectories.miniworld import on_the_path
from trajectories.model import Ending, Entry, EntryKind
from trajectories.recorder import StoreRecorder
from trajectories.rows import begin_trajectory, write_entries
from trajectories.scaffolds.kinds.mini import MiniScaffold
from trajectories.scaffolds.kinds.react import ReactScaffold
from trajectories.scaffolds.mini_package import MiniPackage
from trajectories.scaffolds.observations import SUBMISSION
from trajectories.scaffolds.scaffold import AttemptSpec

GOAL = 10.0
"""Milliseconds of our loop a step, without model and command: by the clock on the wall, and of CPU.

Where more is to be done than there are processors the clock measures the others; the verdict then is on CPU alone.
"""
STEPS = 116
"""Calls of tools in a trajectory, on average (daVinci-Agency, section 4.1)."""
OUTPUT = 2_700
"""Bytes that a command prints, so that so many steps make a conversation of some 85,000 tokens (the same)."""
TURNS = 5

OWN, MINI = "our loop", "mini-swe-agent as our scaffold"
ALONE, SAVING = "mini-swe-agent alone", "mini-swe-agent alone, saving each step"


class Spent(NamedTuple):
    """Milliseconds by the clock on the wall, and of this process's CPU."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: object) -> Spent:
        assert isinstance(other, Spent)
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu)


class Run:
    """What each step of one attempt took. A step begins where the model is asked."""

    def __init__(self) -> None:
        self.loops: list[Spent] = []
        """Without model and command."""
        self.commands: list[Spent] = []
        self._begun = _now()
        self._elsewhere = self._command = Spent()

    def begin(self) -> None:
        """The attempt begins, once what it works in is there."""
        self._begun = _now()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The model is asked. What came before the first step counts for it."""
        if self._command != Spent():
            self.end_step()
        with self._counted():
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """A command runs."""
        began = _now()
        with self._counted():
            yield
        self._command += _now() - began

    def end_step(self) -> None:
        """A step is over."""
        now = _now()
        self.loops.append(now - self._begun - self._elsewhere)
        self.commands.append(self._command)
        self._begun, self._elsewhere, self._command = now, Spent(), Spent()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        began = _now()
        yield
        self._elsewhere += _now() - began


def _now() -> Spent:
    return Spent(perf_counter() * 1000, process_time() * 1000)


def _fastest(runs: Sequence[Run], of: Callable[[Run], list[Spent]]) -> Spent:
    """A step's mean, of each step the fastest of the attempts.

    What else the machine does makes steps slower and never faster; and a step late in a conversation costs more than
    one at its beginning, so that none may stand for another.
    """
    steps = list(zip(*map(of, runs), strict=True))
    return Spent(fmean(min(x.wall for x in step) for step in steps), fmean(min(x.cpu for x in step) for step in steps))


Way = Callable[[Path, list[str]], Run]


def run(*, turns: int = TURNS, steps: int = STEPS) -> list[Measure]:
    """Measure, with mini-swe-agent where it is installed."""
    ways: dict[str, Way] = {OWN: lambda folder, said: _ours(ReactScaffold(tools="bash"), folder, said)}
    try:
        package = on_the_path()
    except UsageError as error:
        missing = str(error)
    else:
        missing = ""
        ways[MINI] = lambda folder, said: _ours(MiniScaffold(), folder, said)
        ways[ALONE] = lambda folder, said: _alone(package, folder, said, saves=False)
        ways[SAVING] = lambda folder, said: _alone(package, folder, said, saves=True)
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        text = Path(folder) / "text"
        text.write_text("0123456789 abcdefghijklmnopqrstuvwxyz\n" * (OUTPUT // 38))
        said = [f"cat {shlex.quote(str(text))}"] * (steps - 1) + [f"echo {SUBMISSION}"]
        for turn in range(turns + 1):
            for name, way in ways.items():
                place = Path(tempfile.mkdtemp(dir=folder))
                found = way(place, said)
                if turn:  # the first loads and compiles
                    runs[name].append(found)
    return _measures(runs, steps, turns, missing)


def _measures(runs: Mapping[str, list[Run]], steps: int, turns: int, missing: str) -> list[Measure]:
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    bench = f"a step without model and command, mean of {steps}, each the fastest of {turns}"
    loops = {name: _fastest(own, lambda run: run.loops) for name, own in runs.items()}
    out = []
    for name, loop in loops.items():
        goal = GOAL if name == OWN else None
        usual = median(spent.wall for run in runs[name] for spent in run.loops)
        note = f"median of all {usual:.2f} ms" + ("; no verdict: other work keeps this machine busy" if busy else "")
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
        spent = _fastest(runs[name], lambda run: run.commands)
        note = "a folder of its own, output and time limited" if name == OWN else "a subprocess"
        out.append(Measure(bench, name, spent.wall, "ms", note=note))
    bench = "the machine meanwhile"
    load = Measure(bench, "load average", os.getloadavg()[0], note=f"{os.cpu_count()} processors")
    return [*out, load]


# ---- ours


def _model(said: list[str], run: Run) -> FakeModel:
    commands = iter(said)

    def answer(request: Request) -> Reply:
        with run.asking():
            call = ToolCall("call_1", "bash", json.dumps({"command": next(commands)}))
            return Reply("On it.", "said", "tool_calls", tool_calls=(call,), usage=Usage(100, 0, 10))

    return FakeModel(answer, "said")


class _Sandbox(LocalSandbox):
    measured: Run

    def exec(self, command: str, **how: Any) -> ExecResult:
        with self.measured.running():
            return super().exec(command, **how)


def _ours(scaffold: ReactScaffold, folder: Path, said: list[str]) -> Run:
    """An attempt of ours, with ledger and rows in a database."""
    run = Run()
    opening = [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "You work in a sandbox."),
        Entry(1, 1, 1, 0, EntryKind.QUERY, "user", "Mend the parser."),
    ]
    store = Store.open(f"sqlite:///{folder / 'bench.db'}")
    (folder / "work").mkdir()
    sandbox = _Sandbox(SandboxConfig(None, workdir=str(folder / "work")), unsafe=True)
    sandbox.measured = run
    try:
        with store.transaction() as tx:
            tx.upsert(
                Repository,
                [
                    {
                        "id": 1,
                        "host": "h",
                        "owner": "o",
                        "name": "n",
                        "location": "l",
                        "default_branch": None,
                        "node_id": None,
                    }
                ],
            )
            tx.upsert(Chain, [{"id": "bench", "repository_id": 1, "length": 1, "licence": None, "language": None}])
            begin_trajectory(
                tx,
                {
                    "id": "bench",
                    "chain_id": "bench",
                    "sample": 0,
                    "parent_id": None,
                    "parent_step": None,
                    "scaffold": scaffold.name,
                    "model": "said",
                    "judge": None,
                    "options": "{}",
                    "options_hash": "",
                    "prompts": "{}",
                    "tools": "[]",
                },
            )
            write_entries(tx, "bench", opening)
        gateway = Gateway(SqlLedger(store, "bench"), Route(_model(said, run), Price(1.0, 2.0)), budget_usd=1000.0)
        recorder = StoreRecorder(store, "bench", opening)
        with sandbox:
            run.begin()
            ended = scaffold.attempt(gateway, sandbox, AttemptSpec("bench/1", 0, 1, 1, opening), recorder)
            run.end_step()
        assert (ended.ending, ended.used.steps) == (Ending.SUBMITTED, len(said))
    finally:
        store.close()
    return run


# ---- mini-swe-agent alone


def _alone(package: MiniPackage, folder: Path, said: list[str], *, saves: bool) -> Run:
    """An attempt of its own loop, with its model that says given replies and its environment on this machine."""
    models, local = (import_module(f"minisweagent.{name}") for name in ("models.test_models", "environments.local"))
    run = Run()
    outputs = []
    for command in said:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        wire = {"id": "call_1", "type": "function", "function": function}
        outputs.append(models.make_toolcall_output("On it.", [wire], [{"command": command, "tool_call_id": "call_1"}]))

    model = models.DeterministicToolcallModel(
        outputs=outputs, observation_template=package.observation, cost_per_call=0.0
    )
    shell = local.LocalEnvironment(cwd=str(folder), env=package.environment)
    model.query = _within(run.asking, model.query)
    shell.execute = _within(run.running, shell.execute)
    agent = package.agent(
        model,
        shell,
        system_template=package.system,
        instance_template=package.task,
        cost_limit=0,
        output_path=folder / "agent.traj.json" if saves else None,
    )
    run.begin()
    ended = agent.run("Mend the parser.")
    run.end_step()
    assert (ended["exit_status"], agent.n_calls) == ("Submitted", len(said))
    return run


def _within(measured: Callable[[], AbstractContextManager[None]], function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **more: Any) -> Any:
        with measured():
            return function(*given, **more)

    return called
