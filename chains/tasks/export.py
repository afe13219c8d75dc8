"""Tasks as JSON lines: one object a task, with everything that a rollout needs.

Texts are scrubbed of addresses and secrets; patches are not, because a patch with other bytes would not apply.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import func, select

from chains.addresses import pull_request_url
from chains.edges.told_signs import told_signs
from chains.outcomes import RETIRED
from chains.tasks.model import NOT_REACHED, SelectedStage, StageQuery, TaskChain
from chains.tasks.record import (
    CitationRecord,
    CostRecord,
    EvidenceRecord,
    FindingRecord,
    NeedRecord,
    RepositoryRecord,
    SignRecord,
    StageRecord,
    Standing,
    StrengthRecord,
    TaskRecord,
    TestsRecord,
)
from chains.tasks.rows import read_draft, read_task_chain, stored_tasks
from chains.tasks.texts import read_title
from prchain.core.code.needs import Interface, Need, interface_of, unmet, verdict_of, worst
from prchain.core.code.reference import split
from prchain.core.errors import GitError, IncompleteRepository, PrchainError, UsageError, no_room
from prchain.core.git import FilePatch, GitRepository, is_clone_url, open_mined
from prchain.core.llm.purposes import TASK_PURPOSES
from prchain.core.parts import open_part
from prchain.core.secrets.scrub import redact, scrub_mined
from sql.benchmarks import benchmark_chains
from sql.chosen import LAST, resolved
from sql.outcomes import PROVED, READY, SELECTED
from sql.proof_filter import ProofFilter
from sql.store import Store, Transaction
from sql.strength import Strength, read_strengths, strength_row
from sql.tables import ChainStage, Citation, LlmCall, Selection, StageTests, Task
from sql.taken_proofs import doubts, meeting

NO_TASK = "without a task"
"""The outcome of a chain that has no task yet."""

_ESCAPED_BYTE = re.compile(r"\\x([89a-f][0-9a-f]|5c)")


@dataclass(frozen=True, slots=True)
class TaskExportOptions:
    """Which tasks are exported, and how."""

    strategy: str = LAST
    outcome: str = READY
    interface: Interface = "appended"
    retired: bool = False
    """Also those of chains that the strategy chose once and does not any more."""
    solvable: bool = False
    """Only those in which every stage is told what its hidden tests need, as far as that is known of all tests."""
    proof: ProofFilter = ProofFilter.ANY
    """What the proofs of all stages have to be worth."""


@dataclass(frozen=True, slots=True)
class UnreadableTask:
    """A task that cannot be exported, because its repository does not hold what it needs."""

    chain_id: str
    repository: str
    outcome: str
    reason: str


def records(
    store: Store,
    mirrors: Path,
    options: TaskExportOptions,
    unread: Callable[[UnreadableTask], None] | None = None,
    unsolvable: Callable[[TaskRecord], None] | None = None,
) -> Iterator[TaskRecord]:
    """The records of the tasks of a strategy's chains, in the order of repository and chain id.

    A task whose repository or commits are gone is passed to `unread` and left out; without `unread` it raises
    `GitError`. One that is left out because its verdict is not solvable, or unseen, is passed to `unsolvable`. Raises
    `StoreError`.
    """
    opened: dict[str, GitRepository] = {}
    with store.reading() as tx:
        options = replace(options, strategy=resolved(tx, options.strategy))
        chosen, barred = _chosen(tx, options), benchmark_chains(tx)
        chains = [read_task_chain(tx, chain_id) for chain_id in meeting(tx, list(chosen), options.proof)]
        for chain in sorted(
            chains, key=lambda task_chain: (task_chain.host, task_chain.full_name.lower(), task_chain.id)
        ):
            try:
                place = f"{chain.repository_id} {chain.location}"
                if place not in opened:
                    opened[place] = open_mined(chain.location, mirrors, chain.host, chain.full_name)
                known = chain.id in barred
                record = _record(tx, opened[place], chain, *chosen[chain.id], options, benchmark=known)
            except GitError as error:
                if unread is None:
                    raise
                unread(UnreadableTask(chain.id, chain.full_name, error.name, scrub_mined(str(error))))
                continue
            if not options.solvable or record.verdict == "solvable":
                yield record
            elif unsolvable is not None:
                unsolvable(record)


def _chosen(tx: Transaction, options: TaskExportOptions) -> dict[str, tuple[float, Standing]]:
    """The chains whose tasks are asked for, whatever their proofs are worth: score and standing of each."""
    query = (
        select(Task.chain_id, Selection.score, Selection.outcome)
        .join(Selection, Selection.chain_id == Task.chain_id)
        .where(
            Selection.strategy == resolved(tx, options.strategy),
            Selection.outcome.in_(_selection_outcomes(options)),
            Task.outcome == options.outcome,
        )
    )
    return {
        str(chain_id): (float(score), "retired" if outcome == RETIRED else "selected")
        for chain_id, score, outcome in tx.connection.execute(query)
    }


def proofs_of_tasks(store: Store, options: TaskExportOptions) -> tuple[tuple[str, ...], int]:
    """What is to know of the proofs of the tasks (`sql.taken_proofs.doubts`), and how many ``--proof`` leaves out."""
    with store.reading() as tx:
        chosen = list(_chosen(tx, options))
        taken = meeting(tx, chosen, options.proof)
        return doubts(tx, taken, options.proof), len(chosen) - len(taken)


def outcomes_of_chains(store: Store, options: TaskExportOptions) -> dict[str, int]:
    """Outcome to number of tasks, for the chains that the options select; `NO_TASK` counts chains without a task."""
    with store.reading() as tx:
        query = (
            select(func.coalesce(Task.outcome, NO_TASK), func.count())
            .select_from(Selection)
            .outerjoin(Task, Task.chain_id == Selection.chain_id)
            .where(
                Selection.strategy == resolved(tx, options.strategy),
                Selection.outcome.in_(_selection_outcomes(options)),
            )
            .group_by(Task.outcome)
        )
        return {str(outcome): int(count) for outcome, count in tx.connection.execute(query)}


def _selection_outcomes(options: TaskExportOptions) -> tuple[str, ...]:
    return (SELECTED, RETIRED) if options.retired else (SELECTED,)


def _record(
    tx: Transaction,
    repository: GitRepository,
    chain: TaskChain,
    score: float,
    standing: Standing,
    options: TaskExportOptions,
    *,
    benchmark: bool,
) -> TaskRecord:
    _require_commits(repository, chain)
    draft = read_draft(tx, chain.id)
    assert draft is not None
    stored = stored_tasks(tx, chain.id)[chain.id]
    ready = draft.outcome == READY
    queries = {stage.position: stage for stage in draft.stages}
    patches = repository.patches((stage.base_sha, stage.landed_sha) for stage in chain.stages)
    tests, proofs = proved_tests(tx, chain.id), read_strengths(tx, chain.id).get(chain.id, {})
    stages = tuple(
        _stage(
            tx,
            repository,
            chain,
            stage,
            queries.get(stage.position) or _unwritten(stage),
            patch,
            options,
            tests,
            proofs,
        )
        for stage, patch in zip(chain.stages, patches, strict=True)
    )
    return TaskRecord(
        chain_id=chain.id,
        outcome=draft.outcome,
        repository=RepositoryRecord(host=chain.host, name=chain.full_name, location=_public(chain.location)),
        language=chain.language,
        licence=chain.licence,
        benchmark=benchmark,
        strategy=options.strategy,
        selection=standing,
        score=score,
        overview=draft.overview if ready else None,
        findings=_findings(draft.findings),
        interface_mode=options.interface,
        verdict=worst(stage.verdict for stage in stages),
        stages=stages,
        cost=cost_of(tx, chain.id),
        prompts=dict(stored.prompts),
        model=stored.model,
        created=stored.created_at,
    )


def _require_commits(repository: GitRepository, chain: TaskChain) -> None:
    missing = repository.missing({sha for stage in chain.stages for sha in (stage.base_sha, stage.landed_sha)})
    for stage in chain.stages:
        for sha in (stage.base_sha, stage.landed_sha):
            if sha in missing:
                raise IncompleteRepository(
                    f"commit {sha}, which #{stage.number} needs, is not in the repository any more; mine it again"
                )


def _unwritten(stage: SelectedStage) -> StageQuery:
    return StageQuery(stage.position, NOT_REACHED)


def _stage(
    tx: Transaction,
    repository: GitRepository,
    chain: TaskChain,
    stage: SelectedStage,
    query: StageQuery,
    patch: Sequence[FilePatch],
    options: TaskExportOptions,
    tests: Mapping[int, TestsRecord],
    proofs: Mapping[int, Strength | None],
) -> StageRecord:
    reference = split(patch)
    proved = tests.get(stage.position)
    lacking = unmet(query.query or "", query.needs, options.interface, proved.f2p if proved else None)
    source, lossy_source = _patch(repository, stage, (*reference.source, *reference.other))
    test, lossy_test = _patch(repository, stage, reference.test)
    return StageRecord(
        position=stage.position,
        number=stage.number,
        title=read_title(tx, chain.repository_id, stage.number, stage.landed_sha),
        url=pull_request_url(chain.host, chain.full_name, stage.number),
        branch=stage.branch,
        base_sha=stage.base_sha,
        landed_sha=stage.landed_sha,
        landed_at=stage.landed_at,
        source_patch=source,
        test_patch=test,
        lossy=lossy_source or lossy_test,
        files=query.files,
        test_files=tuple(sorted(file.path for file in reference.test)),
        outcome=query.outcome,
        query=query.query if query.outcome == READY else None,
        interface=_needs(interface_of(query.needs, options.interface)),
        unmet=_needs(lacking),
        verdict=verdict_of(lacking),
        needs_of="f2p" if proved else "patch",
        tests=proved,
        proof=StrengthRecord(**strength_row(proofs[stage.position])) if stage.position in proofs else None,
        evidence=_evidence(tx, chain, stage.position),
        findings=_findings(query.findings),
    )


def _patch(repository: GitRepository, stage: SelectedStage, files: Sequence[FilePatch]) -> tuple[str, bool]:
    """The patch of some files as git prints it, and whether characters of it had to be replaced."""
    if not files:
        return "", False  # git takes no path for every path
    paths = sorted({path for file in files for path in (file.path, file.old_path) if path})
    raw = repository.patch_text(stage.base_sha, stage.landed_sha, [_git_path(path) for path in paths])
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), True


def _git_path(path: str) -> str:
    """A path as an argument of git: the inverse of `prchain.core.git.path_text`, for the command line."""
    # In arguments of a command, Python writes a byte that is not UTF-8 as a surrogate (PEP 383).
    return _ESCAPED_BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)) if match[1] != "5c" else "\\", path)


def _evidence(tx: Transaction, chain: TaskChain, position: int) -> EvidenceRecord | None:
    if position == 1:
        return None
    relation, confidence, signs = next(
        iter(tx.rows(ChainStage, "relation", "confidence", "signs", chain_id=chain.id, position=position))
    )
    source, target = chain.stages[position - 1].number, chain.stages[position - 2].number
    columns = ("field", "relation", "syntax", "snippet", "confidence")
    cited = tx.rows(Citation, *columns, repository_id=chain.repository_id, source=source, target=target, counted=True)
    return EvidenceRecord(
        relation=relation,
        confidence=confidence,
        signs=tuple(
            SignRecord(sign=sign["sign"], weight=sign["weight"], detail=scrub_mined(sign["detail"]))
            for sign in told_signs(signs or ())
        ),
        citations=tuple(
            CitationRecord(
                field=field, relation=kind, syntax=syntax, snippet=scrub_mined(snippet), confidence=citation_confidence
            )
            for field, kind, syntax, snippet, citation_confidence in cited
        ),
    )


def proved_f2p(tx: Transaction, chain_id: str) -> dict[int, list[str]]:
    """Position to the F2P tests of a chain's stages whose tests are proved."""
    return {position: list(tests.f2p) for position, tests in proved_tests(tx, chain_id).items()}


