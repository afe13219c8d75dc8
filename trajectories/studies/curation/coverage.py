"""Whether plain rollouts that establish more of their stage's process graph resolve it more often (P2T, appendix C).

Nobody told these agents of the graph. The verifier of windows (`trajectories.curation.windows.establishing`) reads the
steps of a first stage in order; a node counts as covered from the first step on that establishes it, whatever comes
before it in the graph. What the query itself tells counts from the start.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import select

from environments.suites.outcomes import PASSED
from prchain.core.console.terminal import counted, say, say_prose, say_table, tally
from sql.store import Transaction
from sql.tables import Chain, GraphRow, Repository, Trajectory, TrajectoryStage, Verdict
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.curation.graphs.nodes import ActionTool, Node
from trajectories.curation.graphs.outcomes import BUILT
from trajectories.curation.graphs.svg import bars_svg
from trajectories.curation.windows.establishing import StepFindings
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import RUNNING, SUPERSEDED
from trajectories.privileged import GUIDED, PRIVILEGED, is_guided
from trajectories.studies.curation.correlation import correlation
from trajectories.studies.curation.study_files import Study

STAGE = 1
"""The only stage that is studied: every rollout of a chain begins it on the same tree, which is the graph's."""

NO_GRAPH = "no_graph"
UNGRADED = "ungraded"
"""No tests were run on what the agent handed in."""
UNENDED = "unended"
"""The stage is under way, or its process was killed; or it was given up for other prompts."""

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class CoverageUnit:
    """A trajectory whose first stage is studied (`prchain.core.runs.Unit`)."""

    trajectory: str
    chain_id: str
    repository: str
    sample: int
    graph: str
    resolved: bool
    """Whether the stage's tests passed on what the last attempt handed in."""

    @property
    def key(self) -> str:
        """The trajectory's id."""
        return self.trajectory

    @property
    def group(self) -> str:
        """The trajectory's id: they share no engine."""
        return self.trajectory

    @property
    def subject(self) -> str:
        """The ledger's subject of the calls.

        It does not begin with the trajectory's id: what a trajectory costs is the sum of the calls whose subjects do
        (`trajectories.sums.calls_of`), and a study that is made later must not make it dearer.
        """
        return f"coverage/{self.trajectory}/{self.graph}"


@dataclass(frozen=True, slots=True)
class ChosenTrajectories:
    """The trajectories that can be studied, by id; and how many others cannot, by reason."""

    units: tuple[CoverageUnit, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoveredStage:
    """What a trajectory's first stage came to."""

    unit: CoverageUnit
    nodes: int
    covered: tuple[str, ...]
    """The nodes that were established, in the order of the graph."""
    steps: int
    calls: int
    """Of the verifier; those that the ledger answered, too."""
    usd: float | None
    notes: tuple[str, ...] = ()
    """On answers of the verifier that could not be used."""
    unanswered: tuple[str, ...] = ()
    """Of the calls without a usable answer, why."""

    @property
    def read(self) -> bool:
        """Whether the verifier said anything, where it was asked at all."""
        return len(self.unanswered) < self.calls or not self.calls

    @property
    def coverage(self) -> float:
        """The share of the graph's nodes that are covered."""
        return len(self.covered) / self.nodes


def studied_trajectories(
    tx: Transaction, repository: str | None = None, model: str | None = None
) -> ChosenTrajectories:
    """The plain rollouts, of one repository or agent's model, whose first stage was graded by tests and has a process
    graph on the same tree. Branches are not counted: they share steps with their parents.

    Of several graphs it is the one that was finished last.
    """
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.sample,
            Trajectory.outcome,
            Trajectory.options,
            Repository.owner,
            Repository.name,
            TrajectoryStage.outcome,
            TrajectoryStage.start_tree,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .join(TrajectoryStage, TrajectoryStage.trajectory_id == Trajectory.id)
        .where(
            TrajectoryStage.position == STAGE,
            Trajectory.scaffold.not_in(sorted(PRIVILEGED)),
            Trajectory.parent_id.is_(None),
        )
        .order_by(Trajectory.id)
    )
    if model is not None:
        query = query.where(Trajectory.model == model)
    graphs, tests = _graphs(tx), _tests(tx)
    units: list[CoverageUnit] = []
    left_out: Counter[str] = Counter()
    for name, chain_id, sample, outcome, chosen, owner, repo, stage, tree in list(tx.connection.execute(query)):
        if repository is not None and f"{owner}/{repo}".lower() != repository.lower():
            continue
        if is_guided(chosen):
            left_out[GUIDED] += 1
        elif outcome == SUPERSEDED or stage == RUNNING:
            left_out[UNENDED] += 1
        elif tests.get(name) is None:
            left_out[UNGRADED] += 1
        elif (graph := graphs.get((str(chain_id), tree or ""))) is None:
            left_out[NO_GRAPH] += 1
        else:
            units.append(CoverageUnit(name, str(chain_id), f"{owner}/{repo}", sample, graph, tests[name] == PASSED))
    return ChosenTrajectories(tuple(units), dict(sorted(left_out.items())))


