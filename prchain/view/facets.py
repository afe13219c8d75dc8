"""What the funnel counts, as lists: each count has a query that gives the rows it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select

from chains.addresses import pull_request_url
from chains.meanings import MEANINGS
from miner.funnel import RepositoryFunnel, funnel
from prchain.view.places import COUNTED, FUNNEL, chain_page, forge_link, slug, trajectory_page
from sql.chosen import LAST, resolved
from sql.store import Store, Transaction
from sql.tables import (
    Candidate,
    Chain,
    ChainStage,
    Citation,
    GraphRow,
    IncompletePart,
    Landing,
    PullRequest,
    PullRequestText,
    RefusedClaim,
    Repository,
    Selection,
    Task,
    Trajectory,
    Validation,
)

Query = Any
"""A `sqlalchemy.Select`, each of its own columns."""

NONE_YET = "none yet"
"""As the funnel names chains without a task, or without a proof."""

ALL = "all"

UNTOLD = "no reason"
"""In the place of a reason that no row holds."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One count of the funnel of one repository."""

    repository_id: int
    repository: str
    host: str
    kind: str
    """A key of `LISTS`."""
    values: tuple[str, ...]
    """What is counted: an outcome, or a strategy and an outcome."""
    count: int

    @property
    def folder(self) -> str:
        """Where its pages stand."""
        return "/".join([COUNTED, str(self.repository_id), self.kind, *map(slug, self.values)])

    @property
    def page(self) -> str:
        """Its first page."""
        return f"{self.folder}/{FUNNEL}"


@dataclass(frozen=True, slots=True)
class RowList:
    """How the rows of a count are listed."""

    heading: str
    columns: tuple[str, ...]
    """``number``, ``chain`` and ``trajectory`` are links; each is the name of a column of the query."""
    query: Callable[[int, Sequence[str]], Query]
    key: Any
    """The column by whose values the list is paged."""


def _titled(query: Query, table: Any) -> Query:
    title = (
        select(func.min(PullRequestText.body))
        .where(
            PullRequestText.repository_id == table.repository_id,
            PullRequestText.number == table.number,
            PullRequestText.field == "title",
        )
        .scalar_subquery()
    )
    landed = (
        select(func.min(Landing.subject))
        .where(Landing.repository_id == table.repository_id, Landing.number == table.number)
        .scalar_subquery()
    )
    return query.add_columns(func.coalesce(title, landed).label("title"))


def _pull_requests(repository: int, values: Sequence[str]) -> Query:
    table = PullRequest
    query = select(table.number, table.outcome, table.reason)
    query = _titled(query, table).where(table.repository_id == repository)
    return query.where(table.outcome == values[0]) if values[0] != ALL else query


def _incomplete(repository: int, values: Sequence[str]) -> Query:
    table = IncompletePart
    return (
        select(table.number, func.count().label("parts"))
        .where(table.repository_id == repository)
        .group_by(table.number)
    )


def _landed(repository: int, values: Sequence[str]) -> Query:
    style, _, place = values[0].partition(" on ")
    table = Landing
    query = select(table.number, table.branch, table.subject, table.landed_at, table.evidence)
    is_default = table.is_default.is_(place == "the default branch")
    return query.where(table.repository_id == repository, table.style == style, is_default)


def _lacking(repository: int, values: Sequence[str]) -> Query:
    table = Landing
    query = select(table.number, table.branch, table.subject, table.missing_files)
    return query.where(table.repository_id == repository, table.missing_files > 0)


def _refused(repository: int, values: Sequence[str]) -> Query:
    table = RefusedClaim
    query = select(table.number, table.branch, table.claim, table.subject)
    return query.where(table.repository_id == repository, table.reason == values[0])


def _citations(repository: int, values: Sequence[str]) -> Query:
    table = Citation
    query = select(
        table.source.label("number"), table.target, table.relation, table.field, table.snippet, table.confidence
    )
    query = query.where(table.repository_id == repository)
    if values[0] == "counted":
        return query.where(table.counted.is_(True), table.relation == values[1])
    return query.where(table.counted.is_(False), func.coalesce(table.reason, UNTOLD) == values[1])


def _candidates(repository: int, values: Sequence[str]) -> Query:
    table = Candidate
    query = _titled(select(table.number, table.reason), table)
    strategy, outcome = values
    return query.where(table.repository_id == repository, table.strategy == strategy, table.outcome == outcome)


def _pulls() -> Any:
    """The first and the last pull request of a chain."""
    stages = select(func.min(ChainStage.subject)).where(ChainStage.chain_id == Chain.id, ChainStage.position == 1)
    return stages.scalar_subquery().label("begins_with")


def _chains(table: Any, outcome: Any) -> Callable[[int, Sequence[str]], Query]:
    def query(repository: int, values: Sequence[str]) -> Query:
        reason = Selection.reason if table is None else table.reason
        found = select(Chain.id.label("chain"), Chain.length.label("stages"), _pulls(), reason).join(
            Selection, Selection.chain_id == Chain.id
        )
        if table is not None:
            found = found.outerjoin(table, table.chain_id == Chain.id)
        strategy, ended = values
        return found.where(Chain.repository_id == repository, Selection.strategy == strategy, outcome == ended)

    return query


