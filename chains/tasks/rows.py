"""Tasks in the database: what an earlier run wrote, and what this run writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update

from chains.tasks.model import (
    FINAL,
    SelectedStage,
    StageQuery,
    TaskChain,
    TaskDraft,
)
from prchain.core.code.needs import parse_needs
from prchain.core.errors import ChainGone, TaskSuperseded
from prchain.core.runs import DEFECT
from prchain.core.timestamps import now
from sql.chosen import resolved
from sql.outcomes import READY, SELECTED
from sql.store import Transaction
from sql.tables import Chain, ChainStage, ImportedTask, Repository, Selection, Task, TaskStage

_TASK = ("outcome", "reason", "overview", "findings", "attempts")
_STAGE = ("position", "outcome", "reason", "plan", "query", "interface", "files", "findings", "attempts")


def read_task_chain(tx: Transaction, chain_id: str) -> TaskChain:
    """One chain with its stages and repository, by its whole id. Raises `ChainGone`."""
    query = (
        select(
            Chain.repository_id,
            Repository.host,
            Repository.owner,
            Repository.name,
            func.coalesce(ImportedTask.location, Repository.location),
            Chain.licence,
            Chain.language,
        )
        .join(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTask, ImportedTask.chain_id == Chain.id)
        .where(Chain.id == chain_id)
    )
    row = tx.connection.execute(query).one_or_none()
    if row is None:
        raise ChainGone("`prchain chains build` chose anew, and the chain is gone")
    repository_id, host, owner, name, location, licence, language = row
    columns = ("position", "number", "branch", "base_sha", "landed_sha", "landed_at", "subject")
    stages = tuple(SelectedStage(*row) for row in tx.rows(ChainStage, *columns, chain_id=chain_id))
    return TaskChain(chain_id, repository_id, host, f"{owner}/{name}", location, licence, language, stages)


@dataclass(frozen=True, slots=True)
class StoredTask:
    """The outcome of a stored task, and the prompts and model that wrote it."""

    outcome: str
    model: str | None
    prompts: Mapping[str, str]
    """Name to hash."""
    attempts: int
    """Texts written for it: overviews and queries."""
    created_at: str


def stored_tasks(tx: Transaction, chain_id: str | None = None) -> dict[str, StoredTask]:
    """Every stored task by its chain, or the task of one chain."""
    filters = {} if chain_id is None else {"chain_id": chain_id}
    queries: Counter[str] = Counter()
    for chain, attempts in tx.rows(TaskStage, "chain_id", "attempts", **filters):
        queries[chain] += attempts
    columns = ("chain_id", "outcome", "model", "prompts", "attempts", "created_at")
    return {
        str(chain): StoredTask(outcome, model, prompts, attempts + queries[chain], created_at)
        for chain, outcome, model, prompts, attempts, created_at in tx.rows(Task, *columns, **filters)
    }


def read_draft(tx: Transaction, chain_id: str) -> TaskDraft | None:
    """The task of a chain as an earlier run left it."""
    for outcome, reason, overview, findings, attempts in tx.rows(Task, *_TASK, chain_id=chain_id):
        stages = tuple(_stage(row) for row in tx.rows(TaskStage, *_STAGE, chain_id=chain_id))
        return TaskDraft(chain_id, outcome, reason, overview, tuple(findings), attempts, stages)
    return None


def _stage(row: Any) -> StageQuery:
    position, outcome, reason, plan, query, needs, files, findings, attempts = row
    return StageQuery(
        position,
        outcome,
        reason,
        plan,
        query,
        parse_needs(needs),
        tuple(files),
        tuple(findings),
        attempts,
    )


def require_selected(tx: Transaction, strategy: str, chain_id: str) -> None:
    """Check, in the transaction that writes a task, that the strategy still selects its chain.

    Raises `ChainGone`. The chain cannot go before the transaction has ended: SQLite has one writer, and on PostgreSQL
    the rows are locked.
    """
    query = (
        select(Chain.id)
        .join(Selection, Selection.chain_id == Chain.id)
        .where(Chain.id == chain_id, Selection.strategy == resolved(tx, strategy), Selection.outcome == SELECTED)
        .with_for_update(read=True)
    )
    if tx.connection.execute(query).first() is None:
        raise ChainGone("`prchain chains build` chose anew, and the chain is not selected any more")


def require_unchanged(tx: Transaction, chain_id: str, start: TaskDraft | None) -> None:
    """Check, in the transaction that writes a task, that it replaces no ended task but `start`, which it began from.

    Raises `TaskSuperseded`.
    """
    current = read_draft(tx, chain_id)
    if current is not None and current.outcome in FINAL and current != start:
        raise TaskSuperseded(f"another run has ended the task meanwhile: {current.outcome}")


def write_defect(tx: Transaction, chain_id: str, reason: str, *, model: str | None, prompts: Mapping[str, str]) -> None:
    """Write that a task ended with a failure without a name. Its stages stay as they were, and so does a ready task.
    The rows are not read, because they may be the cause of the failure. Raises `TaskSuperseded`."""
    row = _row(TaskDraft(chain_id, DEFECT, reason), model, prompts)
    tx.insert_new(Task, [row])
    conditions = (Task.chain_id == chain_id, Task.outcome != READY)
    if not tx.connection.execute(update(Task).where(*conditions).values(outcome=DEFECT, reason=reason)).rowcount:
        raise TaskSuperseded("another run has ended the task meanwhile")


def write_draft(tx: Transaction, draft: TaskDraft, *, model: str | None, prompts: Mapping[str, str]) -> None:
    """Write a task with all its stages; replaces the stored one."""
    tx.upsert(Task, [_row(draft, model, prompts)])
    tx.delete(TaskStage, chain_id=draft.chain_id)
    if draft.stages:
        tx.upsert(TaskStage, _stage_rows(draft))


def write_drafts(
    tx: Transaction, drafts: Sequence[TaskDraft], *, model: str | None, prompts: Mapping[str, str]
) -> None:
    """Write many tasks at once, whose stored ones, where there are any, have no other stages."""
    tx.upsert(Task, [_row(draft, model, prompts) for draft in drafts])
    tx.upsert(TaskStage, [row for draft in drafts for row in _stage_rows(draft)])


def count_attempts(tx: Transaction, draft: TaskDraft) -> None:
    """Write the attempts of a draft that is not kept into the stored task, which is kept."""
    tx.connection.execute(update(Task).where(Task.chain_id == draft.chain_id).values(attempts=draft.attempts))
    for stage in draft.stages:
        conditions = (TaskStage.chain_id == draft.chain_id, TaskStage.position == stage.position)
        tx.connection.execute(update(TaskStage).where(*conditions).values(attempts=stage.attempts))


def _row(draft: TaskDraft, model: str | None, prompts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "chain_id": draft.chain_id,
        "outcome": draft.outcome,
        "reason": draft.reason,
        "overview": draft.overview,
        "findings": draft.findings,
        "attempts": draft.attempts,
        "model": model,
        "prompts": prompts,
        "created_at": now(),
    }


def _stage_rows(draft: TaskDraft) -> Iterator[dict[str, Any]]:
    for stage in draft.stages:
        yield {
            "chain_id": draft.chain_id,
            "position": stage.position,
            "outcome": stage.outcome,
            "reason": stage.reason,
            "plan": stage.plan,
            "query": stage.query,
            "interface": [need.row() for need in stage.needs],
            "files": stage.files,
            "findings": stage.findings,
            "attempts": stage.attempts,
        }
