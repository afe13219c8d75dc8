"""What people read of tasks: the list, and the page of one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sqlalchemy import select

from chains.addresses import pull_request_url
from chains.reference_patches import print_reference
from chains.tasks.export import cost_of, proved_f2p
from chains.tasks.model import SelectedStage, StageQuery, TaskChain
from chains.tasks.query import overview_subject, stage_subject
from chains.tasks.rows import read_draft, read_task_chain, stored_tasks
from chains.tasks.said import UNUSABLE, last_reply, last_screening
from chains.tasks.screening import screening_words
from chains.tasks.texts import read_title
from prchain.core.code.needs import Need, interface_of, unmet, verdict_of
from prchain.core.console.terminal import (
    counted,
    dollars,
    say,
    say_facts,
    say_prose,
    say_some,
    say_table,
    say_text,
    summed,
)
from prchain.core.errors import UsageError
from prchain.core.llm.purposes import REVIEW, SCREEN
from sql.chosen import find_chain
from sql.outcomes import READY
from sql.store import Store, Transaction
from sql.strength import Strength, read_strengths, strength_row, strength_words
from sql.tables import Chain, ChainStage, Repository, Selection, Task

_WIDTH = 104
"""Characters of a line of an overview or a query, with its indent."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task in the list."""

    chain_id: str
    repository: str
    numbers: tuple[int, ...]
    outcome: str
    reason: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class TaskStageReport:
    """One stage of a task. Of one without a row, what a row holds is None."""

    position: int
    number: int
    title: str
    url: str
    base_sha: str
    landed_sha: str
    landed_at: str
    relation: str | None
    confidence: float | None
    outcome: str | None
    reason: str | None
    plan: str | None
    query: str | None
    files: Sequence[str] | None
    findings: Sequence[Mapping[str, Any]] | None
    attempts: int | None
    interface: Sequence[Mapping[str, Any]]
    """What a solver is told."""
    unmet: Sequence[Mapping[str, Any]]
    verdict: str
    needs_of: str
    proof: Mapping[str, Any] | None
    """What the proof of its tests is worth (`sql.strength.strength_row`); None where they are not proved."""
    said: Mapping[str, Any] | None
    """The last reply, where it could not be used."""


