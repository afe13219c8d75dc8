"""Chains to read: the list of those that were chosen, and everything that is stored of one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from sqlalchemy import func, select

from chains import outcomes
from chains.addresses import pull_request_url
from chains.edges.told_signs import told_signs
from chains.history import MERGE_PREFIX, days_between, display_subject, title_below
from prchain.core.cli_options import SURVEYED
from prchain.core.console.terminal import counted, listed, say, say_facts, say_table, shortened
from prchain.core.errors import UsageError
from sql.chosen import find_chain, resolved
from sql.link_changes import LinkChanges, read_link_changes
from sql.outcomes import SELECTED
from sql.store import Store, Transaction
from sql.strength import read_strengths, worst
from sql.tables import (
    Chain,
    ChainStage,
    Commit,
    PullRequestCommit,
    PullRequestText,
    Repository,
    Selection,
    Task,
)

_WIDTH = 100
"""Characters of a subject, or of the detail of a sign."""


@dataclass(frozen=True, slots=True)
class ListedStage:
    """A stage of a chain in the list."""

    number: int
    subject: str
    landed_at: str
    tested: bool
    """Whether it changes tests: others can never be proved."""


@dataclass(frozen=True, slots=True)
class ListedChain:
    """A chain in the list."""

    id: str
    repository: str
    length: int
    numbers: tuple[int, ...]
    language: str
    licence: str | None
    score: float
    confidence: float
    """Of its weakest edge."""
    lines: int
    """Changed in source files."""
    date: str
    """When its last stage landed."""
    days: float
    """From the landing of its first stage to that."""
    stages: tuple[ListedStage, ...]
    task: str | None
    """The task's outcome."""
    proof: str | None
    """What its proof is worth (`sql.strength.Worth`), that of its weakest stage; None where no stage is proved."""


@dataclass(frozen=True, slots=True)
class SelectionReport:
    """That a strategy chose the chain."""

    strategy: str
    score: float
    outcome: str
    reason: str | None
    selected_at: str


@dataclass(frozen=True, slots=True)
class ChainStageReport:
    """One stage of a chain."""

    position: int
    number: int
    branch: str
    base_sha: str
    landed_sha: str
    landed_at: str
    subject: str
    source_files: int
    source_lines: int
    test_files: int
    test_lines: int
    relation: str | None
    confidence: float | None
    signs: Sequence[Mapping[str, Any]]
    worth: float | None
    worth_signs: Sequence[Mapping[str, Any]]
    changes: LinkChanges | None
    """What it changes of the stage before; None where it changes nothing of it."""
    url: str


@dataclass(frozen=True, slots=True)
class PatchedStage(ChainStageReport):
    """The same with its reference patch, as `prchain.core.git.patches.patch_fields` gives it."""

    reference: str
    reference_base64: str | None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """Everything that is stored of one chain."""

    id: str
    repository: str
    length: int
    licence: str | None
    language: str | None
    selections: tuple[SelectionReport, ...]
    task: str | None
    stages: tuple[ChainStageReport, ...]


def find_chains(
    store: Store, strategy: str, *, retired: bool = False, repository: str | None = None
) -> list[ListedChain]:
    """The chains of a strategy; raises `UsageError` for a repository that was not mined."""
    outcome = outcomes.RETIRED if retired else SELECTED
    with store.reading() as tx:
        strategy = resolved(tx, strategy)
        names = {id_: f"{owner}/{name}" for id_, owner, name in tx.rows(Repository, "id", "owner", "name")}
        if repository is not None and repository.lower() not in {name.lower() for name in names.values()}:
            raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
        query = (
            select(
                Chain.id,
                Chain.repository_id,
                Chain.length,
                Chain.language,
                Chain.licence,
                Selection.score,
                Task.outcome,
            )
            .join(Selection, Selection.chain_id == Chain.id)
            .outerjoin(Task, Task.chain_id == Chain.id)
            .where(Selection.strategy == strategy, Selection.outcome == outcome)
        )
        subjects, proofs = _subjects(tx), read_strengths(tx)
        stages: dict[str, list[_StageRow]] = defaultdict(list)
        for stage in tx.read(_StageRow, ChainStage):
            stages[stage.chain_id].append(stage)
        return [
            ListedChain(
                chain,
                names[repository_id],
                length,
                tuple(stage.number for stage in stages[chain]),
                language or "",
                licence,
                score,
                min((it.confidence for it in stages[chain] if it.confidence is not None), default=0.0),
                sum(stage.source_lines for stage in stages[chain]),
                stages[chain][-1].landed_at,
                days_between(stages[chain][0].landed_at, stages[chain][-1].landed_at),
                tuple(
                    ListedStage(it.number, subjects[chain, it.position], it.landed_at, bool(it.test_lines))
                    for it in stages[chain]
                ),
                task,
                worst(proofs.get(chain, {}).values()),
            )
            for chain, repository_id, length, language, licence, score, task in tx.connection.execute(query)
            if repository is None or names[repository_id].lower() == repository.lower()
        ]


