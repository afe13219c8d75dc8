"""Real trajectories as the rows of a database, for ``prchain prm replay``. Chains and tasks are there for form."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prchain.core.errors import UsageError
from prchain.core.timestamps import now
from research.prm_windows.conversation import RealTrajectory
from sql.store import Store, Transaction
from sql.tables import Chain, ChainStage, Repository, Task, TaskStage
from trajectories.agents.tools.toolset import toolset
from trajectories.model import Ending
from trajectories.options import RolloutOptions
from trajectories.outcomes import UNSCORED
from trajectories.rows import StageRow, begin_trajectory, end_trajectory, write_entries, write_stage

_OWNER, _NAME = "SWE-agent", "mini-swe-agent"
_NO_COMMIT = "0" * 40


def write_database(trajectories: Sequence[RealTrajectory], file: Path, mirror: Path) -> None:
    """Write trajectories into a new SQLite database. Raises `UsageError` where the file is there, and `StoreError`."""
    if file.exists():
        raise UsageError(f"{file} is there already; name a new file")
    with closing(Store.open(str(file))) as store:
        with store.transaction() as tx:
            tx.upsert(Repository, [_repository(mirror)])
        for number, trajectory in enumerate(trajectories, 1):
            with store.transaction() as tx:
                _write_task(tx, trajectory, number)
                _write_trajectory(tx, trajectory)


def _write_trajectory(tx: Transaction, trajectory: RealTrajectory) -> None:
    options = RolloutOptions(scaffold="mini")
    tools = [dict(schema) for schema in toolset("bash").schemas]
    begin_trajectory(
        tx,
        {
            "id": trajectory.name,
            "chain_id": trajectory.name,
            "sample": 1,
            "parent_id": None,
            "parent_step": None,
            "scaffold": options.scaffold,
            "model": trajectory.model[:255],
            "judge": None,
            "options": asdict(options),
            "options_hash": options.hash(),
            "prompts": {},
            "tools": tools,
            "decided_by": None,
        },
    )
    write_entries(tx, trajectory.name, trajectory.entries)
    endings = (str(Ending.SUBMITTED),) if trajectory.submitted else ()
    write_stage(tx, trajectory.name, StageRow(1, UNSCORED, endings=endings, attempts=1, steps=trajectory.turns))
    end_trajectory(tx, trajectory.name, UNSCORED, reason=None, accepted=0, overview=None)


def _write_task(tx: Transaction, trajectory: RealTrajectory, number: int) -> None:
    chain = trajectory.name
    tx.upsert(Chain, [{"id": chain, "repository_id": 1, "length": 1, "licence": None, "language": None}])
    tx.upsert(ChainStage, [_chain_stage(chain, number)])
    task: dict[str, Any] = {"outcome": "ready", "reason": None, "findings": [], "attempts": 1}
    overview: dict[str, Any] = {"overview": None, "model": None, "prompts": {}, "created_at": now()}
    tx.upsert(Task, [{"chain_id": chain, **task, **overview}])
    query = {"position": 1, "plan": "", "query": trajectory.task, "interface": [], "files": []}
    tx.upsert(TaskStage, [{"chain_id": chain, **task, **query}])


def _chain_stage(chain: str, number: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("source_files", "source_lines", "test_files", "test_lines"), 0)
    return {
        "chain_id": chain,
        "position": 1,
        "repository_id": 1,
        "number": number,
        "branch": "main",
        "base_sha": _NO_COMMIT,
        "landed_sha": hashlib.sha1(chain.encode(), usedforsecurity=False).hexdigest(),
        "landed_at": now(),
        "subject": f"Trajectory {chain}",
        **nothing,
        **dict.fromkeys(("relation", "confidence", "signs")),
    }


def _repository(mirror: Path) -> dict[str, Any]:
    names = {"host": "github.com", "owner": _OWNER, "name": _NAME}
    return {"id": 1, **names, "location": str(mirror), "default_branch": "main", "node_id": None}
