"""Curated runs in the world of `tests.trajectories.graphworld`: sandboxes that are folders and can be branched, hidden
tests that look for a stage's part, and models that are functions of the request.

The blinded agent of a stage takes the steps of `AGENT`; the second seed of a window begins with a look of its own. The
verifier says yes where a step runs a node's command, writes its file or says its thought. The curator runs the command
of its target; the judge refuses what is "obviously" so.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import update

from environments.backends import BACKENDS
from environments.checkouts.checkout import Extraction, extract_tree
from environments.graded_runs import Suite
from environments.images.provide import Provider
from environments.sandboxes.sandbox import LaidFolder, Sandbox
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.settings import Settings
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import CurationCandidate, CurationWindow, Establishment, Repository, Trajectory
from tests.models import FakeModel
from tests.trajectories.graphworld import (
    Before,
    GraphFolder,
    GraphPlace,
    GraphWorld,
    distilling,
    graph_world,
    nothing,
)
from tests.trajectories.rolloutworld import SHORTER, place_of
from trajectories.agents.observers.setup import make_observers
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.options import CRITIC, PROPOSER, GraphOptions
from trajectories.curation.graphs.run import GraphContext
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND, WindowOptions
from trajectories.curation.windows.run import CuratedRun, CurationChoice, rollout_options
from trajectories.model import AgentLimits
from trajectories.rollouts.rollout import RunContext

PRICE = Price(1.0, 4.0)


# ---- sandboxes and tests


class CurationFolder(GraphFolder):
    """A folder that can be branched."""

    _closed = False

    def get(self, path: str) -> Iterator[bytes]:
        self._does("get", path)
        return super().get(self._here(path))

    def branch(self, snapshot: str) -> CurationFolder:
        self._does("branch")
        other = CurationFolder(Path(tempfile.mkdtemp(dir=self.folder.parent.parent)) / "testbed", self._before)
        shutil.rmtree(other.folder)
        shutil.copytree(snapshot, other.folder, symlinks=True)
        return other

    def forget(self, snapshot: str) -> None:
        self._does("forget")
        super().forget(snapshot)

    def close(self) -> None:
        if not self._closed and self.folder.name != "testbed":
            raise AssertionError(f"{self.folder} is no sandbox")
        self._closed = True


class CurationPlace(GraphPlace):
    """Workplaces in such folders."""

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        return CurationFolder(Path(tempfile.mkdtemp(dir=self.folder)) / "testbed", self.before)

    def extract(self, sandbox: Sandbox, *, start_tree: str, rules_from: str) -> Extraction:
        return extract_tree(sandbox, self.trees, start_tree=start_tree, ignore_rules_from=rules_from)

    def without_refresh_outputs(self, tree: str, start_tree: str) -> str:
        return tree


@dataclass
class PartSuite(Suite):
    """The tests of a stage pass where its part gives its value."""

    trees: TreeStore
    tests: Sequence[str]
    number: int

    def run(self, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
        entry = self.trees.entries(tree).get(f"src/part_{self.number}.py".encode())
        content = b"" if entry is None else self.trees.blobs([entry.blob])[0]
        passes = f"return {self.number}".encode() in content
        return TestRun(dict.fromkeys(self.tests, Status.passed if passes else Status.failed), "", 0.1, 0)


# ---- the models

Steps = Sequence[tuple[str, str, Mapping[str, Any]]]
"""Words, tool and arguments of each step of the agent in a stage."""


def agent_steps(number: int) -> Steps:
    """The steps that the blinded agent takes in the stage of a pull request."""
    path = f"src/part_{number}.py"
    part = f"def part_number_{number}():\\n    return {number}\\n"
    return [
        ("I look around.", "bash", {"command": "ls"}),
        ("", "bash", {"command": "cat README.md"}),
        ("Again.", "bash", {"command": "cat README.md"}),
        ("What is there?", "bash", {"command": "ls src"}),
        (f"No file holds the value {number}", "think", {"thought": f"No file holds the value {number}"}),
        (f"Add the file src/part_{number}.py with the value {number}", "think", {"thought": "so be it"}),
        ("I write it.", "bash", {"command": f"printf '{part}' > {path}"}),
        ("I look at it.", "bash", {"command": f"cat {path}"}),
        ("Done.", "submit", {}),
    ]


Answer = Callable[[Request, list[dict[str, Any]]], Reply]


def said(text: str, tool: str | None = None, arguments: Mapping[str, Any] | None = None, *, place: int = 0) -> Reply:
    """A reply with a call, or without one."""
    calls = () if tool is None else (ToolCall(f"call_{place}", tool, json.dumps(dict(arguments or {}))),)
    return Reply(text, "fake", "tool_calls" if calls else "stop", tool_calls=calls, usage=Usage(100, 0, 10))


def agent(request: Request, messages: list[dict[str, Any]], steps: Callable[[int], Steps] = agent_steps) -> Reply:
    """The blinded agent: the step after those that the conversation shows it has taken, by their calls."""
    position, _, _ = place_of(messages)
    opening = next(str(it["content"]) for it in reversed(messages) if f"Task {position} of" in str(it["content"]))
    match = re.search(r"part number (\d+) in", opening)
    assert match, opening
    number = int(match[1])
    own = request.messages[max(at for at, it in enumerate(messages) if str(it["content"]) == opening) :]
    done = [call.arguments for message in own for call in message.tool_calls]
    if request.subject.endswith("/1") and not any("pyproject" in call for call in done) and len(done) == 0:
        return said("The project first.", "bash", {"command": "cat pyproject.toml"}, place=len(messages))
    left = list(steps(number))
    for written in done:
        if left and json.loads(written) == dict(left[0][2]):
            left.pop(0)
    words, tool, arguments = left[0] if left else ("Done.", "submit", {})
    return said(words, tool, arguments, place=len(messages))


def verifier(request: Request, messages: list[dict[str, Any]]) -> Reply:
    """Says yes where the latest step runs a node's command, writes its file, or says its thought."""
    user = str(messages[-1]["content"])
    step = _fenced(user, "step")[0][1]
    shown = [line for line in step.split("</returncode>")[-1].strip().splitlines() if "output>" not in line]
    findings = []
    for label, text in _fenced(user, "node [^ ]+"):
        name = label.removeprefix("node ")
        unlocker, statement = text.split("unlocker: ")[1], text.split("statement: ")[1].split("\n")[0]
        command = unlocker.removeprefix("run: ").strip()
        evidence = ""
        if unlocker.startswith("run: ") and json.dumps(command)[1:-1] in step:
            evidence = shown[-1] if shown else ""
        elif unlocker.startswith("a thought") and statement in step:
            evidence = statement
        elif unlocker.startswith("an edit of ") and f"> {unlocker.removeprefix('an edit of ').strip()}" in step:
            evidence = unlocker.removeprefix("an edit of ").strip()
        findings.append({"id": name, "established": bool(evidence), "evidence": evidence, "reason": ""})
    return said(json.dumps({"nodes": findings}))


