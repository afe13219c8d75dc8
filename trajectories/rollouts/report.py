"""Trajectories for people: the list, and the page of one trajectory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sqlalchemy import func, select

from prchain.core.console.reports import WHERE_ASKED
from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table, shortened, summed, tally
from prchain.core.processes.alive import Process
from prchain.core.storable import clean_text
from sql.chosen import find_chain
from sql.store import Store, Transaction
from sql.tables import Chain, ImportedTrajectory, Repository, Trajectory, TrajectoryMessage
from trajectories.model import Entry, EntryKind
from trajectories.options import DEFAULTS as OPTION_DEFAULTS
from trajectories.outcomes import RUNNING, accepted_prefix
from trajectories.privileged import DISCLOSED
from trajectories.provenance import UNKNOWN, TrajectoryOrigin, read_provenance
from trajectories.rows import (
    StageRow,
    TrajectoryRow,
    VerdictRow,
    find_trajectory,
    read_entries,
    read_stages,
    read_verdicts,
    stored_trajectory,
)
from trajectories.sums import calls_of

_NAMED_OPTIONS = ("carry", "refinements", "backend", "judge_sees", "calls", "shell")
"""Options that people are told of where they are not at their default."""
_SHOWN_OPTIONS = ("gate", "threshold", "tools", "context", "temperature", "observers", *_NAMED_OPTIONS)

INTERRUPTED = "interrupted"
"""Shown for a running trajectory whose worker, a process of this machine, has ended: the next run goes on with it."""

_BRIEF_CHARS = 400
"""Characters of a text on a page that is to be brief."""


@dataclass(frozen=True, slots=True)
class ListedTrajectory:
    """A trajectory in the list."""

    id: str
    chain_id: str | None
    """None of an import."""
    sample: int
    scaffold: str
    model: str
    outcome: str
    accepted: int
    steps: int
    usd: float | None
    reason: str | None
    worker: str | None
    tokens_in: int | None = field(metadata=WHERE_ASKED)
    tokens_out: int | None = field(metadata=WHERE_ASKED)
    """Both of one that is running only."""
    stages: int
    """Of its chain; 0 of an import."""
    repository: str
    """Of an import what its document says, or ``unknown``."""
    options: Mapping[str, Any]
    """Those that tell trajectories of one chain apart."""


@dataclass(frozen=True, slots=True)
class TrajectoryReport(TrajectoryRow):
    """Everything that is stored of one trajectory."""

    stages: tuple[StageRow, ...]
    verdicts: tuple[VerdictRow, ...]
    messages: tuple[Entry, ...] | None = field(metadata=WHERE_ASKED)
    provenance: TrajectoryOrigin | None = field(metadata=WHERE_ASKED)
    """Of an import."""


def list_trajectories(
    store: Store,
    repository: str | None = None,
    chain: str | None = None,
    outcome: str | None = None,
    scaffold: str | None = None,
) -> list[ListedTrajectory]:
    """The trajectories by repository, chain and sample; without a `scaffold`, all but `DISCLOSED`. Raises `UsageError`
    for an unknown chain."""
    own = ("id", "chain_id", "sample", "scaffold", "model", "outcome", "accepted", "steps", "usd", "reason", "worker")
    query = (
        select(
            *(getattr(Trajectory, name) for name in (*own, "options")),
            func.coalesce(Chain.length, 0).label("stages"),
            func.coalesce(Repository.owner + "/" + Repository.name, ImportedTrajectory.repository, UNKNOWN).label(
                "repository"
            ),
        )
        .outerjoin(Chain, Chain.id == Trajectory.chain_id)
        .outerjoin(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTrajectory, ImportedTrajectory.trajectory_id == Trajectory.id)
    )
    if outcome is not None:
        query = query.where(Trajectory.outcome == outcome)
    query = query.where(Trajectory.scaffold != DISCLOSED if scaffold is None else Trajectory.scaffold == scaffold)
    with store.reading() as tx:
        if chain is not None:
            query = query.where(Trajectory.chain_id == find_chain(tx, chain))
        rows = [
            _listed(tx, row)
            for row in tx.connection.execute(query).mappings()
            if repository is None or row["repository"].lower() == repository.lower()
        ]
    return sorted(rows, key=lambda row: (row.repository.lower(), row.chain_id or "", row.sample, row.id))


def _listed(tx: Transaction, row: Mapping[Any, Any]) -> ListedTrajectory:
    options = {name: row["options"].get(name) for name in _SHOWN_OPTIONS}
    listed = ListedTrajectory(**{**row, "options": options, "tokens_in": None, "tokens_out": None})
    return replace(listed, **_under_way(tx, listed))


def print_trajectories(rows: Sequence[ListedTrajectory]) -> None:
    """Print the list, and below it the options that all have in common and the number of each outcome."""
    words = [[f"{row.scaffold} with {row.model}", *_option_words(row.options)] for row in rows]
    common = [word for word in words[0] if all(word in others for others in words)] if words else []
    own = [", ".join(word for word in row_words if word not in common) for row_words in words]
    lines = [
        (
            row.id,
            row.outcome,
            f"{row.accepted} of {counted(row.stages, 'stage')}" if row.chain_id else "",
            f"{row.steps:,}",
            "" if row.usd is None else f"{row.usd:,.4f}",
            ", ".join(filter(None, (_place(row), differing))),
        )
        for row, differing in zip(rows, own, strict=True)
    ]
    if rows:
        last = "repository and chain" + (", options" if any(own) else "")
        say_table(("id", "outcome", "accepted", "steps", "USD", last), lines)
    if common:
        say_prose(f"all: {', '.join(common)}")
    say(summed("trajectory", (row.outcome for row in rows)))


def _place(row: ListedTrajectory) -> str:
    return f"{row.repository} {row.chain_id} sample {row.sample}" if row.chain_id else row.repository


def _under_way(tx: Transaction, row: ListedTrajectory | TrajectoryRow) -> dict[str, Any]:
    """Values that the row of a running trajectory does not hold yet; `INTERRUPTED` where its worker has ended."""
    if row.outcome != RUNNING:
        return {}
    stages = [stage.outcome for stage in read_stages(tx, row.id)]
    return {
        "outcome": INTERRUPTED if _is_gone(row.worker) else RUNNING,
        "steps": tx.count(TrajectoryMessage, trajectory_id=row.id, kind=str(EntryKind.TURN)),
        "accepted": accepted_prefix(stages),
        **calls_of(tx, row.id),
    }


def _is_gone(worker: str | None) -> bool:
    """Whether the worker process has certainly ended; unknown (False) where its start time is not stored."""
    process = Process.parse(worker or "")
    return process is not None and process.is_gone


def _option_words(options: Mapping[str, Any]) -> list[str]:
    """Words for the options that differ between trajectories of one chain, an option each."""
    if options.get("gate") is None:  # of an import nobody knows them
        return []
    gate = options["gate"] if options["gate"].startswith("tests") else f"{options['gate']} {options['threshold']:g}"
    temperature = "of the endpoint" if options["temperature"] is None else f"{options['temperature']:g}"
    observers = [f"observed by {' and '.join(options['observers'])}"] if options.get("observers") else []
    named = [
        f"{name.replace('_', ' ')} {options[name]}"
        for name in _NAMED_OPTIONS
        if options.get(name) not in (None, OPTION_DEFAULTS[name])
    ]
    known = [f"{name} {options[name]}" for name in ("tools", "context")]
    windows = [f"windows {options['windows']}"] if options.get("windows") else []
    return [f"gate {gate}", *known, f"temperature {temperature}", *observers, *named, *windows]


def trajectory_report(store: Store, prefix: str, *, messages: bool = False) -> TrajectoryReport:
    """One trajectory, by its id or the beginning of it. Raises `UsageError`."""
    with store.reading() as tx:
        row = stored_trajectory(tx, find_trajectory(tx, prefix))
        columns = {it.name: getattr(row, it.name) for it in fields(row)} | {"decided_by": None}
        return TrajectoryReport(
            **columns | _under_way(tx, row),
            stages=tuple(read_stages(tx, row.id)),
            verdicts=tuple(read_verdicts(tx, row.id)),
            messages=tuple(read_entries(tx, row.id)) if messages else None,
            provenance=read_provenance(tx, row.id),
        )


def print_trajectory(report: TrajectoryReport, *, brief: bool = False) -> None:
    """Print a page; all texts whole, or cut where it is to be brief."""
    say(f"trajectory {report.id}: {report.outcome}")
    if report.reason and not any(stage.reason and stage.reason in report.reason for stage in report.stages):
        say_prose(f"reason: {report.reason}", indent=2)
    branch = f", after step {report.parent_step} of {report.parent_id}" if report.parent_id else ""
    judge = f", judged by {report.judge}" if report.judge else ""
    if origin := report.provenance:
        say_prose(f"{origin.agent} {origin.agent_version} with {report.model}{judge}; {origin.form}", indent=2)
        named = f", its own id {origin.document or origin.session}" if origin.document or origin.session else ""
        say_prose(f"source {origin.source or UNKNOWN}, licence {origin.licence or UNKNOWN}{named}", indent=2)
        if origin.left_out:
            say_prose(f"not taken: {tally(origin.left_out)}", indent=2)
    else:
        say_prose(f"chain {report.chain_id}, sample {report.sample}{branch}", indent=2)
        say_prose(f"{report.scaffold} with {report.model}{judge}; {', '.join(_option_words(report.options))}", indent=2)
    tokens = f"{report.tokens_in:,} tokens in, {report.tokens_out:,} out"
    say(f"  {counted(report.steps, 'step')}, {tokens}, {dollars(report.usd)}")
    if report.worker:
        say(f"  {'was' if report.outcome == INTERRUPTED else 'is'} worked on by {report.worker}")
    for stage in report.stages:
        say()
        say(f"stage {stage.position}: {stage.outcome}, {counted(stage.steps, 'step')}")
        for conflict in stage.conflicts:
            lost = "the agent's side was taken, what upstream has there is lost"
            say_prose(f"conflict in {conflict['path']}: {conflict['kind']}; {lost}", indent=2)
        for verdict in report.verdicts:
            if verdict.position == stage.position:
                _print_verdict(verdict, stage.endings, brief=brief)
        if stage.reason:
            say_prose(f"reason: {stage.reason}", indent=2)
    for entry in report.messages or ():
        say()
        _print_message(_brief_entry(entry) if brief else entry)


def _brief_entry(entry: Entry) -> Entry:
    """The message with each of its texts cut."""
    calls = tuple(replace(call, arguments=_brief_arguments(call.arguments)) for call in entry.tool_calls)
    reasoning = _cut(entry.reasoning) if entry.reasoning else entry.reasoning
    return replace(entry, content=_cut(entry.content), reasoning=reasoning, tool_calls=calls)


def _brief_arguments(text: str) -> str:
    """A call's arguments, each of their texts cut; what is no JSON object is cut as one text."""
    arguments = _object(text)
    if arguments is None:
        return _cut(text)
    return json.dumps({name: _cut(value) if isinstance(value, str) else value for name, value in arguments.items()})


