"""Extensions: a trajectory that goes on where the accepted stages of another one end, and has more of them.

daVinci-Agency calls this scaling of success: trajectories that ended before their chain did are continued, which makes
the Long set of its Short one (section 6.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import aliased

from sql.store import Transaction
from sql.tables import Trajectory, TrajectoryMessage
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import ACCEPTED_PREFIX, KEPT


def extension_rows() -> Any:
    """Select pairs of ids: an accepted prefix, and a kept trajectory that shares all of its accepted stages and has
    more."""
    shorter, longer = aliased(Trajectory), aliased(Trajectory)
    last = (
        select(func.max(TrajectoryMessage.step))
        .where(TrajectoryMessage.trajectory_id == shorter.id, TrajectoryMessage.position <= shorter.accepted)
        .correlate(shorter)
        .scalar_subquery()
    )
    return (
        select(shorter.id, longer.id)
        .join(longer, longer.parent_id == shorter.id)
        .where(
            shorter.outcome == ACCEPTED_PREFIX,
            longer.outcome.in_(sorted(KEPT)),
            longer.accepted > shorter.accepted,
            longer.parent_step >= last,
        )
    )


def not_extended() -> Any:
    """A condition on `Trajectory`: it has no extension."""
    return Trajectory.id.not_in(select(extension_rows().subquery().c[0]))


def extended_prefixes(tx: Transaction) -> dict[str, str]:
    """The id of each extension to that of the prefix that it extends."""
    return {str(longer): str(shorter) for shorter, longer in tx.connection.execute(extension_rows())}


def shared_entries(entries: Sequence[Entry], step: int) -> list[Entry]:
    """What a branch or an extension begins with: the entries up to the end of a step, without a query or comment after
    it. Empty where there is no such step."""
    places = [
        place
        for place, entry in enumerate(entries)
        if entry.step == step and entry.kind in (EntryKind.TURN, EntryKind.OBSERVATION)
    ]
    return list(entries[: places[-1] + 1]) if places else []
