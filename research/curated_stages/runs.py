"""A curated run over one real chain, on a copy of the database, and what came of it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.backends import BACKENDS
from environments.checkouts.tracking import Tracker
from environments.images.provide import Provider
from environments.sandboxes.channelled import ChannelledSandbox
from environments.sandboxes.docker import DockerSandbox
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.price import Price
from prchain.core.settings import Settings
from research.curated_stages.models import StageScript, StagesModel
from research.graph_stages.cases import HandChain
from research.graph_stages.runs import OPTIONS
from research.graph_stages.stage import RealStage, real_stage, write_script
from research.real_rollouts.__main__ import copy
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import TrajectoryMessage
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.rows import read_graph
from trajectories.curation.graphs.run import GraphChoice, GraphContext
from trajectories.curation.graphs.run import open_run as open_graphs
from trajectories.curation.windows.candidates import DROPPED, WindowCandidate, standings
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND, Asked, WindowOptions
from trajectories.curation.windows.progress import Premature
from trajectories.curation.windows.rows import StoredWindow, read_candidates, read_windows
from trajectories.curation.windows.run import CuratedRun, CurationChoice, rollout_options
from trajectories.rollouts.rollout import RunContext
from trajectories.rows import read_stages

_LONGEST_SECRET = 24
"""Characters from which on a line that only the reference adds tells of it."""


@dataclass
class CuratedChain:
    """What came of a chain's curated run."""

    repository: str
    chain: str
    outcome: str
    reason: str | None
    stages: list[tuple[int, str]]
    coverage: list[tuple[int, int]]
    """Of each stage the nodes that were established, and all nodes."""
    windows: list[tuple[StoredWindow, list[WindowCandidate]]]
    leaks: list[str]
    """Lines of the reference that a reader was shown, or that a rewritten step holds."""
    calls: Mapping[str, int]
    """Purpose to calls."""
    each: int
    """Calls that the verifier would have in the paper's form: one for each new step and node."""
    parts: Mapping[str, tuple[int, float]]
    """What sandboxes did: number and seconds."""
    seconds: float
    """Of the run, without its graphs."""
    snapshots: int = 0
    names: list[str] = field(default_factory=list)

    @property
    def variants(self) -> tuple[int, int]:
        """Variants that were rolled out, and those that were dropped."""
        every = [it for _, candidates in self.windows for it in candidates if not it.is_seed]
        dropped = sum(it.outcome in DROPPED for it in every)
        return len(every) - dropped, dropped


def curated_chain(folder: Path, scratch: Path, hand: HandChain, options: WindowOptions) -> CuratedChain:
    """Make the graphs of a chain from its hand-written nodes, then the curated trajectory. Raises `PrchainError`."""
    copied, script = scratch / f"{hand.chain}.db", scratch / f"{hand.chain}.jsonl"
    copy(folder / "prchain.db", copied)
    script.write_text("", encoding="utf-8")
    settings = Settings.load(db=str(copied), data_dir=folder, llm_script=script)
    choice = GraphChoice(chain=hand.chain)
    hands = {it.position: it for it in hand.stages if it.nodes}
    with open_graphs(settings, OPTIONS, choice) as graphs:
        units = [unit for unit in graphs.pending().units if unit.position in hands]
        stages = [real_stage(graphs.context, unit, hands[unit.position]) for unit in units]
        write_script(script, stages)
    with open_graphs(settings, OPTIONS, choice) as graphs:
        graphs.run(1)
    model = StagesModel([StageScript(stage.task.query, stage.right) for stage in stages])
    parts: dict[str, tuple[int, float]] = {}
    with closing(Store.open(settings.db)) as store, _timed(parts):
        run = _run(settings, store, model, hand.chain, options)
        start_time = time.monotonic()
        report = run.run(1, run.curation().rollouts)
        seconds = time.monotonic() - start_time
        [result] = report.results
        return _outcome(store, hand, result.outcome, result.reason, str(result.detail), stages, model, parts, seconds)


def _run(settings: Settings, store: Store, model: Any, chain: str, options: WindowOptions) -> CuratedRun:
    gateway = Gateway(SqlLedger(store, "curated"), default=Route(model, Price(1.0, 4.0)))
    backend = BACKENDS["docker"]
    provider = Provider(settings, store=store)
    rollout = rollout_options(gateway, backend="docker", min_length=1)
    places = (settings.mirrors_dir, settings.data_dir)
    context = RunContext(store, gateway, provider, backend.of(settings), ReactScaffold(rollout.tools), rollout, *places)
    graphs = GraphContext(store, gateway, provider, backend.of(settings), GraphOptions(), *places)
    return CuratedRun(context, CurationChoice(chain=chain), graphs, options)


