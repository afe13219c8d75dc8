"""Trajectories out of the database: first those that may be exported, in few columns, then one sample at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import func, select

from sql.store import Transaction
from sql.tables import Chain, ChainStage, Repository, Task, Trajectory, TrajectoryStage, Verdict
from trajectories.export.masks import marks, refined
from trajectories.export.options import ExportOptions
from trajectories.export.samples import Sample, SampleMessage, SampleStage, answered, ended
from trajectories.export.scrubber import Scrubber
from trajectories.model import EntryKind
from trajectories.outcomes import ACCEPTED, ACCEPTED_PREFIX
from trajectories.rollouts.prefix import retold
from trajectories.rows import read_entries

NO_MESSAGES = "no_messages"
NO_OVERVIEW = "no_overview"
"""An accepted prefix whose overview was not rewritten, or does not stand in its first query: the task's own one tells
of stages that the sample does not hold."""
REFINED = "refined"


@dataclass(frozen=True, slots=True)
class ExportCandidate:
    """A trajectory that may be exported."""

    id: str
    chain_id: str
    sample: int
    repository: str
    outcome: str
    accepted: int
    scaffold: str
    model: str
    judge: str | None
    context: str
    """``chain``, or ``stage`` where the conversation began anew with each."""
    licence: str | None
    language: str | None
    usd: float | None
    steps: int
    length: int
    trees: bytes | None = None
    """Digest of A_t of every stage that is exported; None where one is not known."""
    attempts: int = 0
    """Of those stages, all together."""

    @property
    def stages(self) -> int:
        """How many stages from the first one on are exported: the accepted ones, where the trajectory is kept."""
        return self.accepted if self.outcome in {ACCEPTED, ACCEPTED_PREFIX} else self.length


def candidates(tx: Transaction, options: ExportOptions) -> list[ExportCandidate]:
    """The trajectories of the wanted outcomes, in the order of repository, chain, sample and id."""
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.sample,
            Repository.owner,
            Repository.name,
            Trajectory.outcome,
            Trajectory.accepted,
            Trajectory.scaffold,
            Trajectory.model,
            Trajectory.judge,
            Trajectory.options,
            Chain.licence,
            Chain.language,
            Trajectory.usd,
            Trajectory.steps,
            Chain.length,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(Trajectory.outcome.in_(sorted(options.outcomes)))
    )
    if options.model:
        query = query.where(Trajectory.model == options.model)
    found: dict[str, ExportCandidate] = {}
    for row in tx.connection.execute(query, execution_options={"yield_per": 1_000}):
        name = f"{row.owner}/{row.name}"
        if options.repository and name.lower() != options.repository.lower():
            continue
        context = json.loads(row.options).get("context", "chain")
        # Few values, many trajectories: each is kept once.
        told = (name, row.outcome, row.scaffold, row.model, row.judge, context, row.licence, row.language)
        repository, outcome, scaffold, model, judge, context, licence, language = map(_once, told)
        found[row.id] = ExportCandidate(
            row.id,
            row.chain_id,
            row.sample,
            repository,
            outcome,
            row.accepted,
            scaffold,
            model,
            judge,
            context,
            licence,
            language,
            row.usd,
            row.steps,
            row.length,
        )
    columns = ("trajectory_id", "position", "end_tree", "attempts")
    for trajectory, stages in groupby(tx.rows(TrajectoryStage, *columns), key=itemgetter(0)):
        if trajectory in found:
            found[trajectory] = _with_stages(found[trajectory], [(row[1], row[2], row[3]) for row in stages])
    return sorted(
        found.values(),
        key=lambda candidate: (candidate.repository.lower(), candidate.chain_id, candidate.sample, candidate.id),
    )


def _once(text: Any) -> Any:
    return sys.intern(text) if isinstance(text, str) else text


def _with_stages(candidate: ExportCandidate, rows: Sequence[tuple[int, str | None, int]]) -> ExportCandidate:
    kept = [(tree, attempts) for position, tree, attempts in rows if position <= candidate.stages]
    trees = [tree for tree, _ in kept if tree is not None]
    known = len(trees) == len(kept) > 0
    return replace(
        candidate,
        trees=blake2b("\n".join(trees).encode(), digest_size=16).digest() if known else None,
        attempts=sum(attempts for _, attempts in kept),
    )


def chain_pulls(tx: Transaction, chains: Collection[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The pull requests of chains: pairs of a chain's id and (repository's id, number)."""
    for chain, repository, number in tx.rows(ChainStage, "chain_id", "repository_id", "number"):
        if chain in chains:
            yield chain, (repository, number)


