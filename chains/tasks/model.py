"""Chains and the tasks made of them, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prchain.leaks import Finding
from sql.outcomes import READY

QUERY_REJECTED = "query_rejected"
OVERVIEW_REJECTED = "overview_rejected"
NOT_REACHED = "not_reached"

FINAL = frozenset({READY, QUERY_REJECTED, OVERVIEW_REJECTED, "bad_reply", "model_refused", "context_too_long"})
"""Outcomes of a task that another run would only repeat. Any other one is an error's name, and the next run retries."""

SKIPPED = frozenset({"chain_gone", "task_superseded"})
"""How a run's work on a chain can end without a row of its own: there is nothing left to do."""

Interface = Literal["appended", "paper"]
"""Whether a rollout is told the names that hidden tests need: below the query, or, as in the paper, not at all."""


@dataclass(frozen=True, slots=True)
class SelectedStage:
    """One stage of a chain, as it was chosen."""

    position: int
    """1 is the first."""
    number: int
    branch: str
    base_sha: str
    landed_sha: str
    landed_at: str
    subject: str


@dataclass(frozen=True, slots=True)
class TaskChain:
    """A chain with its repository."""

    id: str
    repository_id: int
    host: str
    full_name: str
    location: str
    """Where the repository was mined from: a path of this machine, or a clone URL."""
    licence: str | None
    language: str | None
    stages: tuple[SelectedStage, ...]


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """A finding of the leak check, and the text it was found in: ``query``, ``overview`` or ``issue OWNER/NAME#N``."""

    text: str
    finding: Finding

    def row(self) -> dict[str, Any]:
        """As the database and the export keep it."""
        found = self.finding
        return {
            "text": self.text,
            "kind": found.kind,
            "severity": found.severity,
            "evidence": found.evidence,
            "stage": found.stage,
        }


@dataclass(frozen=True, slots=True)
class StageQuery:
    """What became of one stage's query."""

    position: int
    outcome: str
    reason: str | None = None
    plan: str | None = None
    query: str | None = None
    """The text as it stands; where it was rejected, the last one that was."""
    interface: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """What became of one chain's task."""

    chain_id: str
    outcome: str
    reason: str | None = None
    overview: str | None = None
    findings: tuple[dict[str, Any], ...] = ()
    attempts: int = 0
    stages: tuple[StageQuery, ...] = field(default=())


def full_query(query: str, names: Sequence[str], interface: Interface = "appended") -> str:
    """The query as an agent reads it: where tests gate, with the names that only they could tell below it."""
    if interface == "paper" or not names:
        return query
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"{query}\n\nInterface: tests that you cannot see use the names below. They do not exist yet; "
        f"what you write has to provide them where they fit.\n{listed}"
    )
