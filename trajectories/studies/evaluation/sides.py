"""Two models or settings beside each other, on the instances that both have runs of. Pure but for scipy's test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from trajectories.studies.bootstrap import RESAMPLES, mean_intervals
from trajectories.studies.comparison import cliffs_delta, mann_whitney
from trajectories.studies.evaluation.figures import InstanceRun, grouped

RESOLVED = "resolved"

_Runs = Mapping[str, Sequence[InstanceRun]]
"""By instance."""

MEASURES: Mapping[str, Callable[[InstanceRun], float | None]] = {
    RESOLVED: lambda run: 100.0 * run.resolved,
    "steps": lambda run: run.steps,
    "calls": lambda run: run.calls,
    "tokens_in": lambda run: run.tokens_in,
    "tokens_out": lambda run: run.tokens_out,
    "redundant": lambda run: None if run.redundant is None else 100.0 * run.redundant,
    "usd": lambda run: run.usd,
}
"""What is compared: percentage points of the first and of redundant views."""


@dataclass(frozen=True, slots=True)
class MeasureDifference:
    """A measure of both sides. Means are of instances, each the mean of its runs; None where a run has no value."""

    one: float | None
    other: float | None
    difference: float | None
    """Other less one."""
    low: float | None
    """Of the 95 % interval of a bootstrap over instances, which are drawn in pairs."""
    high: float | None
    mann_whitney_p: float | None
    """Two-sided, of all runs of both sides as independent ones."""
    cliffs_delta: float | None
    """Above 0 where the other side's values are larger."""
    shift: float | None = None
    """The difference in percent of one's mean; None where that is 0."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Two sides on the same instances."""

    instances: int
    only_one: tuple[str, ...]
    """Instances that one side resolved in some run, and the other in none."""
    only_other: tuple[str, ...]
    measures: Mapping[str, MeasureDifference]
    resolved: int
    """Instances that both sides resolved."""
    on_resolved: Mapping[str, MeasureDifference]
    """What the runs that resolved these came to (P2T, figure 2 c and d)."""


def sides(
    one: Sequence[InstanceRun], other: Sequence[InstanceRun], *, p_values: bool = True, resamples: int = RESAMPLES
) -> Sides:
    """Both sides compared; runs that are counted apart are left out first.

    Raises `UsageError` where `p_values` are wanted, there are enough runs for them, and scipy is not installed.
    """
    left, right = (
        grouped((run for run in runs if run.apart is None), lambda run: run.instance) for runs in (one, other)
    )
    both = [name for name in left if name in right]
    solved = [{name for name in both if any(run.resolved for run in runs[name])} for runs in (left, right)]
    resolved = [name for name in both if name in solved[0] & solved[1]]
    won = [{name: [run for run in runs[name] if run.resolved] for name in resolved} for runs in (left, right)]

    def measured(measure: str, names: Sequence[str], runs: Sequence[_Runs]) -> MeasureDifference:
        before, after = ([_values(measure, side[name]) for name in names] for side in runs)
        return _difference(before, after, p_values, resamples)

    return Sides(
        len(both),
        tuple(sorted(solved[0] - solved[1])),
        tuple(sorted(solved[1] - solved[0])),
        {measure: measured(measure, both, (left, right)) for measure in MEASURES},
        len(resolved),
        {measure: measured(measure, resolved, won) for measure in MEASURES if measure != RESOLVED},
    )


def _difference(
    one: Sequence[Sequence[float | None]], other: Sequence[Sequence[float | None]], p_values: bool, resamples: int
) -> MeasureDifference:
    ones, others = ([_known(values) for values in side] for side in (one, other))
    pairs = [(left, right) for left, right in zip(ones, others, strict=True) if left and right]
    if not pairs:
        return MeasureDifference(None, None, None, None, None, None, None)
    left, right = [fmean(before) for before, _ in pairs], [fmean(after) for _, after in pairs]
    apart = [after - before for before, after in zip(left, right, strict=True)]
    ((low, high),) = mean_intervals([apart], [1] * len(apart), resamples)
    all_left, all_right = ([value for pair in pairs for value in pair[side]] for side in (0, 1))
    return MeasureDifference(
        fmean(left),
        fmean(right),
        fmean(apart),
        low,
        high,
        mann_whitney(all_left, all_right) if p_values else None,
        cliffs_delta(all_right, all_left),
        100 * fmean(apart) / fmean(left) if fmean(left) else None,
    )


def _values(measure: str, runs: Sequence[InstanceRun]) -> list[float | None]:
    """What was not tried is not resolved, and has no steps, calls or cost to compare."""
    return [MEASURES[measure](run) for run in runs if run.reached or measure == RESOLVED]


def _known(values: Sequence[float | None]) -> list[float]:
    """The values of an instance's runs; none where one of them is not known: the rest may be another kind of run."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []
