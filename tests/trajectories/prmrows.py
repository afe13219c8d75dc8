"""Rows of guided and unguided rollouts, written into a database as runs leave them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from sql.store import Store
from sql.tables import (
    Chain,
    ChainStage,
    LlmCall,
    PrmFinding,
    PrmWindow,
    Repository,
    Trajectory,
    TrajectoryStage,
    Verdict,
)
from tests.databases import open_new
from trajectories.agents.guidance.settings import PrmSettings
from trajectories.identity import Identity

POLICY, GUIDE = "swe-agent-lm-32b", "sonnet"
BEGUN, ENDED, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z"


@dataclass(frozen=True)
class DoneStage:
    """What an agent did at a stage. `windows`: for each, whether it was suboptimal, or the fault of its reading."""

    tests: str | None = "passed"
    outcome: str = "accepted"
    patch: bool = True
    steps: int = 10
    usd: float | None = 0.02
    prm_usd: float | None = 0.1
    windows: Collection[bool | str | None] = ()
    detected: Collection[str] = ()
    """Of the first window."""
    attempts: int = 1


@dataclass
class PrmRows:
    """A database with one repository."""

    store: Store
    written: int = 0
    _chains: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, file: Path) -> PrmRows:
        """With no chain yet."""
        world = cls(open_new(file))
        with world.store.transaction() as tx:
            tx.upsert(
                Repository,
                [
                    {
                        "id": 1,
                        "host": "github.com",
                        "owner": "shop",
                        "name": "till",
                        "location": "/x",
                        "default_branch": "main",
                        "node_id": None,
                    }
                ],
            )
        return world

    def add(
        self,
        chain: str,
        *stages: DoneStage,
        observers: Collection[Mapping[str, Any]] = (),
        sample: int = 0,
        model: str = POLICY,
        guide: str = GUIDE,
        options: Mapping[str, Any] | None = None,
        task: str = "task",
        identified: bool = True,
        **fields: Any,
    ) -> str:
        """A trajectory of a chain, whose rows are written too; returns its id."""
        self.written += 1
        name = sha256(f"{self.written}".encode()).hexdigest()[:16]
        models: dict[str, Mapping[str, Any]] = {"agent": {"model": model, "temperature": 0.0}}
        if observers:
            models["prm"] = {"model": guide, "max_tokens": 4096, "temperature": 0.0, "top_p": 1.0}
        if len(stages) > 1:
            models["prefix"] = {"model": model}
        identity = Identity(
            chain,
            sample,
            models=models,
            observers=tuple(observers),
            options=options or {},
            task=task,
            proof="proof",
        )
        row = {
            "id": name,
            "chain_id": chain,
            "sample": sample,
            "parent_id": None,
            "parent_step": None,
            "scaffold": "react",
            "model": model,
            "judge": None,
            "options": {},
            "options_hash": "x",
            "prompts": {},
            "tools": [],
            "decided_by": identity.row() if identified else None,
            "outcome": "accepted",
            "reason": None,
            "accepted": len(stages),
            "overview": None,
            "usd": None,
            "tokens_in": 0,
            "tokens_out": 0,
            "steps": 0,
            "seconds": 1.0,
            "worker": None,
            "tries": 0,
            "started_at": BEGUN,
            "finished_at": ENDED,
            **fields,
        }
        self._add_chain(chain, max(len(stages), 1))
        with self.store.transaction() as tx:
            tx.upsert(Trajectory, [row])
        for position, stage in enumerate(stages, 1):
            self._add_stage(name, position, stage, observers)
        return name

    def guided(self, chain: str, *stages: DoneStage, prm: Mapping[str, str] | None = None, **more: Any) -> str:
        """A trajectory that a process reward model watched: ``D``, or with these settings."""
        settings = PrmSettings.model_validate(dict(prm or {"variant": "D"})).decided
        return self.add(chain, *stages, observers=[{"name": "prm", "settings": settings}], **more)

    def call(self, subject: str, purpose: str, usd: float | None, **fields: Any) -> None:
        """A call in the ledger: 1,000 tokens in and 100 out."""
        row = {
            "run": "run",
            "purpose": purpose,
            "subject": subject,
            "sample": 0,
            "attempt": 1,
            "ordinal": 0,
            "request_hash": "h",
            "state": "stored",
            "prompt": "p",
            "prompt_hash": "h",
            "model": "m",
            "reserved_usd": None,
            "usd": usd,
            "tokens_in": 1_000,
            "tokens_cached": 0,
            "tokens_out": 100,
            "reply": None,
            "error": None,
            "started_at": BEGUN,
            "finished_at": BEGUN,
            **fields,
        }
        with self.store.transaction() as tx:
            tx.bulk(LlmCall, list(row), [list(row.values())])

    def window(self, trajectory: str, position: int, said: bool | str | None, **fields: Any) -> str:
        """A window of a stage; returns its id."""
        self.written += 1
        name = f"w{self.written:015}"
        row = {
            "id": name,
            "trajectory_id": trajectory,
            "replay": None,
            "position": position,
            "attempt": 1,
            "subject": f"{trajectory}/{position}",
            "first_step": 1,
            "last_step": self.written,
            "variant": "D",
            "settings": {},
            "model": GUIDE,
            "prompt_hash": "h",
            "taxonomy_hash": None,
            "status": None,
            "suboptimal": said if isinstance(said, bool) else None,
            "guidance": None,
            "recommended_action": None,
            "sent": True,
            "why_not": None,
            "fault": said if isinstance(said, str) else None,
            "leaks": [],
            "tokens_in": None,
            "tokens_out": None,
            "usd": None,
            "seconds": 1.0,
            **fields,
        }
        with self.store.transaction() as tx:
            tx.upsert(PrmWindow, [row])
        return name

    def finding(self, window: str, ordinal: int, category: str, found_by: str = "model", *, kept: bool = True) -> None:
        """A finding of a window."""
        words = {"evidence": "e", "step": 1, "recovery": "r", "why": None if kept else "unquoted"}
        row = {"window_id": window, "ordinal": ordinal, "category": category, "found_by": found_by, "kept": kept}
        with self.store.transaction() as tx:
            tx.upsert(PrmFinding, [{**row, **words}])

    def _add_stage(
        self, trajectory: str, position: int, stage: DoneStage, observers: Collection[Mapping[str, Any]]
    ) -> None:
        row = {
            "trajectory_id": trajectory,
            "position": position,
            "outcome": stage.outcome,
            "reason": None,
            "start_tree": "start",
            "end_tree": "end" if stage.patch else "start",
            "conflicts": [],
            "reset_tests": [],
            "check": {},
            "endings": [],
            "attempts": stage.attempts,
            "steps": stage.steps,
            "seconds": 1.0,
        }
        verdict = {
            "trajectory_id": trajectory,
            "position": position,
            "attempt": stage.attempts,
            "tree": "end",
            "accepted": True,
            "gate": "judge",
            "score": 1.0,
            "comment": None,
            "shown": None,
            "findings": [],
            "judge_error": None,
            "tests": stage.tests,
            "grade": {},
            "usd": 0.0,
            "seconds": 1.0,
            "at": ENDED,
        }
        graded = stage.outcome in {"accepted", "rejected", "unscored"}
        with self.store.transaction() as tx:
            tx.upsert(TrajectoryStage, [row])
            if graded:
                tx.upsert(Verdict, [verdict])
        self.call(f"{trajectory}/{position}", "agent", stage.usd)
        for place, said in enumerate(stage.windows):
            self.call(f"{trajectory}/{position}", "prm", stage.prm_usd)
            window = self.window(trajectory, position, said)
            for ordinal, category in enumerate(stage.detected if not place else ()):
                self.finding(window, ordinal, category)
        assert observers or not stage.windows

    def _add_chain(self, chain: str, length: int) -> None:
        if chain in self._chains:
            return
        self._chains.add(chain)
        stages = [
            {
                "chain_id": chain,
                "position": position,
                "repository_id": 1,
                "number": 10 * len(self._chains) + position,
                "branch": "main",
                "base_sha": "b",
                "landed_sha": "l",
                "landed_at": BEGUN,
                "subject": "s",
                "source_files": 1,
                "source_lines": 5,
                "test_files": 0,
                "test_lines": 0,
                "relation": None,
                "confidence": None,
                "signs": None,
            }
            for position in range(1, length + 1)
        ]
        with self.store.transaction() as tx:
            tx.upsert(
                Chain, [{"id": chain, "repository_id": 1, "length": length, "licence": None, "language": "python"}]
            )
            tx.upsert(ChainStage, stages)
