"""The estimated calls, tokens and cost of rollouts: by medians of stored ones, else by stated assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from sqlalchemy import func, select

from prchain.core.console.terminal import counted
from prchain.core.llm.gateway import CostEstimate, Gateway
from sql.store import Transaction
from sql.tables import LlmCall, Trajectory, TrajectoryStage
from trajectories.agents.observers.failures import observer_errors
from trajectories.agents.scaffolds.scaffold import ObserverKind
from trajectories.identity import LENGTH
from trajectories.options import RolloutOptions
from trajectories.outcomes import FINAL
from trajectories.privileged import PRIVILEGED

FEWEST = 5
"""The fewest ended trajectories whose medians are used."""

_STEPS, _ATTEMPTS = 30, 1.5
"""Assumed steps of a stage (all attempts together), and assumed attempts at it."""
_FIRST_PROMPT, _PER_STEP, _REPLY = 3_000, 730, 250
"""Tokens of a first prompt; tokens that a step adds to the next prompt (the paper's samples: 85,000 tokens in 116 tool
calls, section 4.3); tokens of a reply."""
_JUDGE_PROMPT, _JUDGE_REPLY = 12_000, 400
"""Tokens of a judge's prompt and of its reply, or an auditor's, who is asked once a stage."""

ASSUMED = (
    f"assumed: {_STEPS} steps and {_ATTEMPTS:g} attempts a stage, prompts of {_FIRST_PROMPT:,} tokens that grow by "
    f"{_PER_STEP} a step, every stage reached"
)


@dataclass(frozen=True, slots=True)
class PerStage:
    """Calls and tokens of one purpose, for one stage or for a whole trajectory."""

    calls: float
    tokens_in: float
    tokens_out: float

    def minus(self, other: PerStage) -> PerStage:
        """What is left of it without a part. The later steps of a conversation have the longer prompts."""
        return PerStage(self.calls - other.calls, self.tokens_in - other.tokens_in, self.tokens_out - other.tokens_out)

    def times(self, count: int) -> tuple[int, int, int]:
        """The same for `count` of them, rounded."""
        return round(self.calls * count), round(self.tokens_in * count), round(self.tokens_out * count)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimate of a run, and the basis of that estimate."""

    trajectories: int
    estimate: CostEstimate
    basis: str


def forecast(
    tx: Transaction,
    gateway: Gateway,
    options: RolloutOptions,
    lengths: Iterable[int],
    model: str,
    observers: Sequence[ObserverKind] = (),
    *,
    shared: Iterable[int] = (),
) -> Forecast:
    """The estimate of rollouts over chains of these lengths, if every stage is reached. Makes no call.

    `shared` is how many stages of each are over before it begins; empty: none. Calls of observers are counted by
    medians, too, where their purposes have any.
    """
    sizes = list(lengths)
    over = list(shared) or [0] * len(sizes)
    todo = [size - before for size, before in zip(sizes, over, strict=True)]
    total = CostEstimate()
    names = _ended(tx, model)
    readers = {"judge": options.asks_judge, "auditor": options.asks_auditor}
    purposes = ("agent", *(purpose for purpose, is_asked in readers.items() if is_asked))
    observing = [purpose for observer in observers for purpose in observer.purposes if purpose not in purposes]
    stored = _stored(tx, names) if len(names) >= FEWEST else {}
    for purpose in dict.fromkeys((*purposes, *observing)):
        if (medians := stored.get(purpose)) is not None:
            total += gateway.priced(purpose, *medians.times(sum(todo)))
        elif purpose in purposes:
            for length, before in zip(sizes, over, strict=True):
                whole, begun = _assumed(purpose, options, length), _assumed(purpose, options, before)
                total += gateway.priced(purpose, *whole.minus(begun).times(1))
    for observer in observers:
        with observer_errors(observer.name):
            calls = observer.calls(_steps(options))
        for purpose, per_stage in calls.items():
            if purpose not in observing or purpose not in stored:
                total += gateway.priced(purpose, *PerStage(*per_stage).times(sum(todo)))
    basis = f"medians of {counted(len(names), 'ended trajectory')} of {model}" if stored else ASSUMED
    return Forecast(len(todo), total, basis)


def _ended(tx: Transaction, model: str) -> list[str]:
    query = select(Trajectory.id).where(
        Trajectory.model == model,
        Trajectory.outcome.in_(FINAL),
        Trajectory.parent_id.is_(None),
        Trajectory.steps > 0,
        Trajectory.chain_id.is_not(None),
        # A curated one has the calls of all its candidates, a disclosed one works on the first stage with hints.
        Trajectory.scaffold.not_in(sorted(PRIVILEGED)),
    )
    return [str(name) for (name,) in tx.connection.execute(query.order_by(Trajectory.id))]


def _stored(tx: Transaction, names: list[str]) -> dict[str, PerStage]:
    """Purpose to medians per begun stage, over the trajectories that have calls of that purpose."""
    stages = select(TrajectoryStage.trajectory_id, func.count()).where(TrajectoryStage.attempts > 0)
    stage_counts = {row[0]: row[1] for row in tx.connection.execute(stages.group_by(TrajectoryStage.trajectory_id))}
    # All trajectory ids have the same length, and the subject of a call begins with one.
    name = func.substr(LlmCall.subject, 1, LENGTH)
    query = (
        select(name, LlmCall.purpose, func.count(), func.sum(LlmCall.tokens_in), func.sum(LlmCall.tokens_out))
        .where(LlmCall.state == "stored")
        .group_by(name, LlmCall.purpose)
    )
    trajectory_ids = set(names)
    samples: dict[str, list[PerStage]] = {}
    for trajectory, purpose, calls, tokens_in, tokens_out in tx.connection.execute(query):
        if trajectory in trajectory_ids and (count := stage_counts.get(trajectory, 0)):
            each = PerStage(calls / count, (tokens_in or 0) / count, (tokens_out or 0) / count)
            samples.setdefault(purpose, []).append(each)
    return {
        purpose: PerStage(*(median(getattr(row, name) for row in rows) for name in PerStage.__dataclass_fields__))
        for purpose, rows in samples.items()
    }


def _steps(options: RolloutOptions) -> float:
    """Assumed steps of a stage, all attempts together."""
    limit = options.stage_limits.steps
    return min(_STEPS, limit) if limit is not None else _STEPS


def _assumed(purpose: str, options: RolloutOptions, length: int) -> PerStage:
    """Assumed calls and tokens of a whole trajectory."""
    attempts = min(_ATTEMPTS, 1 + options.refinements)
    if purpose in ("judge", "auditor"):
        calls = length * (attempts if purpose == "judge" else 1)
        return PerStage(calls, calls * _JUDGE_PROMPT, calls * _JUDGE_REPLY)
    steps = _steps(options)
    parts, each = (1, steps * length) if options.context == "chain" else (length, steps)
    tokens_in = parts * (each * _FIRST_PROMPT + _PER_STEP * each * (each - 1) / 2)
    return PerStage(parts * each, tokens_in, parts * each * _REPLY)