@dataclass(frozen=True, slots=True)
class _StageRow:
    chain_id: str
    position: int
    number: int
    confidence: float | None
    source_lines: int
    test_lines: int
    landed_at: str


def _subjects(tx: Transaction, chain: str | None = None) -> dict[tuple[str, int], str]:
    """What each stage is about, by chain and position: its title from the API or git, else its commit's subject."""
    filters = {} if chain is None else {"chain_id": chain}
    rows = tx.rows(ChainStage, "chain_id", "position", "subject", **filters)
    committed = {(id_, position): display_subject(subject) for id_, position, subject in rows}
    return {**committed, **_git_titles(tx, chain), **_titles(tx, chain)}


def _titles(tx: Transaction, chain: str | None) -> dict[tuple[str, int], str]:
    """Titles from GitHub's API, also those read after the chains were chosen; by chain and position."""
    query = (
        select(ChainStage.chain_id, ChainStage.position, PullRequestText.body)
        .join(
            PullRequestText,
            (PullRequestText.repository_id == ChainStage.repository_id) & (PullRequestText.number == ChainStage.number),
        )
        .where(PullRequestText.field == "title")
    )
    if chain is not None:
        query = query.where(ChainStage.chain_id == chain)
    return {(id_, place): title.strip() for id_, place, title in tx.connection.execute(query) if title.strip()}


def _git_titles(tx: Transaction, chain: str | None) -> dict[tuple[str, int], str]:
    """Titles of merges from git: the first line below the merge's subject, else the subject of the only own commit; by
    chain and position."""
    merge_commits = select(ChainStage.chain_id, ChainStage.position, Commit.message).where(
        ChainStage.repository_id == Commit.repository_id,
        ChainStage.landed_sha == Commit.sha,
        ChainStage.subject.startswith(MERGE_PREFIX),
    )
    own = PullRequestCommit
    only_commits = (
        select(ChainStage.chain_id, ChainStage.position, func.min(Commit.message))
        .where(ChainStage.repository_id == own.repository_id, ChainStage.number == own.number)
        .where(Commit.repository_id == own.repository_id, Commit.sha == own.sha)
        .where(ChainStage.subject.startswith(MERGE_PREFIX))
        .group_by(ChainStage.chain_id, ChainStage.position)
        .having(func.count(func.distinct(own.sha)) == 1)
    )
    if chain is not None:
        merge_commits = merge_commits.where(ChainStage.chain_id == chain)
        only_commits = only_commits.where(ChainStage.chain_id == chain)
    own_subjects = ((id_, place, text.partition("\n")[0]) for id_, place, text in tx.connection.execute(only_commits))
    found = {(id_, place): subject for id_, place, subject in own_subjects if subject}
    for id_, place, message in tx.connection.execute(merge_commits):
        if title := title_below(message):
            found[id_, place] = title
    return found


def _without_number(stage: ListedStage) -> str:
    """A stage's title, without the number that squash merges put at its end."""
    return shortened(stage.subject.removesuffix(f"(#{stage.number})").rstrip() or stage.subject, _WIDTH)


def _span_text(row: ListedChain) -> str:
    """The months in which its stages landed: ``2023-04``, ``2021-11 to 2023-04``."""
    first, last = row.stages[0].landed_at[:7], row.date[:7]
    return last if first == last else f"{first} to {last}"


def other_strategies(store: Store, strategy: str) -> dict[str, int]:
    """How many chains the other strategies chose, by strategy; what a survey drew is none's choice."""
    with store.reading() as tx:
        shown = resolved(tx, strategy)
        chosen = Counter(row[0] for row in tx.rows(Selection, "strategy", outcome=SELECTED))
    return {name: chosen[name] for name in sorted(chosen) if name not in (shown, SURVEYED)}


