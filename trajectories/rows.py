"""Trajectories in the database: a recorder that writes each step as it happens, and reading them back."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from sqlalchemy import delete, func, select, update

from environments.suites.outcomes import PASSED
from prchain.errors import UsageError
from prchain.git.merge import Conflict
from prchain.git.output import path_text
from prchain.llm.model import Role, ToolCall
from prchain.scrub import clean_text
from prchain.timestamps import now
from sql.store import Store, Transaction
from sql.tables import LlmCall, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from trajectories.model import Entry, Kind
from trajectories.outcomes import KEPT

_ENTRY = (
    "ordinal", "position", "attempt", "step", "kind", "role", "content", "reasoning", "tool_calls", "tool_call_id",
    "tool_name", "error", "details", "tokens_in", "tokens_cached", "tokens_out", "usd", "seconds", "tree", "cwd", "at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StageRow:
    """A row of ``trajectory_stages``; `endings` is how each attempt ended (`trajectories.model.Ending`)."""

    position: int
    outcome: str
    reason: str | None = None
    start_tree: str | None = None
    end_tree: str | None = None
    conflicts: tuple[Mapping[str, Any], ...] = ()
    reset_tests: tuple[str, ...] = ()
    check: Mapping[str, Any] = field(default_factory=dict)
    endings: tuple[str, ...] = ()
    attempts: int = 0
    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A row of ``verdicts`` (`sql.tables.rolled.Verdict`, whose columns these are)."""

    position: int
    attempt: int
    tree: str
    accepted: bool | None
    gate: str
    score: float | None = None
    comment: str | None = None
    shown: str | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    judge_error: str | None = None
    tests: str | None = None
    grade: Mapping[str, Any] = field(default_factory=dict)
    usd: float | None = 0.0
    seconds: float = 0.0
    at: str = ""


def this_worker() -> str:
    """Who works here: host and process."""
    return f"{platform.node()[:40]}:{os.getpid()}"


def is_gone(worker: str | None) -> bool:
    """Whether a worker was a process of this host, and no such process runs any more."""
    host, _, pid = (worker or "").rpartition(":")
    if host != platform.node()[:40] or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


# ---- reading


def read_entries(tx: Transaction, trajectory_id: str) -> list[Entry]:
    """The conversation of a trajectory, first message first; none for one that is not there."""
    return [_entry(row) for row in tx.rows(TrajectoryMessage, *_ENTRY, trajectory_id=trajectory_id)]


def _entry(row: Sequence[Any]) -> Entry:
    values = dict(zip(_ENTRY, row, strict=True))
    calls = tuple(ToolCall(**call) for call in json.loads(values["tool_calls"]))
    return Entry(
        **values
        | {
            "kind": Kind(values["kind"]),
            "role": cast(Role, values["role"]),
            "tool_calls": calls,
            "details": json.loads(values["details"]),
        }
    )


def read_stages(tx: Transaction, trajectory_id: str) -> list[StageRow]:
    """The stages of a trajectory that have rows, in order."""
    names = tuple(StageRow.__dataclass_fields__)
    found = []
    for row in tx.rows(TrajectoryStage, *names, trajectory_id=trajectory_id):
        values = dict(zip(names, row, strict=True))
        for name in ("conflicts", "reset_tests", "endings"):
            values[name] = tuple(json.loads(values[name]))
        found.append(StageRow(**values | {"check": json.loads(values["check"])}))
    return found


def read_verdicts(tx: Transaction, trajectory_id: str) -> list[VerdictRow]:
    """The verdicts of a trajectory, by stage and attempt."""
    names = tuple(VerdictRow.__dataclass_fields__)
    found = []
    for row in tx.rows(Verdict, *names, trajectory_id=trajectory_id):
        values = dict(zip(names, row, strict=True))
        values |= {"findings": tuple(json.loads(values["findings"])), "grade": json.loads(values["grade"])}
        found.append(VerdictRow(**values))
    return found


def read_outcome(tx: Transaction, trajectory_id: str) -> str | None:
    """The outcome of a trajectory; None where there is no row of it."""
    return next((str(outcome) for (outcome,) in tx.rows(Trajectory, "outcome", id=trajectory_id)), None)


def find_trajectory(tx: Transaction, prefix: str) -> str:
    """The id of the one trajectory whose id begins with `prefix`. Raises `UsageError`."""
    wanted = prefix.strip().lower()
    query = select(Trajectory.id).where(Trajectory.id.startswith(wanted, autoescape=True)).order_by(Trajectory.id)
    found = [str(one) for (one,) in tx.connection.execute(query.limit(2))] if wanted else []
    if not found:
        raise UsageError(f"no trajectory's id begins with {prefix!r}; `prchain rollouts list` lists them")
    if len(found) > 1:
        raise UsageError(f"several trajectories' ids begin with {prefix}; write more of it")
    return found[0]


