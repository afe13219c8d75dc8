"""The runs of an evaluation, from stored rollouts.

A rollout counts that began at the beginning and was told and written nothing. A stage of it is *resolved* where its
hidden tests passed on the last attempt, or, where none ran, where the gate accepted it. A stage that was not reached,
because the agent failed an earlier one, is not resolved. What nothing was said of, and what was not reached for another
reason, stands apart under its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select

from prchain.core.errors import UsageError
from prchain.core.swebench.instances import instance_id, published_instance
from sql.chosen import selected_ids
from sql.store import Transaction
from sql.tables import (
    Chain,
    ImportedTask,
    Repository,
    Trajectory,
    TrajectoryMessage,
    TrajectoryStage,
    Verdict,
)
from trajectories.agents.steps.redundancy import exploration
from trajectories.model import Entry, EntryKind
from trajectories.options import DEFAULTS
from trajectories.outcomes import (
    ACCEPTED,
    DONE_EARLY,
    FINAL,
    INFRASTRUCTURE,
    NOT_REACHED,
    OF_THE_AGENT,
    REJECTED,
    RUNNING,
    STATE_BROKEN,
    SUPERSEDED,
    SUSPECTED,
)
from trajectories.privileged import PRIVILEGED
from trajectories.rows import read_entries
from trajectories.studies.evaluation.figures import InstanceRun
from trajectories.studies.guidance.difficulty import difficulties, reference_stages
from trajectories.studies.guidance.stage_runs import reached_stages
from trajectories.studies.resolved import is_resolved
from trajectories.studies.statistics.groups import option_labels

_FAILED = frozenset({REJECTED, STATE_BROKEN}) | OF_THE_AGENT
"""Outcomes of a stage after which the later ones are not resolved: the agent failed it."""

_UNDER_WAY = frozenset({RUNNING, SUPERSEDED})
"""Outcomes of trajectories that say nothing of anybody."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Which tasks are evaluated."""

    strategy: str = "last"
    repository: str | None = None
    source: str | None = None
    """The data set that they were imported from."""


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run with what it can be grouped by."""

    run: InstanceRun
    model: str
    option: str
    """What sets its options apart from those of others."""
    setting: str
    """The same without whose work the stages began with."""
    carry: str
    """Whose work on the earlier stages they began with: ``agent``, ``reference`` or ``none``."""
    source: str
    trajectory: str
    """Empty where it is a patch that came from elsewhere."""
    name: str = ""
    """Of the instance, for people: data set and published id, which two chains may share."""


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """What is known of an instance whoever works on it."""

    key: str
    """``chain/position``."""
    position: int
    published: str
    """Its name in predictions: the publisher's, else the one that our own exports give it."""
    name: str
    """For people: data set and published id, which two chains may share; else the key."""
    repository: str
    difficulty: str
    """The publisher's, else by the size of the reference."""
    source: str


def instances_of(tx: Transaction, chains: Collection[str]) -> dict[str, InstanceFacts]:
    """The instances of these chains by their keys, sorted."""
    query = (
        select(
            Chain.id,
            Chain.length,
            Repository.owner,
            Repository.name,
            ImportedTask.source,
            ImportedTask.difficulty,
            ImportedTask.instance_id,
        )
        .join(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTask, ImportedTask.chain_id == Chain.id)
        .order_by(Chain.id)
    )
    tiers = {key: str(found.tier) for key, found in difficulties(reference_stages(tx), {})[0].items()}
    wanted = set(chains)
    found = {}
    for row in tx.connection.execute(query):
        for position in range(1, row.length + 1) if row.id in wanted else ():
            key, repository = f"{row.id}/{position}", f"{row.owner}/{row.name}"
            published = published_instance(row.instance_id, position, row.length) if row.instance_id else None
            found[key] = InstanceFacts(
                key,
                position,
                published or instance_id(repository, row.id, position),
                f"{row.source} {published}" if published else key,
                repository,
                row.difficulty or tiers.get((row.id, position), "unknown"),
                row.source or "mined",
            )
    return found