@dataclass(frozen=True, slots=True)
class PatchedTaskStage(TaskStageReport):
    """The same with its reference patch, as `prchain.core.git.patches.patch_fields` gives it."""

    reference: str
    reference_base64: str | None


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Everything stored of one task."""

    chain_id: str
    repository: str
    language: str | None
    licence: str | None
    outcome: str
    reason: str | None
    overview: str | None
    said: Mapping[str, Any] | None
    findings: Sequence[Mapping[str, Any]]
    screening: Mapping[str, Any] | None
    attempts: int
    model: str | None
    prompts: Mapping[str, str]
    reviewed: bool
    created: str
    cost: Mapping[str, Any]
    stages: tuple[TaskStageReport, ...]


def list_tasks(
    store: Store, strategy: str | None = None, repository: str | None = None, outcome: str | None = None
) -> list[ListedTask]:
    """The tasks by repository and chain id."""
    query = (
        select(Task.chain_id, Task.outcome, Task.reason, Task.attempts, Repository.owner, Repository.name)
        .join(Chain, Chain.id == Task.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
    )
    if outcome is not None:
        query = query.where(Task.outcome == outcome)
    if strategy is not None:
        query = query.where(Task.chain_id.in_(select(Selection.chain_id).where(Selection.strategy == strategy)))
    with store.reading() as tx:
        numbers: dict[str, list[int]] = {}
        for chain_id, _, number in tx.rows(ChainStage, "chain_id", "position", "number"):
            numbers.setdefault(chain_id, []).append(number)
        rows = [
            ListedTask(chain_id, f"{owner}/{name}", tuple(numbers.get(chain_id, ())), ended, reason, attempts)
            for chain_id, ended, reason, attempts, owner, name in tx.connection.execute(query)
            if repository is None or f"{owner}/{name}".lower() == repository.lower()
        ]
    return sorted(rows, key=lambda row: (row.repository.lower(), row.chain_id))


def print_tasks(rows: Sequence[ListedTask]) -> None:
    """Print the list, and below it the number of tasks of each outcome."""
    lines = [
        (row.chain_id, row.outcome, row.repository, " > ".join(f"#{number}" for number in row.numbers)) for row in rows
    ]
    if rows:
        say_table(("chain", "outcome", "repository", "pull requests"), lines)
    say(summed("task", (row.outcome for row in rows)))


def task_report(store: Store, prefix: str) -> TaskReport:
    """One task, by its chain's id or the beginning of it. Raises `UsageError`."""
    with store.reading() as tx:
        chain_id = find_chain(tx, prefix)
        chain, draft = read_task_chain(tx, chain_id), read_draft(tx, chain_id)
        if draft is None:
            raise UsageError(f"chain {chain_id} has no task yet; run `prchain tasks build`")
        stored = stored_tasks(tx, chain_id)[chain_id]
        queries = {stage.position: stage for stage in draft.stages}
        f2p, proofs = proved_f2p(tx, chain_id), read_strengths(tx, chain_id).get(chain_id, {})
        unusable = draft.outcome in UNUSABLE and all(stage.outcome == READY for stage in draft.stages)
        return TaskReport(
            chain_id,
            chain.full_name,
            chain.language,
            chain.licence,
            draft.outcome,
            draft.reason,
            draft.overview,
            # Where all queries are ready, the overview decided the outcome.
            last_reply(tx, overview_subject(chain_id)) if unusable else None,
            draft.findings,
            last_screening(tx, chain_id) if SCREEN in stored.prompts else None,
            draft.attempts,
            stored.model,
            stored.prompts,
            REVIEW in stored.prompts,
            stored.created_at,
            cost_of(tx, chain_id).model_dump(),
            tuple(
                _stage_report(tx, chain, stage, queries.get(stage.position), f2p.get(stage.position), proofs)
                for stage in chain.stages
            ),
        )


def _stage_report(
    tx: Transaction,
    chain: TaskChain,
    stage: SelectedStage,
    query: StageQuery | None,
    f2p: Collection[str] | None,
    proofs: Mapping[int, Strength | None],
) -> TaskStageReport:
    position = stage.position
    [(relation, confidence)] = tx.rows(ChainStage, "relation", "confidence", chain_id=chain.id, position=position)
    needs = query.needs if query else ()
    lacking = unmet((query.query if query else None) or "", needs, "appended", f2p)
    unusable = query is not None and query.outcome in UNUSABLE
    columns = ("outcome", "reason", "plan", "query", "files", "findings", "attempts")
    written: dict[str, Any] = {name: getattr(query, name, None) for name in columns}
    return TaskStageReport(
        **{name: getattr(stage, name) for name in ("position", "number", "base_sha", "landed_sha", "landed_at")},
        title=read_title(tx, chain.repository_id, stage.number, stage.landed_sha),
        url=pull_request_url(chain.host, chain.full_name, stage.number),
        relation=relation,
        confidence=confidence,
        **written,
        interface=[need.row() for need in interface_of(needs)],
        unmet=[need.row() for need in lacking],
        verdict=verdict_of(lacking),
        needs_of="patch" if f2p is None else "f2p",
        proof=strength_row(proofs[position]) if position in proofs else None,
        said=last_reply(tx, stage_subject(chain.id, position)) if unusable else None,
    )


def _unanswered(calls: int) -> str:
    if not calls:
        return ""
    return f"; {calls:,} of them without a reply, as killed runs leave, counted as the most that they may cost"


