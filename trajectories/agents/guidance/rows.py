"""Readings in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import delete

from prchain.core.leaks import Finding
from prchain.core.storable import clean_text
from sql.store import Transaction
from sql.tables import PrmFinding, PrmWindow
from trajectories.agents.guidance.reading import Reading
from trajectories.agents.guidance.settings import PrmSettings
from trajectories.agents.guidance.window import StepWindow
from trajectories.identity import LENGTH


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """Where a window stands."""

    trajectory: str
    position: int
    attempt: int
    subject: str
    """The ledger's."""
    last: int
    """`Entry.step` of its last step."""
    replay: str | None = None
    """The id of the replay that reads it; None while an agent runs."""

    @property
    def id(self) -> str:
        """The id of its row."""
        parts = (self.trajectory, self.replay or "", self.subject, str(self.attempt), str(self.last))
        return sha256("\0".join(parts).encode()).hexdigest()[:LENGTH]


@dataclass(frozen=True, slots=True)
class WindowRow:
    """What is stored of a reading."""

    place: WindowPlace
    window: StepWindow
    settings: PrmSettings
    model: str
    prompt_hash: str
    reading: Reading
    sent: bool
    why_not: str | None
    leaks: Sequence[Finding] = ()


def write_window(tx: Transaction, row: WindowRow) -> None:
    """Write a reading and its findings; replace those of the same window."""
    place, reading, taxonomy = row.place, row.reading, row.settings.categories
    assessment = reading.assessment
    values: dict[str, Any] = {
        "id": place.id,
        "trajectory_id": place.trajectory,
        "replay": place.replay,
        "position": place.position,
        "attempt": place.attempt,
        "subject": place.subject,
        "first_step": row.window.first,
        "last_step": place.last,
        "variant": row.settings.name,
        "settings": row.settings.decided,
        "model": row.model,
        "prompt_hash": row.prompt_hash,
        "taxonomy_hash": None if taxonomy is None else taxonomy.hash,
        "status": None if assessment is None or assessment.status is None else str(assessment.status),
        "suboptimal": reading.suboptimal,
        "guidance": None if assessment is None else clean_text(assessment.guidance),
        "recommended_action": None if reading.action is None else clean_text(reading.action),
        "sent": row.sent,
        "why_not": row.why_not,
        "fault": reading.fault,
        "leaks": [asdict(finding) for finding in row.leaks],
        "tokens_in": reading.tokens_in,
        "tokens_out": reading.tokens_out,
        "usd": reading.usd,
        "seconds": reading.seconds,
    }
    tx.upsert(PrmWindow, [values])
    tx.connection.execute(delete(PrmFinding).where(PrmFinding.window_id == place.id))
    findings = [
        {
            **asdict(finding),
            "evidence": clean_text(finding.evidence),
            "recovery": clean_text(finding.recovery),
            "window_id": place.id,
            "ordinal": number,
        }
        for number, finding in enumerate(reading.findings)
    ]
    if findings:
        tx.insert_new(PrmFinding, findings)
