"""The questions of the study `coverage`: one unit a trajectory, whose replies are in the ledger. A run that was killed
or whose budget was spent goes on where it was: what was answered is not paid for again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from prchain.core.console.progress import SILENT, Progress
from prchain.core.llm.gateway import CostEstimate, Gateway
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.store import Store
from trajectories.agents.steps.conversation import Step
from trajectories.curation.graphs.nodes import Node
from trajectories.curation.graphs.rows import read_graph
from trajectories.curation.windows.establishing import LlmVerifier, StepFindings
from trajectories.curation.windows.options import ESTABLISH, Asked
from trajectories.model import Entry
from trajectories.rows import read_entries
from trajectories.studies.curation.coverage import (
    ChosenTrajectories,
    CoverageUnit,
    CoveredStage,
    StageReader,
    studied_trajectories,
)

COMMAND = "prchain curate study coverage"

READ = "read"
"""The outcome of a trajectory whose steps were all asked of."""


@dataclass(frozen=True, slots=True)
class CoverageReport(RunResult[CoverageUnit]):
    """What a run did."""

    @property
    def stages(self) -> list[CoveredStage]:
        """What was read."""
        return [result.detail for result in self.results if result.outcome == READ]

    @property
    def failed(self) -> tuple[UnitResult[CoverageUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome != READ)

    @property
    def done(self) -> bool:
        """Whether every trajectory was read."""
        return not self.left and not self.failed


class CoverageRun:
    """Reads the first stages of plain rollouts (`prchain.core.runs.Work`)."""

    title = "trajectories"

    def __init__(
        self,
        store: Store,
        gateway: Gateway,
        *,
        repository: str | None = None,
        model: str | None = None,
        asked: Asked = Asked.STEP,
        progress: Progress = SILENT,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.gateway = gateway
        self.asked = asked
        self._store = store
        self._progress = progress
        self._secrets = secrets
        with store.reading() as tx:
            self.chosen: ChosenTrajectories = studied_trajectories(tx, repository, model)

    def forecast(self) -> CostEstimate:
        """What a run would cost at most: as if no question but the stored ones had a yes for an answer. Asks
        nothing."""
        # Without repeats a question whose first reply is stored is answered by the ledger alone.
        gateway = replace(self.gateway, repeats=0)
        total = CostEstimate()
        for unit in self.chosen.units:
            total += _StageReading(self._store, gateway, unit, self.asked).estimate()
        return total

    def run(self, workers: int = 2) -> CoverageReport:
        """Read them all. Raises as `prchain.core.runs.run_units`."""
        result = run_units(self, self.chosen.units, workers=workers, progress=self._progress, secrets=self._secrets)
        return CoverageReport(result.results, result.left, result.stopped)

    def holding(self, unit: CoverageUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self._store, f"coverage-{unit.trajectory}", COMMAND)

    def work_on(self, unit: CoverageUnit, tell: Tell) -> UnitResult[CoverageUnit]:
        """See `Work`; `detail` is a `CoveredStage`. Raises `LlmError`."""
        reading = _StageReading(self._store, self.gateway, unit, self.asked, tell)
        return UnitResult(unit, READ, detail=reading.read())

    def failed(self, unit: CoverageUnit, outcome: str, reason: str) -> UnitResult[CoverageUnit]:
        """See `Work`: there is no row of it."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.gateway.spending()


class _StageReading:
    """One trajectory, its graph, and the verifier that reads it."""

    def __init__(
        self, store: Store, gateway: Gateway, unit: CoverageUnit, asked: Asked, tell: Tell = lambda words: None
    ) -> None:
        with store.reading() as tx:
            nodes = read_graph(tx, unit.graph).nodes
            self._reader = StageReader(read_entries(tx, unit.trajectory), nodes)
        self._unit = unit
        self._tell = tell
        workdir = self._reader.workdir
        roots = () if workdir is None else (workdir,)
        self._verifier = LlmVerifier(gateway, asked, sample=unit.sample, roots=roots)

    def read(self) -> CoveredStage:
        """What the stage came to."""

        def ask(before: Sequence[Entry], step: Step, nodes: Sequence[Node]) -> StepFindings:
            self._tell(f"step {step.number}")
            return self._verifier.established(self._unit.subject, self._reader.query, before, step, nodes)

        return self._reader.read(self._unit, ask)

    def estimate(self) -> CostEstimate:
        """What `read` would cost at most."""
        total = CostEstimate()

        def ask(before: Sequence[Entry], step: Step, nodes: Sequence[Node]) -> StepFindings:
            nonlocal total
            question = (self._unit.subject, self._reader.query, before, step, nodes)
            estimate = self._verifier.estimate(*question)
            total += estimate
            return StepFindings() if estimate.calls else self._verifier.established(*question)

        self._reader.read(self._unit, ask)
        return total


@contextmanager
def open_coverage(
    settings: Settings,
    *,
    repository: str | None = None,
    model: str | None = None,
    asked: Asked = Asked.STEP,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[CoverageRun]:
    """Open a run. Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`."""
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        gateway = resources.enter_context(
            open_gateway(settings, store, (ESTABLISH,), budget_usd=budget_usd, run=ledger_run)
        )
        chosen = {"repository": repository, "model": model}
        yield CoverageRun(store, gateway, **chosen, asked=asked, progress=progress, secrets=settings.secrets)
