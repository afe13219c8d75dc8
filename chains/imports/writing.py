"""The rows of imported tasks: of their chains, their tasks, and what their publishers say of them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

from sqlalchemy import select

from chains.imports.instance import Instance
from chains.imports.made import MadeTask
from chains.imports.marks import unknown_claims
from chains.imports.report import ImportReport
from chains.imports.repositories import HOST, repositories_of_host
from chains.tasks.model import WAITING, StageQuery, TaskDraft
from chains.tasks.rows import write_drafts
from prchain.core.cli_options import IMPORTED
from prchain.core.timestamps import now
from sql.outcomes import READY, SELECTED
from sql.repositories import new_repository
from sql.store import Transaction
from sql.tables import Chain, ChainStage, ImportedTask, Selection

_SUBJECT = 200
_EPOCH = "2000-01-01T00:00:00Z"
"""Of a task that waits, and whose publisher tells no time."""

_NUMBER = re.compile(r".*?-([0-9]{1,9})")


def write_tasks(
    tx: Transaction, made: Sequence[MadeTask], report: ImportReport, *, training: bool, barred: Container[str]
) -> None:
    """Write what was made, and count it in the report. A task that is marked as a benchmark's stays so, but where
    `training` takes the mark off; rows that call themselves ours are marked as `unknown_claims` says."""
    ids = {it.instance.chain_id for it in made}
    columns = ("chain_id", "location", "imported_at", "benchmark", "patch", "workdir")
    query = select(*(getattr(ImportedTask, column) for column in columns))
    stored = list(tx.connection.execute(query.where(ImportedTask.chain_id.in_(ids))))
    before = {str(chain): (location, at) for chain, location, at, *_ in stored}
    marks = {str(chain) for chain, _, _, marked, *_ in stored if marked}
    played = {str(chain): {"patch": patch, "workdir": folder} for chain, *_, patch, folder in stored}
    repositories = {str(name).lower(): id_ for id_, name, _ in repositories_of_host(tx)}
    unknown = unknown_claims(tx, (it.instance for it in made), barred)
    fresh: dict[str, MadeTask] = {}
    imports: dict[str, dict[str, Any]] = {}
    for it in made:
        chain, known = it.instance.chain_id, before.get(it.instance.chain_id)
        if training:
            marks.discard(chain)
        elif it.instance.benchmark or chain in unknown:
            marks.add(chain)
        report.benchmark += chain in marks
        if it.waits and (known is None or known[0] is None):
            report.waiting[it.instance.repository] += 1
        elif (known is not None and known[0] is not None) or chain in fresh:
            report.known += 1
        else:
            report.imported += 1
        if known is None or (known[0] is None and not it.waits):
            fresh[chain] = it
            known = (it.location, now())
        said = _said(it.instance) | {"benchmark": chain in marks}
        if it.instance.steps and it.waits:  # its image said these, and was not asked again
            said |= played.get(chain, {})
        imports[chain] = {"chain_id": chain, **said, "location": known[0], "imported_at": known[1]}
    for name in dict.fromkeys(it.instance.repository for it in fresh.values()):
        if name.lower() not in repositories:
            owner, _, own_name = name.partition("/")
            repositories[name.lower()] = new_repository(tx, HOST, owner, own_name, "")
    new = [(it, repositories[it.instance.repository.lower()]) for it in fresh.values()]
    tx.upsert(Chain, [_chain_row(*pair) for pair in new])
    tx.upsert(ChainStage, [row for pair in new for row in _stage_rows(*pair)])
    tx.upsert(Selection, [_selection_row(it) for it, _ in new])
    tx.upsert(ImportedTask, imports.values())
    write_drafts(tx, [_draft(it) for it, _ in new], model=None, prompts={})


def _said(instance: Instance) -> dict[str, Any]:
    return {
        "source": instance.source[:255],
        "revision": instance.revision[:64] if instance.revision else None,
        "split": instance.split[:64] if instance.split else None,
        "form": instance.form,
        "instance_id": instance.instance_id,
        "licence": instance.licence,
        "difficulty": instance.difficulty,
        "base_commit": instance.base_commit,
        "patch": instance.patch,
        "breaks": instance.breaks,
        "test_patch": instance.test_patch,
        "f2p": list(instance.f2p),
        "p2p": list(instance.p2p),
        "image": instance.image,
        "image_by": instance.image_by,
        "workdir": instance.workdir,
        "test_command": list(instance.test_command),
        "log_parser": instance.log_parser,
    }


def _selection_row(made: MadeTask) -> dict[str, Any]:
    return {
        "strategy": IMPORTED,
        "chain_id": made.instance.chain_id,
        "score": 0.0,
        "outcome": WAITING if made.waits else SELECTED,
        "reason": None,
        "selected_at": now(),
    }


def _chain_row(made: MadeTask, repository_id: int) -> dict[str, Any]:
    return {
        "id": made.instance.chain_id,
        "repository_id": repository_id,
        "length": len(made.stages),
        "licence": made.licence,
        "language": made.stages[0].reference.language,
    }


def _stage_rows(made: MadeTask, repository_id: int) -> Iterator[dict[str, Any]]:
    """The number is what an instance's name ends in; nobody says that of several stages."""
    instance = made.instance
    number = _NUMBER.fullmatch(instance.instance_id) if len(made.stages) == 1 else None
    for position, stage in enumerate(made.stages, 1):
        ends, reference = stage.ends, stage.reference
        first = next((line.strip() for line in stage.query.splitlines() if line.strip()), instance.instance_id)
        yield {
            "chain_id": instance.chain_id,
            "position": position,
            "repository_id": repository_id,
            "number": int(number[1]) if number else 0,
            "branch": "",
            "base_sha": ends.base if ends else instance.base_commit,
            "landed_sha": ends.landed if ends else "",
            "landed_at": ends.landed_at if ends else instance.created_at or _EPOCH,
            "subject": first[:_SUBJECT],
            "source_files": len(reference.code),
            "source_lines": reference.source_lines,
            "test_files": len(reference.test),
            "test_lines": reference.test_lines,
            "relation": None,
            "confidence": None,
            "signs": None,
            "worth": None,
            "worth_signs": None,
        }


def _draft(made: MadeTask) -> TaskDraft:
    outcome, reason = READY, None
    if made.waits:
        outcome = WAITING
        reason = f"no repository of {made.instance.repository} holds the commit {made.instance.base_commit}"
        if made.instance.steps:
            reason = f"what it begins on is in the image {made.instance.image} alone"
    stages = tuple(
        StageQuery(
            position,
            outcome,
            reason,
            query=stage.query,
            files=tuple(sorted(file.path for file in stage.reference.source)),
        )
        for position, stage in enumerate(made.stages, 1)
    )
    return TaskDraft(made.instance.chain_id, outcome, reason, overview=None if made.waits else "", stages=stages)
