"""Beginnings that two trajectories share, after which one agent was guided and the other was not, with verdicts that
differ: what guidance was worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from sqlalchemy import select

from environments.suites.outcomes import PASSED
from sql.benchmarks import benchmark_chains
from sql.store import Store, Transaction
from sql.tables import Trajectory, TrajectoryMessage
from trajectories.export.reading import BENCHMARK
from trajectories.export.scrubber import Scrubber
from trajectories.export.write import Files, JsonLines
from trajectories.model import Entry, EntryKind
from trajectories.rows import VerdictRow, read_entries, read_stages, read_verdicts
from trajectories.studies.guidance.labels import NEXT_STEPS, verdict_value
from trajectories.studies.guidance.step_values import Json, messages, step_values

_OBSERVER = "prm"
"""In the details of its guidance."""


@dataclass(slots=True)
class PairCounts:
    """What was written."""

    rows: int = 0
    compared: int = 0
    """Pairs of trajectories that are related and of which one was guided somewhere."""
    forked: int = 0
    """Those that part where one is guided; their verdicts differ in `rows` of them."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Trajectories by reason."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where two conversations part: after so many shared entries, `words` entries of guidance in the guided one."""

    shared: int
    words: int


@dataclass(frozen=True, slots=True)
class _PairedRollout:
    id: str
    chain_id: str
    sample: int
    parent_id: str | None
    parent_step: int | None
    scaffold: str
    model: str
    outcome: str
    options: Mapping[str, Any]


def fork(guided: Sequence[Entry], other: Sequence[Entry]) -> Fork | None:
    """Where a process reward model guides the one, and the other goes on with a step of the same stage.

    None where they part in another way. Messages are the same if their place, kind, text and calls are; ids of calls
    and the agent's reasoning are not compared.
    """
    shared = 0
    for one, two in zip(guided, other, strict=False):
        if _compared(one) != _compared(two):
            break
        shared += 1
    if not 0 < shared < min(len(guided), len(other)):
        return None
    first, turn = guided[shared], other[shared]
    if first.kind is not EntryKind.GUIDANCE or turn.kind is not EntryKind.TURN or turn.position != first.position:
        return None
    words = 0
    while shared + words < len(guided) and guided[shared + words].kind is EntryKind.GUIDANCE:
        words += 1
    by_model = any(entry.details.get("observer") == _OBSERVER for entry in guided[shared : shared + words])
    return Fork(shared, words) if by_model else None


def differ(one: VerdictRow, other: VerdictRow) -> bool:
    """Whether two verdicts differ in acceptance, or in whether the tests passed; what is not known is no difference."""
    accepted = None not in (one.accepted, other.accepted) and one.accepted != other.accepted
    tests = None not in (one.tests, other.tests) and (one.tests == PASSED) != (other.tests == PASSED)
    return accepted or tests


def write_pairs(
    store: Store,
    out: Path,
    *,
    next_steps: int = NEXT_STEPS,
    benchmarks: bool = False,
    force: bool = False,
    secrets: tuple[str, ...] = (),
) -> PairCounts:
    """Write a line of JSON for each pair, in the order of chain and ids.

    Pairs are a branch and the trajectory that it was branched off, two branches of one trajectory at one step, and two
    trajectories of one chain and sample that began at the beginning. Those over tasks that measure models are left out,
    unless `benchmarks` asks for them. Without pairs no file is written, and the one that
    is there stays. Two conversations are in memory at a time. Raises `UsageError`, `StoreError` and `DiskFull`.
    """
    counts = PairCounts()
    with store.reading() as tx, Files(force=force) as files:
        rows = JsonLines(files.open(out))
        scrubber = Scrubber(secrets)
        for row in _rows(tx, next_steps, scrubber, counts, benchmarks=benchmarks):
            rows.write(row)
            counts.rows += 1
        rows.close()
        if not counts.rows:
            files.discard()
    return counts


def _rows(
    tx: Transaction, next_steps: int, scrubber: Scrubber, counts: PairCounts, *, benchmarks: bool
) -> Iterator[Json]:
    guided, barred = _guided(tx), frozenset[str]() if benchmarks else benchmark_chains(tx)
    columns = (getattr(Trajectory, name) for name in _PairedRollout.__dataclass_fields__)
    query = select(*columns).where(Trajectory.chain_id.is_not(None)).order_by(Trajectory.chain_id, Trajectory.id)
    rollouts = [_PairedRollout(*row) for row in tx.connection.execute(query)]
    for chain, group in groupby(rollouts, key=attrgetter("chain_id")):
        of_chain = list(group)
        if chain in barred:
            counts.left_out[BENCHMARK] += len(of_chain)
            continue
        for place, one in enumerate(of_chain):
            partners = [it for it in of_chain[place + 1 :] if _related(one, it) and guided & {one.id, it.id}]
            if not partners:
                continue
            entries = read_entries(tx, one.id)
            for other in partners:
                counts.compared += 1
                other_entries = read_entries(tx, other.id)
                for sides in (((one, entries), (other, other_entries)), ((other, other_entries), (one, entries))):
                    if (row := _pair(tx, *sides, next_steps, scrubber, counts)) is not None:
                        yield row


def _guided(tx: Transaction) -> set[str]:
    """The trajectories with guidance."""
    query = select(TrajectoryMessage.trajectory_id).where(TrajectoryMessage.kind == str(EntryKind.GUIDANCE)).distinct()
    return {str(name) for (name,) in tx.connection.execute(query)}


def _related(one: _PairedRollout, other: _PairedRollout) -> bool:
    if one.parent_id is None and other.parent_id is None:
        return one.sample == other.sample
    siblings = (one.parent_id, one.parent_step) == (other.parent_id, other.parent_step)
    return siblings or one.parent_id == other.id or other.parent_id == one.id


def _pair(
    tx: Transaction,
    guided: tuple[_PairedRollout, Sequence[Entry]],
    other: tuple[_PairedRollout, Sequence[Entry]],
    next_steps: int,
    scrubber: Scrubber,
    counts: PairCounts,
) -> Json | None:
    """The row of two trajectories of which the first may be guided where they part."""
    found = fork(guided[1], other[1])
    if found is None:
        return None
    counts.forked += 1
    last = guided[1][found.shared]
    verdicts = [_verdict(tx, rollout.id, last.position, last.attempt) for rollout, _ in (guided, other)]
    if verdicts[0] is None or verdicts[1] is None or not differ(verdicts[0], verdicts[1]):
        return None
    beginning = guided[1][: found.shared]
    if guided[0].options.get("context") == "stage":
        beginning = [it for it in beginning if it.position == last.position or it.kind is EntryKind.SYSTEM]
    words = guided[1][found.shared : found.shared + found.words]
    starts = (found.shared + found.words, found.shared)
    sides = [
        _side(tx, rollout, entries[start:], last.position, verdict, next_steps, scrubber)
        for (rollout, entries), start, verdict in zip((guided, other), starts, verdicts, strict=True)
    ]
    return {
        "chain_id": guided[0].chain_id,
        "position": last.position,
        "attempt": last.attempt,
        "step": last.step,
        "messages": messages(beginning, scrubber),
        "guidance": [_words(entry, scrubber) for entry in words],
        "guided": sides[0],
        "unguided": sides[1],
    }


def _verdict(tx: Transaction, trajectory: str, position: int, attempt: int) -> VerdictRow | None:
    """The stage's last verdict, if it is of this attempt or a later one."""
    verdicts = [it for it in read_verdicts(tx, trajectory) if it.position == position and it.attempt >= attempt]
    return verdicts[-1] if verdicts else None


