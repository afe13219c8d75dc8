"""Chains and their tasks, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prchain.core.code.needs import Need
from prchain.core.leaks import Finding
from prchain.core.leaks.finding import Finder
from sql.outcomes import READY

QUERY_REJECTED = "query_rejected"
OVERVIEW_REJECTED = "overview_rejected"
CHAIN_REJECTED = "chain_rejected"
NOT_REACHED = "not_reached"
WAITING = "waiting"
"""Of an imported task: no repository holds the commit that it begins on."""

FINAL = frozenset(
    {READY, CHAIN_REJECTED, QUERY_REJECTED, OVERVIEW_REJECTED, "bad_reply", "model_refused", "context_too_long"}
)
"""Outcomes of a task that another run would only repeat. Any other is an error's name, and the next run retries."""

SKIPPED = frozenset({"chain_gone", "task_superseded"})
"""Outcomes of a run's work on a chain that have no row: there is nothing left to do."""


@dataclass(frozen=True, slots=True)
class SelectedStage:
    """One stage of a chain, as chosen."""

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
    """Where the repository was mined from: a local path, or a clone URL."""
    licence: str | None
    language: str | None
    stages: tuple[SelectedStage, ...]


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """A finding of the leak check or of the reviewer, and the text that has it: ``query``, ``overview`` or
    ``issue OWNER/NAME#N``."""

    text: str
    finding: Finding

    def row(self) -> dict[str, Any]:
        """The finding as a row of the database and the export."""
        found = self.finding
        return {
            "text": self.text,
            "kind": found.kind,
            "severity": found.severity,
            "evidence": found.evidence,
            "stage": found.stage,
            "by": found.by,
            "why": found.why or None,
        }


@dataclass(frozen=True, slots=True)
class StageQuery:
    """The result for one stage's query."""

    position: int
    outcome: str
    reason: str | None = None
    plan: str | None = None
    query: str | None = None
    """The text; where it was rejected, the last attempt."""
    needs: tuple[Need, ...] = ()
    """What its hidden tests need; what an agent may be told of it is the stage's interface."""
    files: tuple[str, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    attempts: int = 0
    refused: tuple[Finder, ...] = field(default=(), compare=False)
    """Who refused its versions in this run, one by one; not stored."""


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """The result for one chain's task."""

    chain_id: str
    outcome: str
    reason: str | None = None
    overview: str | None = None
    findings: tuple[dict[str, Any], ...] = ()
    attempts: int = 0
    stages: tuple[StageQuery, ...] = field(default=())
    refused: tuple[Finder, ...] = field(default=(), compare=False)
    """As in `StageQuery`, of the overview."""