def chains_of(tx: Transaction, tasks: TaskSet) -> list[str]:
    """The chains of a set of tasks. Raises `UsageError` where there is none."""
    ids = selected_ids(tx, tasks.strategy, tasks.repository)
    if tasks.source is not None:
        known = {str(chain): str(source) for chain, source in tx.rows(ImportedTask, "chain_id", "source")}
        ids = [chain for chain in ids if known.get(chain) == tasks.source]
        if not ids:
            sources = ", ".join(sorted(set(known.values()))) or "none"
            raise UsageError(f"no task of the strategy was imported from {tasks.source}; sources are: {sources[:200]}")
    return ids


def evaluated_runs(tx: Transaction, chains: Collection[str], model: str | None = None) -> list[EvaluatedRun]:
    """The runs over these chains, of one model or of all, by trajectory and stage."""
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.sample,
            Trajectory.model,
            Trajectory.options,
            Trajectory.scaffold,
            Trajectory.outcome,
            Chain.length,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .where(Trajectory.parent_id.is_(None), Trajectory.scaffold.not_in(sorted(PRIVILEGED)))
        .order_by(Trajectory.id)
    )
    wanted = set(chains)
    rows = [
        row
        for row in tx.connection.execute(query)
        if row.chain_id in wanted and row.outcome not in _UNDER_WAY and model in (None, row.model)
    ]
    options = [{**row.options, "scaffold": row.scaffold} for row in rows]
    labels = option_labels(options)
    settings = option_labels([{**row, "carry": None} for row in options])
    instances = instances_of(tx, wanted)
    outcomes = _outcomes(tx, {row.id for row in rows})
    stages = _stages(tx, {row.id for row in rows}, outcomes)
    calls = _calls(tx)
    found = []
    for row, label, setting in zip(rows, labels, settings, strict=True):
        carry = str(row.options.get("carry", DEFAULTS["carry"]))
        before = ACCEPTED
        for position in range(1, row.length + 1):
            run = stages.get((row.id, position))
            outcome, _ = outcomes.get((row.id, position), (NOT_REACHED, 0))
            if run is None:
                apart = _apart(outcome, before, row.outcome)
                run = InstanceRun("", 0, resolved=False, patch=False, steps=0, calls=0, apart=apart, reached=False)
            before = before if outcome in {NOT_REACHED, DONE_EARLY} else outcome
            facts = instances[f"{row.chain_id}/{position}"]
            run = replace(
                run,
                instance=facts.key,
                sample=row.sample,
                calls=calls.get((row.id, position), 0),
                repository=facts.repository,
                difficulty=facts.difficulty,
                position=position,
            )
            found.append(EvaluatedRun(run, row.model, label, setting, carry, facts.source, row.id, facts.name))
    return found


def _apart(outcome: str, before: str, ended: str) -> str | None:
    """Why a stage that was not worked on says nothing of the agent; None where the agent failed it, or an earlier one.

    `before` is the outcome of the last stage before it that has one, `ended` the trajectory's.
    """
    if outcome == STATE_BROKEN:
        return None
    if outcome in {NOT_REACHED, RUNNING} and ended not in FINAL:
        return ended
    if outcome != NOT_REACHED:
        return outcome
    if before in _FAILED:
        return None
    return NOT_REACHED if before == ACCEPTED else before


def with_views(tx: Transaction, runs: Collection[EvaluatedRun]) -> list[EvaluatedRun]:
    """The runs with the share of their views of files that showed nothing new; reads their conversations."""
    found, shares = [], dict[tuple[str, int], float | None]()
    for name in sorted({it.trajectory for it in runs if it.trajectory}):
        for position, share in redundant_shares(read_entries(tx, name)).items():
            shares[name, position] = share
    for it in runs:
        found.append(replace(it, run=replace(it.run, redundant=shares.get((it.trajectory, it.run.position)))))
    return found