def _tests(tx: Transaction) -> dict[str, str | None]:
    """Trajectory to the tests' outcome on the last attempt at the first stage; None where they were not run."""
    query = (
        select(Verdict.trajectory_id, Verdict.tests)
        .where(Verdict.position == STAGE)
        .order_by(Verdict.trajectory_id, Verdict.attempt)
    )
    return {row[0]: row[1] for row in tx.connection.execute(query)}


def _graphs(tx: Transaction) -> dict[tuple[str, str], str]:
    """Chain and tree to the id of the graph of the first stage."""
    query = (
        select(GraphRow.chain_id, GraphRow.start_tree, GraphRow.id)
        .where(GraphRow.position == STAGE, GraphRow.outcome.in_(sorted(BUILT)))
        .order_by(GraphRow.finished_at, GraphRow.id)
    )
    return {(chain, tree): name for chain, tree, name in tx.connection.execute(query)}


class StageReader:
    """The steps of a trajectory's first stage, and what was established before each."""

    def __init__(self, entries: Sequence[Entry], nodes: Sequence[Node]) -> None:
        """`entries` are the trajectory's; `nodes` the graph's, at least one."""
        self._entries = [entry for entry in entries if entry.position == STAGE]
        self._nodes = nodes
        query = next((entry for entry in self._entries if entry.kind is EntryKind.QUERY), None)
        details = {} if query is None else query.details
        self.query = str(details.get("query") or ("" if query is None else query.content))
        """As the agent read it."""
        self.workdir: str | None = details.get("workdir")

    def read(
        self, unit: CoverageUnit, ask: Callable[[Sequence[Entry], Step, Sequence[Node]], StepFindings]
    ) -> CoveredStage:
        """Ask of each step, with the conversation before it, for the nodes that no earlier one has established."""
        covered = {node.name for node in self._nodes if node.action.tool is ActionTool.VIEW_PROBLEM}
        steps = steps_of(self._entries)
        calls, notes, unanswered = 0, list[str](), list[str]()
        usd: float | None = 0.0
        for step in steps:
            wanted = [node for node in self._nodes if node.name not in covered]
            if not wanted:
                break
            before = [entry for entry in self._entries if entry.ordinal < step.turn.ordinal]
            findings = ask(before, step, wanted)
            covered |= {it.node for it in findings.established}
            calls += findings.calls
            usd = None if usd is None or findings.usd is None else usd + findings.usd
            notes += findings.notes
            unanswered += findings.unanswered
        names = tuple(node.name for node in self._nodes if node.name in covered)
        return CoveredStage(unit, len(self._nodes), names, len(steps), calls, usd, tuple(notes), tuple(unanswered))