def _side(
    tx: Transaction,
    rollout: _PairedRollout,
    after: Sequence[Entry],
    position: int,
    verdict: VerdictRow | None,
    next_steps: int,
    scrubber: Scrubber,
) -> Json:
    stage = next((it.outcome for it in read_stages(tx, rollout.id) if it.position == position), None)
    return {
        "trajectory_id": rollout.id,
        "sample": rollout.sample,
        "parent_id": rollout.parent_id,
        "parent_step": rollout.parent_step,
        "scaffold": rollout.scaffold,
        "agent_model": rollout.model,
        "next_steps": step_values((it for it in after if it.position == position), scrubber, next_steps),
        "verdict": verdict_value(verdict),
        "stage": stage,
        "outcome": rollout.outcome,
    }


def _words(entry: Entry, scrubber: Scrubber) -> Json:
    # Another observer may have put anything there.
    said = {name: entry.details.get(name) for name in ("observer", "window")}
    known = {name: value if isinstance(value, str) else None for name, value in said.items()}
    return {**known, "text": scrubber.text(entry.content)}


def _compared(entry: Entry) -> tuple[Any, ...]:
    calls = tuple((call.name, call.arguments) for call in entry.tool_calls)
    return entry.position, entry.attempt, entry.kind, entry.role, entry.content, calls
