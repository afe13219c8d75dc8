"""Stored trajectories that match a rollout: the same trajectory, or one whose texts have changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, true

from sql.store import Transaction
from sql.tables import Trajectory, TrajectoryMessage
from trajectories.identity import CHOICES, PLACE, Identity, differences, digest, stored
from trajectories.model import EntryKind
from trajectories.options import RolloutOptions
from trajectories.outcomes import FINAL, SUPERSEDED
from trajectories.rows import TrajectoryRow, stored_trajectory
from trajectories.task import TaskTexts, read_texts

_OWN = {*PLACE, *CHOICES}

_OBSERVED = "?"
"""Stands for the unknown observers of an old row that holds guidance."""


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A stored trajectory, with the known part of its identity."""

    id: str
    outcome: str
    known: Mapping[str, Any]
    """Fields of `trajectories.identity.Identity`."""
    whole: bool
    """Whether all fields are known."""
    has_messages: bool
    """Whether it has messages."""

    @property
    def final(self) -> bool:
        """Whether another run would only repeat it."""
        return self.outcome in FINAL

    def differences(self, current: Mapping[str, Any]) -> set[str]:
        """The fields in which it differs from an identity (`current`, as `trajectories.identity.stored` gives it)."""
        return differences(self.known, current, whole=self.whole)


@dataclass(frozen=True, slots=True)
class OutdatedTrajectory:
    """A stored trajectory under other texts or code, and the identity's fields that differ."""

    stored: StoredTrajectory
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StandingTrajectories:
    """The stored trajectories that match a requested rollout."""

    id: str
    """The rollout's trajectory id: of the stored trajectory, else of the identity."""
    stored: StoredTrajectory | None
    outdated: tuple[OutdatedTrajectory, ...]
    """Trajectories with the same `PLACE` and `CHOICES` under other texts or code."""

    @property
    def has_messages(self) -> bool:
        """Whether the trajectory itself has messages."""
        return self.stored is not None and self.stored.has_messages

    @property
    def standing(self) -> OutdatedTrajectory | None:
        """An outdated one that is over: what ``--reuse`` takes."""
        return next((outdated for outdated in self.with_messages if outdated.stored.final), None)

    @property
    def with_messages(self) -> list[OutdatedTrajectory]:
        """The outdated ones with messages that are not superseded; finished ones first."""
        found = [
            outdated
            for outdated in self.outdated
            if outdated.stored.has_messages and outdated.stored.outcome != SUPERSEDED
        ]
        return sorted(found, key=lambda outdated: not outdated.stored.final)


def find(identity: Identity, rows: Sequence[StoredTrajectory]) -> StandingTrajectories:
    """Find the trajectory of an identity among a chain's stored ones, and those that differ only in texts or code.

    The match is the trajectory with the identity's id, else one that has no known difference; finished ones are
    preferred.
    """
    current = stored(identity.row())
    compared = [(row, row.differences(current)) for row in rows]
    same = [row for row, fields in compared if not fields]
    same.sort(key=lambda row: (row.id != identity.id, not row.final, not row.has_messages))
    outdated = [
        OutdatedTrajectory(row, tuple(sorted(fields))) for row, fields in compared if fields and not fields & _OWN
    ]
    return StandingTrajectories(same[0].id if same else identity.id, same[0] if same else None, tuple(outdated))


def read_rows(tx: Transaction, texts: Mapping[str, TaskTexts]) -> dict[str, list[StoredTrajectory]]:
    """Chain id to its stored trajectories in the order of their ids, for the chains in `texts`."""
    condition = Trajectory.chain_id == next(iter(texts)) if len(texts) == 1 else true()
    query = select(Trajectory.id, Trajectory.chain_id, Trajectory.outcome, Trajectory.decided_by).where(condition)
    message_query = (
        select(TrajectoryMessage.trajectory_id)
        .join(Trajectory, Trajectory.id == TrajectoryMessage.trajectory_id)
        .where(condition, TrajectoryMessage.ordinal == 0, Trajectory.outcome.not_in(FINAL))
    )
    ids_with_messages = {name for (name,) in tx.connection.execute(message_query)}
    found: dict[str, list[StoredTrajectory]] = {}
    for name, chain, outcome, decided_by in tx.connection.execute(query.order_by(Trajectory.id)):
        if chain in texts:
            known = stored(decided_by) if decided_by else _partial(tx, stored_trajectory(tx, name), texts[chain])
            whole, has_messages = decided_by is not None, outcome in FINAL or name in ids_with_messages
            found.setdefault(chain, []).append(StoredTrajectory(name, outcome, known, whole, has_messages))
    return found


def is_of_another_task(tx: Transaction, name: str, identity: Identity) -> bool:
    """Whether a trajectory of the chain began with other texts than the identity's, as far as known."""
    decided_by = stored_trajectory(tx, name).decided_by
    if decided_by:
        return bool(stored(decided_by)["task"] != identity.task)
    texts = read_texts(tx, identity.options.get("interface", "appended"), identity.chain)
    return any(row.id == name and "task" in row.known for row in read_rows(tx, texts)[identity.chain])


def _partial(tx: Transaction, row: TrajectoryRow, texts: TaskTexts) -> dict[str, Any]:
    """The known part of the identity of a row that stores none: from its columns and its messages."""
    options = RolloutOptions.from_row(row.options)
    agent = {"model": row.model, "max_tokens": options.max_tokens, "temperature": options.temperature}
    judge = None if row.judge is None else {"model": row.judge}
    known: dict[str, Any] = {
        "chain": row.chain_id,
        "sample": row.sample,
        "parent": None if row.parent_id is None else [row.parent_id, row.parent_step],
        "models": {"agent": agent, "judge": judge},
        "scaffold": row.scaffold,
        "options": options.chosen,
        "observers": [],
        "prompts": row.prompts,
        "tools": digest(row.tools),
    }
    condition = (TrajectoryMessage.trajectory_id == row.id,)
    kinds = (str(EntryKind.QUERY), str(EntryKind.GUIDANCE))
    query = select(TrajectoryMessage.kind, TrajectoryMessage.position, TrajectoryMessage.details)
    for kind, position, details in tx.connection.execute(query.where(*condition, TrajectoryMessage.kind.in_(kinds))):
        if kind == EntryKind.GUIDANCE:
            known["observers"] = [_OBSERVED]
        elif not _is_written_from(details, position, texts):
            known["task"] = ""
    return known


def _is_written_from(details: Mapping[str, Any], position: int, texts: TaskTexts) -> bool:
    """Whether a query's message was written from these texts, as far as its details show."""
    queries = dict(enumerate(texts.queries, 1))
    current = {"query": queries.get(position), "overview": texts.overview}
    return all(details.get(name) in (None, text) for name, text in current.items())