def proved_tests(tx: Transaction, chain_id: str) -> dict[int, TestsRecord]:
    """Position to the tests of a chain's stages whose tests are proved."""
    columns = ("position", "classes", "runner", "command", "image")
    return {
        position: TestsRecord(f2p=classes["f2p"], p2p=classes["p2p"], runner=runner, command=command, image=image)
        for position, classes, runner, command, image in tx.rows(
            StageTests, *columns, chain_id=chain_id, outcome=PROVED
        )
    }


def _needs(needs: Iterable[Need]) -> tuple[NeedRecord, ...]:
    return tuple(NeedRecord(**need.row()) for need in needs)


def _findings(rows: Sequence[dict[str, Any]]) -> tuple[FindingRecord, ...]:
    return tuple(FindingRecord(**row) for row in rows)


def cost_of(tx: Transaction, chain_id: str) -> CostRecord:
    """The cost of the calls for a chain's task. Calls in flight and lost calls count as what was reserved."""
    columns = (LlmCall.usd, LlmCall.reserved_usd, LlmCall.tokens_in, LlmCall.tokens_out, LlmCall.state)
    query = select(*columns).where(
        LlmCall.subject.startswith(f"{chain_id}/", autoescape=True),
        LlmCall.state != "released",
        LlmCall.purpose.in_(TASK_PURPOSES),
    )
    calls = list(tx.connection.execute(query))
    amounts = [reserved if usd is None else usd for usd, reserved, *_ in calls]
    return CostRecord(
        calls=len(calls),
        tokens_in=sum(tokens or 0 for _, _, tokens, *_ in calls),
        tokens_out=sum(tokens or 0 for _, _, _, tokens, _ in calls),
        usd=None if any(amount is None for amount in amounts) else round(sum(amount or 0.0 for amount in amounts), 6),
        unanswered=sum(state != "stored" for *_, state in calls),
    )


