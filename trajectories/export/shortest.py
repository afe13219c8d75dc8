"""The shortest passing trajectory of each chain: the compute-matched baseline (P2T, appendix K)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

NOT_SHORTEST = "not_shortest"


class ResponseLength(NamedTuple):
    """How much a model said in the exported stages of a trajectory, rejected rounds too."""

    steps: int = 0
    tokens: int | None = 0
    """None where an endpoint did not tell the tokens of some turn."""


class Passing(Protocol):
    """A trajectory whose first stages passed."""

    @property
    def id(self) -> str: ...
    @property
    def chain_id(self) -> str: ...
    @property
    def accepted(self) -> int: ...
    @property
    def sample(self) -> int: ...


P = TypeVar("P", bound=Passing)


def shortest_first(found: Iterable[P], lengths: Mapping[str, ResponseLength]) -> list[list[P]]:
    """The trajectories of each chain, the shortest first; chains in the order of `found`.

    Before length counts how many stages passed: a prefix is shorter because it does less. Lengths are in tokens, or in
    steps for a chain with a trajectory whose tokens are not known. Of equal ones the lowest sample number is first,
    then the lowest id. `lengths` holds no trajectory in which a model said nothing.
    """
    chains: dict[str, list[P]] = {}
    for trajectory in found:
        chains.setdefault(trajectory.chain_id, []).append(trajectory)
    return [_sorted(trajectories, lengths) for trajectories in chains.values()]


def _sorted(trajectories: Iterable[P], lengths: Mapping[str, ResponseLength]) -> list[P]:
    pairs = [(trajectory, lengths.get(trajectory.id, ResponseLength())) for trajectory in trajectories]
    tokens_known = all(length.tokens is not None for _, length in pairs)

    def order(pair: tuple[P, ResponseLength]) -> tuple[int, int, int, str]:
        trajectory, length = pair
        size = length.tokens if tokens_known and length.tokens is not None else length.steps
        return -trajectory.accepted, size, trajectory.sample, trajectory.id

    return [trajectory for trajectory, _ in sorted(pairs, key=order)]