def _cut(text: str) -> str:
    """The beginning of a text, in its lines, and how much was cut."""
    rest = len(text) - _BRIEF_CHARS
    return text if rest <= 0 else f"{text[:_BRIEF_CHARS]} ... ({counted(rest, 'more character')})"


def _print_verdict(verdict: VerdictRow, endings: Sequence[str], *, brief: bool) -> None:
    attempt = verdict.attempt
    ending = endings[attempt - 1] if attempt <= len(endings) else "?"
    decision = {True: "accepted", False: "rejected", None: "unscored"}[verdict.accepted]
    seen = " by a judge that saw tests" if verdict.judge_sees == "tests" else ""
    score = "" if verdict.score is None else f", score {verdict.score:g}{seen}"
    graded = " (an equal tree was graded before)" if verdict.grade.get("reused") else ""
    tests = "" if verdict.tests is None else f", tests {verdict.tests}{graded}"
    say(f"  attempt {attempt} ({ending}): {decision}{score}{tests}")
    for name, words in (("cheats", "cheat"), ("taken_back", "not counted")):
        for line in verdict.grade.get(name, ()):
            say_prose(f"{words}: {line}", indent=4)
    comment, sent = (" ".join((text or "").split()) for text in (verdict.comment, verdict.shown))
    if comment:
        say_prose(f"judge: {shortened(comment, _BRIEF_CHARS) if brief else comment}", indent=4)
    if comment and f"{sent} ".startswith(f"{comment} "):
        rest = sent.removeprefix(comment).strip()
        sent = f"the judge's comment, and: {rest}" if rest else "the judge's comment"
    if sent:
        say_prose(f"sent to the agent: {shortened(sent, _BRIEF_CHARS) if brief else sent}", indent=4)


