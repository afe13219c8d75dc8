"""Trajectories in the database: reading and writing their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from sqlalchemy import delete, func, select, update

from prchain.core.console.reports import WHERE_ASKED
from prchain.core.errors import UsageError
from prchain.core.git.merge import Conflict
from prchain.core.git.output import path_text
from prchain.core.llm.model import Role, ToolCall
from prchain.core.llm.token_ids import ReplyTokens
from prchain.core.processes.alive import this_process
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from sql.store import Transaction
from sql.tables import MessageTokens, PrmWindow, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from trajectories.model import Entry, EntryKind
from trajectories.sums import calls_of
from trajectories.tokens import TurnTokens, packed, unpacked, whole_tokens


@dataclass(frozen=True, slots=True)
class TrajectoryRow:
    """A row of ``trajectories`` (`sql.tables.rolled.Trajectory`, whose columns these are)."""

    id: str
    chain_id: str | None
    """None of one of others."""
    sample: int
    parent_id: str | None
    parent_step: int | None
    scaffold: str
    model: str
    judge: str | None
    outcome: str
    reason: str | None
    accepted: int
    overview: str | None
    usd: float | None
    tokens_in: int
    tokens_out: int
    steps: int
    seconds: float
    worker: str | None
    tries: int
    started_at: str
    finished_at: str | None
    options: Mapping[str, Any]
    prompts: Mapping[str, str]
    tools: Sequence[Mapping[str, Any]]
    decided_by: Mapping[str, Any] | None = field(metadata=WHERE_ASKED)


_ENTRY = (
    "ordinal",
    "position",
    "attempt",
    "step",
    "kind",
    "role",
    "content",
    "reasoning",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "error",
    "details",
    "tokens_in",
    "tokens_cached",
    "tokens_out",
    "usd",
    "seconds",
    "tree",
    "cwd",
    "at",
)


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
    judge_sees: str | None = None
    tests: str | None = None
    grade: Mapping[str, Any] = field(default_factory=dict)
    usd: float | None = 0.0
    seconds: float = 0.0
    at: str = ""


# ---- reading


def read_entries(tx: Transaction, trajectory_id: str) -> list[Entry]:
    """The conversation of a trajectory, first message first; empty where there is no such trajectory."""
    return [_entry(row) for row in tx.rows(TrajectoryMessage, *_ENTRY, trajectory_id=trajectory_id)]


def _entry(row: Sequence[Any]) -> Entry:
    values = dict(zip(_ENTRY, row, strict=True))
    calls = tuple(ToolCall(**call) for call in values["tool_calls"])
    return Entry(
        **values
        | {
            "kind": EntryKind(values["kind"]),
            "role": cast(Role, values["role"]),
            "tool_calls": calls,
        }
    )


def read_tokens(tx: Transaction, trajectory_id: str) -> dict[int, ReplyTokens]:
    """The tokens of a trajectory's turns, as far as there are any, by ordinal. Raises `RowUnreadable`."""
    rows = tx.rows(MessageTokens, "ordinal", "shared", "tokens", trajectory_id=trajectory_id)
    return dict(whole_tokens((ordinal, TurnTokens(shared, unpacked(data))) for ordinal, shared, data in rows))


def read_stages(tx: Transaction, trajectory_id: str) -> list[StageRow]:
    """The stages of a trajectory that have rows, in order."""
    names = tuple(StageRow.__dataclass_fields__)
    stages = []
    for row in tx.rows(TrajectoryStage, *names, trajectory_id=trajectory_id):
        values = dict(zip(names, row, strict=True))
        for name in ("conflicts", "reset_tests", "endings"):
            values[name] = tuple(values[name])
        stages.append(StageRow(**values))
    return stages


def read_verdicts(tx: Transaction, trajectory_id: str) -> list[VerdictRow]:
    """The verdicts of a trajectory, by stage and attempt."""
    names = tuple(VerdictRow.__dataclass_fields__)
    verdicts = []
    for row in tx.rows(Verdict, *names, trajectory_id=trajectory_id):
        values = dict(zip(names, row, strict=True))
        verdicts.append(VerdictRow(**values | {"findings": tuple(values["findings"])}))
    return verdicts


def read_trajectory(tx: Transaction, trajectory_id: str) -> TrajectoryRow | None:
    """The row of a trajectory; None where there is none."""
    return next(tx.read(TrajectoryRow, Trajectory, id=trajectory_id), None)


def stored_trajectory(tx: Transaction, trajectory_id: str) -> TrajectoryRow:
    """The row of a trajectory that is known to be there."""
    [row] = tx.read(TrajectoryRow, Trajectory, id=trajectory_id)
    return row


def read_outcome(tx: Transaction, trajectory_id: str) -> str | None:
    """The outcome of a trajectory; None where there is no row of it."""
    row = read_trajectory(tx, trajectory_id)
    return None if row is None else row.outcome


def find_trajectory(tx: Transaction, prefix: str) -> str:
    """The id of the only trajectory whose id begins with `prefix`. Raises `UsageError`."""
    start = prefix.strip().lower()
    query = select(Trajectory.id).where(Trajectory.id.startswith(start, autoescape=True)).order_by(Trajectory.id)
    ids = [str(id_) for (id_,) in tx.connection.execute(query.limit(2))] if start else []
    if not ids:
        raise UsageError(f"no trajectory's id begins with {prefix!r}; `prchain rollouts list` lists them")
    if len(ids) > 1:
        raise UsageError(f"several trajectories' ids begin with {prefix}; write more of it")
    return ids[0]