def print_task(report: TaskReport, references: Sequence[bytes] = ()) -> None:
    """Print the page of a task, with a patch after each stage where there are some.

    The plan is not part of it: it may contain the solution.
    """
    numbers = " > ".join(f"#{stage.number}" for stage in report.stages)
    say(f"task {report.chain_id}  {report.repository}  {numbers}")
    cost = report.cost
    tokens = f"{cost['tokens_in']:,} tokens in, {cost['tokens_out']:,} out"
    say_facts(
        {
            "outcome": _task_outcome(report),
            "language": f"{report.language or 'unknown'}, licence {report.licence or 'unknown'}",
            "made": f"{report.created} by {report.model or 'no model'}",
            "cost": f"{counted(cost['calls'], 'call')}, {tokens}, {dollars(cost['usd'])}"
            + _unanswered(cost["unanswered"]),
            "checked by": "the leak check, and the reviewer (queries)" if report.reviewed else "the leak check",
        }
    )
    if report.screening:
        _print_list("screening", list(screening_words(report.screening)))
    _print_text("overview", report.overview, report.findings)
    _print_said(report.said)
    for stage, reference in zip_longest(report.stages, references):
        say()
        say(f"stage {stage.position}: #{stage.number} {stage.title}")
        follows = f"by {stage.relation}, confidence {stage.confidence or 0:.2f}" if stage.relation else ""
        say_facts(
            {
                "outcome": _outcome_text(stage),
                "page": stage.url,
                "base": stage.base_sha,
                "landed": f"{stage.landed_sha}, {stage.landed_at}",
                "follows": follows,
                "proof": strength_words(stage.proof) if stage.proof else "",
            }
        )
        _print_list("files", stage.files or [])
        _print_list("interface", [Need.from_row(row).words() for row in stage.interface])
        told = [row for row in stage.unmet if row["kind"] != "unseen"]
        _print_list(
            f"not told, though hidden tests ({stage.needs_of}) need it",
            [f"{Need.from_row(row).words()} ({row.get('withheld') or 'not told'})" for row in told],
        )
        unseen = [f"{row['text']} ({row['withheld']})" for row in stage.unmet if row["kind"] == "unseen"]
        _print_list("hidden tests whose needs are not known", unseen)
        _print_text("query", stage.query, stage.findings or [])
        _print_said(stage.said)
        if reference is not None:
            print_reference(stage.position, stage.number, reference)


def _task_outcome(report: TaskReport) -> str:
    """Where a stage failed, which one: the stage itself tells why."""
    for stage in report.stages:
        place = f"stage {stage.position}"
        if stage.reason and report.reason == f"{place}: {stage.reason}":
            return f"{report.outcome} ({place})"
    return _outcome_text(report)


def _outcome_text(row: TaskReport | TaskStageReport) -> str:
    return f"{row.outcome} ({row.reason})" if row.reason else str(row.outcome)


def _print_list(title: str, items: Sequence[str]) -> None:
    if items:
        say(f"  {title}")
        say_some(items, _SHOWN)


def _print_text(title: str, text: str | None, findings: Sequence[Mapping[str, Any]]) -> None:
    say(f"  {title:<9} {'none' if not text else ''}".rstrip())
    for paragraph in (text or "").splitlines():
        say_prose(paragraph, indent=4, further=0, width=_WIDTH, hyphens=True)
    for finder, heading in (("check", "leak check"), ("review", "reviewer")):
        found = [finding for finding in findings if finding.get("by", "check") == finder]
        if found:
            say(f"  {heading}")
            say_some([_finding_text(finding) for finding in found], _SHOWN)


def _print_said(said: Mapping[str, Any] | None) -> None:
    """Print a reply that could not be used, whole."""
    if said is None:
        return
    calls = f", calling {', '.join(said['tool_calls'])}" if said["tool_calls"] else ""
    say(f"  the last reply, which could not be used ({said['purpose']}, {said['model']}, {said['finish']}{calls}):")
    say_text(said["text"] or "(no text)", indent=4)
    if said["reasoning"]:
        say("  its reasoning:")
        say_text(said["reasoning"], indent=4)


def _finding_text(finding: Mapping[str, Any]) -> str:
    why = f" ({finding['why']})" if finding.get("why") else ""
    return f"{finding['severity']}: {finding['kind']} in {finding['text']}: {finding['evidence']}{why}"
