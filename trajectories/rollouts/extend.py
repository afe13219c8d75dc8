"""One run that takes up accepted prefixes where they end, each with the options it was made with.

daVinci-Agency completes chains that successful trajectories left unfinished, which makes its Long set (section 6.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from prchain.core.console.progress import SILENT, Progress
from prchain.core.llm.gateway import CostEstimate
from prchain.core.llm.ledger import Spending
from prchain.core.runs import Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.extensions import extended_prefixes
from trajectories.model import AgentLimits
from trajectories.options import RolloutOptions
from trajectories.rollouts.prefixes import AcceptedPrefix, Obstacle, by_options, obstacle, read_prefixes
from trajectories.rollouts.run import RolloutChoice, RolloutReport, RolloutRun, RolloutUnit, open_run
from trajectories.sums import hidden_tests


@dataclass(frozen=True, slots=True)
class ChangedOptions:
    """The options of an extension that may differ from those of its prefix. None: as the prefix has it."""

    stage_limits: Mapping[str, Any]
    """The limits that differ, by unit (`AgentLimits`)."""
    chain_limits: Mapping[str, Any]
    temperature: float | None = None
    backend: str | None = None

    def of(self, options: RolloutOptions) -> RolloutOptions:
        """The options of an extension. Raises `UsageError`."""
        changed: dict[str, Any] = {
            name: AgentLimits(**{**asdict(getattr(options, name)), **getattr(self, name)})
            for name in ("stage_limits", "chain_limits")
        }
        changed |= {} if self.temperature is None else {"temperature": self.temperature}
        changed |= {} if self.backend is None else {"backend": self.backend}
        return replace(options, **changed)


@dataclass(frozen=True, slots=True)
class ExtensionUnit:
    """One try to extend a prefix (`prchain.core.runs.Unit`)."""

    options: RolloutOptions
    rollout: RolloutUnit

    @property
    def key(self) -> str:
        """Chain, sample and prefix."""
        return self.rollout.key

    @property
    def group(self) -> str:
        """The chain."""
        return self.rollout.group


@dataclass(frozen=True, slots=True)
class PendingExtensions:
    """What a run would do."""

    units: tuple[ExtensionUnit, ...]
    standing: int
    """Tries that are over."""
    extended: int = 0
    """Prefixes that something extends already."""


class ExtensionRun:
    """Extends the prefixes that can be extended (`prchain.core.runs.Work`)."""

    title = "rollouts"

    def __init__(
        self,
        runs: Mapping[RolloutOptions, RolloutRun],
        prefixes: Sequence[AcceptedPrefix],
        progress: Progress = SILENT,
        limit: int | None = None,
    ) -> None:
        """`runs` has a run for the options of each of the `prefixes`, of which the first `limit` are taken up."""
        self.runs = runs
        self._progress = progress
        self._any = next(iter(runs.values()), None)
        self.obstacles: Counter[Obstacle] = Counter()
        """How many prefixes cannot be taken up, by reason."""
        self._prefixes: list[AcceptedPrefix] = []
        for prefix in prefixes:
            context = runs[prefix.options].context
            with context.store.reading() as tx:
                found = obstacle(tx, prefix, context)
            if found is not None:
                self.obstacles[found] += 1
            elif limit is None or len(self._prefixes) < limit:
                self._prefixes.append(prefix)

    def pending(self, samples: Sequence[int]) -> PendingExtensions:
        """The tries of these numbers that are missing, of the prefixes that nothing extends yet."""
        extended: set[str] = set()
        if self._any is not None:
            with self._any.context.store.reading() as tx:
                extended = set(extended_prefixes(tx).values())
        todo = [prefix for prefix in self._prefixes if prefix.id not in extended]
        units: list[ExtensionUnit] = []
        standing = 0
        for options, members in by_options(todo).items():
            tries = tuple(
                RolloutUnit(prefix.chain_id, sample, prefix.parent, prefix.accepted)
                for sample in samples
                for prefix in members
            )
            found = RolloutRun(self.runs[options].context, RolloutChoice(units=tries)).pending()
            units += [ExtensionUnit(options, unit) for unit in found.units]
            standing += found.standing
        units.sort(key=lambda unit: unit.rollout.sample)
        return PendingExtensions(tuple(units), standing, len(self._prefixes) - len(todo))

    def estimate(self, units: Sequence[ExtensionUnit]) -> CostEstimate:
        """The estimate, if every stage is reached. Makes no call."""
        total = CostEstimate()
        for options, run in self.runs.items():
            if mine := tuple(unit.rollout for unit in units if unit.options == options):
                total += run.forecast(mine).estimate
        return total

    def run(self, workers: int, samples: int) -> RolloutReport:
        """Try each prefix until it is extended, `samples` times at most. Raises as `prchain.core.runs.run_units`."""
        results: list[UnitResult[RolloutUnit]] = []
        left = standing = 0
        stopped = None
        extended = self.pending(()).extended
        for sample in range(samples):
            todo = self.pending([sample])
            standing += todo.standing
            if stopped is not None:
                left += len(todo.units)
                continue
            secrets = self._any.context.secrets if self._any else ()
            ended = run_units(self, todo.units, workers=workers, progress=self._progress, secrets=secrets)
            results += [UnitResult(it.unit.rollout, it.outcome, it.reason, it.detail) for it in ended.results]
            left, stopped = left + ended.left, ended.stopped
        return RolloutReport(tuple(results), left, stopped, standing, kept_before=extended)

    def spending(self) -> Spending:
        """What the run spent so far."""
        return self._any.context.gateway.spending() if self._any else Spending()

    def hidden_tests(self, report: RolloutReport) -> dict[str, int]:
        """As `trajectories.sums.hidden_tests`, of the trajectories of a report."""
        names = [result.detail for result in report.results if result.detail is not None]
        if self._any is None:
            return {"passed": 0, "failed": 0, "not_run": 0}
        with self._any.context.store.reading() as tx:
            return hidden_tests(tx, names)

    # ---- the work on one try

    def holding(self, unit: ExtensionUnit) -> AbstractContextManager[Any]:
        """See `Work`."""
        return self.runs[unit.options].holding(unit.rollout)

    def work_on(self, unit: ExtensionUnit, tell: Tell) -> UnitResult[ExtensionUnit]:
        """See `Work`."""
        result = self.runs[unit.options].work_on(unit.rollout, tell)
        return UnitResult(unit, result.outcome, result.reason, result.detail)

    def failed(self, unit: ExtensionUnit, outcome: str, reason: str) -> UnitResult[ExtensionUnit]:
        """See `Work`."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`: all options share one run of the ledger."""
        return self._any.spent() if self._any else None


@contextmanager
def open_extension(
    settings: Settings,
    changed: ChangedOptions,
    *,
    repository: str | None = None,
    chain: str | None = None,
    limit: int | None = None,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str,
) -> Iterator[ExtensionRun]:
    """Open a run over the first `limit` accepted prefixes of a repository, a chain or all that can be taken up.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with closing(Store.open(settings.db, create=False)) as store, store.reading() as tx:
        found = read_prefixes(tx, repository, chain)
    prefixes = [replace(prefix, options=changed.of(prefix.options)) for prefix in found]
    with ExitStack() as resources:
        runs = {
            options: resources.enter_context(
                open_run(settings, options, RolloutChoice(), budget_usd=budget_usd, ledger_run=ledger_run)
            )
            for options in by_options(prefixes)
        }
        yield ExtensionRun(runs, prefixes, progress, limit)
