"""What became of what was mined: the counts of each repository, which add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import func, select

from miner.outcomes import OUTCOMES
from prchain.core.console.terminal import counted, say, say_counts, tally
from prchain.core.errors import UsageError
from sql.store import Store, Transaction
from sql.tables import (
    Candidate,
    Chain,
    Citation,
    GraphRow,
    ImportedTrajectory,
    IncompletePart,
    Landing,
    MineRun,
    PullRequest,
    RefusedClaim,
    Repository,
    Selection,
    Task,
    Trajectory,
    Validation,
)

_NONE_YET = "none yet"

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run over a repository: a row of ``mine_runs``."""

    source: str
    started_at: str
    finished_at: str | None
    outcome: str
    reason: str | None
    graphql_requests: int
    rest_requests: int
    points: int
    replaced: Counts
    """Secrets that were replaced, by kind."""


@dataclass(frozen=True, slots=True)
class ChainingCounts:
    """What one strategy made of a repository, each by outcome."""

    candidates: dict[str, int] = field(default_factory=dict)
    """Landed pull requests."""
    chains: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    proofs: dict[str, int] = field(default_factory=dict)
    """Of tasks and proofs a chain has one each."""


@dataclass(frozen=True, slots=True)
class RepositoryFunnel:
    """The counts of one repository, from pull requests to rollouts.

    Those of `outcomes` add up to `pull_requests`, those of `landed` to the outcome of that name, and those of `refused`
    with `counted` to `citations`.
    """

    repository: str
    last_run: LastRun | None
    pull_requests: int
    outcomes: Counts
    incomplete: int
    landed: Counts
    landed_without_files: int
    """Landings that need files which the mirror lacks."""
    refused_claims: Counts
    citations: int
    counted: Counts
    refused: Counts
    chaining: Mapping[str, ChainingCounts]
    """By strategy."""
    rollouts: Counts
    graphs: Counts


@dataclass(frozen=True, slots=True)
class FailedLine:
    """A line of a list whose last run failed before there was a repository to put it to."""

    spec: str
    outcome: str
    reason: str | None
    started_at: str


def funnel(store: Store, repository: str | None = None) -> list[RepositoryFunnel]:
    """The counts of each repository, by name; raises `UsageError` for an unknown one."""
    with store.reading() as tx:
        found = [
            _funnel_of(tx, repository_id, f"{owner}/{name}")
            for repository_id, owner, name in tx.rows(Repository, "id", "owner", "name")
            if repository is None or f"{owner}/{name}".lower() == repository.lower()
        ]
    if not found and repository is not None:
        raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
    return sorted(found, key=lambda row: row.repository.lower())


def _funnel_of(tx: Transaction, repository_id: int, name: str) -> RepositoryFunnel:
    styles = _counts(tx, Landing, repository_id, Landing.is_default, Landing.style)

    def by(table: Any, column: Any, **equals: Any) -> Counts:
        return {key[0]: count for key, count in _counts(tx, table, repository_id, column, **equals)}

    return RepositoryFunnel(
        repository=name,
        last_run=_last_run(tx, repository_id),
        pull_requests=tx.count(PullRequest, repository_id=repository_id),
        outcomes=by(PullRequest, PullRequest.outcome),
        incomplete=len(set(tx.rows(IncompletePart, "number", repository_id=repository_id))),
        landed={
            f"{style} on {'the default branch' if default else 'other branches'}": count
            for (default, style), count in styles
        },
        landed_without_files=_lacking(tx, repository_id),
        refused_claims=by(RefusedClaim, RefusedClaim.reason),
        citations=tx.count(Citation, repository_id=repository_id),
        counted=by(Citation, Citation.relation, counted=True),
        refused=by(Citation, Citation.reason, counted=False),
        chaining=_chaining(tx, repository_id),
        rollouts=_made_of_chains(tx, repository_id, Trajectory),
        graphs=_made_of_chains(tx, repository_id, GraphRow),
    )


def _lacking(tx: Transaction, repository_id: int) -> int:
    """How many landings need files that the mirror lacks."""
    query = select(func.count()).where(Landing.repository_id == repository_id, Landing.missing_files > 0)
    return int(tx.connection.execute(query).scalar_one())


def _chaining(tx: Transaction, repository_id: int) -> dict[str, ChainingCounts]:
    found: dict[str, ChainingCounts] = {}
    for (strategy, outcome), count in _counts(tx, Candidate, repository_id, Candidate.strategy, Candidate.outcome):
        found.setdefault(strategy, ChainingCounts()).candidates[outcome] = count
    steps: dict[str, tuple[Any, Any]] = {
        "chains": (Selection.outcome, None),
        "tasks": (func.coalesce(Task.outcome, _NONE_YET), Task),
        "proofs": (func.coalesce(Validation.outcome, _NONE_YET), Validation),
    }
    for step, (outcome_of, table) in steps.items():
        query = select(Selection.strategy, outcome_of, func.count()).join(Chain, Chain.id == Selection.chain_id)
        if table is not None:
            query = query.join(table, table.chain_id == Chain.id, isouter=True)
        query = query.where(Chain.repository_id == repository_id).group_by(Selection.strategy, outcome_of)
        for strategy, outcome, count in tx.connection.execute(query.order_by(Selection.strategy, outcome_of)):
            getattr(found.setdefault(strategy, ChainingCounts()), step)[outcome] = count
    return found


