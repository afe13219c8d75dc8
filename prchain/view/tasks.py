"""The page of a task: its texts, with what was found in them, beside the reference patches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from chains.tasks.query import overview_subject, stage_subject
from chains.tasks.report import TaskReport, TaskStageReport, task_report
from prchain.core.code.needs import Need
from prchain.core.llm.model import Reply
from prchain.view.diffs import DiffFile, diff_files
from prchain.view.options import ViewOptions
from prchain.view.places import forge_link
from prchain.view.trees import ChainTrees
from sql.store import Store, Transaction
from sql.tables import Chain, LlmCall, Repository


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said while the task was written."""

    purpose: str
    model: str
    attempt: int
    state: str
    text: str
    reasoning: str
    usd: float | None


@dataclass(frozen=True, slots=True)
class TaskStageView:
    """A stage of a task."""

    report: TaskStageReport
    link: str | None
    interface: tuple[str, ...]
    """What an agent is told of names and texts, in words."""
    withheld: tuple[str, ...]
    """What hidden tests need and nobody tells, in words."""
    replies: tuple[ModelReply, ...]
    files: tuple[DiffFile, ...] | None
    """The reference's; None where they are not shown."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """The page of a task."""

    report: TaskReport
    stages: tuple[TaskStageView, ...]
    replies: tuple[ModelReply, ...]
    """Those on the whole: the overview's."""
    problem: str | None


def task_view(store: Store, chain_id: str, options: ViewOptions, mirrors: Path, data_dir: Path) -> TaskView:
    """Everything that the page of a task shows. Raises `UsageError` for a chain without a task.

    The plan is not part of it, as in `prchain tasks show`: it may contain the solution.
    """
    report = task_report(store, chain_id)
    problem = None if options.reference else "this view shows no references"
    references = None
    if options.reference:
        trees = ChainTrees(store, report.chain_id, mirrors, data_dir)
        references, problem = trees.references(), trees.problem
    with store.reading() as tx:
        [(repository_id,)] = tx.rows(Chain, "repository_id", id=report.chain_id)
        [(host,)] = tx.rows(Repository, "host", id=repository_id)
        overview = _replies(tx, overview_subject(report.chain_id), options)
        stages = tuple(
            _stage(
                stage,
                forge_link(stage.url, host, report.repository),
                _replies(tx, stage_subject(report.chain_id, stage.position), options),
                diff_files(references[stage.position - 1]) if references else None,
                options,
            )
            for stage in report.stages
        )
    if not options.reference:
        report = replace(report, said=None, screening=None, findings=_told(report.findings))
    report = replace(report, stages=())  # the page has them as views
    return TaskView(report, stages, overview, problem)


def _stage(
    report: TaskStageReport,
    link: str | None,
    replies: tuple[ModelReply, ...],
    files: tuple[DiffFile, ...] | None,
    options: ViewOptions,
) -> TaskStageView:
    interface = tuple(Need.from_row(row).words() for row in report.interface)
    withheld = tuple(
        f"{row['text']} ({row.get('withheld') or 'not told'})"
        if row["kind"] == "unseen"
        else Need.from_row(row).words()
        for row in report.unmet
    )
    report = replace(report, plan=None)
    if not options.reference:
        report, withheld = replace(report, said=None, unmet=(), findings=_told(report.findings or ())), ()
    return TaskStageView(report, link, interface, withheld, replies, files)


def _told(findings: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The findings without a reviewer's words, which may tell how the solution is built."""
    return [{**finding, "why": ""} for finding in findings]


def _replies(tx: Transaction, subject: str, options: ViewOptions) -> tuple[ModelReply, ...]:
    """What models said of a subject, call by call; nothing where no reference may be shown: a reply that was refused
    may hold one."""
    if not options.reference:
        return ()
    table = LlmCall
    columns = (table.purpose, table.model, table.attempt, table.state, table.reply, table.usd)
    query = select(*columns).where(table.subject == subject, table.purpose != "plan").order_by(table.id)
    return tuple(_reply(row, options) for row in tx.connection.execute(query))


def _reply(row: Any, options: ViewOptions) -> ModelReply:
    reply = Reply.from_json(row.reply) if row.reply else None
    text = (reply.text or reply.refusal or "") if reply else ""
    reasoning = (reply.reasoning or "") if reply and options.reasoning else ""
    return ModelReply(row.purpose, row.model, row.attempt, row.state, _words(text), reasoning, row.usd)


def _words(text: str) -> str:
    """A reply to read: the one text of a JSON object, where it is one, with its lines."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict) and len(found) == 1 and isinstance(value := next(iter(found.values())), str):
        return value
    return text