def _print_message(entry: Entry) -> None:
    error = f", {entry.error}" if entry.error else ""
    place = f"step {entry.step}, stage {entry.position}.{entry.attempt}"
    say(f"[{entry.ordinal}] {place}: {entry.kind}{error}")
    if entry.reasoning:
        say("  reasoning:")
        _say_lines(entry.reasoning, 4)
    _say_lines(entry.content, 2)
    for call in entry.tool_calls:
        say(f"  -> {call.name}")
        _print_arguments(call.arguments)


def _print_arguments(text: str) -> None:
    """Print a call's arguments, each text in its own lines; what is no JSON object is printed as the model wrote it."""
    arguments = _object(text)
    if arguments is None:
        _say_lines(text, 4)
        return
    for name, value in arguments.items():
        lines = value.splitlines() if isinstance(value, str) else []
        if len(lines) > 1:
            say(f"    {clean_text(name)}:")
            _say_lines(value, 6)
        else:
            say(f"    {clean_text(name)}: {clean_text(lines[0]).expandtabs() if lines else json.dumps(value)}")


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _say_lines(text: str, indent: int) -> None:
    """Print a text whole, in its lines; a tab as the spaces that it stands for."""
    for line in clean_text(text).splitlines():
        say(f"{'':<{indent}}{line.expandtabs()}")
