"""Trajectories from the database: first the candidates for export, in few columns, then one sample at a time."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import func, select

from sql.benchmarks import benchmark_chains
from sql.chosen import selected_ids
from sql.label_filter import fits
from sql.labels import labels_by_chain
from sql.store import Transaction
from sql.tables import (
    Chain,
    ChainStage,
    ImportedTask,
    ImportedTrajectory,
    Repository,
    Trajectory,
    TrajectoryMessage,
    TrajectoryStage,
)
from trajectories.agents.scaffolds.turns import valid_tool_name
from trajectories.agents.steps.conversation import told_tokens
from trajectories.audit.auditing import audit
from trajectories.audit.finding import AuditFinding
from trajectories.curation.windows.settings import has_settings, read_settings, settings_words
from trajectories.export.branches import as_main, beside_main
from trajectories.export.grounded import ungrounded_steps
from trajectories.export.masks import has_rejected_rounds, loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.export.samples import Sample, SampleMessage, with_missing_answers, without_untrained_tail
from trajectories.export.scrubber import Scrubber
from trajectories.export.shortest import ResponseLength
from trajectories.export.turn_tokens import tokened
from trajectories.export.verdicts import stages_of
from trajectories.extensions import shared_entries
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import ACCEPTED_PREFIX, KEPT, RECORDED
from trajectories.provenance import TrajectoryOrigin, project_of, read_provenance, repository_of
from trajectories.rollouts.prefix import retold
from trajectories.rows import TrajectoryRow, read_entries, read_tokens, stored_trajectory
from trajectories.task import read_overview

NO_MESSAGES = "no_messages"
NO_OVERVIEW = "no_overview"
"""With ``--retell``: an accepted prefix whose overview was not rewritten, or whose first query does not hold it."""
REFINED = "refined"
BENCHMARK = "benchmark"
"""Its task was imported from a data set that is there to measure models, or is the same as one that was."""

UNLABELLED = "unlabelled"
"""People would drop its chain, or nobody would keep it, and ``--labels`` goes by that."""


@dataclass(frozen=True, slots=True)
class ExportCandidate:
    """A trajectory that may be exported."""

    id: str
    chain_id: str
    """Of an import its own id: it shares no task with any other."""
    sample: int
    repository: str
    """Of an import what its document says, or ``unknown``."""
    outcome: str
    accepted: int
    scaffold: str
    model: str
    judge: str | None
    context: str
    """``chain``, or ``stage`` if the conversation began anew with each stage."""
    licence: str | None
    language: str | None
    usd: float | None
    steps: int
    length: int
    options_hash: str = ""
    benchmark: bool = False
    """See `BENCHMARK`."""
    labelled: bool = True
    """See `UNLABELLED`."""
    imported: bool = False
    """Whether others made it: it has no chain."""
    beside: bool = False
    """See `trajectories.export.branches.BRANCH`."""
    windows: str | None = None
    """Of a curated one, the settings of its windows (`trajectories.curation.windows.settings`)."""
    trees: bytes | None = None
    """Digest of A_t of all exported stages; None if one is unknown."""
    attempts: int = 0
    """The sum over the exported stages."""

    @property
    def stages(self) -> int:
        """How many stages, from the first, are exported: the accepted ones of a kept trajectory, else all. Of an import
        those that its document holds."""
        return self.accepted if self.outcome in KEPT else self.length


def candidates(tx: Transaction, options: ExportOptions) -> list[ExportCandidate]:
    """The trajectories that the options ask for, in the order of repository, chain, sample and id."""
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
            Trajectory.options_hash,
            ImportedTrajectory.agent,
            ImportedTrajectory.licence.label("told_licence"),
            ImportedTrajectory.repository.label("told_repository"),
            ImportedTrajectory.told,
            ImportedTrajectory.session,
        )
        .outerjoin(Chain, Chain.id == Trajectory.chain_id)
        .outerjoin(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTrajectory, ImportedTrajectory.trajectory_id == Trajectory.id)
        .where(Trajectory.outcome.in_(sorted(options.outcomes)))
    )
    if options.model:
        query = query.where(Trajectory.model == options.model)
    if options.scaffolds is not None:
        query = query.where(Trajectory.scaffold.in_(sorted(options.scaffolds)))
    of_strategy = None if options.strategy is None else set(selected_ids(tx, options.strategy))
    found: dict[str, ExportCandidate] = {}
    recorded: list[tuple[str, str | None, Mapping[str, Any]]] = []
    barred, labels = benchmark_chains(tx), labels_by_chain(tx)
    windows = read_settings(tx)
    for row in tx.connection.execute(query, execution_options={"yield_per": 1_000}):
        imported = row.chain_id is None
        name = repository_of(row.told_repository) if imported else f"{row.owner}/{row.name}"
        if options.repository and name.lower() != options.repository.lower():
            continue
        if of_strategy is not None and row.chain_id not in of_strategy:
            continue
        settings = windows.get(row.id)
        if settings is not None and not has_settings(settings, options.windows):
            continue
        context = row.options.get("context", "chain")
        # Few different values, many trajectories: each value is in memory once.
        values = (name, row.outcome, row.scaffold, row.model, row.judge, context, row.licence, row.language)
        if imported:
            if row.outcome == RECORDED:
                recorded.append((row.id, row.session, row.told))
            values = (*values[:2], row.agent, *values[3:6], row.told_licence, row.told.get("language"))
        repository, outcome, scaffold, model, judge, context, licence, language = map(_interned, values)
        found[row.id] = ExportCandidate(
            row.id,
            row.chain_id or row.id,
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
            row.length or 0,
            sys.intern(row.options_hash),
            row.chain_id in barred,
            fits(labels, row.chain_id or "", options.labels),
            imported,
            windows=None if settings is None else sys.intern(settings_words(settings)),
        )
    columns = ("trajectory_id", "position", "end_tree", "attempts")
    for trajectory, stages in groupby(tx.rows(TrajectoryStage, *columns), key=itemgetter(0)):
        if trajectory in found:
            found[trajectory] = _with_stages(found[trajectory], [(row[1], row[2], row[3]) for row in stages])
    for name in beside_main(recorded):
        found[name] = replace(found[name], beside=True)
    return sorted(
        found.values(),
        key=lambda candidate: (candidate.repository.lower(), candidate.chain_id, candidate.sample, candidate.id),
    )


def _interned(text: Any) -> Any:
    return sys.intern(text) if isinstance(text, str) else text


def _with_stages(candidate: ExportCandidate, rows: Sequence[tuple[int, str | None, int]]) -> ExportCandidate:
    if candidate.imported:
        candidate = replace(candidate, length=max(position for position, _, _ in rows))
    kept = [(tree, attempts) for position, tree, attempts in rows if position <= candidate.stages]
    trees = [tree for tree, _ in kept if tree is not None]
    known = len(trees) == len(kept) > 0
    return replace(
        candidate,
        trees=blake2b("\n".join(trees).encode(), digest_size=16).digest() if known else None,
        attempts=sum(attempts for _, attempts in kept),
    )


def response_lengths(tx: Transaction) -> dict[str, ResponseLength]:
    """What was said in the accepted stages of kept trajectories, by id."""
    table = TrajectoryMessage
    said = (
        Trajectory.outcome.in_(sorted(KEPT)),
        table.kind == EntryKind.TURN.value,
        table.position <= Trajectory.accepted,
    )
    counts = (func.count().label("steps"), func.count(table.tokens_out).label("told"))
    query = (
        select(table.trajectory_id, *counts, func.coalesce(func.sum(table.tokens_out), 0).label("tokens"))
        .join(Trajectory, Trajectory.id == table.trajectory_id)
        .where(*said)
        .group_by(table.trajectory_id)
    )
    uncounted = (
        select(table.trajectory_id, table.details)
        .join(Trajectory, Trajectory.id == table.trajectory_id)
        .where(*said, table.tokens_out.is_(None))
    )
    more: dict[str, list[int]] = {}
    for name, details in tx.connection.execute(uncounted):
        if (tokens := told_tokens(None, details)) is not None:
            more.setdefault(name, []).append(tokens)
    found = {}
    for row in tx.connection.execute(query):
        estimated = more.get(row.trajectory_id, [])
        whole = row.told + len(estimated) == row.steps
        found[row.trajectory_id] = ResponseLength(row.steps, int(row.tokens) + sum(estimated) if whole else None)
    return found


def last_turns(tx: Transaction) -> dict[str, int]:
    """The last stage in which each trajectory has a turn, by id."""
    table = TrajectoryMessage
    query = select(table.trajectory_id, func.max(table.position)).where(table.kind == EntryKind.TURN.value)
    return {name: int(last) for name, last in tx.connection.execute(query.group_by(table.trajectory_id))}


def branch_ids(tx: Transaction) -> frozenset[str]:
    """The trajectories that were branched off others."""
    query = select(Trajectory.id).where(Trajectory.parent_id.is_not(None))
    return frozenset(name for (name,) in tx.connection.execute(query))


def chain_pulls(tx: Transaction, chains: Collection[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The pull requests of chains: pairs of a chain's id and (repository's id, number)."""
    for chain, repository, number in tx.rows(ChainStage, "chain_id", "repository_id", "number"):
        if chain in chains:
            yield chain, (repository, number)


