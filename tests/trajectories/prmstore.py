"""Trajectories with the readings of their windows, written straight into a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import update

from sql.store import Store
from sql.tables import Chain, CurationCandidate, CurationWindow, PrmFinding, PrmWindow, Repository, Trajectory
from tests.databases import open_new
from trajectories.model import Entry
from trajectories.options import RolloutOptions
from trajectories.rows import StageRow, VerdictRow, begin_trajectory, write_entries, write_stage, write_verdict

REPOSITORY = {
    "id": 1,
    "host": "h",
    "owner": "o",
    "name": "n",
    "location": "l",
    "default_branch": None,
    "node_id": None,
}


@contextmanager
def prm_store(folder: Path) -> Iterator[Store]:
    """A store with the chains ``c`` and ``d``."""
    with closing(open_new(folder / "prchain.db")) as store:
        with store.transaction() as tx:
            tx.upsert(Repository, [REPOSITORY])
            chains = [
                {"id": name, "repository_id": 1, "length": 2, "licence": "MIT", "language": None} for name in "cd"
            ]
            tx.upsert(Chain, chains)
        yield store


def add_trajectory(
    store: Store,
    name: str,
    entries: Sequence[Entry],
    *,
    stages: Sequence[StageRow] = (),
    verdicts: Sequence[VerdictRow] = (),
    outcome: str = "rejected",
    chain: str = "c",
    sample: int = 0,
    parent: tuple[str, int] | None = None,
    context: str = "chain",
) -> None:
    """Write a trajectory that has ended."""
    row = {
        "id": name,
        "chain_id": chain,
        "sample": sample,
        "parent_id": None if parent is None else parent[0],
        "parent_step": None if parent is None else parent[1],
        "scaffold": "react",
        "model": "m",
        "judge": None,
        "options": asdict(RolloutOptions(context=context)),  # type: ignore[arg-type]
        "options_hash": "h",
        "prompts": {},
        "tools": [],
        "decided_by": None,
    }
    with store.transaction() as tx:
        begin_trajectory(tx, row)
        write_entries(tx, name, entries)
        for stage in stages:
            write_stage(tx, name, stage)
        for verdict in verdicts:
            write_verdict(tx, name, verdict)
        values = {"outcome": outcome, "accepted": 1, "overview": "All of it."}
        tx.connection.execute(update(Trajectory).where(Trajectory.id == name).values(**values))


def add_window(
    store: Store,
    name: str,
    trajectory: str,
    steps: tuple[int, int],
    findings: Sequence[tuple[str, bool]] = (),
    *,
    found_by: str = "model",
    **fields: Any,
) -> None:
    """Write a reading of the steps from the first to the last; a finding is a category and whether it is kept."""
    row = {
        "id": name,
        "trajectory_id": trajectory,
        "replay": None,
        "position": 1,
        "attempt": 1,
        "subject": f"{trajectory}/{fields.get('position', 1)}",
        "first_step": steps[0],
        "last_step": steps[1],
        "variant": "D",
        "settings": {"every": 5},
        "model": "prm-model",
        "prompt_hash": "p",
        "taxonomy_hash": "t",
        "status": "needs_correction",
        "suboptimal": True,
        "guidance": "Go on.",
        "recommended_action": None,
        "sent": True,
        "why_not": None,
        "fault": None,
        "leaks": [],
        "tokens_in": 1,
        "tokens_out": 1,
        "usd": None,
        "seconds": 0.0,
        **fields,
    }
    with store.transaction() as tx:
        tx.upsert(PrmWindow, [row])
        tx.insert_new(
            PrmFinding,
            [
                {
                    "window_id": name,
                    "ordinal": number,
                    "category": category,
                    "found_by": found_by,
                    "evidence": "cat file_1.py",
                    "step": steps[1] if kept else None,
                    "recovery": "Go on.",
                    "kept": kept,
                    "why": None if kept else "unquoted",
                }
                for number, (category, kept) in enumerate(findings)
            ],
        )


def add_curation(
    store: Store,
    trajectory: str,
    number: int,
    step: int,
    committed: int,
    chosen: int | None,
    *candidates: dict[str, Any],
) -> None:
    """Write a window of curation; a candidate has ``number``, ``seed`` and ``place``."""
    window = {
        "trajectory_id": trajectory,
        "position": 1,
        "number": number,
        "graph_id": "g",
        "step": step,
        "frontier": [],
        "established": [],
        "waiting": [],
        "floor": 0.0,
        "chosen": chosen,
        "how": None,
        "committed": committed,
        "leftovers": 0,
        "seconds": 0.0,
    }
    plain = {
        "trajectory_id": trajectory,
        "position": 1,
        "window_number": number,
        "target": None,
        "outcome": "open",
        "reason": None,
        "steps": 8,
        "progress": [],
        "grounded": None,
        "effectiveness": 0.0,
        "length": 8,
        "tree": None,
        "rewrite": None,
        "faults": [],
        "entries": [],
        "notes": [],
        "verifier_calls": 0,
        "leftovers": [],
        "usd": 0.0,
        "seconds": 0.0,
    }
    with store.transaction() as tx:
        tx.upsert(CurationWindow, [window])
        tx.upsert(CurationCandidate, [{**plain, **candidate} for candidate in candidates])