def _outcome(
    store: Store,
    hand: HandChain,
    outcome: str,
    reason: str | None,
    name: str,
    stages: Sequence[RealStage],
    model: StagesModel,
    parts: Mapping[str, tuple[int, float]],
    seconds: float,
) -> CuratedChain:
    with store.reading() as tx:
        windows = [(window, read_candidates(tx, window.key)) for window in read_windows(tx, name)]
        coverage = []
        for position in sorted({window.key.position for window, _ in windows}):
            last, candidates = [it for it in windows if it[0].key.position == position][-1]
            graph = read_graph(tx, last.graph_id)
            chosen = next(it for it in candidates if it.number == last.chosen)
            steps = chosen.steps[: last.committed]
            places, _ = standings(graph, last.standing, steps, chosen.established, Premature.DEFER)
            coverage.append((len(places[-1].established), len(graph.nodes)))
        graphs = {window.graph_id: read_graph(tx, window.graph_id) for window, _ in windows}
        messages = [str(row[0]) for row in tx.rows(TrajectoryMessage, "details", trajectory_id=name)]
        rows = [(row.position, row.outcome) for row in read_stages(tx, name)]
    assert messages
    each = sum(
        _each(graphs[window.graph_id], window, candidate) for window, candidates in windows for candidate in candidates
    )
    return CuratedChain(
        hand.repository,
        hand.chain,
        outcome,
        reason,
        rows,
        coverage,
        windows,
        list(_leaks(stages, model, windows)),
        {purpose: len(prompts) for purpose, prompts in model.prompts.items()},
        each,
        parts,
        seconds,
    )


def _each(graph: ProcessGraph, window: StoredWindow, candidate: WindowCandidate) -> int:
    """The verifier's calls in the paper's form: each new step with every node that is not established."""
    steps = candidate.steps
    places, _ = standings(graph, window.standing, steps, candidate.established, Premature.DEFER)
    fresh = places[candidate.place or 0 : len(steps)]
    return sum(len(graph.nodes) - len(place.seen) for place in fresh)


def _leaks(
    stages: Sequence[RealStage], model: StagesModel, windows: Sequence[tuple[StoredWindow, list[WindowCandidate]]]
) -> Iterator[str]:
    """Lines that only the reference adds, in a reader's prompt outside of the session, or in a rewritten step."""
    for stage in stages:
        trees = stage.chain.trees
        text = stage.target.source_text.decode("utf-8", "replace")
        standing = b"\n".join(trees.texts(stage.target.start)).decode("utf-8", "replace")
        secret = {
            line[1:].strip()
            for line in text.splitlines()
            if line.startswith("+") and not line.startswith("+++") and len(line.strip()) >= _LONGEST_SECRET
        }
        secret = {line for line in secret if line not in standing and line not in stage.task.query}
        for purpose in (CURATOR, ESTABLISH, GROUND):
            for prompt in model.prompts.get(purpose, ()):
                told = prompt.replace("\\n", "\n").replace('\\"', '"')
                session = _session(told)
                yield from (f"{purpose}: {line}" for line in secret if line in told and line not in session)
        for _, candidates in windows:
            for candidate in candidates:
                if candidate.rewrite is not None:
                    said = str(candidate.rewrite)
                    yield from (f"rewrite: {line}" for line in secret if line in said)


def _session(prompt: str) -> str:
    """What a prompt quotes of the agent's own session."""
    begin = prompt.find("<<<session ")
    ends = [prompt.rfind(mark) for mark in ("<<<node ", "<<<target ", "<<<proposed step ")]
    return prompt[begin : max([end for end in ends if end > begin], default=len(prompt))] if begin >= 0 else ""


@contextmanager
def _timed(parts: dict[str, tuple[int, float]]) -> Iterator[None]:
    """Count what sandboxes do meanwhile, and its seconds; a restore and a branch include the start of a container."""
    watched: list[tuple[type, str]] = [
        (DockerSandbox, "snapshot"),
        (DockerSandbox, "restore"),
        (DockerSandbox, "branch"),
        (DockerSandbox, "forget"),
        (DockerSandbox, "close"),
        (ChannelledSandbox, "exec"),
        (ChannelledSandbox, "leftovers"),
        (Tracker, "take"),
    ]
    kept = [(kind, name, getattr(kind, name)) for kind, name in watched]
    for kind, name, method in kept:
        setattr(kind, name, _watching(f"{kind.__name__}.{name}", method, parts))
    try:
        yield
    finally:
        for kind, name, method in kept:
            setattr(kind, name, method)


def _watching(label: str, method: Callable[..., Any], parts: dict[str, tuple[int, float]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        start_time = time.monotonic()
        try:
            return method(*arguments, **named)
        finally:
            count, seconds = parts.get(label, (0, 0.0))
            parts[label] = (count + 1, seconds + time.monotonic() - start_time)

    return call


__all__ = ["Asked", "CuratedChain", "curated_chain"]