def _public(location: str) -> str | None:
    """The location, if others can clone from it."""
    return redact(location) if is_clone_url(location) and not location.lower().startswith("file:") else None


def task_lines(tasks: Iterable[TaskRecord]) -> Iterator[dict[str, Any]]:
    """The lines of tasks, as `docs/tasks.schema.json` describes them."""
    return (task.model_dump(mode="json") for task in tasks)


def write_lines(lines: Iterable[Mapping[str, Any]], out: Path, *, force: bool = False) -> int:
    """Write objects as JSON lines to a file, whole or not at all, and return how many there were; of none, no file.

    Raises `UsageError` where the file is there and `force` is not set, or cannot be written, and `DiskFull`.
    """
    if out.exists() and not out.is_file():
        raise UsageError(f"{out} is no ordinary file; give another name, or - for standard output")
    if not out.parent.is_dir():
        raise UsageError(f"{out} cannot be written: there is no folder {out.parent}")
    if out.exists() and not force:
        raise UsageError(f"{out} is there already; give another name, or --force to replace it")
    partial: Path | None = None
    try:
        partial, opened = open_part(out)
        with opened as stream:
            count = print_lines(lines, stream)
            stream.flush()
            os.fsync(stream.fileno())
        if count:
            partial.replace(out)
    except PrchainError:  # some are an OSError too
        raise
    except OSError as error:
        if full := no_room(error, out):
            raise full from error
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    return count


def print_lines(lines: Iterable[Mapping[str, Any]], stream: BinaryIO) -> int:
    """Write objects to an open stream, one JSON object a line; returns how many there were.

    ASCII only: several characters of Unicode end a line for some readers (U+0085, U+2028), though not in JSON.
    """
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007  the count is the result
        stream.write(json.dumps(line).encode("ascii") + b"\n")
    return count
