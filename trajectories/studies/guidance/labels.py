"""Windows with what was found in them and what came of them: step-level data to train a smaller process reward model
on (SWE-PRM, section 6 leaves it to future work)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from sql.benchmarks import benchmark_chains
from sql.store import Store, Transaction
from sql.tables import Chain, Repository, Trajectory
from trajectories.agents.guidance.window import StepWindow, stage_entries
from trajectories.export.reading import BENCHMARK
from trajectories.export.scrubber import Scrubber
from trajectories.export.write import Files, JsonLines
from trajectories.model import Entry, EntryKind
from trajectories.rows import (
    StageRow,
    VerdictRow,
    find_trajectory,
    read_entries,
    read_stages,
    read_verdicts,
    stored_trajectory,
)
from trajectories.studies.guidance.step_values import Json, call_value, step_values
from trajectories.studies.guidance.stored import StoredFinding, StoredReading, read_trajectories, stored_windows
from trajectories.task import read_overview

NEXT_STEPS = 5

UNCOMMITTED = "uncommitted"
"""Why a window is left out: it is of a candidate that curation did not commit."""
NO_STEPS = "no_steps"
"""Its steps are not in the conversation any more."""


@dataclass(slots=True)
class LabelCounts:
    """What was written."""

    rows: int = 0
    trajectories: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Windows by reason."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A trajectory, whole."""

    facts: Json
    overview: str | None
    accepted: int
    entries: list[Entry]
    stages: dict[int, StageRow]
    verdicts: dict[tuple[int, int], VerdictRow]


def write_labels(
    store: Store,
    out: Path,
    *,
    next_steps: int = NEXT_STEPS,
    trajectory: str | None = None,
    outcome: str | None = None,
    variant: str | None = None,
    benchmarks: bool = False,
    force: bool = False,
    secrets: tuple[str, ...] = (),
) -> LabelCounts:
    """Write a line of JSON for each window, in the order of trajectory, stage and step.

    `trajectory` is the beginning of an id; `outcome` is the trajectory's. Windows over tasks that measure models are
    left out, unless `benchmarks` asks for them. Without windows no file is written, and the
    one that is there stays. One trajectory is in memory at a time. Raises `UsageError`, `StoreError` and `DiskFull`.
    """
    counts = LabelCounts()
    with store.reading() as tx, Files(force=force) as files:
        rows = JsonLines(files.open(out))
        names = read_trajectories(tx) if trajectory is None else [find_trajectory(tx, trajectory)]
        scrubber = Scrubber(secrets)
        barred = frozenset[str]() if benchmarks else benchmark_chains(tx)
        for name in names:
            before = counts.rows
            for row in _rows(tx, name, outcome, variant, next_steps, scrubber, barred, counts):
                rows.write(row)
                counts.rows += 1
            counts.trajectories += counts.rows > before
        rows.close()
        if not counts.rows:
            files.discard()
    return counts


def _rows(
    tx: Transaction,
    trajectory: str,
    outcome: str | None,
    variant: str | None,
    next_steps: int,
    scrubber: Scrubber,
    barred: Collection[str],
    counts: LabelCounts,
) -> Iterator[Json]:
    facts = _facts(tx, trajectory)
    if outcome not in (None, facts["outcome"]):
        return
    found = stored_windows(tx, trajectory, variant)
    if found.uncommitted:
        counts.left_out[UNCOMMITTED] += found.uncommitted
    if not found.windows:
        return
    if facts["chain_id"] in barred:
        counts.left_out[BENCHMARK] += len(found.windows)
        return
    told = _read(tx, trajectory, facts)
    for window in found.windows:
        row = _row(told, window, next_steps, scrubber)
        if row is None:
            counts.left_out[NO_STEPS] += 1
        else:
            yield row


