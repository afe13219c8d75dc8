"""The accepted prefixes in a database, and which of them a rollout can take up where they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import func, select

from prchain.core.errors import ChainGone, NoTask, StepUnknown, UsageError
from sql.chosen import find_chain, repository_ids
from sql.store import Transaction
from sql.tables import Chain, Trajectory, TrajectoryMessage, TrajectoryStage
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.scaffolds.context import used_by
from trajectories.extensions import extended_prefixes
from trajectories.identity import Parent
from trajectories.options import RolloutOptions
from trajectories.outcomes import ACCEPTED_PREFIX, DONE_EARLY, OF_THE_STATE, STATE_BROKEN
from trajectories.privileged import PRIVILEGED
from trajectories.rollouts.branch import check_parent
from trajectories.rollouts.rollout import RunContext
from trajectories.rows import read_entries


class Obstacle(StrEnum):
    """Why an accepted prefix cannot be taken up."""

    STATE = "no_state"
    """The next stage has no state to begin with, and would have none again."""
    TASK = "no_task"
    """Its chain has no task that is ready, or is gone."""
    MODEL = "other_model"
    """Another model than that of the settings made it, or judged it."""
    TEXTS = "other_texts"
    """The agent's prompts or tools, or the task, are others now."""
    LIMITS = "chain_limits"
    """It has used up its limits for the whole chain."""


@dataclass(frozen=True, slots=True)
class AcceptedPrefix:
    """A trajectory whose first stages were accepted, and that no other one extends."""

    id: str
    chain_id: str
    accepted: int
    length: int
    """Stages of the chain."""
    step: int
    """The last step of its accepted stages."""
    model: str
    judge: str | None
    options: RolloutOptions
    next_outcome: str | None
    """How the stage after the accepted ones ended in it."""

    @property
    def parent(self) -> Parent:
        """Where an extension branches off."""
        return self.id, self.step


def read_prefixes(tx: Transaction, repository: str | None = None, chain: str | None = None) -> list[AcceptedPrefix]:
    """The accepted prefixes that nothing extends, of plain rollouts, in the order of their chains and samples.

    Of one repository (``owner/name``) or chain (the beginning of its id) only, where that is said. Raises `UsageError`.
    """
    last = (
        select(func.max(TrajectoryMessage.step))
        .where(TrajectoryMessage.trajectory_id == Trajectory.id, TrajectoryMessage.position <= Trajectory.accepted)
        .correlate(Trajectory)
        .scalar_subquery()
    )
    columns = (Trajectory.id, Trajectory.chain_id, Trajectory.accepted, Chain.length, last, Trajectory.model)
    query = (
        select(*columns, Trajectory.judge, Trajectory.options, TrajectoryStage.outcome)
        .join(Chain, Chain.id == Trajectory.chain_id)
        .outerjoin(
            TrajectoryStage,
            (TrajectoryStage.trajectory_id == Trajectory.id) & (TrajectoryStage.position == Trajectory.accepted + 1),
        )
        .where(
            Trajectory.outcome == ACCEPTED_PREFIX,
            Trajectory.scaffold.not_in(sorted(PRIVILEGED)),
            Trajectory.accepted < Chain.length,
        )
        .order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)
    )
    if repository is not None:
        query = query.where(Chain.repository_id.in_(repository_ids(tx, repository)))
    if chain is not None:
        query = query.where(Chain.id == find_chain(tx, chain))
    extended = set(extended_prefixes(tx).values())
    rows = [row for row in tx.connection.execute(query) if row[0] not in extended and row[4] is not None]
    return [
        AcceptedPrefix(name, chain_id, accepted, length, step, model, judge, RolloutOptions.from_row(options), ended)
        for name, chain_id, accepted, length, step, model, judge, options, ended in rows
    ]


def obstacle(tx: Transaction, prefix: AcceptedPrefix, context: RunContext) -> Obstacle | None:
    """Why no rollout in this context can take the prefix up; None where one can."""
    if prefix.next_outcome in {STATE_BROKEN, DONE_EARLY} or prefix.next_outcome in OF_THE_STATE:
        return Obstacle.STATE
    if (prefix.model, prefix.judge) != (context.gateway.model_name(AGENT), context.judge_model):
        return Obstacle.MODEL
    try:
        identity, _ = context.find(tx, prefix.chain_id, 0, prefix.parent)
        check_parent(tx, identity, context.options, context.scaffold)
    except (NoTask, ChainGone):
        return Obstacle.TASK
    except (StepUnknown, UsageError):
        return Obstacle.TEXTS
    entries = [entry for entry in read_entries(tx, prefix.id) if entry.position <= prefix.accepted]
    return Obstacle.LIMITS if used_by(entries).over(context.options.chain_limits) is not None else None


def by_options(prefixes: Sequence[AcceptedPrefix]) -> dict[RolloutOptions, list[AcceptedPrefix]]:
    """The prefixes by their options; one rollout run has one set of them."""
    groups: dict[RolloutOptions, list[AcceptedPrefix]] = {}
    for prefix in prefixes:
        groups.setdefault(prefix.options, []).append(prefix)
    return groups
