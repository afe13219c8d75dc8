"""The pages of chains: the list, and one chain with its picture, its evidence and its diffs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import or_, select

from chains.chain_report import ChainReport, ChainStageReport, ListedChain, chain_report, find_chains
from chains.edges.told_signs import told_signs
from prchain.view.diffs import DiffFile, diff_files
from prchain.view.graph import ChainEdge, ChainGraph, chain_graph
from prchain.view.options import ViewOptions
from prchain.view.places import forge_link, trajectory_page
from prchain.view.shown import shown_ids
from prchain.view.trees import ChainTrees
from sql.chosen import LAST
from sql.store import Store, Transaction
from sql.tables import Chain, Citation, Dependency, Landing, PullRequestText, Repository, Task, Trajectory, Validation

_MOST_EDGES = 200
_MOST_CITATIONS = 50
"""Of one pull request."""


@dataclass(frozen=True, slots=True)
class CitedHere:
    """A place where a stage's pull request is cited by another stage's, or cites it."""

    source: int
    target: int
    relation: str
    field: str
    snippet: str
    counted: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class StagePair:
    """Two stages that follow each other, with their diffs beside each other."""

    earlier: int
    later: int
    before: tuple[DiffFile, ...]
    after: tuple[DiffFile, ...]
    lit: int
    """Lines of the earlier one that the later one removes or changes, by `git blame`."""


@dataclass(frozen=True, slots=True)
class ChainStageView:
    """A stage of a chain."""

    report: ChainStageReport
    link: str | None
    citations: tuple[CitedHere, ...]
    changed: str
    """How many lines it changes of the stage before; empty where none are known."""


@dataclass(frozen=True, slots=True)
class RolloutLink:
    """A trajectory over the chain."""

    id: str
    page: str
    outcome: str
    accepted: int
    steps: int
    model: str
    scaffold: str


@dataclass(frozen=True, slots=True)
class ChainView:
    """The page of a chain."""

    report: ChainReport
    graph: ChainGraph
    stages: tuple[ChainStageView, ...]
    pairs: tuple[StagePair, ...]
    single: tuple[DiffFile, ...]
    """The diff of a chain of one stage, which has no pair."""
    rollouts: tuple[RolloutLink, ...]
    has_task: bool
    has_proof: bool
    edges: tuple[ChainEdge, ...]
    problem: str | None
    """Why there are no diffs."""


def all_chains(store: Store, repository: str | None) -> list[ListedChain]:
    """The chains that the last build chose, best first: what `prchain chains list` prints."""
    rows = find_chains(store, LAST, repository=repository)
    return sorted(rows, key=lambda row: (-row.score, row.repository.lower(), row.id))


def chain_ids(tx: Transaction, repository: str | None) -> list[str]:
    """The ids of all chains, of whichever strategy, by id."""
    query = select(Chain.id, Repository.owner, Repository.name).join(Repository, Repository.id == Chain.repository_id)
    rows = tx.connection.execute(query.order_by(Chain.id))
    return sorted(
        str(id_) for id_, owner, name in rows if repository is None or f"{owner}/{name}".lower() == repository.lower()
    )


def chain_view(store: Store, chain_id: str, options: ViewOptions, mirrors: Path, data_dir: Path) -> ChainView:
    """Everything that the page of a chain shows. Raises `UsageError` for a chain that is not there."""
    report = chain_report(store, chain_id)
    numbers = [stage.number for stage in report.stages]
    with store.reading() as tx:
        [(repository_id,)] = tx.rows(Chain, "repository_id", id=report.id)
        [(host,)] = tx.rows(Repository, "host", id=repository_id)
        edges = _edges(tx, repository_id, numbers)
        citations = _citations(tx, repository_id, numbers)
        titles = _titles(tx, repository_id, edges) | {stage.number: stage.subject for stage in report.stages}
        rollouts = tuple(_rollouts(tx, report.id, options))
        has_task = tx.count(Task, chain_id=report.id) > 0
        has_proof = tx.count(Validation, chain_id=report.id) > 0
    stages = tuple(
        ChainStageView(
            stage,
            forge_link(stage.url, host, report.repository),
            tuple(cited for cited in citations if cited.source == stage.number),
            stage.changes.lines if stage.changes else "",
        )
        for stage in report.stages
    )
    pairs, single, problem = _diffs(store, report, options, mirrors, data_dir)
    graph = chain_graph(numbers, titles, edges)
    return ChainView(report, graph, stages, pairs, single, rollouts, has_task, has_proof, edges, problem)


def _diffs(
    store: Store, report: ChainReport, options: ViewOptions, mirrors: Path, data_dir: Path
) -> tuple[tuple[StagePair, ...], tuple[DiffFile, ...], str | None]:
    if not options.reference:
        return (), (), "this view shows no references"
    trees = ChainTrees(store, report.id, mirrors, data_dir)
    references = trees.references()
    if references is None:
        return (), (), trees.problem
    if len(references) == 1:
        return (), diff_files(references[0]), None
    pairs = []
    for position in range(2, len(references) + 1):
        lit = trees.lit_lines(position)
        before = diff_files(references[position - 2], lit=lit.before, mark="+")
        after = diff_files(references[position - 1], lit=lit.after, mark="-")
        pairs.append(StagePair(position - 1, position, before, after, sum(map(len, lit.after.values()))))
    return tuple(pairs), (), trees.problem


def _edges(tx: Transaction, repository_id: int, numbers: Sequence[int]) -> tuple[ChainEdge, ...]:
    table = Dependency
    query = (
        select(table.source, table.target, table.relation, table.confidence, table.sources, table.outcome, table.signs)
        .where(table.repository_id == repository_id, or_(table.source.in_(numbers), table.target.in_(numbers)))
        .order_by(table.confidence.desc(), table.source, table.target)
        .limit(_MOST_EDGES)
    )
    return tuple(
        ChainEdge(
            row.source,
            row.target,
            row.relation,
            row.confidence,
            row.sources.replace(",", ", "),
            row.outcome,
            tuple(f"{sign['weight']:+.1f} {sign['sign']}: {sign['detail']}" for sign in told_signs(row.signs)),
        )
        for row in tx.connection.execute(query)
    )


def _titles(tx: Transaction, repository_id: int, edges: Sequence[ChainEdge]) -> dict[int, str]:
    numbers = {number for edge in edges for number in (edge.source, edge.target)}
    table = PullRequestText
    landed = select(Landing.number, Landing.subject).where(
        Landing.repository_id == repository_id, Landing.number.in_(sorted(numbers))
    )
    found = {number: str(subject) for number, subject in tx.connection.execute(landed.order_by(Landing.branch))}
    query = select(table.number, table.body).where(
        table.repository_id == repository_id, table.field == "title", table.number.in_(sorted(numbers))
    )
    return found | {
        number: str(body) for number, body in tx.connection.execute(query.order_by(table.number, table.key))
    }


def _citations(tx: Transaction, repository_id: int, numbers: Sequence[int]) -> list[CitedHere]:
    table = Citation
    columns = (table.source, table.target, table.relation, table.field, table.snippet, table.counted, table.reason)
    found: list[CitedHere] = []
    for number in numbers:
        query = (
            select(*columns)
            .where(table.repository_id == repository_id, table.source == number)
            .order_by(table.target.in_(numbers).desc(), table.target, table.relation, table.field, table.key)
            .limit(_MOST_CITATIONS)
        )
        found.extend(CitedHere(*row) for row in tx.connection.execute(query))
    return found


def _rollouts(tx: Transaction, chain_id: str, options: ViewOptions) -> list[RolloutLink]:
    shown = shown_ids(tx, options)
    columns = ("id", "outcome", "accepted", "steps", "model", "scaffold", "sample")
    rows = sorted(tx.rows(Trajectory, *columns, chain_id=chain_id), key=lambda row: (row[6], row[0]))
    return [RolloutLink(row[0], trajectory_page(row[0]), *row[1:6]) for row in rows if shown is None or row[0] in shown]