def chain_works(tx: Transaction, chains: Collection[str]) -> Iterator[tuple[str, str]]:
    """What the stages of chains do again: pairs of a chain's id and the name of a pull request (``owner/name#7``), or,
    of a task of others whose pull request nobody tells, of its instance. In lower case, and of whichever host: it is
    the same work."""
    query = (
        select(ChainStage.chain_id, Repository.owner, Repository.name, ChainStage.number, ImportedTask.instance_id)
        .join(Repository, Repository.id == ChainStage.repository_id)
        .outerjoin(ImportedTask, ImportedTask.chain_id == ChainStage.chain_id)
        .order_by(ChainStage.chain_id, ChainStage.position)
    )
    for row in tx.connection.execute(query):
        if row.chain_id in chains:
            work = f"#{row.number}" if row.number else f" {row.instance_id or row.chain_id}"
            yield row.chain_id, f"{row.owner}/{row.name}{work}".lower()


def read_sample(
    tx: Transaction,
    candidate: ExportCandidate,
    options: ExportOptions,
    *,
    whole: bool = False,
    secrets: tuple[str, ...] = (),
    audited: bool = False,
    with_tokens: bool = False,
) -> Sample | str:
    """The sample of a trajectory, scrubbed, with loss decisions, cut to its accepted stages and after its last turn
    under loss; or the reason why there is none. `whole` keeps what comes after that turn; `audited` looks for signs of
    cheating; `with_tokens` gives turns their token ids."""
    trajectory = stored_trajectory(tx, candidate.id)
    origin = read_provenance(tx, candidate.id) if candidate.imported else None
    stored, step = read_entries(tx, candidate.id), trajectory.parent_step
    copied = 0 if step is None else len(shared_entries(stored, step))
    entries = [entry for entry in stored if entry.position <= candidate.stages]
    signs = audit(entries, project_of(candidate.repository)) if audited else None
    retell = candidate.outcome == ACCEPTED_PREFIX and options.retell
    if candidate.outcome == RECORDED and options.branches == "main":
        entries = as_main(entries)
    if retell:
        entries = retold(entries)
    if not entries:
        return NO_MESSAGES
    told = stages_of(tx, candidate.id, candidate.chain_id, candidate.stages, origin)
    if options.refinements == "drop" and has_rejected_rounds(entries, told.accepted):
        return REFINED
    ungrounded = ungrounded_steps(entries) if options.grounded else frozenset()
    decisions = loss_decisions(entries, told.accepted, options.masks, options.refinements, ungrounded)
    decided = zip(entries, decisions, strict=True)
    kept = [pair for pair in decided if options.guidance == "keep" or pair[0].kind is not EntryKind.GUIDANCE]
    scrubber = Scrubber(secrets)
    overview, task_overview = trajectory.overview or "", read_overview(tx, candidate.chain_id) or ""
    as_read = _read_overview(entries) or (task_overview if origin is None else overview)
    turns = [
        scrubber.turn(entry, *decision, reasoning=options.reasoning != "drop", copied=_is_copied(entry, copied))
        for entry, decision in kept
    ]
    if with_tokens and not retell:
        turns = tokened(turns, entries, read_tokens(tx, candidate.id), options)
    if retell:
        rewritten = _with_overview(turns, scrubber.text(task_overview), scrubber.text(overview))
        if rewritten is None:
            return NO_OVERVIEW
        turns = rewritten
    sample = Sample(
        candidate.id,
        candidate.id,
        None if candidate.imported else candidate.chain_id,
        with_missing_answers(turns),
        told.stages,
        tuple(trajectory.tools)
        if origin is None
        else tuple(_scrubbed_tool(tool, scrubber) for tool in trajectory.tools),
        scrubber.text(overview if retell else as_read) or None,
        _facts(candidate),
        told.verdicts,
        None if signs is None else tuple(_scrubbed(sign, Scrubber(secrets)) for sign in signs),
        _parent(trajectory, origin),
        origin,
    )
    return sample if whole else without_untrained_tail(sample)