# ---- writing


class StoreRecorder:
    """Writes the entries of one trajectory, each call one transaction, and keeps the conversation as it grows.

    `tree_now` gives the sandbox's tree; None where nobody tracks it. `last_tree` is the tree that the next one is
    compared with. `first_details` go into the details of the first entry that is added: what befell the sandbox.
    """

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        entries: Sequence[Entry],
        *,
        tree_now: Callable[[], str] | None = None,
        last_tree: str | None = None,
        first_details: Mapping[str, Any] | None = None,
    ) -> None:
        self.entries = list(entries)
        self._store = store
        self._id = trajectory_id
        self._tree_now = tree_now
        self._last_tree = last_tree
        self._first_details = dict(first_details or {})
        self._asked_for_trees = False

    def add(self, entries: Sequence[Entry]) -> None:
        """See `Recorder`. Raises `ValueError` for entries that do not follow the stored ones."""
        if not entries:
            return
        start = self.entries[-1].ordinal + 1 if self.entries else 0
        if [one.ordinal for one in entries] != list(range(start, start + len(entries))):
            raise ValueError(f"entries must be numbered from {start} on")
        kept = list(entries)
        if not self._asked_for_trees and any(one.kind is Kind.OBSERVATION for one in kept):
            # A scaffold that never asks leaves it to us: without its tree no step could be gone on from.
            kept[-1] = replace(kept[-1], tree=self._changed_tree())
        if self._first_details:
            kept[0] = replace(kept[0], details={**kept[0].details, **self._first_details})
        with self._store.transaction() as tx:
            write_entries(tx, self._id, kept)
        self._first_details = {}
        self.entries.extend(kept)

    def tree(self) -> str | None:
        """See `Recorder`."""
        self._asked_for_trees = True
        return self._changed_tree()

    def _changed_tree(self) -> str | None:
        if self._tree_now is None:
            return None
        tree = self._tree_now()
        if tree == self._last_tree:
            return None
        self._last_tree = tree
        return tree


class Watched:
    """A recorder that tells the step that was kept."""

    def __init__(self, inner: StoreRecorder, tell: Callable[[int], None]) -> None:
        self._inner = inner
        self._tell = tell

    def add(self, entries: Sequence[Entry]) -> None:
        """See `Recorder`."""
        self._inner.add(entries)
        if entries:
            self._tell(entries[-1].step)

    def tree(self) -> str | None:
        """See `Recorder`."""
        return self._inner.tree()


def row_of(trajectory_id: str, entry: Entry) -> dict[str, Any]:
    """The row of an entry."""
    row = {name: getattr(entry, name) for name in _ENTRY}
    calls = [
        {name: clean_text(getattr(call, name)) for name in ("id", "name", "arguments")} for call in entry.tool_calls
    ]
    return row | {
        "trajectory_id": trajectory_id,
        "kind": str(entry.kind),
        "content": clean_text(entry.content),
        "reasoning": None if entry.reasoning is None else clean_text(entry.reasoning),
        "tool_calls": _json(calls),
        "tool_name": None if entry.tool_name is None else clean_text(entry.tool_name)[:64],
        "tool_call_id": None if entry.tool_call_id is None else clean_text(entry.tool_call_id)[:255],
        "details": _json(dict(entry.details)),
        "cwd": None if entry.cwd is None else clean_text(entry.cwd)[:1024],
        "at": entry.at or now(),
    }  # fmt: skip


def write_entries(tx: Transaction, trajectory_id: str, entries: Sequence[Entry]) -> None:
    """Write entries within a transaction of the caller's."""
    if entries:
        tx.upsert(TrajectoryMessage, [row_of(trajectory_id, one) for one in entries])


def drop_entries(tx: Transaction, trajectory_id: str, first: int) -> None:
    """Delete the entries from ordinal `first` on."""
    found = (TrajectoryMessage.trajectory_id == trajectory_id, TrajectoryMessage.ordinal >= first)
    tx.connection.execute(delete(TrajectoryMessage).where(*found))


def write_stage(tx: Transaction, trajectory_id: str, stage: StageRow) -> None:
    """Write a stage in the place of what was there."""
    row = {name: getattr(stage, name) for name in StageRow.__dataclass_fields__}
    row |= {
        "trajectory_id": trajectory_id,
        "reason": None if stage.reason is None else clean_text(stage.reason),
        "conflicts": _json(list(stage.conflicts)),
        "reset_tests": _json(list(stage.reset_tests)),
        "endings": _json(list(stage.endings)),
        "check": _json(dict(stage.check)),
    }
    tx.upsert(TrajectoryStage, [row])