def curator(request: Request, messages: list[dict[str, Any]]) -> Reply:
    """Runs the command of the target, or says its thought."""
    target = _fenced(str(messages[-1]["content"]), "target")[0][1]
    unlocker = target.split("unlocker: ")[1]
    if unlocker.startswith("run: "):
        return said("Before I go on, a check.", "bash", {"command": unlocker.removeprefix("run: ").strip()})
    statement = target.split("statement: ")[1].split("\n")[0]
    return said("I think before I go on.", "think", {"thought": statement})


def judge(request: Request, messages: list[dict[str, Any]]) -> Reply:
    """Refuses what is "obviously" so."""
    proposed = _fenced(str(messages[-1]["content"]), "proposed step")[0][1]
    reasons = ["J1: it says that it is obviously so"] if "obviously" in proposed else []
    return said(json.dumps({"valid": not reasons, "reasons": reasons}))


def _fenced(text: str, label: str) -> list[tuple[str, str]]:
    found = re.findall(rf"(?s)<<<({label}) ([0-9a-f]{{16}})\n(.*?)\n\1 \2>>>", text)
    return [(name, content) for name, _, content in found]


class CurationModel(FakeModel):
    """All models of a curated run; `answers` replace those of purposes. `before` sees each request and may raise."""

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, before: Callable[[Request], None] = lambda request: None
    ) -> None:
        graphs = distilling()
        usual: dict[str, Answer] = {"agent": agent, CURATOR: curator, ESTABLISH: verifier, GROUND: judge}
        usual |= answers or {}

        def answer(request: Request) -> Reply:
            before(request)
            messages = [{"role": message.role, "content": message.content} for message in request.messages]
            if request.purpose in {PROPOSER, CRITIC}:
                reply = graphs(messages)
                return said(reply.text, reply.tool, reply.arguments, place=len(messages))
            if request.purpose == "prefix":
                return said(json.dumps({"overview": SHORTER}))
            return usual[request.purpose](request, messages)

        super().__init__(answer, "fake")


# ---- the world