def read_sample(
    tx: Transaction,
    candidate: ExportCandidate,
    options: ExportOptions,
    *,
    whole: bool = False,
    secrets: tuple[str, ...] = (),
) -> Sample | str:
    """The sample of a trajectory, scrubbed and marked, cut to its accepted stages and after its last turn under loss;
    or the name of why there is none. `whole` keeps what comes after."""
    entries = [entry for entry in read_entries(tx, candidate.id) if entry.position <= candidate.stages]
    if candidate.outcome == ACCEPTED_PREFIX:
        entries = retold(entries)
    if not entries:
        return NO_MESSAGES
    stages, accepted = _verdicts(tx, candidate)
    if options.refinements == "drop" and refined(entries, accepted):
        return REFINED
    marked = zip(entries, marks(entries, accepted, options.masks, options.refinements), strict=True)
    kept = [pair for pair in marked if options.guidance == "keep" or pair[0].kind is not EntryKind.GUIDANCE]
    scrub = Scrubber(secrets)
    (tools, overview), (old,) = (
        next(iter(tx.rows(Trajectory, "tools", "overview", id=candidate.id))),
        next(iter(tx.rows(Task, "overview", chain_id=candidate.chain_id)), (None,)),
    )
    turns = [scrub.turn(entry, *mark, reasoning=options.reasoning != "drop") for entry, mark in kept]
    if candidate.outcome == ACCEPTED_PREFIX:
        rewritten = _with_overview(turns, scrub.text(old or ""), scrub.text(overview or ""))
        if rewritten is None:
            return NO_OVERVIEW
        turns = rewritten
    sample = Sample(
        candidate.id,
        candidate.id,
        candidate.chain_id,
        answered(turns),
        stages,
        tuple(json.loads(tools)),
        scrub.text(overview or old or "") or None,
        _facts(candidate),
    )
    return sample if whole else ended(sample)


def _verdicts(tx: Transaction, candidate: ExportCandidate) -> tuple[tuple[SampleStage, ...], dict[int, int]]:
    """The exported stages, and of each the attempt that was accepted."""
    verdicts: dict[int, list[tuple[int, bool | None, float | None, str | None, str]]] = {}
    columns = ("position", "attempt", "accepted", "score", "tests", "tree")
    for position, *rest in tx.rows(Verdict, *columns, trajectory_id=candidate.id):
        verdicts.setdefault(position, []).append((rest[0], rest[1], rest[2], rest[3], rest[4]))
    stages: list[SampleStage] = []
    accepted: dict[int, int] = {}
    ends = ("position", "attempts", "end_tree")
    for position, attempts, tree in tx.rows(TrajectoryStage, *ends, trajectory_id=candidate.id):
        if position > candidate.stages:
            continue
        of_stage = verdicts.get(position, [])
        last = next((row for row in reversed(of_stage) if row[1]), of_stage[-1] if of_stage else None)
        if last is not None and last[1]:
            accepted[position] = last[0]
        _, _, score, tests, judged = last or (0, None, None, None, None)
        stages.append(SampleStage(position, attempts, score, tests, judged or tree))
    return tuple(stages), accepted


def _with_overview(turns: Sequence[SampleMessage], old: str, new: str) -> list[SampleMessage] | None:
    """The turns with another overview in the queries; None where it cannot be put into the first one.

    A conversation that began anew with each stage tells it with each.
    """
    old, new = old.strip(), new.strip()
    told = [
        replace(turn, content=turn.content.replace(old, new))
        if old and turn.kind is EntryKind.QUERY and new not in turn.content
        else turn
        for turn in turns
    ]
    first = next((turn for turn in told if turn.kind is EntryKind.QUERY), None)
    return told if new and first is not None and new in first.content else None


def _facts(candidate: ExportCandidate) -> Mapping[str, Any]:
    return {
        "repository": candidate.repository,
        "licence": candidate.licence,
        "language": candidate.language,
        "sample": candidate.sample,
        "scaffold": candidate.scaffold,
        "model": candidate.model,
        "judge": candidate.judge,
        "outcome": candidate.outcome,
        "usd": candidate.usd,
    }


def outcome_counts(tx: Transaction) -> Iterator[tuple[str, int]]:
    """How many trajectories ended how."""
    query = select(Trajectory.outcome, func.count()).group_by(Trajectory.outcome).order_by(Trajectory.outcome)
    for outcome, count in tx.connection.execute(query):
        yield str(outcome), int(count)