def coverage_study(stages: Sequence[CoveredStage], chosen: ChosenTrajectories) -> dict[str, Any]:
    """Quintiles of coverage, and how it goes with resolving (`CoverageCorrelation`). ``usd`` is what the verifier's
    replies cost when they were paid for; None where a price is not known."""
    found = correlation([(stage.coverage, stage.unit.resolved) for stage in stages])
    usd = [stage.usd for stage in stages]
    return {
        "trajectories": len(chosen.units),
        "left_out": dict(chosen.left_out),
        "chains": len({stage.unit.chain_id for stage in stages}),
        **asdict(found),
        "rate": found.resolved / found.runs if found.runs else None,
        "verifier_calls": sum(stage.calls for stage in stages),
        "unusable_answers": sum(len(stage.notes) for stage in stages),
        "usd": None if None in usd else sum(cost or 0.0 for cost in usd),
    }


def coverage_rows(stages: Sequence[CoveredStage]) -> str:
    """CSV: one row a trajectory."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("trajectory", "chain_id", "repository", "sample", "graph")
    writer.writerow([*columns, "nodes", "covered", "coverage", "resolved", "steps", "calls", "names"])
    for stage in stages:
        counts = (stage.nodes, len(stage.covered), f"{stage.coverage:.4f}", int(stage.unit.resolved))
        own = [getattr(stage.unit, name) for name in columns]
        writer.writerow([*own, *counts, stage.steps, stage.calls, " ".join(stage.covered)])
    return text.getvalue()


def coverage_drawings(study: Mapping[str, Any]) -> dict[str, str]:
    """Name of each figure to its SVG."""
    bins = {f"fifth {place}: {_span(it)}": it for place, it in enumerate(study["bins"], 1) if it["runs"]}
    rates = {name: 100 * it["rate"] for name, it in bins.items()}
    words = [f"{100 * it['rate']:.0f} % of {it['runs']:,}" for it in bins.values()]
    return {"quintiles": bars_svg("Resolved, by the share of the graph that is covered", rates, words)}


def study_coverage(stages: Sequence[CoveredStage], chosen: ChosenTrajectories) -> Study:
    """The study `coverage`, of the trajectories that were read."""
    ordered = sorted(stages, key=lambda stage: stage.unit.trajectory)
    row = coverage_study(ordered, chosen)
    return Study(row, coverage_rows(ordered), coverage_drawings(row), print_coverage)


def print_coverage(study: Mapping[str, Any]) -> None:
    """Print the study as a table of at most 80 columns."""
    resolved = f"{study['resolved']:,} resolved"
    say(f"{counted(study['runs'], 'plain rollout')} of {counted(study['chains'], 'chain')}, {resolved}")
    say_left_out(study["left_out"])
    if not study["runs"]:
        say_prose("A rollout is studied if tests graded its first stage and that stage has a graph.", width=_WIDTH)
        return
    rows = [
        (f"fifth {place}", _span(it), it["runs"], f"{it['resolved']:g}", f"{100 * it['rate']:.1f}%")
        for place, it in enumerate(study["bins"], 1)
        if it["runs"]
    ]
    say_table(("", "coverage", "rollouts", "resolved", "rate"), rows)
    r, rho = (_coefficient(study[name]) for name in ("pearson", "spearman"))
    say_prose(
        f"Pearson {r}, Spearman {rho}. The paper: 0.36 and 0.35; from 10% or 19% in the lowest fifth to 53% or 66% in "
        "the highest.",
        width=_WIDTH,
    )
    if study["unusable_answers"]:
        say(f"{counted(study['unusable_answers'], 'answer')} of the verifier could not be used")


def say_left_out(left_out: Mapping[str, int]) -> None:
    """Print how many plain rollouts are not studied, by reason."""
    if left_out:
        say(f"left out: {tally(left_out)}")


def _span(it: Mapping[str, Any]) -> str:
    return f"{it['lowest']:.2f} to {it['highest']:.2f}"


def _coefficient(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