def _made_of_chains(tx: Transaction, repository_id: int, table: type[Trajectory] | type[GraphRow]) -> dict[str, int]:
    """What was made of the repository's chains, by outcome: each once, however many strategies chose its chain."""
    query = select(table.outcome, func.count()).join(Chain, Chain.id == table.chain_id)
    query = query.where(Chain.repository_id == repository_id).group_by(table.outcome).order_by(table.outcome)
    return {str(row[0]): int(row[1]) for row in tx.connection.execute(query)}


def _counts(
    tx: Transaction, table: Any, repository_id: int, *columns: Any, **equals: Any
) -> list[tuple[tuple[Any, ...], int]]:
    query = select(*columns, func.count()).filter_by(repository_id=repository_id, **equals).group_by(*columns)
    rows = [(tuple(row[:-1]), row[-1]) for row in tx.connection.execute(query.select_from(table))]
    return sorted(rows, key=lambda row: -row[1])


def _last_run(tx: Transaction, repository_id: int) -> LastRun | None:
    columns = (getattr(MineRun, it.name) for it in fields(LastRun))
    query = select(*columns).where(MineRun.repository_id == repository_id).order_by(MineRun.id.desc()).limit(1)
    row = tx.connection.execute(query).mappings().first()
    return LastRun(**{**row, "replaced": row["replaced"] or {}}) if row else None


def replaced_words(replaced: Mapping[str, int]) -> str:
    """What a run replaced, by kind: ``3 secrets replaced (2 github, 1 url)``; nothing where it replaced none."""
    total = sum(replaced.values())
    return f"{counted(total, 'secret')} replaced ({tally(replaced)})" if total else ""


def not_mined(store: Store) -> list[FailedLine]:
    """The lines of a list that came to nothing."""
    with store.reading() as tx:
        runs = tx.rows(MineRun, "spec", "repository_id", "outcome", "reason", "started_at")
        last = {run[0]: run for run in runs}
    return [
        FailedLine(spec, outcome, reason, started_at)
        for spec, repository_id, outcome, reason, started_at in last.values()
        if repository_id is None and outcome != "running"
    ]


def trajectories_of_others(store: Store) -> int:
    """How many trajectories were imported, which are of no repository that was mined."""
    with store.reading() as tx:
        return tx.count(ImportedTrajectory)


def print_funnel(rows: Sequence[RepositoryFunnel], failed: Sequence[FailedLine] = (), imported: int = 0) -> None:
    """Print the funnel as text, the lines of a list that came to nothing, and how many trajectories were imported."""
    if not rows:
        say("nothing mined yet; run `prchain mine repos.txt`")
    for row in rows:
        run = row.last_run
        say(row.repository)
        if run:
            requests = run.graphql_requests + run.rest_requests
            cost = f", {counted(requests, 'request')}" if run.graphql_requests else ""
            reason = f": {run.reason}" if run.reason else ""
            say(f"  last run  {run.outcome}, {run.started_at}, source {run.source}{cost}{reason}")
            if words := replaced_words(run.replaced):
                say(f"            {words}")
        outcomes = {name: count for name in OUTCOMES if (count := row.outcomes.get(name))}
        say_counts("pull requests", outcomes, total=row.pull_requests)
        if row.incomplete:
            say_counts("incomplete, see `prchain sql incomplete`", {}, total=row.incomplete)
        if row.landed:
            say_counts("landed as", row.landed, indent=4)
        if row.landed_without_files:
            say_counts("of which the mirror lacks files", {}, total=row.landed_without_files, indent=4)
        say_counts("claims to a landing refused", row.refused_claims)
        say_counts("citations", {}, total=row.citations)
        say_counts("counted", row.counted, indent=4)
        say_counts("not counted", row.refused, indent=4)
        for strategy, chained in row.chaining.items():
            if chained.candidates:  # none of what was imported or drawn
                say_counts(f"landed, strategy {strategy}", chained.candidates)
            say_counts(f"chains, strategy {strategy}", chained.chains)
            for step in ("tasks", "proofs"):
                outcomes = getattr(chained, step)
                if outcomes.keys() - {_NONE_YET} or step == "tasks":
                    say_counts(f"their {step}", outcomes, indent=4)
        for name, made in (("rollouts", row.rollouts), ("graphs", row.graphs)):
            if made:
                say_counts(f"{name} of all chains", made)
        say()
    if rows:
        say("docs/outcomes.md says what each name means")
    if imported:
        say(f"trajectories of others: {imported:,}; `prchain rollouts list --outcome imported` lists them")
    for line in failed:
        say(f"not mined: {line.spec}: {line.outcome}, {line.started_at}: {line.reason}")
