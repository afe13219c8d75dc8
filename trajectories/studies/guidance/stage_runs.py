"""What stored trajectories did at each stage that they reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import func, or_, select

from environments.suites.outcomes import PASSED
from sql.store import Transaction
from sql.tables import LlmCall, PrmFinding, PrmWindow, Trajectory, TrajectoryStage, Verdict
from trajectories.agents.guidance.settings import PURPOSE
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.identity import LENGTH
from trajectories.outcomes import FINAL, OF_THE_AGENT
from trajectories.studies.guidance.metrics import ComparedRun

_MODEL = "model"
"""`PrmFinding.found_by`."""

_Place = tuple[str, int]
"""A trajectory and a stage."""


@dataclass(frozen=True, slots=True)
class _Calls:
    count: int = 0
    usd: float | None = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    told: bool = True
    """Whether the endpoint said of any of them how many tokens it took, or there were none."""

    def plus(self, other: _Calls) -> _Calls:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        tokens = (self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)
        return _Calls(self.count + other.count, usd, *tokens, self.told and other.told)


_UNKNOWN = _Calls(usd=None, told=False)
"""There were calls, and the ledger has none of them."""


@dataclass(slots=True)
class _Windows:
    optimal: int = 0
    suboptimal: int = 0
    unsaid: int = 0
    unread: int = 0
    leaks: int = 0
    detected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ReachedStage:
    """A stage that a trajectory worked on to its end. `resolved` is None where no tests ran."""

    position: int
    resolved: bool | None
    patch: bool
    steps: int
    agent: _Calls
    prm: _Calls
    windows: _Windows

    def run(self, chain: str, sample: int) -> ComparedRun:
        """As a run of a setting; the stage's tests ran."""
        assert self.resolved is not None
        return ComparedRun(
            (chain, self.position),
            sample,
            self.resolved,
            self.patch,
            self.steps,
            self.agent.tokens_in,
            self.agent.tokens_out,
            self.agent.usd,
            self.prm.count,
            self.prm.tokens_in,
            self.prm.tokens_out,
            self.prm.usd,
            self.windows.optimal,
            self.windows.suboptimal,
            self.windows.unsaid,
            self.windows.unread,
            self.windows.leaks,
            dict(self.windows.detected),
        )


def reached_stages(tx: Transaction, proved: Mapping[str, bool]) -> dict[str, list[ReachedStage]]:
    """The stages that trajectories worked on to their end, by trajectory. A stage that an infrastructure failure ended
    is not among them (the next run goes on with it), nor is one whose state left nothing to try.

    `proved` has the trajectories by id, and whether all stages of their chains had proved tests: there, a stage that
    the agent itself ended, by filling the disk for example, is not resolved though no tests ran on it.
    """
    verdicts = {
        (name, position, attempt): tests
        for name, position, attempt, tests in tx.rows(Verdict, "trajectory_id", "position", "attempt", "tests")
    }
    calls, windows = _calls(tx), _windows(tx)
    columns = ("trajectory_id", "position", "outcome", "start_tree", "end_tree", "attempts", "steps")
    found: dict[str, list[ReachedStage]] = {}
    for name, position, outcome, start, end, attempts, steps in tx.rows(TrajectoryStage, *columns):
        if name not in proved or outcome not in FINAL or not attempts:
            continue
        tests = verdicts.get((name, position, attempts))
        resolved = None if tests is None else tests == PASSED
        if resolved is None and outcome in OF_THE_AGENT and proved[name]:
            resolved = False
        place = (name, position)
        found.setdefault(name, []).append(
            ReachedStage(
                position,
                resolved,
                end is not None and end != start,
                steps,
                calls.get((AGENT, place), _UNKNOWN if steps else _Calls()),
                calls.get((PURPOSE, place), _UNKNOWN if place in windows else _Calls()),
                windows.get(place, _Windows()),
            )
        )
    return found


def _calls(tx: Transaction) -> dict[tuple[str, _Place], _Calls]:
    """The calls that were, or may have been, paid for, by purpose and stage. Calls in flight and lost ones count with
    the amount reserved for them. Those that came after a trajectory's end are no part of it: a replay's."""
    usd = func.coalesce(LlmCall.usd, LlmCall.reserved_usd)
    query = (
        select(
            LlmCall.purpose,
            LlmCall.subject,
            func.count(LlmCall.id),
            func.count(usd),
            func.sum(usd),
            func.sum(LlmCall.tokens_in),
            func.sum(LlmCall.tokens_out),
            func.count(LlmCall.tokens_in),
        )
        .join(Trajectory, Trajectory.id == func.substr(LlmCall.subject, 1, LENGTH))
        .where(
            LlmCall.purpose.in_((AGENT, PURPOSE)),
            LlmCall.state != "released",
            or_(Trajectory.finished_at.is_(None), LlmCall.started_at <= Trajectory.finished_at),
        )
        .group_by(LlmCall.purpose, LlmCall.subject)
    )
    found: dict[tuple[str, _Place], _Calls] = {}
    for purpose, subject, count, priced, spent, tokens_in, tokens_out, told in tx.connection.execute(query):
        name, _, rest = subject.partition("/")
        position = rest.partition("/")[0]
        if position.isascii() and position.isdecimal():
            key = (purpose, (name, int(position)))
            known = float(spent or 0.0) if priced == count else None
            calls = _Calls(count, known, int(tokens_in or 0), int(tokens_out or 0), told > 0)
            found[key] = found.get(key, _Calls()).plus(calls)
    return found


def _windows(tx: Transaction) -> dict[_Place, _Windows]:
    """What was said of the windows of each stage while its agent ran."""
    found: dict[_Place, _Windows] = {}
    columns = ("trajectory_id", "position", "suboptimal", "fault", "leaks")
    for name, position, suboptimal, fault, leaks in tx.rows(PrmWindow, *columns, replay=None):
        windows = found.setdefault((name, position), _Windows())
        windows.unread += fault is not None
        windows.unsaid += fault is None and suboptimal is None
        windows.suboptimal += suboptimal is True
        windows.optimal += suboptimal is False
        windows.leaks += bool(leaks)
    query = (
        select(PrmWindow.trajectory_id, PrmWindow.position, PrmFinding.category, func.count())
        .join(PrmFinding, PrmFinding.window_id == PrmWindow.id)
        .where(PrmWindow.replay.is_(None), PrmFinding.found_by == _MODEL, PrmFinding.kept.is_(True))
        .group_by(PrmWindow.trajectory_id, PrmWindow.position, PrmFinding.category)
    )
    for name, position, category, count in tx.connection.execute(query):
        found.setdefault((name, position), _Windows()).detected[category] += count
    return found