def _is_copied(entry: Entry, copied: int) -> bool:
    """Whether an entry came with the first `copied` ones, or was said to be copied by those who published it."""
    return entry.ordinal < copied or bool(entry.details.get("copied"))


def _parent(trajectory: TrajectoryRow, origin: TrajectoryOrigin | None) -> tuple[str, int] | None:
    if origin is not None and (told := origin.told.get("parent")):
        return str(told[0]), int(told[1])
    step = trajectory.parent_step
    return None if trajectory.parent_id is None or step is None else (trajectory.parent_id, step)


def _scrubbed_tool(tool: Mapping[str, Any], scrubber: Scrubber) -> Mapping[str, Any]:
    """A tool that strangers declared: templates write declarations into the prompt."""
    clean: dict[str, Any] = scrubber.value(tool)
    return clean | {"function": clean["function"] | {"name": valid_tool_name(str(clean["function"]["name"]))}}


def _scrubbed(sign: AuditFinding, scrubber: Scrubber) -> AuditFinding:
    return replace(sign, evidence=scrubber.text(sign.evidence))


def _read_overview(entries: Sequence[Entry]) -> str | None:
    """The overview that the agent read with its first query, as the rollout kept it."""
    first = next((entry for entry in entries if entry.kind is EntryKind.QUERY), None)
    return None if first is None else first.details.get("overview")


