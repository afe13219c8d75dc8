"""The overhead of one curated window, without model time: where its seconds go, and the disk of its snapshots.

A real `CuratedStage` works in a made repository, in containers and in namespaces, with models of this process that
answer at once. The agent acts by `bash` alone, so that every step is followed by its tree and a snapshot; every second
one writes a file. The fifth acts without a word, so that it is the one that variants rewrite. The sandbox goes to a
snapshot before, as between two windows: the first snapshot of a stage holds the whole tree and is measured apart.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

from environments.checkouts.checkout import place_tree
from environments.checkouts.tracking import Tracker
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ResourceLimits, Sandbox, SandboxConfig
from prchain.core.errors import EngineUnavailable, ImageMissing
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from research.bench.branching_bench import snapshot_bytes
from research.bench.measures import Measure
from research.bench.placing_bench import BenchTrees, generated
from research.bench.rollout_bench import begin_rows
from research.bench.sandbox_bench import IMAGE
from sql.ledger import SqlLedger
from sql.store import Store
from tests.models import FakeModel
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, StageAccess
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.windows import making
from trajectories.curation.windows.candidates import WindowCandidate
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND, WindowOptions
from trajectories.curation.windows.progress import Standing
from trajectories.curation.windows.rows import StoredWindow
from trajectories.curation.windows.stage import CuratedStage, StageGraph
from trajectories.model import Ending, Entry, EntryKind
from trajectories.rollouts.copies import TrackedCopies
from trajectories.rollouts.recorder import StoreRecorder

FILES = (200, 9_000)
OPTIONS = WindowOptions(window=10, stride=5, seeds=2)
CANDIDATES = 100
"""Of so many the disk is computed from that of a window's."""

MODEL, DISK, COMMANDS, REST = "model", "disk", "exec of the agent's own commands", "the rest, in this process"
MADE, COPIED = "tracker, made", "tracker, begun as the snapshot's"
FIRST_TREE, LATER_TREE = "tracker, first tree of a branch", "tracker, later trees"
PARTS = (
    "snapshot",
    "branch",
    "close of a branch",
    "restore",
    "forget",
    MADE,
    COPIED,
    FIRST_TREE,
    LATER_TREE,
    "leftovers",
    "names of S_t",
    "store",
)
"""What a window costs besides the agent's own commands."""

_LIMITS = ResourceLimits(memory_bytes=1 << 30)
_KINDS: Mapping[str, type[DockerSandbox | LocalSandbox]] = {"docker": DockerSandbox, "local": LocalSandbox}


@dataclass
class Clock:
    """Adds up seconds and calls by part. What a part does inside counts as that part, and nothing twice."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)
    whole: float = 0.0
    """Seconds from `begin` to `end`, without those of models and of this bench."""
    _inside: bool = False
    _began: float = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Around a part's work."""
        if self._inside:
            yield
            return
        self._inside, started = True, perf_counter()
        try:
            yield
        finally:
            self._inside = False
            self.seconds[name] += perf_counter() - started
            self.calls[name] += 1

    def begin(self) -> None:
        """Begin the window."""
        self.seconds.clear()
        self.calls.clear()
        self._began = perf_counter()

    def end(self) -> None:
        """End the window."""
        taken = perf_counter() - self._began
        self.whole = taken - self.seconds.pop(MODEL, 0.0) - self.seconds.pop(DISK, 0.0)
        self.seconds[REST] = self.whole - sum(self.seconds.values())


@contextmanager
def _watched(kind: type, clock: Clock) -> Iterator[None]:
    """Time what sandboxes of a kind, trackers, stores and the search for names do meanwhile."""
    watched: list[tuple[Any, str, str]] = [
        *((kind, name, name) for name in ("snapshot", "branch", "restore", "forget", "leftovers")),
        (kind, "close", "close of a branch"),
        (kind, "exec", COMMANDS),
        (Tracker, "__init__", MADE),
        (Tracker, "begin_as", COPIED),
        (making, "defined_names_at", "names of S_t"),
    ]
    with ExitStack() as patches:
        for owner, name, part in watched:
            patches.enter_context(patch.object(owner, name, _timed(getattr(owner, name), clock, part)))
        patches.enter_context(patch.object(Tracker, "take", _timed_tree(Tracker.take, clock)))
        for name in ("transaction", "reading"):
            patches.enter_context(patch.object(Store, name, _timed_block(getattr(Store, name), clock)))
        yield


