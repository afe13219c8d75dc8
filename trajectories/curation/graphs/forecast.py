"""The estimated calls, tokens and cost of process graphs: by those of stored graphs, else by stated assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import median

from sqlalchemy import func, select

from prchain.core.console.terminal import counted
from prchain.core.llm.gateway import CostEstimate, Gateway
from sql.store import Transaction
from sql.tables import GraphRow, LlmCall
from trajectories.curation.graphs.options import CRITIC, PROPOSER, GraphOptions
from trajectories.curation.graphs.outcomes import BUILT
from trajectories.identity import LENGTH

FEWEST = 5
"""The fewest stored graphs whose medians are used."""

_ROUNDS = 3
"""Of 96 graphs in 100 that is enough (P2T, appendix D)."""
_CALLS: Mapping[str, int] = {PROPOSER: 20, CRITIC: 12}
"""Calls of an agent in a round."""
_PROMPT, _PER_CALL, _REPLY, _ANSWER = 6_000, 900, 250, 4_000
"""Tokens of a first prompt, tokens that a call adds to the next prompt, tokens of a reply and of the answer."""

ASSUMED = (
    f"assumed: {_ROUNDS} rounds of {_CALLS[PROPOSER]} calls of the proposer and {_CALLS[CRITIC]} of the critic, "
    f"prompts of {_PROMPT:,} tokens that grow by {_PER_CALL} a call"
)


@dataclass(frozen=True, slots=True)
class GraphForecast:
    """The estimate of a run by purpose, and its basis."""

    graphs: int
    purposes: Mapping[str, CostEstimate]
    basis: str

    @property
    def total(self) -> CostEstimate:
        """Of all purposes."""
        return reduce(add, self.purposes.values(), CostEstimate())


def forecast(tx: Transaction, gateway: Gateway, options: GraphOptions, graphs: int) -> GraphForecast:
    """The estimate of so many graphs. Makes no call."""
    stored = {purpose: _stored(tx, gateway, purpose) for purpose in (PROPOSER, CRITIC)}
    enough = min(map(len, stored.values())) >= FEWEST
    purposes = {}
    for purpose, rows in stored.items():
        each = [median(column) for column in zip(*rows, strict=True)] if enough else _assumed(purpose, options)
        calls, tokens_in, tokens_out = (round(value * graphs) for value in each)
        purposes[purpose] = gateway.priced(purpose, calls, tokens_in, tokens_out)
    basis = f"medians of {counted(len(stored[PROPOSER]), 'stored graph')}" if enough else ASSUMED
    return GraphForecast(graphs, purposes, basis)


def _assumed(purpose: str, options: GraphOptions) -> list[float]:
    rounds = min(_ROUNDS, options.rounds)
    calls = min(_CALLS[purpose], options.tool_calls + 1)
    tokens_in = calls * _PROMPT + _PER_CALL * calls * (calls - 1) / 2
    return [rounds * calls, rounds * tokens_in, rounds * (calls * _REPLY + _ANSWER)]


def _stored(tx: Transaction, gateway: Gateway, purpose: str) -> list[tuple[int, int, int]]:
    """Calls and tokens of each stored graph of the model that is asked now."""
    name = func.substr(LlmCall.subject, 1, LENGTH)
    query = (
        select(func.count(), func.sum(LlmCall.tokens_in), func.sum(LlmCall.tokens_out))
        .join(GraphRow, GraphRow.id == name)
        .where(
            LlmCall.state == "stored",
            LlmCall.purpose == purpose,
            LlmCall.model == gateway.model_name(purpose),
            GraphRow.outcome.in_(sorted(BUILT)),
        )
        .group_by(name)
    )
    return [
        (calls, int(tokens_in or 0), int(tokens_out or 0))
        for calls, tokens_in, tokens_out in tx.connection.execute(query)
    ]
