"""Stored trajectories beside the one that a rollout would be: the same one, or one under texts that are others now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from sql.store import Transaction
from sql.tables import Trajectory, TrajectoryMessage
from trajectories.identity import CHOICES, PLACE, Identity, differences, digest, stored
from trajectories.model import Kind
from trajectories.options import RolloutOptions
from trajectories.outcomes import FINAL, SUPERSEDED
from trajectories.task import TaskTexts

_COLUMNS = (
    "id", "chain_id", "sample", "parent_id", "parent_step", "scaffold", "model", "judge", "options", "prompts", "tools",
    "decided_by", "outcome",
)  # fmt: skip

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
    """Whether anything was said in it: to one in which nothing was, the texts of today are as good as those before."""

    @property
    def final(self) -> bool:
        """Whether another run would only repeat it."""
        return self.outcome in FINAL

    def differences(self, identity: Identity) -> set[str]:
        """The fields of an identity in which it is another."""
        return differences(self.known, identity, whole=self.whole)


@dataclass(frozen=True, slots=True)
class Outdated:
    """A stored trajectory under other texts or code, and the fields of the identity that differ."""

    stored: StoredTrajectory
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What stands beside a rollout that is wanted."""

    id: str
    """Of the trajectory that it is: a stored one's, or the identity's own."""
    stored: StoredTrajectory | None
    outdated: tuple[Outdated, ...]
    """Those of the same place and choices under other texts or code."""

    @property
    def standing(self) -> Outdated | None:
        """An outdated one that is over: what ``--reuse`` takes."""
        return next((one for one in self.begun if one.stored.final), None)

    @property
    def begun(self) -> list[Outdated]:
        """The outdated ones in which something was said and that were not given up, those that are over first."""
        found = [one for one in self.outdated if one.stored.begun and one.stored.outcome != SUPERSEDED]
        return sorted(found, key=lambda one: not one.stored.final)


def find(identity: Identity, rows: Sequence[StoredTrajectory]) -> Found:
    """What of a chain's stored trajectories is the one of an identity, and which would be but for other texts.

    The id decides; else it is the row that differs in nothing that is known of it, or one of the same choices in which
    nothing was said yet.
    """
    same = next((one for one in rows if one.id == identity.id), None)
    others: list[Outdated] = []
    for one in rows:
        if one is same:
            continue
        unlike = one.differences(identity)
        if unlike & {*PLACE, *CHOICES}:
            continue
        if same is None and (not unlike or not (one.begun or one.final)):
            same = one
        elif unlike:
            others.append(Outdated(one, tuple(sorted(unlike))))
    return Found(same.id if same else identity.id, same, tuple(others))


def read_rows(tx: Transaction, texts: Mapping[str, TaskTexts]) -> dict[str, list[StoredTrajectory]]:
    """The stored trajectories of the chains whose texts these are, by chain; oldest rule first, then by id."""
    columns = [getattr(Trajectory, name) for name in _COLUMNS]
    query = select(*columns).order_by(Trajectory.id)
    if len(texts) == 1:
        query = query.where(Trajectory.chain_id == next(iter(texts)))
    rows = [row for row in tx.connection.execute(query).mappings() if row["chain_id"] in texts]
    open_ones = [row["id"] for row in rows if row["outcome"] not in FINAL]
    begun = _begun(tx, open_ones)
    found: dict[str, list[StoredTrajectory]] = {}
    for row in sorted(rows, key=lambda one: one["decided_by"] is not None):
        whole = row["decided_by"] is not None
        known = stored(row["decided_by"]) if whole else _partial(tx, row, texts[row["chain_id"]])
        said = row["outcome"] in FINAL or row["id"] in begun
        one = StoredTrajectory(row["id"], row["outcome"], known, whole, said)
        found.setdefault(row["chain_id"], []).append(one)
    return found


def _begun(tx: Transaction, names: Iterable[str]) -> set[str]:
    found = set()
    for name in names:
        query = select(TrajectoryMessage.ordinal).where(TrajectoryMessage.trajectory_id == name).limit(1)
        if tx.connection.execute(query).first() is not None:
            found.add(name)
    return found


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
    kinds = (str(Kind.QUERY), str(Kind.GUIDANCE))
    query = select(TrajectoryMessage.kind, TrajectoryMessage.position, TrajectoryMessage.details)
    for kind, position, details in tx.connection.execute(query.where(*of, TrajectoryMessage.kind.in_(kinds))):
        if kind == Kind.GUIDANCE:
            known["observers"] = [_OBSERVED]
        elif not _told(json.loads(details), position, texts):
            known["task"] = ""
    return known


def _told(details: Mapping[str, Any], position: int, texts: TaskTexts) -> bool:
    """Whether a query's message was written from these texts, as far as its details tell."""
    queries = dict(enumerate(texts.queries, 1))
    told = {"query": queries.get(position), "overview": texts.overview}
    return all(details.get(name) in (None, text) for name, text in told.items())
