"""Stored trajectories beside the one that a rollout would be: the same one, or one under texts that are others now."""

from __future__ import annotations

import json
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
from trajectories.task import TaskTexts, read_texts

_COLUMNS = (
    "id",
    "chain_id",
    "sample",
    "parent_id",
    "parent_step",
    "scaffold",
    "model",
    "judge",
    "options",
    "prompts",
    "tools",
)

_OWN = {*PLACE, *CHOICES}

_OBSERVED = "?"
"""Stands for the observers of a row that holds guidance, and does not say whose."""


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory with what is known of what decided it."""

    id: str
    outcome: str
    known: Mapping[str, Any]
    """Fields of `trajectories.identity.Identity`."""
    whole: bool
    """Whether all of them are known."""
    begun: bool
    """Whether anything was said in it."""

    @property
    def final(self) -> bool:
        """Whether another run would only repeat it."""
        return self.outcome in FINAL

    def differences(self, wanted: Mapping[str, Any]) -> set[str]:
        """The fields of an identity, as `trajectories.identity.stored` gives them, in which it is another."""
        return differences(self.known, wanted, whole=self.whole)


@dataclass(frozen=True, slots=True)
class OutdatedTrajectory:
    """A stored trajectory under other texts or code, and the fields of the identity that differ."""

    stored: StoredTrajectory
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StandingTrajectories:
    """What stands beside a rollout that is wanted."""

    id: str
    """Of the trajectory that it is: a stored one's, or the identity's own."""
    stored: StoredTrajectory | None
    outdated: tuple[OutdatedTrajectory, ...]
    """Those of the same place and choices under other texts or code."""

    @property
    def is_begun(self) -> bool:
        """Whether something was said in the trajectory itself."""
        return self.stored is not None and self.stored.begun

    @property
    def standing(self) -> OutdatedTrajectory | None:
        """An outdated one that is over: what ``--reuse`` takes."""
        return next((outdated for outdated in self.begun if outdated.stored.final), None)

    @property
    def begun(self) -> list[OutdatedTrajectory]:
        """The outdated ones in which something was said and that were not given up, those that are over first."""
        found = [
            outdated for outdated in self.outdated if outdated.stored.begun and outdated.stored.outcome != SUPERSEDED
        ]
        return sorted(found, key=lambda outdated: not outdated.stored.final)


def find(identity: Identity, rows: Sequence[StoredTrajectory]) -> StandingTrajectories:
    """What of a chain's stored trajectories is the one of an identity, and which would be but for other texts.

    It is the one of the identity's id, else one that differs in nothing that is known of it: one that is over before
    one that is not.
    """
    wanted = stored(identity.to_json())
    unlike = [(row, row.differences(wanted)) for row in rows]
    same = [stored for stored, fields in unlike if not fields]
    same.sort(key=lambda stored: (stored.id != identity.id, not stored.final, not stored.begun))
    outdated = [
        OutdatedTrajectory(stored, tuple(sorted(fields))) for stored, fields in unlike if fields and not fields & _OWN
    ]
    return StandingTrajectories(same[0].id if same else identity.id, same[0] if same else None, tuple(outdated))


def read_rows(tx: Transaction, texts: Mapping[str, TaskTexts]) -> dict[str, list[StoredTrajectory]]:
    """The stored trajectories of the chains whose texts these are, by chain and in the order of their ids."""
    of = Trajectory.chain_id == next(iter(texts)) if len(texts) == 1 else true()
    query = select(Trajectory.id, Trajectory.chain_id, Trajectory.outcome, Trajectory.decided_by).where(of)
    old = select(*(getattr(Trajectory, name) for name in _COLUMNS)).where(of, Trajectory.decided_by.is_(None))
    partly = {row["id"]: row for row in tx.connection.execute(old).mappings()}
    begun = (
        select(TrajectoryMessage.trajectory_id)
        .join(Trajectory, Trajectory.id == TrajectoryMessage.trajectory_id)
        .where(of, TrajectoryMessage.ordinal == 0, Trajectory.outcome.not_in(FINAL))
    )
    said = {name for (name,) in tx.connection.execute(begun)}
    found: dict[str, list[StoredTrajectory]] = {}
    for name, chain, outcome, decided_by in tx.connection.execute(query.order_by(Trajectory.id)):
        if chain in texts:
            known = stored(decided_by) if decided_by else _partial(tx, partly[name], texts[chain])
            whole, spoken = decided_by is not None, outcome in FINAL or name in said
            found.setdefault(chain, []).append(StoredTrajectory(name, outcome, known, whole, spoken))
    return found


def is_of_another_task(tx: Transaction, name: str, identity: Identity) -> bool:
    """Whether a trajectory of the chain was begun with other texts than an identity's, as far as that is known."""
    [(decided_by,)] = tx.rows(Trajectory, "decided_by", id=name)
    if decided_by:
        return bool(stored(decided_by)["task"] != identity.task)
    texts = read_texts(tx, identity.options.get("interface", "appended"), identity.chain)
    return any(row.id == name and "task" in row.known for row in read_rows(tx, texts)[identity.chain])


def _partial(tx: Transaction, row: Mapping[Any, Any], texts: TaskTexts) -> dict[str, Any]:
    """What a row of before identities were stored tells: its columns, and what its messages show."""
    options = RolloutOptions.from_json(row["options"])
    agent = {"model": row["model"], "max_tokens": options.max_tokens, "temperature": options.temperature}
    judge = None if row["judge"] is None else {"model": row["judge"]}
    known: dict[str, Any] = {
        "chain": row["chain_id"],
        "sample": row["sample"],
        "parent": None if row["parent_id"] is None else [row["parent_id"], row["parent_step"]],
        "models": {"agent": agent, "judge": judge},
        "scaffold": row["scaffold"],
        "options": options.chosen,
        "observers": [],
        "prompts": json.loads(row["prompts"]),
        "tools": digest(json.loads(row["tools"])),
    }
    of = (TrajectoryMessage.trajectory_id == row["id"],)
    kinds = (str(EntryKind.QUERY), str(EntryKind.GUIDANCE))
    query = select(TrajectoryMessage.kind, TrajectoryMessage.position, TrajectoryMessage.details)
    for kind, position, details in tx.connection.execute(query.where(*of, TrajectoryMessage.kind.in_(kinds))):
        if kind == EntryKind.GUIDANCE:
            known["observers"] = [_OBSERVED]
        elif not _told(json.loads(details), position, texts):
            known["task"] = ""
    return known


def _told(details: Mapping[str, Any], position: int, texts: TaskTexts) -> bool:
    """Whether a query's message was written from these texts, as far as its details tell."""
    queries = dict(enumerate(texts.queries, 1))
    told = {"query": queries.get(position), "overview": texts.overview}
    return all(details.get(name) in (None, text) for name, text in told.items())
