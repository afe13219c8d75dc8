"""Stored readings of windows that stand in their trajectory's conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select

from prchain.core.errors import UsageError
from sql.store import Transaction
from sql.tables import CurationCandidate, CurationWindow, PrmFinding, PrmWindow
from trajectories.identity import subject
from trajectories.studies.guidance.agreement import ReadWindow, WindowReading

LIVE = "live"
"""In place of a replay's id: the readings while the agent ran."""

_MODEL = "model"
"""`PrmFinding.found_by`."""

_FINDING = ("category", "found_by", "evidence", "step", "recovery", "kept", "why")

_WINDOW = (
    "id",
    "replay",
    "position",
    "attempt",
    "subject",
    "first_step",
    "last_step",
    "variant",
    "settings",
    "model",
    "prompt_hash",
    "taxonomy_hash",
    "status",
    "suboptimal",
    "guidance",
    "recommended_action",
    "sent",
    "why_not",
    "fault",
)


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A row of ``prm_findings`` (`sql.tables.guided.PrmFinding`, whose columns these are)."""

    category: str
    found_by: str
    evidence: str
    step: int | None
    recovery: str
    kept: bool
    why: str | None


@dataclass(frozen=True, slots=True)
class StoredReading:
    """A row of ``prm_windows`` (`sql.tables.guided.PrmWindow`, whose columns these are) with its findings."""

    id: str
    replay: str | None
    position: int
    attempt: int
    subject: str
    first_step: int
    last_step: int
    variant: str
    settings: str
    model: str
    prompt_hash: str
    taxonomy_hash: str | None
    status: str | None
    suboptimal: bool | None
    guidance: str | None
    recommended_action: str | None
    sent: bool
    why_not: str | None
    fault: str | None
    findings: tuple[StoredFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredWindows:
    """The windows of one trajectory. `uncommitted`: so many are of candidates that curation did not commit, or were
    read again: no words of theirs are in the conversation."""

    windows: Sequence[StoredReading]
    uncommitted: int = 0


@dataclass(frozen=True, slots=True)
class ReadingChoice:
    """Which readings are meant; None: any."""

    replay: str | None = None
    """A replay's id, or `LIVE`."""
    variant: str | None = None
    model: str | None = None

    def fits(self, window: StoredReading) -> bool:
        """Whether the window is among them."""
        return (
            self.replay in (None, window.replay or LIVE)
            and self.variant in (None, window.variant)
            and self.model in (None, window.model)
        )


def read_trajectories(tx: Transaction) -> list[str]:
    """The trajectories of which windows were read, in order."""
    query = select(PrmWindow.trajectory_id).distinct().order_by(PrmWindow.trajectory_id)
    return [str(name) for (name,) in tx.connection.execute(query)]


def stored_windows(tx: Transaction, trajectory: str, variant: str | None = None) -> StoredWindows:
    """The windows of a trajectory that stand in its conversation: by stage, last step and attempt, those of the run
    before those of replays. `variant`: those of one variant alone.

    Inside curation every candidate is watched (P2T, section 4.2); a step that two windows of candidates have read alike
    counts with the later one, whose words the agent was told.
    """
    query = (
        select(*(getattr(PrmWindow, name) for name in _WINDOW))
        .where(PrmWindow.trajectory_id == trajectory, *([] if variant is None else [PrmWindow.variant == variant]))
        .order_by(PrmWindow.position, PrmWindow.last_step, PrmWindow.attempt, PrmWindow.id)
    )
    found = [StoredReading(*row) for row in tx.connection.execute(query)]
    spans = _committed_spans(tx, trajectory) if any(_candidate(trajectory, it) for it in found) else {}
    latest: dict[tuple[Any, ...], tuple[int, StoredReading]] = {}
    for window in found:
        number = 0
        if (candidate := _candidate(trajectory, window)) is not None:
            number = candidate[0]
            first, last = spans.get((window.position, *candidate), (1, 0))
            if not first <= window.last_step <= last:
                continue
        place = (window.position, window.last_step, window.attempt, window.replay or "")
        if place not in latest or latest[place][0] < number:
            latest[place] = (number, window)
    findings = _findings(tx, trajectory)
    windows = [
        replace(window, findings=tuple(findings.get(window.id, ()))) for _, (_, window) in sorted(latest.items())
    ]
    return StoredWindows(windows, len(found) - len(windows))