def _timed(function: Callable[..., Any], clock: Clock, part: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with clock.part(part):
            return function(*arguments, **named)

    return call


def _timed_tree(take: Callable[[Tracker], str], clock: Clock) -> Callable[[Tracker], str]:
    seen = WeakSet[Tracker]()

    def tree(tracker: Tracker) -> str:
        with clock.part(LATER_TREE if tracker in seen else FIRST_TREE):
            seen.add(tracker)
            return take(tracker)

    return tree


def _timed_block(function: Callable[..., Any], clock: Clock) -> Callable[..., Any]:
    @contextmanager
    def block(store: Store) -> Iterator[Any]:
        with clock.part("store"), function(store) as tx:
            yield tx

    return block


class _MeasuredStage(CuratedStage):
    """Ends after one window, and looks at the disk of its snapshots before it forgets them."""

    clock: Clock
    disk: Callable[[set[str]], int]
    bytes: int = 0
    """Of the snapshots of all candidates."""
    taken: int = 0
    """Their number."""

    def _limit(self) -> AttemptResult | None:
        if not self.taken:
            self.clock.begin()
            return None
        self.clock.end()
        return AttemptResult(Ending.STEP_LIMIT, self._used)

    def _commit(self, window: StoredWindow, chosen: WindowCandidate) -> Standing:
        with self.clock.part(DISK):
            names = self._checkpoints.taken()
            self.taken, self.bytes = len(names), self.disk(names)
        return super()._commit(window, chosen)


def run(
    *,
    image: str | None = None,
    files: Sequence[int] = FILES,
    backends: Sequence[str] = tuple(_KINDS),
) -> list[Measure]:
    """Measure in both backends, at repositories of so many files (5 or more). A backend that does not work here is
    named instead."""
    image = image or os.environ.get("PRCHAIN_TEST_IMAGE", IMAGE)
    before = os.getloadavg()[0]
    measures: list[Measure] = []
    totals: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        for count in files:
            trees = generated(Path(folder) / str(count), count)
            for backend in backends:
                title = f"a curated window in {backend}, {count:,} files"
                place = Path(folder) / f"{backend}-{count}.db"
                try:
                    found, whole = _window(title, backend, image, trees, place)
                except (EngineUnavailable, ImageMissing) as error:
                    measures.append(Measure(title, "not measured", 0, note=str(error)))
                    continue
                measures += found
                totals[backend, count] = whole
    for (backend, count), whole in totals.items():
        if backend != backends[0] and (other := totals.get((backends[0], count))):
            name = f"{backend} / {backends[0]}, {count:,} files"
            measures.append(Measure("ratios in this run", name, whole / other, "x"))
        if count != files[0] and (other := totals.get((backend, files[0]))):
            name = f"{count:,} / {files[0]:,} files, {backend}"
            measures.append(Measure("ratios in this run", name, whole / other, "x"))
    machine = "the machine meanwhile"
    return [
        *measures,
        Measure(machine, "processors", os.cpu_count() or 0),
        Measure(machine, "load average before", before, note="figures of a busy machine are high"),
        Measure(machine, "load average after", os.getloadavg()[0]),
    ]


def _window(title: str, backend: str, image: str, trees: BenchTrees, database: Path) -> tuple[list[Measure], float]:
    """The figures of a window, and its overhead in seconds."""
    clock = Clock()
    kind = _KINDS[backend]
    config = SandboxConfig(image if kind is DockerSandbox else None, limits=_LIMITS)
    with closing(Store.open(f"sqlite:///{database}")) as store, kind(config) as sandbox:
        place_tree(sandbox, trees.store, trees.landed)
        started = perf_counter()
        whole_tree = sandbox.snapshot()
        once = perf_counter() - started
        sandbox.restore(whole_tree)
        stage = _stage(store, sandbox, trees, clock)
        stage.disk = functools.partial(snapshot_bytes, sandbox)
        with _watched(kind, clock):
            stage.run()
    own, calls = clock.seconds[COMMANDS], clock.calls
    overhead = clock.whole - own

    def part(name: str) -> Measure:
        times = f"{calls[name]} times, " if calls[name] else ""
        seconds = clock.seconds[name]
        return Measure(title, name, seconds, "s", note=f"{times}{100 * seconds / overhead:.0f} % of all")

    scaled = stage.bytes / (2 * OPTIONS.seeds) * CANDIDATES / 1e6
    forgets = "a window forgets all of its own but one"
    return [
        *map(part, (*PARTS, REST)),
        Measure(title, "in all", overhead, "s", note="without models and the agent's own commands"),
        Measure(title, COMMANDS, own, "s", note=f"{calls[COMMANDS]} times"),
        Measure(title, "in all / the agent's own commands", overhead / own, "x"),
        Measure(title, "the stage's first snapshot, of the whole tree", once, "s", note="once a stage"),
        Measure(title, "snapshots of a window", stage.bytes / 1e6, "MB", note=f"{stage.taken} of them"),
        Measure(title, f"snapshots of {CANDIDATES} candidates", scaled, "MB", note=f"scaled from these; {forgets}"),
    ], overhead


# ---- a stage, and models that answer at once


def _stage(store: Store, sandbox: Sandbox, trees: BenchTrees, clock: Clock) -> _MeasuredStage:
    names = [path.decode() for path in trees.store.entries(trees.landed)]
    query = f"Mend {names[0]}."
    opening = [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "You work in a sandbox."),
        Entry(1, 1, 1, 0, EntryKind.QUERY, "user", query),
    ]
    agent = ReactScaffold(tools="full")
    begin_rows(store, agent.name, opening)

    def tracker_of(sandbox: Sandbox) -> Tracker:
        return Tracker(sandbox, trees.store, start_tree=trees.landed, ignore_rules_from=trees.landed)

    def track_anew() -> None:
        tracker_of(sandbox)

    fact = Node("f1", NodeKind.STATIC_FACT, f"{names[0]} is there", Action(ActionTool.BASH, command=f"ls {names[0]}"))
    model = FakeModel(_timed(functools.partial(_answer, names), clock, MODEL))
    placed = tracker_of(sandbox)
    placed.begin_placed(trees.landed)
    copies = TrackedCopies(tracker_of, placed=placed.known())
    stage = _MeasuredStage(
        store,
        Gateway(SqlLedger(store, "bench"), Route(model, Price(1.0, 2.0)), budget_usd=1000.0),
        agent,
        OPTIONS,
        StageGraph("bench", ProcessGraph((fact,), ())),
        sandbox,
        AttemptSpec("bench/1", 0, 1, 1, opening, stage=StageAccess("bench", trees.landed, query, trees.store, copies)),
        StoreRecorder(store, "bench", opening, last_tree=trees.landed, track_anew=track_anew),
    )
    stage.clock = clock
    return stage


def _answer(names: Sequence[str], request: Request) -> Any:
    """No node is ever established, so that all windows are alike; rewritten steps are grounded."""
    if request.purpose == ESTABLISH:
        return {"nodes": [{"id": "f1", "established": False, "evidence": "", "reason": "not shown"}]}
    if request.purpose == GROUND:
        return {"valid": True, "reasons": []}
    if request.purpose == CURATOR:
        return _said("I look whether the quux is there.", f"ls {names[0]}")
    step = sum(message.role == "assistant" for message in request.messages)
    words = "" if step % OPTIONS.stride == OPTIONS.stride - 1 else "I go on."
    if step % 2:
        return _said(words, f"echo '{request.subject} {step}' > made{step}.txt")
    return _said(words, f"head -n 40 {names[1 + step % (len(names) - 1)]}")


def _said(words: str, command: str) -> Reply:
    call = ToolCall("call_1", "bash", json.dumps({"command": command}))
    return Reply(words, "fake", "tool_calls", tool_calls=(call,), usage=Usage(100, 0, 10))