def redundant_shares(entries: Sequence[Entry]) -> dict[int, float | None]:
    """Stage to the share of its views of files that showed nothing new; None where it looked at none. Pure."""
    positions = dict.fromkeys(entry.position for entry in entries)
    return {
        position: exploration([entry for entry in entries if entry.position == position]).redundant_share
        for position in positions
    }


def _outcomes(tx: Transaction, wanted: Collection[str]) -> dict[tuple[str, int], tuple[str, int]]:
    """Outcome and attempts of the stages of these trajectories."""
    columns = ("trajectory_id", "position", "outcome", "attempts")
    return {
        (name, position): (outcome, attempts)
        for name, position, outcome, attempts in tx.rows(TrajectoryStage, *columns)
        if name in wanted
    }


def _stages(
    tx: Transaction, wanted: Collection[str], outcomes: Mapping[tuple[str, int], tuple[str, int]]
) -> Mapping[tuple[str, int], InstanceRun]:
    """What each trajectory did at each stage that it worked on: to its end, or to the failure that cut it off."""
    columns = ("trajectory_id", "position", "attempt", "tests", "grade")
    tests: dict[tuple[str, int, int], str | None] = {}
    broken: dict[tuple[str, int, int], tuple[bool, bool]] = {}
    for name, position, attempt, result, grade in tx.rows(Verdict, *columns):
        if name in wanted:
            tests[name, position, attempt] = result
            if grade and position > 1:
                began = grade.get("carried_failure") or grade.get("carried_fixed")
                broken[name, position, attempt] = (bool(grade.get("earlier_broken")), bool(began))
    costs: dict[tuple[str, int], Any] = {}
    for name, reached in reached_stages(tx, dict.fromkeys(wanted, False)).items():
        costs.update({(name, stage.position): stage for stage in reached})
    found: dict[tuple[str, int], InstanceRun] = {}
    for (name, position), (outcome, attempts) in outcomes.items():
        if outcome in INFRASTRUCTURE:
            found[name, position] = InstanceRun("", 0, False, False, 0, 0, usd=None, apart=outcome)
            continue
        stage = costs.get((name, position))
        if outcome not in FINAL or (not attempts and outcome not in OF_THE_AGENT):
            continue
        result = tests.get((name, position, attempts))
        resolved = stage_resolved(result, outcome)
        broke, began = broken.get((name, position, attempts), (None, None))
        said = outcome != SUSPECTED and (result is not None or outcome in {ACCEPTED, REJECTED} | OF_THE_AGENT)
        found[name, position] = InstanceRun(
            "",
            0,
            resolved,
            patch=stage.patch if stage else False,
            steps=stage.steps if stage else 0,
            calls=0,
            tokens_in=_tokens(stage, "tokens_in"),
            tokens_out=_tokens(stage, "tokens_out"),
            usd=_usd(stage),
            apart=None if said else outcome,
            broke_earlier=broke,
            began_broken=began,
        )
    return found


def stage_resolved(tests: str | None, outcome: str) -> bool:
    """Whether an evaluation counts a stage as resolved; `tests` is the grade of its last attempt. Pure."""
    return is_resolved(tests, outcome) and outcome != SUSPECTED


def _usd(stage: Any) -> float | None:
    if stage is None:
        return 0.0
    known: list[float | None] = [stage.agent.usd, stage.prm.usd]
    return None if None in known else sum(usd for usd in known if usd is not None)


def _tokens(stage: Any, side: str) -> int | None:
    if stage is None:
        return 0
    told = stage.agent.told and stage.prm.told
    return int(getattr(stage.agent, side) + getattr(stage.prm, side)) if told else None


def _calls(tx: Transaction) -> dict[tuple[str, int], int]:
    """Calls of tools by trajectory and stage: their answers are counted."""
    table = TrajectoryMessage
    query = (
        select(table.trajectory_id, table.position, func.count())
        .where(table.kind == EntryKind.OBSERVATION.value, table.tool_name.is_not(None))
        .group_by(table.trajectory_id, table.position)
    )
    return {(str(name), int(position)): int(count) for name, position, count in tx.connection.execute(query)}