def write_verdict(tx: Transaction, trajectory_id: str, verdict: VerdictRow) -> None:
    """Write a verdict in the place of what was there."""
    row = asdict(verdict) | {
        "trajectory_id": trajectory_id,
        "comment": None if verdict.comment is None else clean_text(verdict.comment),
        "shown": None if verdict.shown is None else clean_text(verdict.shown),
        "findings": _json([dict(one) for one in verdict.findings]),
        "grade": _json(dict(verdict.grade)),
        "at": verdict.at or now(),
    }
    tx.upsert(Verdict, [row])


def begin_trajectory(tx: Transaction, row: Mapping[str, Any]) -> None:
    """Write the row of a trajectory that begins, or mark the one that is there as being worked on again.

    `row` names what decides it: id, chain_id, sample, parent_id, parent_step, scaffold, model, judge, options,
    options_hash, prompts, tools, decided_by.
    """
    fresh = {
        "outcome": "running", "reason": None, "accepted": 0, "overview": None, "usd": 0.0, "tokens_in": 0,
        "tokens_out": 0, "steps": 0, "seconds": 0.0, "tries": 0, "started_at": now(),
    }  # fmt: skip
    tx.insert_new(Trajectory, [{**row, **fresh, "worker": None, "finished_at": None}])
    values = {"outcome": "running", "reason": None, "worker": this_worker(), "finished_at": None}
    tx.connection.execute(update(Trajectory).where(Trajectory.id == row["id"]).values(**values))


def count_try(tx: Transaction, trajectory_id: str) -> None:
    """Count that a trajectory is begun again after an infrastructure failure."""
    tx.connection.execute(update(Trajectory).where(Trajectory.id == trajectory_id).values(tries=Trajectory.tries + 1))


def end_trajectory(
    tx: Transaction, trajectory_id: str, outcome: str, *, reason: str | None, accepted: int, overview: str | None
) -> None:
    """Write how a trajectory ended, with its sums: steps and times of its messages, tokens and cost of its calls."""
    steps = select(func.count()).where(
        TrajectoryMessage.trajectory_id == trajectory_id, TrajectoryMessage.kind == str(Kind.TURN)
    )
    seconds = select(func.coalesce(func.sum(TrajectoryStage.seconds), 0.0)).where(
        TrajectoryStage.trajectory_id == trajectory_id
    )
    values = {
        "outcome": outcome, "reason": None if reason is None else clean_text(reason), "accepted": accepted,
        "overview": overview, "worker": None, "finished_at": now(), **calls_of(tx, trajectory_id),
        "steps": tx.connection.execute(steps).scalar_one(), "seconds": tx.connection.execute(seconds).scalar_one(),
    }  # fmt: skip
    tx.connection.execute(update(Trajectory).where(Trajectory.id == trajectory_id).values(**values))


def calls_of(tx: Transaction, trajectory_id: str) -> dict[str, Any]:
    """What the calls of a trajectory took: ``usd`` (None where a price is not known), ``tokens_in``, ``tokens_out``.

    Of whatever purpose: agent, judge, observers. Calls in flight and lost ones count with what was reserved for them;
    those of its parent are the parent's.
    """
    query = select(LlmCall.usd, LlmCall.reserved_usd, LlmCall.tokens_in, LlmCall.tokens_out).where(
        LlmCall.subject.startswith(f"{trajectory_id}/", autoescape=True), LlmCall.state != "released",
    )  # fmt: skip
    calls = list(tx.connection.execute(query))
    spent = [reserved if usd is None else usd for usd, reserved, _, _ in calls]
    return {
        "usd": None if any(one is None for one in spent) else round(sum(one or 0.0 for one in spent), 9),
        "tokens_in": sum(tokens or 0 for _, _, tokens, _ in calls),
        "tokens_out": sum(tokens or 0 for _, _, _, tokens in calls),
    }


def conflict_row(conflict: Conflict) -> dict[str, Any]:
    """A conflict of the state's merge as its stage keeps it."""
    found = asdict(conflict)
    return {name: path_text(value) if isinstance(value, bytes) else _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _json(value: Any) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False))


def hidden_tests(tx: Transaction, trajectories: Collection[str] | None = None) -> dict[str, int]:
    """What hidden tests said of the stages that were accepted: how many ``passed``, ``failed``, and were ``not_run``.

    Of these trajectories, by their ids; None: of those that are kept.
    """
    query = (
        select(Verdict.tests, func.count())
        .join(Trajectory, Trajectory.id == Verdict.trajectory_id)
        .where(Verdict.accepted.is_(True))
        .group_by(Verdict.tests)
    )
    if trajectories is None:
        query = query.where(Trajectory.outcome.in_(sorted(KEPT)), Verdict.position <= Trajectory.accepted)
    else:
        query = query.where(Trajectory.id.in_(sorted(trajectories)))
    found = {"passed": 0, "failed": 0, "not_run": 0}
    for said, count in tx.connection.execute(query):
        found["not_run" if said is None else "passed" if said == PASSED else "failed"] += count
    return found