def _with_overview(turns: Sequence[SampleMessage], old: str, new: str) -> list[SampleMessage] | None:
    """The turns with another overview in the queries; None if the first query does not hold the new one then.

    If a conversation began anew with each stage, each of its queries may hold the overview.
    """
    old, new = old.strip(), new.strip()
    rewritten = [
        replace(turn, content=turn.content.replace(old, new))
        if old and turn.kind is EntryKind.QUERY and new not in turn.content
        else turn
        for turn in turns
    ]
    first = next((turn for turn in rewritten if turn.kind is EntryKind.QUERY), None)
    return rewritten if new and first is not None and new in first.content else None


def _facts(candidate: ExportCandidate) -> Mapping[str, Any]:
    return {
        "repository": candidate.repository,
        "licence": candidate.licence,
        "language": candidate.language,
        "sample": candidate.sample,
        "scaffold": candidate.scaffold,
        "windows": candidate.windows,
        "model": candidate.model,
        "judge": candidate.judge,
        "outcome": candidate.outcome,
        "usd": candidate.usd,
    }


def outcome_counts(tx: Transaction) -> Iterator[tuple[str, int]]:
    """The number of trajectories by outcome."""
    query = select(Trajectory.outcome, func.count()).group_by(Trajectory.outcome).order_by(Trajectory.outcome)
    for outcome, count in tx.connection.execute(query):
        yield str(outcome), int(count)
