"""Sampled windows in a fresh database, a trajectory each, so that `prchain prm replay --prm-every 8` reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from research.prm_windows.sample import SampledWindow
from sql.store import Store
from sql.tables import Chain, Repository, Task
from trajectories.identity import Identity
from trajectories.model import Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.rows import begin_trajectory, end_trajectory, write_entries
from trajectories.scaffolds.tools.toolset import toolset

_AT = "2026-01-01T00:00:00Z"


def write_database(path: Path, windows: Sequence[SampledWindow]) -> None:
    """Write them, in place of a file that is there."""
    path.unlink(missing_ok=True)
    with closing(Store.open(str(path))) as store, store.transaction() as tx:
        repository = {"id": 1, "host": "github.com", "owner": "public", "name": "trajectories", "location": ""}
        tx.upsert(Repository, [{**repository, "default_branch": "main", "node_id": None}])
        for number, window in enumerate(windows, 1):
            chain = f"{number:016x}"
            row = {"id": chain, "repository_id": 1, "length": 1, "licence": None, "language": "python"}
            tx.upsert(Chain, [row])
            task = {"chain_id": chain, "outcome": "ready", "reason": None, "overview": "", "findings": "[]"}
            tx.upsert(Task, [{**task, "attempts": 1, "model": "m", "prompts": "{}", "created_at": _AT}])
            name, options = trajectory_name(window), RolloutOptions(tools="bash")
            decided = {
                "id": name,
                "chain_id": chain,
                "sample": 0,
                "parent_id": None,
                "parent_step": None,
                "scaffold": "mini",
                "model": "public",
                "judge": None,
                "options": options.to_json(),
                "options_hash": options.hash(),
                "prompts": "{}",
                "tools": json.dumps([dict(it) for it in toolset("bash").schemas]),
                "decided_by": Identity(chain, 0).to_json(),
            }
            begin_trajectory(tx, decided)
            write_entries(tx, name, cut_short(window))
            end_trajectory(tx, name, "rejected", reason=None, accepted=0, overview=None)


def trajectory_name(window: SampledWindow) -> str:
    """The id of a window's trajectory in the database."""
    return sha256(f"{window.trajectory.name}/{window.last}".encode()).hexdigest()[:16]


def cut_short(window: SampledWindow) -> list[Entry]:
    """The task, the steps of the window, and the one after it: a reading of the last `WINDOW` steps after every
    `WINDOW`-th one is of this window alone."""
    steps = range(window.window.first, window.last + 2)
    openings = {EntryKind.SYSTEM, EntryKind.QUERY}
    kept = [it for it in window.trajectory.entries if it.kind in openings or it.step in steps]
    return [replace(it, ordinal=number) for number, it in enumerate(kept)]
