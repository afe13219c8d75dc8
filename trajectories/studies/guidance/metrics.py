"""Figures of a policy with and without a process reward model, over the same stages (SWE-PRM, section 4.3, table 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from trajectories.studies.bootstrap import RESAMPLES, mean_intervals
from trajectories.studies.guidance.difficulty import Difficulty, StageKey

MEASURES = ("resolved", "patches", "steps", "usd")
"""What is compared with the base: percentage points of the first two, mean steps, and USD per 100 stages."""

UnitKey = tuple[StageKey, int]
"""A stage and the sample: what is paired."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """What one sample of a setting did at one stage. USD are None where a price is not known."""

    stage: StageKey
    sample: int
    resolved: bool
    """Whether the hidden tests passed on the last attempt, whatever the gate says."""
    patch: bool
    """Whether anything was changed, handed in or not."""
    steps: int
    tokens_in: int
    tokens_out: int
    usd: float | None
    prm_calls: int = 0
    prm_tokens_in: int = 0
    prm_tokens_out: int = 0
    prm_usd: float | None = 0.0
    optimal: int = 0
    """Windows on track."""
    suboptimal: int = 0
    unsaid: int = 0
    """Windows of which the reading does not say whether they are: the simple style."""
    unread: int = 0
    """Windows without a reading: the reply could not be read, the model refused, the prompt was too long."""
    leaks: int = 0
    """Windows whose words the leak check doubts."""
    detected: Mapping[str, int] = field(default_factory=dict)
    """Category to the kept findings of the model."""

    @property
    def key(self) -> UnitKey:
        """Stage and sample."""
        return self.stage, self.sample

    @property
    def total_usd(self) -> float | None:
        """Of policy and process reward model."""
        return None if self.usd is None or self.prm_usd is None else self.usd + self.prm_usd


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many."""

    count: int
    of: int

    @property
    def percent(self) -> float | None:
        """None of none."""
        return 100 * self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class SettingFigures:
    """The figures of a setting: a row of table 4. Steps, tokens, calls and windows are means of a stage; a stage with
    several samples counts as often."""

    runs: int
    resolved: Rate
    tiers: Mapping[Difficulty, Rate]
    """Resolved ones by difficulty (figure 2)."""
    patches: Rate
    steps: float
    tokens_in: float
    tokens_out: float
    prm_calls: float
    prm_tokens_in: float
    prm_tokens_out: float
    optimal: float
    suboptimal: float
    unsaid: float
    unread: int
    leaks: int
    detected: Mapping[str, int]
    usd: float | None
    """Of the policy, per 100 stages; None where a price is not known."""
    prm_usd: float | None
    total_usd: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a setting is above the base, with the bounds of the 95 % interval: None for a single stage."""

    value: float
    low: float | None
    high: float | None


def figures(runs: Sequence[ComparedRun], tiers: Mapping[StageKey, Difficulty]) -> SettingFigures:
    """The figures of a setting's runs; `tiers` has the difficulty of their stages. Raises `ValueError` without runs."""
    if not runs:
        raise ValueError("there are no figures of nothing")
    detected: Counter[str] = Counter()
    for run in runs:
        detected.update(run.detected)
    return SettingFigures(
        len(runs),
        _resolved(runs),
        {tier: _resolved(run for run in runs if tiers[run.stage] is tier) for tier in Difficulty},
        Rate(sum(run.patch for run in runs), len(runs)),
        fmean(run.steps for run in runs),
        fmean(run.tokens_in for run in runs),
        fmean(run.tokens_out for run in runs),
        fmean(run.prm_calls for run in runs),
        fmean(run.prm_tokens_in for run in runs),
        fmean(run.prm_tokens_out for run in runs),
        fmean(run.optimal for run in runs),
        fmean(run.suboptimal for run in runs),
        fmean(run.unsaid for run in runs),
        sum(run.unread for run in runs),
        sum(run.leaks for run in runs),
        dict(sorted(detected.items())),
        _per_100([run.usd for run in runs]),
        _per_100([run.prm_usd for run in runs]),
        _per_100([run.total_usd for run in runs]),
    )


def _resolved(runs: Iterable[ComparedRun]) -> Rate:
    resolved = [run.resolved for run in runs]
    return Rate(sum(resolved), len(resolved))


def _per_100(costs: Sequence[float | None]) -> float | None:
    known = [usd for usd in costs if usd is not None]
    return 100 * fmean(known) if len(known) == len(costs) else None


def cost_per_resolved(
    total_usd: float | None, resolved: float | None, base_usd: float | None, base_resolved: float | None
) -> float | None:
    """USD for each stage that a setting resolves beyond the base, from USD and resolved stages per 100 of both.

    Below 0 the setting is cheaper than the base, too. None where no more are resolved, or something is not known.
    """
    if total_usd is None or base_usd is None or resolved is None or base_resolved is None:
        return None
    more = resolved - base_resolved
    return (total_usd - base_usd) / more if more > 0 else None


def differences(
    base: Sequence[ComparedRun], other: Sequence[ComparedRun], *, resamples: int = RESAMPLES
) -> dict[str, Difference | None]:
    """How far a setting is from the base in each of `MEASURES`; None where a price is not known.

    Both have runs of the same stages and samples, which are paired. The interval is that of a percentile bootstrap over
    stages; the samples of a stage are drawn together. Equal runs give equal intervals. Raises `ValueError` for runs
    that cannot be paired.
    """
    paired = {run.key: run for run in base}
    if not paired or sorted(paired) != sorted(run.key for run in other):
        raise ValueError("runs of different stages cannot be paired")
    counts: Counter[StageKey] = Counter()
    sums: dict[str, dict[StageKey, float]] = {name: {} for name in MEASURES}
    unknown: set[str] = set()
    for run in other:
        counts[run.stage] += 1
        before, after = _measures(paired[run.key]), _measures(run)
        for name, of_stage in sums.items():
            was, now = before[name], after[name]
            if was is None or now is None:
                unknown.add(name)
            else:
                of_stage[run.stage] = of_stage.get(run.stage, 0.0) + now - was
    stages = sorted(counts)
    known = [name for name in MEASURES if name not in unknown]
    columns = [[sums[name][stage] for stage in stages] for name in known]
    bounds = mean_intervals(columns, [counts[stage] for stage in stages], resamples)
    found: dict[str, Difference | None] = dict.fromkeys(MEASURES)
    for name, column, (low, high) in zip(known, columns, bounds, strict=True):
        found[name] = Difference(sum(column) / counts.total(), low, high)
    return found


def _measures(run: ComparedRun) -> dict[str, float | None]:
    usd = None if run.total_usd is None else 100 * run.total_usd
    return {"resolved": 100.0 * run.resolved, "patches": 100.0 * run.patch, "steps": float(run.steps), "usd": usd}
