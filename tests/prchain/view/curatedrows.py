"""Windows of curation in a copy of the demo's database, which has a process graph and no curated trajectory."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from sql.store import Store
from sql.tables import CurationCandidate, CurationWindow, Establishment, GraphRow, Trajectory

_CANDIDATES: tuple[dict[str, Any], ...] = (
    {"effectiveness": 0.4, "length": 320},
    {"effectiveness": 0.7, "length": 280},
    {"effectiveness": 0.9, "length": 210, "place": 1, "target": "lookup", "grounded": True},
    {"outcome": "malformed", "place": 0, "faults": [{"rule": "C3", "words": "it calls no tool"}], "grounded": None},
)
_REWRITE = {"text": "The table comes first.", "calls": [{"name": "bash", "arguments": '{"command": "cat units.py"}'}]}


def add_windows(store: Store) -> str:
    """Make the trajectory of the graph's chain a curated one with two windows, of which the second is under way;
    returns its id."""
    with store.transaction() as tx:
        [(graph, chain, position)] = tx.rows(GraphRow, "id", "chain_id", "position")
        [(name,)] = tx.rows(Trajectory, "id", chain_id=chain)
        decided = {"curation": {"options": {}, "graph": graph}}
        curated = update(Trajectory).where(Trajectory.id == name).values(scaffold="curated", decided_by=decided)
        tx.connection.execute(curated)
        of = {"trajectory_id": name, "position": position}
        for number, chosen in ((1, 2), (2, None)):
            window: dict[str, Any] = {"number": number, "graph_id": graph, "step": 3 * (number - 1), "waiting": []}
            window |= {"frontier": ["table", "lookup"], "established": ["table"] * (number - 1), "floor": 0.5}
            window |= {"chosen": chosen, "how": chosen and "floor", "committed": (chosen and 3) or 0}
            tx.upsert(CurationWindow, [{**of, **window, "leftovers": 0, "seconds": 1.0}])
            of_window = {**of, "window_number": number}
            tx.upsert(CurationCandidate, [{**of_window, **_candidate(at, it)} for at, it in enumerate(_CANDIDATES)])
        shown = ({"node": "table", "step": 1}, {"node": "lookup", "step": 3})
        tx.upsert(
            Establishment, [{**of, "window_number": 1, "candidate": 2, **it, "evidence": "it prints"} for it in shown]
        )
    return str(name)


def _candidate(number: int, own: dict[str, Any]) -> dict[str, Any]:
    progress = [{"progress": 0.2, "counted": ["table"], "premature": ["plan"]}]
    row: dict[str, Any] = {
        "seed": number % 2,
        "place": None,
        "target": None,
        "outcome": "open",
        "reason": None,
        "steps": 3,
    }
    row |= {"progress": progress, "grounded": None, "effectiveness": 0.0, "length": 0, "tree": None, "faults": []}
    row |= {"rewrite": _REWRITE if number > 1 else None, "entries": [], "notes": [], "verifier_calls": 0}
    return {**row, "leftovers": [], "usd": 0.0, "seconds": 1.0, **own, "number": number}