def known_windows(tx: Transaction) -> set[ReadWindow]:
    """Every window that was read."""
    columns = (PrmWindow.trajectory_id, PrmWindow.position, PrmWindow.attempt, PrmWindow.last_step)
    return {ReadWindow(*row) for row in tx.connection.execute(select(*columns).distinct())}


def stored_readings(tx: Transaction, choice: ReadingChoice) -> dict[ReadWindow, WindowReading]:
    """What the chosen readings say of each window that they could read.

    Raises `UsageError` where two of them are of the same window.
    """
    readings: dict[ReadWindow, WindowReading] = {}
    for trajectory in read_trajectories(tx):
        for window in stored_windows(tx, trajectory).windows:
            if window.fault is not None or not choice.fits(window):
                continue
            key = ReadWindow(trajectory, window.position, window.attempt, window.last_step)
            if key in readings:
                raise UsageError(
                    f"several readings of the window of trajectory {trajectory} that ends with step {key.last_step} "
                    "are meant; say which by replay, variant or model"
                )
            kept = frozenset(it.category for it in window.findings if it.kept and it.found_by == _MODEL)
            readings[key] = WindowReading(window.suboptimal, None if window.taxonomy_hash is None else kept)
    return readings


def _candidate(trajectory: str, window: StoredReading) -> tuple[int, int] | None:
    """The window and the number of the candidate of curation that was watched; None outside of it, and in a replay."""
    stage = f"{subject(trajectory, window.position)}/"
    if window.replay is not None or not window.subject.startswith(stage):
        return None
    number, _, candidate = window.subject.removeprefix(stage).partition("/")
    return int(number), int(candidate)


def _committed_spans(tx: Transaction, trajectory: str) -> Mapping[tuple[int, int, int], tuple[int, int]]:
    """Stage, window and candidate to the first and the last step whose windows are the trajectory's own.

    They are those of the committed candidate; where that is a variant, its beginning was read as its seed's. The step
    before the window is among them: it is asked about when the window begins.
    """
    rewritten = {
        (position, window, number): (seed, place)
        for position, window, number, seed, place in tx.rows(
            CurationCandidate, "position", "window_number", "number", "seed", "place", trajectory_id=trajectory
        )
    }
    spans: dict[tuple[int, int, int], tuple[int, int]] = {}
    columns = ("position", "number", "step", "chosen", "committed")
    for position, window, step, chosen, committed in tx.rows(CurationWindow, *columns, trajectory_id=trajectory):
        if chosen is None:
            continue
        spans[position, window, chosen] = (step, step + committed)
        seed, place = rewritten.get((position, window, chosen), (chosen, None))
        if seed != chosen and place is not None:
            spans[position, window, seed] = (step, step + min(place, committed))
    return spans


def _findings(tx: Transaction, trajectory: str) -> dict[str, list[StoredFinding]]:
    found: dict[str, list[StoredFinding]] = {}
    for window, finding in _finding_rows(tx, trajectory):
        found.setdefault(window, []).append(finding)
    return found


def _finding_rows(tx: Transaction, trajectory: str) -> Iterator[tuple[str, StoredFinding]]:
    query = (
        select(PrmFinding.window_id, *(getattr(PrmFinding, name) for name in _FINDING))
        .join(PrmWindow, PrmWindow.id == PrmFinding.window_id)
        .where(PrmWindow.trajectory_id == trajectory)
        .order_by(PrmFinding.window_id, PrmFinding.ordinal)
    )
    for window, *values in tx.connection.execute(query):
        yield str(window), StoredFinding(*values)
