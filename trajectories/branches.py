"""What an agent program asked beside the conversation of its trajectory: reading and writing its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sql.store import Transaction
from sql.tables import TrajectoryBranch


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A row of ``trajectory_branches`` (`sql.tables.rolled.TrajectoryBranch`, whose columns these are)."""

    position: int
    attempt: int
    number: int
    parent: int | None
    replies: int
    exchanges: bytes


def write_branches(
    tx: Transaction, trajectory_id: str, position: int, attempt: int, branches: Sequence[BranchRow]
) -> None:
    """Write the branches of an attempt in place of those that it had."""
    tx.delete(TrajectoryBranch, trajectory_id=trajectory_id, position=position, attempt=attempt)
    if branches:
        tx.upsert(TrajectoryBranch, [{"trajectory_id": trajectory_id, **asdict(branch)} for branch in branches])


def read_branches(tx: Transaction, trajectory_id: str) -> list[BranchRow]:
    """The branches of a trajectory, by stage, attempt and number."""
    return list(tx.read(BranchRow, TrajectoryBranch, trajectory_id=trajectory_id))
