"""One run over the settings of a grid: the same chains under each, chain by chain, under one budget.

Chain by chain, because figures are compared over the stages that every setting has worked on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import CostEstimate
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from trajectories.agents.guidance.observer import NAME
from trajectories.agents.guidance.settings import PURPOSE as PRM
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.options import RolloutOptions
from trajectories.outcomes import FINAL, MEASURED
from trajectories.rollouts.run import RolloutChoice, RolloutRun, RolloutUnit, open_run
from trajectories.studies.guidance.sweeps.grid import BASE, SweepSetting


@dataclass(frozen=True, slots=True)
class SweepUnit:
    """One sample of one chain under one setting (`prchain.core.runs.Unit`)."""

    setting: str
    rollout: RolloutUnit

    @property
    def key(self) -> str:
        """Setting, chain and sample."""
        return f"{self.setting}, {self.rollout.key}"

    @property
    def group(self) -> str:
        """The chain."""
        return self.rollout.group


@dataclass(frozen=True, slots=True)
class PendingSweep:
    """What a run would do."""

    units: tuple[SweepUnit, ...] = ()
    """What is to be rolled out, chain by chain."""
    standing: int = 0
    """Samples that are over."""
    measured: int = 0
    """How many of them say how the agent did."""


@dataclass(frozen=True, slots=True)
class SweepReport(RunResult[SweepUnit]):
    """What a run did; `detail` of each unit is the trajectory's id."""

    standing: int = 0
    """Samples that were over before."""
    measured_before: int = 0
    """How many of them say how the agent did."""

    @property
    def good(self) -> int:
        """Rollouts that say how the agent did, of this run or of an earlier one."""
        return self.measured_before + sum(self.counts.get(name, 0) for name in MEASURED)

    @property
    def failed(self) -> tuple[UnitResult[SweepUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome not in FINAL)

    @property
    def done(self) -> bool:
        """Whether every sample is over under every setting."""
        return not self.left and not self.failed


class SweepRun:
    """Rolls out what is missing (`prchain.core.runs.Work`)."""

    title = "rollouts"

    def __init__(self, runs: Mapping[str, RolloutRun], progress: Progress = SILENT) -> None:
        self.runs = runs
        self._progress = progress
        self._any = next(iter(runs.values()))

    def pending(self) -> PendingSweep:
        """What a run would do. Raises `UsageError`."""
        found = {name: run.pending() for name, run in self.runs.items()}
        by_setting = [[SweepUnit(name, unit) for unit in pending.units] for name, pending in found.items()]
        order = {key: place for place, key in enumerate(_chains(by_setting))}
        units = [unit for row in zip_longest(*by_setting) for unit in row if unit is not None]
        units.sort(key=lambda unit: (order[unit.group], unit.rollout.sample))
        standing = sum(pending.standing for pending in found.values())
        return PendingSweep(tuple(units), standing, sum(pending.measured for pending in found.values()))

    def estimate(self, units: Sequence[SweepUnit]) -> dict[str, CostEstimate]:
        """The estimate of each setting. Makes no call."""
        return {
            name: run.forecast(tuple(unit.rollout for unit in units if unit.setting == name)).estimate
            for name, run in self.runs.items()
        }

    def run(self, workers: int = 2, pending: PendingSweep | None = None) -> SweepReport:
        """Roll out what is missing. Raises as `prchain.core.runs.run_units`."""
        todo = pending or self.pending()
        secrets = self._any.context.secrets
        result = run_units(self, todo.units, workers=workers, progress=self._progress, secrets=secrets)
        return SweepReport(result.results, result.left, result.stopped, todo.standing, todo.measured)

    def holding(self, unit: SweepUnit) -> AbstractContextManager[Any]:
        """See `Work`."""
        return self.runs[unit.setting].holding(unit.rollout)

    def work_on(self, unit: SweepUnit, tell: Tell) -> UnitResult[SweepUnit]:
        """See `Work`."""
        result = self.runs[unit.setting].work_on(unit.rollout, tell)
        return UnitResult(unit, result.outcome, result.reason, result.detail)

    def failed(self, unit: SweepUnit, outcome: str, reason: str) -> UnitResult[SweepUnit]:
        """See `Work`."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`: all settings share one run of the ledger."""
        return self._any.spent()


def _chains(by_setting: Sequence[Sequence[SweepUnit]]) -> list[str]:
    """The chains in the order of the setting that has most of them to do."""
    longest = max(by_setting, key=len)
    return list(dict.fromkeys(unit.group for units in (longest, *by_setting) for unit in units))


@contextmanager
def open_sweep(
    settings: Settings,
    grid: Sequence[SweepSetting],
    base: RolloutOptions,
    prm: Mapping[str, str],
    choice: RolloutChoice,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str,
) -> Iterator[SweepRun]:
    """Open a run over the settings; `base` are the options without an observer, `prm` settings of each variant. Of
    settings that come to the same, such as an expert that guides itself by either name, the first one stays.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with ExitStack() as resources:
        runs: dict[str, RolloutRun] = {}
        policies: dict[str, str] = {}
        known: set[tuple[str, str, str | None]] = set()
        for setting in grid:
            words = ",".join(f"{key}={value}" for key, value in {"variant": setting.variant, **prm}.items())
            guided = setting.variant != BASE
            options = replace(base, observers=(f"{NAME}:{words}",)) if guided else base
            own = setting.settings(settings)
            opened = open_run(own, options, choice, budget_usd=budget_usd, ledger_run=ledger_run)
            run = resources.enter_context(opened)
            sampling = {"temperature": base.temperature, "top_p": base.top_p, "max_tokens": base.max_tokens}
            policy = _asked(run, AGENT, **sampling)
            if policies.setdefault(policy, setting.policy) != setting.policy:
                raise UsageError(f"the policies {policies[policy]} and {setting.policy} ask the same model alike")
            key = (setting.variant, policy, _asked(run, PRM) if guided else None)
            if key not in known:
                known.add(key)
                runs[setting.name] = run
        yield SweepRun(runs, progress)


def _asked(run: RolloutRun, purpose: str, **sampling: Any) -> str:
    """Which model a purpose asks, and how, for comparing."""
    return json.dumps(run.context.gateway.resolved(purpose, **sampling), sort_keys=True)
