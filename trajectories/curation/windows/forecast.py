"""The estimated calls, tokens and cost of curated runs by purpose: by medians of stored ones, else by stated
assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import median

from sqlalchemy import func, select

from prchain.core.console.terminal import counted
from prchain.core.llm.gateway import CostEstimate, Gateway
from sql.store import Transaction
from sql.tables import LlmCall, Trajectory, TrajectoryStage
from trajectories.agents.observers.failures import observer_errors
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.scaffolds.scaffold import ObserverKind
from trajectories.curation.graphs.forecast import forecast as graph_forecast
from trajectories.curation.graphs.options import CRITIC, PROPOSER, GraphOptions
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND, Asked, Pick, WindowOptions
from trajectories.identity import LENGTH
from trajectories.outcomes import FINAL
from trajectories.privileged import CURATED

FEWEST = 5
"""The fewest ended trajectories whose medians are used."""

_STEPS = 30
"""Committed steps of a stage."""
_FIRST_PROMPT, _PER_STEP, _REPLY = 3_000, 730, 250
"""Tokens of a first prompt, tokens that a step adds to the next one, tokens of a reply: as of plain rollouts."""
_VERDICT = 150
"""Tokens of a reply of the verifier and the judge."""
_ASKED = 0.6
"""The share of steps of which the verifier is asked: those with a node whose tool and an entity fit."""
_NODES = 12
"""Nodes that are not established, on the average step."""
_VARIANTS = 0.8
"""The share of the variants that a seed may have, of which some are dropped before they are rolled out."""

ASSUMED = (
    f"assumed: {_STEPS} committed steps a stage, prompts of {_FIRST_PROMPT:,} tokens that grow by {_PER_STEP} a step"
)


@dataclass(frozen=True, slots=True)
class CurationForecast:
    """The estimate of a run by purpose, and its basis."""

    trajectories: int
    purposes: Mapping[str, CostEstimate]
    basis: str

    @property
    def total(self) -> CostEstimate:
        """Of all purposes."""
        return reduce(add, self.purposes.values(), CostEstimate())

    @property
    def verifier_share(self) -> float | None:
        """The part of the calls that the verifier has; None without calls."""
        calls = self.total.calls
        return self.purposes[ESTABLISH].calls / calls if calls and ESTABLISH in self.purposes else None


def forecast(
    tx: Transaction,
    gateway: Gateway,
    options: WindowOptions,
    graphs: GraphOptions,
    lengths: Iterable[int],
    *,
    steps: int | None = None,
    observers: Sequence[ObserverKind] = (),
) -> CurationForecast:
    """The estimate of curated runs over chains of these lengths, if every stage is reached. Makes no call.

    `steps` is the limit of a stage's steps.
    """
    todo = list(lengths)
    stages = sum(todo)
    stored = _stored(tx, gateway)
    usable = min((len(rows) for rows in stored.values()), default=0) >= FEWEST
    purposes = {}
    for purpose in (AGENT, CURATOR, GROUND, ESTABLISH):
        each = (
            [median(column) for column in zip(*stored[purpose], strict=True)]
            if usable and stored.get(purpose)
            else _assumed(purpose, options, steps)
        )
        purposes[purpose] = gateway.priced(purpose, *(round(value * stages) for value in each))
    for observer in observers:
        with observer_errors(observer.name):
            calls = observer.calls(_rolled(options, steps)[0])
        for purpose, value in calls.items():
            purposes[purpose] = gateway.priced(purpose, *(round(number * stages) for number in value))
    later = sum(length - 1 for length in todo)
    if later:
        of_graphs = graph_forecast(tx, gateway, graphs, later)
        purposes |= {purpose: of_graphs.purposes[purpose] for purpose in (PROPOSER, CRITIC)}
    basis = f"medians of {counted(len(stored[AGENT]), 'ended trajectory')}" if usable else ASSUMED
    return CurationForecast(len(todo), purposes, basis)


def _rolled(options: WindowOptions, limit: int | None) -> tuple[float, float]:
    """The agent's steps of a stage in all candidates, and the number of variants."""
    steps = _committed(limit)
    windows = -(-steps // options.stride)
    seeds, variants = windows * options.seeds, windows * options.seeds * options.variants * _VARIANTS
    each = min(options.window, steps)
    return seeds * each + variants * each / 2, variants


def _committed(limit: int | None) -> int:
    return _STEPS if limit is None else min(_STEPS, limit)


def _assumed(purpose: str, options: WindowOptions, limit: int | None) -> tuple[float, float, float]:
    """Calls and tokens of a stage."""
    rolled, variants = _rolled(options, limit)
    prompt = _FIRST_PROMPT + _PER_STEP * (_committed(limit) + options.window) / 2
    if purpose == AGENT:
        return rolled, rolled * prompt, rolled * _REPLY
    if purpose == ESTABLISH:
        calls = rolled * (_ASKED if options.est is Asked.STEP else _NODES)
        return calls, calls * prompt, calls * _VERDICT
    calls = variants * (2 if purpose == CURATOR and options.pick is Pick.MODEL else 1)
    if purpose == GROUND and not options.ground:
        calls = 0
    return calls, calls * prompt, calls * (_REPLY if purpose == CURATOR else _VERDICT)


def _stored(tx: Transaction, gateway: Gateway) -> dict[str, list[tuple[float, float, float]]]:
    """Calls and tokens of a begun stage of each ended curated trajectory of the agent's model, by purpose."""
    begun = (
        select(TrajectoryStage.trajectory_id, func.count())
        .join(Trajectory, Trajectory.id == TrajectoryStage.trajectory_id)
        .where(
            TrajectoryStage.attempts > 0,
            Trajectory.scaffold == CURATED,
            Trajectory.model == gateway.model_name(AGENT),
            Trajectory.outcome.in_(FINAL),
        )
        .group_by(TrajectoryStage.trajectory_id)
    )
    stages = {row[0]: row[1] for row in tx.connection.execute(begun)}
    name = func.substr(LlmCall.subject, 1, LENGTH)
    query = (
        select(name, LlmCall.purpose, func.count(), func.sum(LlmCall.tokens_in), func.sum(LlmCall.tokens_out))
        .where(LlmCall.state == "stored", LlmCall.purpose.in_((AGENT, CURATOR, GROUND, ESTABLISH)))
        .group_by(name, LlmCall.purpose)
    )
    found: dict[str, list[tuple[float, float, float]]] = {AGENT: []}
    for trajectory, purpose, calls, tokens_in, tokens_out in tx.connection.execute(query):
        if count := stages.get(trajectory, 0):
            row = (calls / count, (tokens_in or 0) / count, (tokens_out or 0) / count)
            found.setdefault(purpose, []).append(row)
    return found
