"""Figures of a model on a set of tasks, from what its runs came to. Pure.

An *instance* is what is to be solved: a stage of a chain. A *run* is one sample's work on it. What a machine, a network
or a model's endpoint ended is no run of the model: it is counted apart, and scored as nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from prchain.core.shares import wilson
from trajectories.studies.bootstrap import RESAMPLES, mean_intervals
from trajectories.studies.resolved import within


@dataclass(frozen=True, slots=True)
class InstanceRun:
    """What one sample did at one instance."""

    instance: str
    sample: int
    resolved: bool
    patch: bool
    """Whether anything was changed, handed in or not."""
    steps: int | None
    """None, as calls, where only the patch is known."""
    calls: int | None
    """Of tools."""
    tokens_in: int | None = 0
    """None where no endpoint told them."""
    tokens_out: int | None = 0
    usd: float | None = 0.0
    """None where a price is not known."""
    apart: str | None = None
    """Why it says nothing of the model: the failure's name; None where it does."""
    repository: str = ""
    difficulty: str = ""
    position: int = 1
    """Of the stage in its chain."""
    reached: bool = True
    """Whether anything was tried: not where the agent failed an earlier stage. It is then not resolved, and no part of
    means."""
    redundant: float | None = None
    """The share of its views of files that showed nothing new; None where it looked at none."""
    broke_earlier: bool | None = None
    """Whether tests of earlier stages that passed when it began fail at its end; None at a first stage, and where no
    tests ran."""
    began_broken: bool | None = None
    """Whether tests that pass on B_t failed when it began: the earlier stages broke them; None as above."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share with its 95 % interval: `low` and `high` are None where there is none to tell."""

    value: float
    low: float | None
    high: float | None
    of: int
    """Instances that it is a mean over."""
    interval: str
    """``wilson``, where every instance has one run; else ``bootstrap`` over instances, or ``none``."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a group of runs. Means are of runs that were tried; those of cost are None where a price is not
    known, those of tokens where none were told."""

    instances: int
    runs: int
    """Without those that are counted apart."""
    apart: Mapping[str, int]
    """The failure's name to the runs that it ended."""
    pass_at: Mapping[int, Estimate]
    """k to Pass@k, over the instances that have k runs."""
    not_reached: int
    """Runs of stages that were not tried, as an earlier one failed."""
    resolved: int
    patches: int
    at_steps: Mapping[int, float]
    """The share of runs that resolved with so many steps or fewer."""
    at_calls: Mapping[int, float]
    steps: float | None
    calls: float | None
    tokens_in: float | None
    tokens_out: float | None
    usd: float | None
    """Of a run."""
    usd_resolved: float | None
    """All that was paid for the runs, for each of them that resolved; None where none did."""
    later: int
    """Runs of stages after the first that tests ran on."""
    broke_earlier: int
    """Those of them after which tests of earlier stages fail that passed when they began."""
    began_broken: int
    """Those of them that began with tests broken by the stages before."""

    @property
    def patch_rate(self) -> float | None:
        """The share of runs that changed anything."""
        return self.patches / self.runs if self.runs else None


def pass_at_k(runs: int, resolved: int, k: int) -> float:
    """The unbiased estimate of the chance that one of k runs resolves, from so many `runs` of which so many `resolved`
    (M. Chen et al., 2021, equation 1). Raises `ValueError` where there are fewer than k runs."""
    if not 0 <= resolved <= runs or not 1 <= k <= runs:
        raise ValueError(f"there is no Pass@{k} of {resolved} in {runs} runs")
    return 1.0 - comb(runs - resolved, k) / comb(runs, k)


def figures(
    runs: Iterable[InstanceRun],
    *,
    ks: Sequence[int] = (1,),
    steps: Sequence[int] = (),
    calls: Sequence[int] = (),
    resamples: int = RESAMPLES,
) -> Figures:
    """The figures of runs: Pass@k for each of `ks` that some instance has the runs for, and what was resolved within so
    many `steps`, and so many `calls` of tools."""
    everything = list(runs)
    measured = [run for run in everything if run.apart is None]
    tried = [run for run in measured if run.reached]
    solved = [run for run in measured if run.resolved]
    costs = [run.usd for run in measured]
    known = [usd for usd in costs if usd is not None]
    total = sum(known) if len(known) == len(costs) else None
    by_instance = grouped(measured, lambda run: run.instance)
    later = [run for run in measured if run.broke_earlier is not None]
    return Figures(
        instances=len(by_instance),
        runs=len(measured),
        apart=dict(sorted(Counter(run.apart for run in everything if run.apart is not None).items())),
        pass_at={k: share for k in ks if (share := _pass_at(by_instance, k, resamples)) is not None},
        not_reached=len(measured) - len(tried),
        resolved=len(solved),
        patches=sum(run.patch for run in measured),
        at_steps=_within(measured, [run.steps for run in solved], steps),
        at_calls=_within(measured, [run.calls for run in solved], calls),
        steps=_mean(run.steps for run in tried if run.steps is not None),
        calls=_mean(run.calls for run in tried if run.calls is not None),
        tokens_in=_mean(run.tokens_in for run in tried if run.tokens_in is not None),
        tokens_out=_mean(run.tokens_out for run in tried if run.tokens_out is not None),
        usd=None if total is None or not tried else total / len(tried),
        usd_resolved=None if total is None or not solved else total / len(solved),
        later=len(later),
        broke_earlier=sum(run.broke_earlier is True for run in later),
        began_broken=sum(run.began_broken is True for run in later),
    )


def grouped(runs: Iterable[InstanceRun], key: Callable[[InstanceRun], str]) -> dict[str, list[InstanceRun]]:
    """Runs by a key, sorted by it."""
    found: dict[str, list[InstanceRun]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return dict(sorted(found.items()))


def _pass_at(by_instance: Mapping[str, Sequence[InstanceRun]], k: int, resamples: int) -> Estimate | None:
    enough = [runs for runs in by_instance.values() if len(runs) >= k]
    if not enough:
        return None
    values = [pass_at_k(len(runs), sum(run.resolved for run in runs), k) for runs in enough]
    if all(len(runs) == 1 for runs in enough):
        return Estimate(fmean(values), *wilson(int(sum(values)), len(values)), len(values), "wilson")
    ((low, high),) = mean_intervals([values], [1] * len(values), resamples)
    return Estimate(fmean(values), low, high, len(values), "none" if low is None else "bootstrap")


def _within(measured: Sequence[InstanceRun], taken: Sequence[int | None], limits: Sequence[int]) -> dict[int, float]:
    """The share of the runs that resolved with so many or fewer; none where `taken` is not known of each."""
    known = [it for it in taken if it is not None]
    if len(known) < len(taken) or all(run.steps is None for run in measured):
        return {}
    return within(known, len(measured), limits)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None
