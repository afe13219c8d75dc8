"""How far the agent's own earlier work costs it later stages: the same stages, begun on the work of the agent, of the
reference, or of nobody. Pure.

Stages of a chain are no independent draws here, since what one stage breaks the next ones begin with; so the units of
the bootstrap are chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from environments.checkouts.carry import Carry
from trajectories.studies.bootstrap import RESAMPLES, mean_intervals
from trajectories.studies.evaluation.figures import InstanceRun, grouped

_ORDER = tuple(map(str, Carry))


@dataclass(frozen=True, slots=True)
class CarryFigures:
    """What one way to carry comes to, on the stages that all of them have runs of."""

    runs: int
    resolved: float
    """The mean over stages of the share of their runs that resolved."""
    by_position: Mapping[int, float]
    """The same of the first stages, the second ones ..."""
    later: int
    """Runs of stages after the first that tests ran on."""
    broke_earlier: float | None
    """The share of them after which tests of earlier stages fail that passed when they began; None without any."""
    began_broken: float | None
    """The share of them that began with tests broken by the stages before."""


@dataclass(frozen=True, slots=True)
class CarryDifference:
    """`other` less `one`, in percentage points of resolved stages."""

    one: str
    other: str
    difference: float
    low: float | None
    """Of the 95 % interval of a bootstrap over chains; both sides are drawn together."""
    high: float | None
    later: float | None
    """The difference on stages after the first, which alone carry anything; None without any."""
    later_low: float | None
    later_high: float | None


@dataclass(frozen=True, slots=True)
class Carried:
    """The ways to carry side by side."""

    instances: int
    chains: int
    carries: Mapping[str, CarryFigures]
    """In the order agent, reference, none."""
    differences: tuple[CarryDifference, ...]


def carried(runs: Mapping[str, Sequence[InstanceRun]], *, resamples: int = RESAMPLES) -> Carried | None:
    """The runs of each way to carry, by its name, on the stages that all have runs of. Runs that are counted apart are
    left out first, and ways that have no others. None where there are not two ways, or no such stage."""
    by_carry = {
        carry: grouped((run for run in runs[carry] if run.apart is None), lambda run: run.instance)
        for carry in sorted(runs, key=lambda it: (_ORDER.index(it) if it in _ORDER else len(_ORDER), it))
        if any(run.apart is None for run in runs[carry])
    }
    common = sorted(set.intersection(*map(set, by_carry.values()))) if len(by_carry) > 1 else []
    if not common:
        return None
    sides = {carry: {name: found[name] for name in common} for carry, found in by_carry.items()}
    shares = {
        carry: {name: fmean(run.resolved for run in found[name]) for name in common} for carry, found in sides.items()
    }
    positions = {name: sides[next(iter(sides))][name][0].position for name in common}
    return Carried(
        len(common),
        len(set(map(_chain, common))),
        {carry: _figures(sides[carry], shares[carry], positions) for carry in sides},
        tuple(_difference(one, other, shares, positions, resamples) for one, other in combinations(sides, 2)),
    )


def _figures(
    runs: Mapping[str, Sequence[InstanceRun]], shares: Mapping[str, float], positions: Mapping[str, int]
) -> CarryFigures:
    everything = [run for found in runs.values() for run in found]
    later = [run for run in everything if run.broke_earlier is not None]
    return CarryFigures(
        len(everything),
        fmean(shares.values()),
        {
            at: fmean(share for name, share in shares.items() if positions[name] == at)
            for at in sorted(set(positions.values()))
        },
        len(later),
        fmean(run.broke_earlier is True for run in later) if later else None,
        fmean(run.began_broken is True for run in later) if later else None,
    )


def _difference(
    one: str,
    other: str,
    shares: Mapping[str, Mapping[str, float]],
    positions: Mapping[str, int],
    resamples: int,
) -> CarryDifference:
    apart = {name: 100 * (share - shares[one][name]) for name, share in shares[other].items()}
    later = {name: value for name, value in apart.items() if positions[name] > 1}
    low, high = _interval(apart, resamples)
    later_low, later_high = _interval(later, resamples)
    return CarryDifference(
        one,
        other,
        fmean(apart.values()),
        low,
        high,
        fmean(later.values()) if later else None,
        later_low,
        later_high,
    )


def _interval(values: Mapping[str, float], resamples: int) -> tuple[float | None, float | None]:
    chains: dict[str, list[float]] = {}
    for name, value in values.items():
        chains.setdefault(_chain(name), []).append(value)
    sums, counts = [sum(found) for found in chains.values()], [len(found) for found in chains.values()]
    (bounds,) = mean_intervals([sums], counts, resamples)
    return bounds


def _chain(instance: str) -> str:
    """The chain of a stage ``chain/position``."""
    return instance.partition("/")[0]