def _rollouts(repository: int, values: Sequence[str]) -> Query:
    table = Trajectory
    columns = (table.id.label("trajectory"), table.chain_id.label("chain"), table.sample, table.model, table.accepted)
    query = select(*columns, table.steps, table.reason).join(Chain, Chain.id == table.chain_id)
    return query.where(Chain.repository_id == repository, table.outcome == values[0])


def _graphs(repository: int, values: Sequence[str]) -> Query:
    table = GraphRow
    query = select(table.chain_id.label("chain"), table.position.label("stage"), table.id.label("graph"), table.reason)
    query = query.join(Chain, Chain.id == table.chain_id)
    return query.where(Chain.repository_id == repository, table.outcome == values[0])


_CITED = ("number", "target", "relation", "field", "snippet", "confidence")
_CHAIN = ("chain", "stages", "begins_with", "reason")

LISTS: Mapping[str, RowList] = {
    "pull-requests": RowList(
        "Pull requests", ("number", "title", "outcome", "reason"), _pull_requests, PullRequest.number
    ),
    "incomplete": RowList("Incomplete pull requests", ("number", "parts"), _incomplete, IncompletePart.number),
    "landed": RowList("Landings", ("number", "branch", "subject", "landed_at", "evidence"), _landed, Landing.number),
    "lacking": RowList(
        "Landings that lack files", ("number", "branch", "subject", "missing_files"), _lacking, Landing.number
    ),
    "refused": RowList("Claims refused", ("number", "branch", "claim", "subject"), _refused, RefusedClaim.number),
    "citations": RowList("Citations", _CITED, _citations, Citation.source),
    "candidates": RowList("Landed, as candidates", ("number", "title", "reason"), _candidates, Candidate.number),
    "chains": RowList("Chains", _CHAIN, _chains(None, Selection.outcome), Chain.id),
    "tasks": RowList("Tasks", _CHAIN, _chains(Task, func.coalesce(Task.outcome, NONE_YET)), Chain.id),
    "proofs": RowList("Proofs", _CHAIN, _chains(Validation, func.coalesce(Validation.outcome, NONE_YET)), Chain.id),
    "rollouts": RowList(
        "Rollouts",
        ("trajectory", "chain", "sample", "model", "accepted", "steps", "reason"),
        _rollouts,
        Trajectory.id,
    ),
    "graphs": RowList("Process graphs", ("chain", "stage", "graph", "reason"), _graphs, GraphRow.id),
}


@dataclass(frozen=True, slots=True)
class CountedRepository:
    """The funnel of one repository, with its row."""

    id: int
    host: str
    row: RepositoryFunnel
    strategy: str
    """The one of the last build."""


def counted_repositories(store: Store, repository: str | None) -> list[CountedRepository]:
    """The funnel of each repository, by name. Raises `UsageError` for one that was not mined."""
    rows = funnel(store, repository)
    with store.reading() as tx:
        known = [
            (int(id_), str(host), f"{owner}/{name}")
            for id_, host, owner, name in tx.rows(Repository, "id", "host", "owner", "name")
            if repository is None or f"{owner}/{name}".lower() == repository.lower()
        ]
        last = resolved(tx, LAST)
    known.sort(key=lambda it: it[2].lower())
    return [CountedRepository(id_, host, row, last) for (id_, host, _), row in zip(known, rows, strict=False)]


def is_numbered(facet: Facet) -> bool:
    """Whether the key of its rows is a whole number."""
    return LISTS[facet.kind].key.type.python_type is int


def page_rows(tx: Transaction, facet: Facet, after: str | None, most: int) -> tuple[list[Any], str | None]:
    """The rows of a page: those of the next `most` values of the key after `after`, and the last of these values where
    there are more."""
    rows = LISTS[facet.kind]
    query = rows.query(facet.repository_id, facet.values)
    start = None if after is None else int(after) if is_numbered(facet) else after
    keys = query.with_only_columns(rows.key).order_by(None).group_by(rows.key).order_by(rows.key).limit(most + 1)
    if start is not None:
        keys = keys.where(rows.key > start)
    found = [key for (key,) in tx.connection.execute(keys)]
    if not found:
        return [], None
    shown = found[:most]
    query = query.where(and_(rows.key >= shown[0], rows.key <= shown[-1])).order_by(rows.key)
    return list(tx.connection.execute(query).mappings()), str(shown[-1]) if len(found) > most else None


def facet_rows(
    facet: Facet, rows: Sequence[Mapping[str, Any]], visible: frozenset[str] | None, *, graphs: bool
) -> dict[str, Any]:
    """The rows of a count as the page shows them: each cell a text, and where it leads. `graphs`: process graphs have
    pages. Numbers lead to the forge. Pure."""
    listing = LISTS[facet.kind]
    meaning = MEANINGS.get(facet.values[-1], "") if facet.kind == "candidates" else ""

    def link(row: Mapping[str, Any], column: str) -> str | None:
        value = row[column]
        if value is None:
            return None
        if column in {"number", "target"}:
            return forge_link(pull_request_url(facet.host, facet.repository, value), facet.host, facet.repository)
        if column == "chain":
            return chain_page(value)
        if column == "graph" and graphs:
            return chain_page(row["chain"], f"graph-{value}.html")
        if column == "trajectory" and (visible is None or value in visible):
            return trajectory_page(value)
        return None

    cells = [[(row[column], link(row, column)) for column in listing.columns] for row in rows]
    return {"heading": listing.heading, "columns": listing.columns, "rows": cells, "meaning": meaning}
