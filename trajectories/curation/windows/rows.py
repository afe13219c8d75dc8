"""Windows and candidates in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import update

from prchain.core.storable import clean_text
from sql.store import Transaction
from sql.tables import CurationCandidate, CurationWindow, Establishment
from trajectories.curation.graphs.rows import entry_from
from trajectories.curation.windows.candidates import WindowCandidate
from trajectories.curation.windows.establishing import EstablishedNode
from trajectories.curation.windows.grounding import RewriteFault
from trajectories.curation.windows.progress import Standing, StepProgress


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A window of a stage of a trajectory; `number` counts from 1."""

    trajectory: str
    position: int
    number: int

    @property
    def columns(self) -> dict[str, Any]:
        """Of the window's own row."""
        return {"trajectory_id": self.trajectory, "position": self.position, "number": self.number}

    @property
    def parts(self) -> dict[str, Any]:
        """Of the rows of its parts."""
        return {"trajectory_id": self.trajectory, "position": self.position, "window_number": self.number}


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """A window as it is stored."""

    key: WindowKey
    graph_id: str
    step: int
    frontier: tuple[str, ...]
    standing: Standing
    floor: float
    chosen: int | None = None
    how: str | None = None
    committed: int = 0
    leftovers: int = 0
    seconds: float = 0.0


def read_windows(tx: Transaction, trajectory: str, position: int | None = None) -> list[StoredWindow]:
    """The windows of a trajectory, or of one stage of it, in order."""
    columns = (
        "position",
        "number",
        "graph_id",
        "step",
        "frontier",
        "established",
        "waiting",
        "floor",
        "chosen",
        "how",
        "committed",
        "leftovers",
        "seconds",
    )
    where = {} if position is None else {"position": position}
    windows = []
    for row in tx.rows(CurationWindow, *columns, trajectory_id=trajectory, **where):
        at, number, graph_id, step, frontier, established, waiting, *rest = row
        standing = Standing(frozenset(established), frozenset(waiting))
        key = WindowKey(trajectory, at, number)
        windows.append(StoredWindow(key, graph_id, step, tuple(frontier), standing, *rest))
    return windows


def begin_window(tx: Transaction, window: StoredWindow) -> None:
    """Write the row of a window that begins."""
    row = {
        **window.key.columns,
        "graph_id": window.graph_id,
        "step": window.step,
        "frontier": window.frontier,
        "established": sorted(window.standing.established),
        "waiting": sorted(window.standing.waiting),
        "floor": window.floor,
        "chosen": None,
        "how": None,
        "committed": 0,
        "leftovers": 0,
        "seconds": 0.0,
    }
    tx.insert_new(CurationWindow, [row])


def decide_window(tx: Transaction, window: StoredWindow) -> None:
    """Write which candidate a window commits."""
    conditions = [getattr(CurationWindow, name) == value for name, value in window.key.columns.items()]
    values = {name: getattr(window, name) for name in ("chosen", "how", "committed", "leftovers", "seconds")}
    tx.connection.execute(update(CurationWindow).where(*conditions).values(**values))


def write_candidate(tx: Transaction, key: WindowKey, candidate: WindowCandidate) -> None:
    """Write a candidate and what its steps established."""
    row = {
        **key.parts,
        **{name: getattr(candidate, name) for name in _PLAIN},
        "reason": None if candidate.reason is None else clean_text(candidate.reason),
        "steps": len(candidate.steps),
        "progress": [asdict(step) for step in candidate.progress],
        "rewrite": candidate.rewrite,
        "faults": [fault._asdict() for fault in candidate.faults],
        "entries": [asdict(entry) for entry in candidate.entries],
        "notes": candidate.notes,
        "leftovers": candidate.leftovers,
    }
    tx.upsert(CurationCandidate, [row])
    rows = [{**key.parts, "candidate": candidate.number, **asdict(it)} for it in candidate.established]
    if rows:
        tx.upsert(Establishment, rows)


_PLAIN = (
    "number",
    "seed",
    "outcome",
    "reason",
    "place",
    "target",
    "grounded",
    "effectiveness",
    "length",
    "tree",
    "verifier_calls",
    "usd",
    "seconds",
)


def read_candidates(tx: Transaction, key: WindowKey) -> list[WindowCandidate]:
    """The candidates of a window, by number."""
    found: dict[int, list[EstablishedNode]] = {}
    for number, node, step, evidence in tx.rows(Establishment, "candidate", "node", "step", "evidence", **key.parts):
        found.setdefault(number, []).append(EstablishedNode(node, step, evidence))
    texts = ("progress", "rewrite", "faults", "entries", "notes", "leftovers")
    candidates = []
    for row in tx.rows(CurationCandidate, *_PLAIN, *texts, **key.parts):
        values = dict(zip((*_PLAIN, *texts), row, strict=True))
        candidates.append(
            WindowCandidate(
                **{name: values[name] for name in _PLAIN},
                progress=tuple(map(_progress, values["progress"])),
                rewrite=values["rewrite"],
                faults=tuple(RewriteFault(**fault) for fault in values["faults"]),
                entries=tuple(map(entry_from, values["entries"])),
                notes=tuple(values["notes"]),
                leftovers=tuple(values["leftovers"]),
                established=tuple(sorted(found.get(values["number"], ()), key=lambda it: (it.step, it.node))),
            )
        )
    return sorted(candidates, key=lambda candidate: candidate.number)


def _progress(values: Mapping[str, Any]) -> StepProgress:
    return StepProgress(values["progress"], tuple(values["counted"]), tuple(values["premature"]))
