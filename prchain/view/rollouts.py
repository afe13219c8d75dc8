"""The pages of a trajectory: what became of it, its conversation as data, and its patch beside the reference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environments.suites.outcomes import TAMPERED
from prchain.view.conversation import (
    diff_rows,
    is_long,
    message_rows,
    plain_text,
    texts_of,
    verdict_row,
    with_verdicts,
)
from prchain.view.diffs import diff_files
from prchain.view.options import ViewOptions
from prchain.view.trees import ChainTrees
from sql.store import Store
from trajectories.audit.auditing import audit
from trajectories.audit.finding import AuditFinding
from trajectories.export.grounded import ungrounded_steps
from trajectories.export.masks import loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.export.verdicts import stages_of
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import KEPT
from trajectories.provenance import project_of, read_provenance
from trajectories.rollouts.report import TrajectoryReport
from trajectories.rows import StageRow

_EXPORT = ExportOptions()
"""The options by which loss is marked: the defaults of `prchain export`."""


@dataclass(frozen=True, slots=True)
class ToldMessage:
    """A query, or what went back to the agent: what a page without scripts shows of the conversation."""

    kind: str
    stage: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class DisbelievedRun:
    """A graded attempt whose test run is not believed."""

    stage: int
    attempt: int
    reasons: tuple[str, ...]
    signs: tuple[AuditFinding, ...]
    """The steps of the stage that say so themselves."""


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """The page of a trajectory."""

    report: TrajectoryReport
    repository: str
    told: tuple[ToldMessage, ...]
    verdicts: tuple[Mapping[str, Any], ...]
    disbelieved: tuple[DisbelievedRun, ...]
    exported: bool
    """Whether an export takes it by default."""
    options: tuple[tuple[str, str], ...]


def trajectory_view(report: TrajectoryReport, repository: str, options: ViewOptions) -> TrajectoryView:
    """Everything that the page of a trajectory shows before its conversation is loaded; `report` has its messages."""
    told = tuple(
        ToldMessage(str(entry.kind), entry.position, entry.attempt, entry.content)
        for entry in report.messages or ()
        if entry.kind in (EntryKind.QUERY, EntryKind.COMMENT)
    )
    if not options.reference:
        stages = tuple(replace(stage, conflicts=tuple(map(_without_lines, stage.conflicts))) for stage in report.stages)
        report = replace(report, stages=stages)
    given = tuple((name, str(value)) for name, value in sorted(report.options.items()) if value not in (None, [], {}))
    verdicts = tuple(_verdicts(report, options))
    slim = replace(report, messages=None, verdicts=(), tools=(), options={}, prompts={})
    disbelieved = tuple(_disbelieved(report, repository))
    return TrajectoryView(slim, repository, told, verdicts, disbelieved, report.outcome in KEPT, given)


def _disbelieved(report: TrajectoryReport, repository: str) -> Iterator[DisbelievedRun]:
    runs = [it for it in report.verdicts if it.tests == TAMPERED]
    signs = audit(report.messages or (), project_of(repository)) if runs else ()
    for it in runs:
        own = tuple(sign for sign in signs if sign.position == it.position)
        yield DisbelievedRun(it.position, it.attempt, tuple(map(str, it.grade.get("cheats") or ())), own)


def _without_lines(conflict: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in conflict.items() if name != "lost_lines"}


def _verdicts(report: TrajectoryReport, options: ViewOptions) -> list[dict[str, Any]]:
    endings = {stage.position: stage.endings for stage in report.stages}
    rows = []
    for verdict in report.verdicts:
        known = endings.get(verdict.position, ())
        ending = known[verdict.attempt - 1] if verdict.attempt <= len(known) else ""
        rows.append(verdict_row(verdict, ending, reference=options.reference))
    return rows


def conversation(
    store: Store, report: TrajectoryReport, repository: str, options: ViewOptions, mirrors: Path, data_dir: Path
) -> dict[str, Any]:
    """The data of a trajectory's page: its messages and verdicts in order, and the diff of each step that changed a
    file."""
    entries = list(report.messages or ())
    with store.reading() as tx:
        origin = read_provenance(tx, report.id)
        last = max((entry.position for entry in entries), default=0)
        accepted = stages_of(tx, report.id, report.chain_id or report.id, last, origin).accepted
    ungrounded = ungrounded_steps(entries) if _EXPORT.grounded else frozenset()
    decisions = loss_decisions(entries, accepted, _EXPORT.masks, _EXPORT.refinements, ungrounded)
    signs = audit(entries, project_of(repository))
    patches, diffs, problem = _step_diffs(store, report, entries, options, mirrors, data_dir)
    whole = {entry.ordinal: f"text-{entry.ordinal}.txt" for entry in entries if is_long(entry)}
    rows = message_rows(entries, decisions, signs, diffs, whole, reasoning=options.reasoning)
    return {
        "id": report.id,
        "messages": with_verdicts(rows, _verdicts(report, options)),
        "diffs": patches,
        "problem": problem or "",
    }


def step_pairs(entries: Sequence[Entry], stages: Sequence[StageRow]) -> dict[int, tuple[str, str]]:
    """Step to the trees before and after it, of the steps that changed a file. Pure."""
    before = {stage.position: stage.start_tree for stage in stages}
    pairs: dict[int, tuple[str, str]] = {}
    for entry in entries:
        if not entry.tree or not entry.step:
            continue
        start = before.get(entry.position)
        before[entry.position] = entry.tree
        if start and start != entry.tree:
            first = pairs.get(entry.step, (start, ""))[0]
            pairs[entry.step] = (first, entry.tree)
    return pairs


def _step_diffs(
    store: Store,
    report: TrajectoryReport,
    entries: Sequence[Entry],
    options: ViewOptions,
    mirrors: Path,
    data_dir: Path,
) -> tuple[list[Any], dict[int, int], str | None]:
    """The diffs, each once; step to its place among them; and why some are not there."""
    pairs = step_pairs(entries, report.stages)
    if not pairs or report.chain_id is None:
        return [], {}, None
    trees = ChainTrees(store, report.chain_id, mirrors, data_dir)
    hidden = hidden_lines(trees, entries, options)
    if hidden is None:
        return [], {}, trees.problem
    found = trees.states(list(pairs.values()))
    kept = {pair: place for place, pair in enumerate(found)}
    rows = [diff_rows(diff_files(patch, hidden=hidden)) for patch in found.values()]
    return rows, {step: kept[pair] for step, pair in pairs.items() if pair in kept}, trees.problem


def hidden_lines(trees: ChainTrees, entries: Sequence[Entry], options: ViewOptions) -> Collection[str] | None:
    """The lines of the chain's references that a page must not show: those that the conversation does not hold. None
    where nobody can say, so that no diff may be shown."""
    if options.reference:
        return ()
    if (lines := trees.reference_lines()) is None:
        return None
    shown = {line.strip() for entry in entries for text in texts_of(entry) for line in text.splitlines()}
    return lines - shown


def conversation_text(report: TrajectoryReport, options: ViewOptions) -> str:
    """The whole conversation as text."""
    return plain_text(report.messages or (), reasoning=options.reasoning)


def message_text(report: TrajectoryReport, ordinal: int, options: ViewOptions) -> str | None:
    """One message as text, whole; None where there is no such message, or the page shows it whole."""
    entries = [entry for entry in report.messages or () if entry.ordinal == ordinal and is_long(entry)]
    return plain_text(entries, reasoning=options.reasoning) if entries else None


def long_messages(report: TrajectoryReport) -> list[int]:
    """The messages that the page cuts."""
    return [entry.ordinal for entry in report.messages or () if is_long(entry)]