def print_chains(rows: Sequence[ListedChain], alike: int, total: int, others: Mapping[str, int]) -> None:
    """Print the list, how many of the `total` are like that, and what else there is."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        numbers = " > ".join(f"#{number}" for number in row.numbers)
        task = f"  task {row.task}" if row.task else ""
        task += f"  proof {row.proof}" if row.proof else ""
        figures = (f"{row.score:.2f}", f"{row.confidence:.2f}", f"{row.lines:,}")
        lines.append((row.id, *figures, f"{row.repository}  {numbers}  {_span_text(row)}{task}"))
        for stage in row.stages:
            untested = "" if stage.tested else "  (no tests)"
            lines.append(("", "", "", "", f"  #{stage.number}  {_without_number(stage)}{untested}"))
    if rows:
        say_table(("id", "score", "weakest", "source lines", "repository, pull requests, months"), lines)
    if alike:
        shown = f"{len(rows):,}" if alike in (len(rows), total) else f"{len(rows):,} of {alike:,} like that,"
        say(f"{shown} of {counted(total, 'chain')}")
    else:
        say("no chain is like that; without options all are listed, and `prchain chains build` chooses them")
    for strategy, count in others.items():
        say(f"and {counted(count, 'chain')} of --strategy {strategy}")


def chain_report(store: Store, prefix: str) -> ChainReport:
    """One chain; raises `UsageError` where the start of its id matches none, or several."""
    with store.reading() as tx:
        id_ = find_chain(tx, prefix)
        [(repository_id, length, licence, language)] = tx.rows(
            Chain, "repository_id", "length", "licence", "language", id=id_
        )
        [(host, owner, name)] = tx.rows(Repository, "host", "owner", "name", id=repository_id)
        selections = tuple(tx.read(SelectionReport, Selection, chain_id=id_))
        stages = _stages(tx, id_, repository_id, partial(pull_request_url, host, f"{owner}/{name}"))
        task = next((outcome for (outcome,) in tx.rows(Task, "outcome", chain_id=id_)), None)
    return ChainReport(id_, f"{owner}/{name}", length, licence, language, selections, task, stages)


def _stages(
    tx: Transaction, chain: str, repository_id: int, url_of: Callable[[int], str]
) -> tuple[ChainStageReport, ...]:
    subjects = _subjects(tx, chain)
    columns = [it.name for it in fields(ChainStageReport) if it.name not in {"changes", "url"}]
    stages: list[ChainStageReport] = []
    for row in tx.rows(ChainStage, *columns, chain_id=chain):
        known = dict(zip(columns, row, strict=True))
        known["subject"] = subjects[chain, known["position"]]
        known |= {"signs": told_signs(known["signs"] or []), "worth_signs": known["worth_signs"] or []}
        changes = read_link_changes(tx, repository_id, known["number"], stages[-1].number) if stages else None
        stages.append(ChainStageReport(**known, changes=changes, url=url_of(known["number"])))
    return tuple(stages)


def _changes_text(changes: LinkChanges) -> str:
    parts = [f"{changes.lines} of the stage before"] if changes.lines else []
    if changes.inserted_lines:
        parts.append(f"{counted(changes.inserted_lines, 'line')} of code put beside its lines")
    if changes.functions:
        parts.append(f"in {listed(changes.functions, 3)}")
    if changes.names:
        parts.append(f"uses {listed(changes.names, 3)}")
    return "; ".join(parts)


def print_chain(report: ChainReport) -> None:
    """Print the page of a chain."""
    say(f"chain {report.id}  {report.repository}, {counted(report.length, 'stage')}")
    for selection in report.selections:
        reason = f" ({selection.reason})" if selection.reason else ""
        say(f"  {selection.strategy:<10}{selection.outcome}{reason}, score {selection.score:.2f}")
    facts = {"licence": report.licence or "unknown", "language": report.language or "unknown"}
    say_facts(facts | {"task": report.task or "none yet"})
    for stage in report.stages:
        say()
        say(f"  {stage.position}. #{stage.number}  {stage.subject}")
        if stage.relation:
            relation = stage.relation.replace("_", " ")
            say(f"     builds on the one before ({relation}), confidence {stage.confidence:.2f}:")
            for sign in stage.signs:
                say(f"       {sign['weight']:+.1f}  {sign['sign']:<18}  {shortened(sign['detail'], _WIDTH)}")
        if stage.changes:
            say_facts({"changes": _changes_text(stage.changes)}, indent=5)
        if stage.worth is not None:
            say(f"     worth as a task {stage.worth:.2f}:")
            for sign in stage.worth_signs:
                say(f"       {sign['weight']:+.1f}  {sign['sign']:<18}  {shortened(sign['detail'], _WIDTH)}")
        landed = f"{stage.landed_sha} on {stage.branch}, {stage.landed_at}"
        say_facts({"landed": landed, "base": stage.base_sha}, indent=5)
        for part in ("source", "test"):
            files, lines = (getattr(stage, f"{part}_{unit}") for unit in ("files", "lines"))
            say_facts({part: f"{counted(lines, 'line')} in {counted(files, 'file')}"}, indent=5)
        say_facts({"page": stage.url}, indent=5)
    if any(stage.signs or stage.worth_signs for stage in report.stages):
        say()
        say("The figures before the signs are log-odds; they add up to a confidence or a worth (docs/chains.md).")