def _facts(tx: Transaction, trajectory: str) -> Json:
    query = (
        select(
            Trajectory.id.label("trajectory_id"),
            Trajectory.chain_id,
            Trajectory.sample,
            (Repository.owner + "/" + Repository.name).label("repository"),
            Chain.licence,
            Trajectory.scaffold,
            Trajectory.model.label("agent_model"),
            Trajectory.outcome,
            Trajectory.accepted,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(Trajectory.id == trajectory)
    )
    return dict(tx.connection.execute(query).one()._mapping)


def _read(tx: Transaction, trajectory: str, facts: Json) -> _Whole:
    rest = {name: value for name, value in facts.items() if name != "accepted"}
    return _Whole(
        rest,
        # That of an accepted prefix was rewritten after the agent had worked.
        read_overview(tx, facts["chain_id"]) or stored_trajectory(tx, trajectory).overview,
        facts["accepted"],
        read_entries(tx, trajectory),
        {stage.position: stage for stage in read_stages(tx, trajectory)},
        {(verdict.position, verdict.attempt): verdict for verdict in read_verdicts(tx, trajectory)},
    )


def _row(told: _Whole, window: StoredReading, next_steps: int, scrubber: Scrubber) -> Json | None:
    """The row of a window; None where its steps are gone."""
    own = stage_entries(told.entries, window.position)
    seen = StepWindow.of(own, window.last_step - window.first_step + 1, window.last_step)
    if seen is None or (seen.first, seen.last) != (window.first_step, window.last_step):
        return None
    end = max(entry.ordinal for entry in seen.entries)
    query = next((entry.content for entry in own if entry.kind is EntryKind.QUERY), None)
    return {
        **told.facts,
        "window_id": window.id,
        "replay": window.replay,
        "position": window.position,
        "attempt": window.attempt,
        "first_step": window.first_step,
        "last_step": window.last_step,
        "variant": window.variant,
        "settings": window.settings,
        "model": window.model,
        "prompt_hash": window.prompt_hash,
        "taxonomy_hash": window.taxonomy_hash,
        "status": window.status,
        "suboptimal": window.suboptimal,
        "fault": window.fault,
        "guidance": _text(window.guidance, scrubber),
        "recommended_action": None
        if window.recommended_action is None
        else call_value(window.recommended_action, scrubber),
        "sent": window.sent,
        "why_not": window.why_not,
        "findings": [_finding(finding, scrubber) for finding in window.findings],
        "overview": _text(told.overview, scrubber),
        "query": _text(query, scrubber),
        "steps": step_values(seen.entries, scrubber),
        "next_steps": step_values((entry for entry in own if entry.ordinal > end), scrubber, next_steps),
        "became": _became(told, window),
    }


def _became(told: _Whole, window: StoredReading) -> Json:
    stage = told.stages.get(window.position)
    endings = () if stage is None else stage.endings
    return {
        "ending": endings[window.attempt - 1] if 0 < window.attempt <= len(endings) else None,
        "verdict": verdict_value(told.verdicts.get((window.position, window.attempt))),
        "stage": None if stage is None else stage.outcome,
        "attempts": None if stage is None else stage.attempts,
        "trajectory": told.facts["outcome"],
        "accepted_stages": told.accepted,
    }


def verdict_value(verdict: VerdictRow | None) -> Json | None:
    """A verdict as a JSON value, without words of the judge, which knows the reference."""
    if verdict is None:
        return None
    return {name: getattr(verdict, name) for name in ("attempt", "accepted", "gate", "score", "tests")}


def _finding(finding: StoredFinding, scrubber: Scrubber) -> Json:
    return {
        "category": finding.category,
        "found_by": finding.found_by,
        "evidence": scrubber.text(finding.evidence),
        "step": finding.step,
        "recovery": scrubber.text(finding.recovery),
        "kept": finding.kept,
        "why": finding.why,
    }


def _text(text: str | None, scrubber: Scrubber) -> str | None:
    return None if text is None else scrubber.text(text)
