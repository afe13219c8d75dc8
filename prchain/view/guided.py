"""The page of a trajectory's guidance: the windows that a process reward model read, and what it found in each step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prchain.view.conversation import words_of
from prchain.view.options import ViewOptions
from prchain.view.texts import cut
from sql.store import Store, Transaction
from sql.tables import PrmWindow
from trajectories.agents.guidance.assessment import TaskStatus
from trajectories.model import Entry
from trajectories.rollouts.report import TrajectoryReport
from trajectories.studies.guidance.stored import LIVE, StoredFinding, StoredReading, stored_windows

_AROUND = 300
"""Characters of a step before and after what a finding quotes."""
_SHOWN = 6_000


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding, with the place in the step that it quotes."""

    row: StoredFinding
    evidence: str
    passage: tuple[str, str, str]
    """What stands before the quote, the quote, what follows; empty where no step holds it word for word."""
    page: str | None
    """Where the step stands."""


@dataclass(frozen=True, slots=True)
class ShownReading:
    """One reading of a window."""

    row: Mapping[str, Any]
    tone: str
    first_page: str
    last_page: str
    guidance: str
    action: str
    findings: tuple[ShownFinding, ...]


@dataclass(frozen=True, slots=True)
class GuidanceView:
    """The page."""

    trajectory: str
    chain_id: str | None
    outcome: str
    model: str
    readings: tuple[ShownReading, ...]
    uncommitted: int


def is_guided(tx: Transaction, trajectory: str) -> bool:
    """Whether a process reward model read windows of a trajectory."""
    return bool(tx.count(PrmWindow, trajectory_id=trajectory))


def guidance_view(store: Store, report: TrajectoryReport, options: ViewOptions) -> GuidanceView:
    """The page; `report` has its messages."""
    with store.reading() as tx:
        found = stored_windows(tx, report.id)
    steps: dict[int, list[str]] = {}
    for entry in report.messages or ():
        steps.setdefault(entry.step, []).extend(_texts(entry, reasoning=options.reasoning))
    readings = tuple(_reading(it, steps, options) for it in found.windows)
    return GuidanceView(report.id, report.chain_id, report.outcome, report.model, readings, found.uncommitted)


def _reading(it: StoredReading, steps: Mapping[int, Sequence[str]], options: ViewOptions) -> ShownReading:
    row = {
        "stage": it.position,
        "attempt": it.attempt,
        "first": it.first_step,
        "last": it.last_step,
        "variant": it.variant,
        "model": it.model,
        "run": it.replay or LIVE,
        "status": it.status or "",
        "fault": it.fault or "",
        "sent": it.sent,
        "why_not": it.why_not or "",
    }
    tones = {TaskStatus.ON_TRACK: "good", TaskStatus.NEEDS_CORRECTION: "odd"}
    return ShownReading(
        row,
        tones.get(TaskStatus(it.status), "bad") if it.status in set(TaskStatus) else "dull",
        f"index.html#step-{it.first_step}",
        f"index.html#step-{it.last_step}",
        cut(it.guidance or "", _SHOWN)[0],
        cut(it.recommended_action or "", _SHOWN)[0],
        tuple(_finding(finding, steps, options) for finding in it.findings),
    )


def _finding(finding: StoredFinding, steps: Mapping[int, Sequence[str]], options: ViewOptions) -> ShownFinding:
    own = steps.get(finding.step or 0, ())
    passage = next(filter(None, (passage_of(text, finding.evidence) for text in own)), ("", "", ""))
    # Without reasoning, words that may be quoted of it are not shown either.
    evidence = finding.evidence if options.reasoning or passage[1] or finding.found_by != "model" else ""
    page = f"index.html#step-{finding.step}" if finding.step else None
    return ShownFinding(finding, cut(evidence, _SHOWN)[0], passage, page)


def passage_of(text: str, quote: str) -> tuple[str, str, str] | None:
    """The words around a quote in a text, and the quote; None where the text does not hold it. Pure."""
    wanted = quote.strip()
    at = text.find(wanted) if wanted else -1
    if at < 0:
        return None
    end = at + len(wanted)
    before, after = text[max(at - _AROUND, 0) : at], text[end : end + _AROUND]
    lead, trail = "… " if at > _AROUND else "", " …" if end + _AROUND < len(text) else ""
    return f"{lead}{before}", cut(wanted, _SHOWN)[0], f"{after}{trail}"


def _texts(entry: Entry, *, reasoning: bool) -> Iterator[str]:
    said, thoughts = words_of(entry)
    yield said
    if reasoning and thoughts:
        yield thoughts
    for call in entry.tool_calls:
        yield from _arguments(call.arguments)


def _arguments(text: str) -> Iterator[str]:
    """The values of a call's arguments, then the whole text: a quote is of what the agent meant, or of the JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        yield from (value for value in found.values() if isinstance(value, str))
    yield text