# ---- writing


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
        "tool_calls": calls,
        "tool_name": None if entry.tool_name is None else clean_text(entry.tool_name)[:64],
        "tool_call_id": None if entry.tool_call_id is None else clean_text(entry.tool_call_id)[:255],
        "details": entry.details,
        "cwd": None if entry.cwd is None else clean_text(entry.cwd)[:1024],
        "at": entry.at or now(),
    }


def write_entries(tx: Transaction, trajectory_id: str, entries: Sequence[Entry]) -> None:
    """Write entries within the caller's transaction."""
    if entries:
        tx.upsert(TrajectoryMessage, [row_of(trajectory_id, entry) for entry in entries])
    if tokens := [_tokens_row(trajectory_id, entry) for entry in entries if entry.tokens is not None]:
        tx.upsert(MessageTokens, tokens)


def _tokens_row(trajectory_id: str, entry: Entry) -> dict[str, Any]:
    turn = entry.tokens
    assert turn is not None
    key = {"trajectory_id": trajectory_id, "ordinal": entry.ordinal}
    return {**key, "shared": turn.shared, "tokens": packed(turn.added)}


def write_tools(tx: Transaction, trajectory_id: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Write the tools that a trajectory's model was told of, where they are known only once it was asked."""
    row = update(Trajectory).where(Trajectory.id == trajectory_id)
    tx.connection.execute(row.values(tools=[dict(tool) for tool in tools]))


def drop_entries(tx: Transaction, trajectory_id: str, first: int) -> None:
    """Delete the entries from ordinal `first` on."""
    conditions = (TrajectoryMessage.trajectory_id == trajectory_id, TrajectoryMessage.ordinal >= first)
    tx.connection.execute(delete(TrajectoryMessage).where(*conditions))


def drop_tokens(tx: Transaction, trajectory_id: str, first: int) -> None:
    """Delete the tokens of the turns from ordinal `first` on, which are told anew."""
    conditions = (MessageTokens.trajectory_id == trajectory_id, MessageTokens.ordinal >= first)
    tx.connection.execute(delete(MessageTokens).where(*conditions))


def drop_windows(tx: Transaction, trajectory_id: str, position: int, attempt: int) -> None:
    """Delete what process reward models said while an attempt ran."""
    tx.delete(PrmWindow, trajectory_id=trajectory_id, position=position, attempt=attempt, replay=None)


def write_stage(tx: Transaction, trajectory_id: str, stage: StageRow) -> None:
    """Write a stage; replace its row."""
    row = {name: getattr(stage, name) for name in StageRow.__dataclass_fields__}
    row |= {
        "trajectory_id": trajectory_id,
        "reason": None if stage.reason is None else clean_text(stage.reason),
    }
    tx.upsert(TrajectoryStage, [row])


def write_verdict(tx: Transaction, trajectory_id: str, verdict: VerdictRow) -> None:
    """Write a verdict; replace its row."""
    row = asdict(verdict) | {
        "trajectory_id": trajectory_id,
        "comment": None if verdict.comment is None else clean_text(verdict.comment),
        "shown": None if verdict.shown is None else clean_text(verdict.shown),
        "at": verdict.at or now(),
    }
    tx.upsert(Verdict, [row])


def begin_trajectory(tx: Transaction, row: Mapping[str, Any]) -> None:
    """Write the row of a new trajectory, or mark the existing row as being worked on again.

    `row` holds what decides it: id, chain_id, sample, parent_id, parent_step, scaffold, model, judge, options,
    options_hash, prompts, tools, decided_by.
    """
    fresh = {
        "outcome": "running",
        "reason": None,
        "accepted": 0,
        "overview": None,
        "usd": 0.0,
        "tokens_in": 0,
        "tokens_out": 0,
        "steps": 0,
        "seconds": 0.0,
        "tries": 0,
        "started_at": now(),
    }
    tx.insert_new(Trajectory, [{**row, **fresh, "worker": None, "finished_at": None}])
    values = {"outcome": "running", "reason": None, "worker": str(this_process()), "finished_at": None}
    tx.connection.execute(update(Trajectory).where(Trajectory.id == row["id"]).values(**values))


def count_try(tx: Transaction, trajectory_id: str) -> None:
    """Count one more try of a trajectory after an infrastructure failure."""
    tx.connection.execute(update(Trajectory).where(Trajectory.id == trajectory_id).values(tries=Trajectory.tries + 1))


def end_trajectory(
    tx: Transaction, trajectory_id: str, outcome: str, *, reason: str | None, accepted: int, overview: str | None
) -> None:
    """Write a trajectory's outcome and its sums: steps and times of its messages, tokens and cost of its calls."""
    steps = select(func.count()).where(
        TrajectoryMessage.trajectory_id == trajectory_id, TrajectoryMessage.kind == str(EntryKind.TURN)
    )
    seconds = select(func.coalesce(func.sum(TrajectoryStage.seconds), 0.0)).where(
        TrajectoryStage.trajectory_id == trajectory_id
    )
    values = {
        "outcome": outcome,
        "reason": None if reason is None else clean_text(reason),
        "accepted": accepted,
        "overview": overview,
        "worker": None,
        "finished_at": now(),
        **calls_of(tx, trajectory_id),
        "steps": tx.connection.execute(steps).scalar_one(),
        "seconds": tx.connection.execute(seconds).scalar_one(),
    }
    tx.connection.execute(update(Trajectory).where(Trajectory.id == trajectory_id).values(**values))


def conflict_row(conflict: Conflict) -> dict[str, Any]:
    """A conflict of the state's merge, as a JSON value of the stage's row."""
    fields = asdict(conflict)
    return {name: path_text(value) if isinstance(value, bytes) else _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