def curated_run(
    store: Store,
    folder: Path,
    model: Any = None,
    *,
    budget: float | None = None,
    run: str = "run",
    before: Before = nothing,
    secrets: tuple[str, ...] = (),
    windows: Mapping[str, Any] | None = None,
    steps: int = 30,
    choice: Mapping[str, Any] | None = None,
    **options: Any,
) -> CuratedRun:
    """A run over the chains of a world in `folder`, with models of this process."""
    settings = Settings(db=str(store.url.database), data_dir=folder / "data")
    route = Route(model or CurationModel(), PRICE)
    gateway = Gateway(SqlLedger(store, run), default=route, budget_usd=budget, pause=lambda tries: None)
    backend = BACKENDS["unsafe-local"]
    provider = Provider(settings, images=backend.needs_image)
    rollout = rollout_options(
        gateway, backend="unsafe-local", stage_limits=AgentLimits(steps=steps), **{"min_length": 1, **options}
    )

    def workplace(_: Any, trees: TreeStore) -> CurationPlace:
        return CurationPlace(trees, folder, before)

    def suite(place: Any, stage: Any, patches: Any) -> PartSuite:
        return PartSuite(place.trees, [*stage.tests.classes.f2p, *stage.tests.classes.p2p], stage.stage.number)

    context = RunContext(
        store,
        gateway,
        provider,
        backend,
        ReactScaffold("full"),
        rollout,
        settings.mirrors_dir,
        settings.data_dir,
        observers=make_observers(rollout.observers),
        secrets=secrets,
        pause=lambda tries: None,
        make_workplace=workplace,
        make_suite=suite,
    )
    graphs = GraphContext(
        store,
        gateway,
        provider,
        backend,
        GraphOptions(backend="unsafe-local"),
        settings.mirrors_dir,
        settings.data_dir,
        secrets,
        workplace,
    )
    return CuratedRun(context, CurationChoice(**(choice or {})), graphs, WindowOptions(**(windows or {})))


@dataclass
class CurationWorld:
    """Chains with proved tests and a process graph of the first stage each."""

    graphs: GraphWorld

    @property
    def folder(self) -> Path:
        return self.graphs.folder

    @property
    def store(self) -> Store:
        return self.graphs.store

    @property
    def chains(self) -> list[str]:
        return self.graphs.rollouts.chains

    def run(self, model: Any = None, **how: Any) -> CuratedRun:
        """See `curated_run`."""
        return curated_run(self.store, self.folder, model, **how)

    def curate(self, model: Any = None, *, workers: int = 1, **how: Any) -> str:
        """Make what is missing. Returns the id of the only trajectory."""
        run = self.run(model, **how)
        report = run.run(workers, run.curation().rollouts)
        [result] = report.results
        assert result.detail is not None, result
        return str(result.detail)

    def rows(self, table: Any, *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        return self.graphs.rows(table, *columns, **equals)

    def windows(self, name: str) -> list[dict[str, Any]]:
        """The windows of a trajectory."""
        return self._dicts(CurationWindow, _WINDOW, trajectory_id=name)

    def candidates(self, name: str) -> list[dict[str, Any]]:
        """The candidates of a trajectory."""
        return self._dicts(CurationCandidate, _CANDIDATE, trajectory_id=name)

    def outcome(self, name: str) -> tuple[str, str | None]:
        [row] = self.rows(Trajectory, "outcome", "reason", id=name)
        return row[0], row[1]

    def whole(self, name: str) -> dict[str, Any]:
        """All stored rows of a trajectory, by natural key: without times and costs."""
        candidates = []
        for row in self.candidates(name):
            entries = [
                {key: value for key, value in entry.items() if key not in {"at", "seconds", "usd"}}
                for entry in row["entries"]
            ]
            candidates.append({**row, "entries": entries})
        return {
            **self.graphs.rollouts.whole(name),
            "windows": self.windows(name),
            "candidates": candidates,
            "establishments": sorted(self.rows(Establishment, *_ESTABLISHED, trajectory_id=name)),
        }

    def _dicts(self, table: Any, columns: Sequence[str], **equals: Any) -> list[dict[str, Any]]:
        return [dict(zip(columns, row, strict=True)) for row in self.rows(table, *columns, **equals)]


_WINDOW = (
    "position",
    "number",
    "graph_id",
    "step",
    "frontier",
    "established",
    "waiting",
    "floor",
    "chosen",
    "how",
    "committed",
    "leftovers",
)
_CANDIDATE = (
    "position",
    "window_number",
    "number",
    "seed",
    "place",
    "target",
    "outcome",
    "reason",
    "steps",
    "progress",
    "grounded",
    "effectiveness",
    "length",
    "tree",
    "rewrite",
    "faults",
    "entries",
    "notes",
    "verifier_calls",
)
_ESTABLISHED = ("position", "window_number", "candidate", "node", "step", "evidence")


_with_graphs: dict[tuple[tuple[int, ...], ...], Path] = {}
"""The chains of a world to a copy of its database, in which graphs were made once in this process."""


@contextmanager
def curation_world(
    folder: Path, chains: Sequence[Sequence[int]] = ((1,),), *, url: str | None = None
) -> Iterator[CurationWorld]:
    """The world of `graph_world`, in which the graphs of first stages are made."""
    key = tuple(map(tuple, chains))
    with graph_world(folder, chains, url=url) as graphs:
        own = graphs.rollouts.database
        if url is None and key in _with_graphs:
            _copy(_with_graphs[key], own)
            with graphs.store.transaction() as tx:
                tx.connection.execute(update(Repository).values(location=str(graphs.rollouts.world.path)))
        else:
            assert set(graphs.run().run(1).counts) == {"converged"}
            if url is None:
                _with_graphs[key] = Path(tempfile.mkdtemp(prefix="graphs-")) / "prchain.db"
                _copy(own, _with_graphs[key])
        yield CurationWorld(graphs)


def _copy(source: Path | str, target: Path | str) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
