"""Calibrates the judge on stages with proved tests: against patches of known quality, itself, and stored verdicts.

Patches of known quality are made of each stage's reference (`variants`). Each is judged in
both orders of the prompt, several times. Only the ledger keeps the replies, under a hash of the whole request: another
prompt, model or temperature makes new calls, and a run that was killed goes on after its stored verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Literal

from sqlalchemy import and_, or_, select

from environments.stages import ChainStages, open_git, read_chain
from environments.suites.outcomes import PASSED, STATE_BROKEN
from prchain.core.code.needs import full_query, interface_of, parse_needs
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import BudgetExceeded, ChainGone, GitError
from prchain.core.llm.gateway import CostEstimate
from prchain.core.llm.ledger import Spending
from prchain.core.runs import TAKEN, RunResult, Tell, UnitResult, run_units
from prchain.core.secrets.scrub import scrub_mined
from prchain.core.settings import Settings
from sql.chosen import LAST, selected_ids
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.outcomes import PROVED, READY
from sql.store import Store, Transaction
from sql.tables import StageTests, TaskStage, Trajectory, Verdict
from trajectories.studies.verdicts.variants import Variant, variants
from trajectories.verdicts.judge import JUDGE, Case, Judge, Judgement

MEASURED = "measured"
"""The outcome of a stage whose trials all have a result."""

_BUDGET = BudgetExceeded("").name

Orders = Literal["both", "reference", "candidate"]
"""Which patch stands first in the prompt."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """What is measured. `limit` is a number of stages."""

    strategy: str = LAST
    repository: str | None = None
    limit: int | None = None
    repeats: int = 2
    orders: Orders = "both"


@dataclass(frozen=True, slots=True)
class StageUnit:
    """A proved stage, as a unit of a run (`prchain.core.runs.Unit`)."""

    chain_id: str
    position: int

    @property
    def key(self) -> str:
        """Chain and stage."""
        return f"{self.chain_id} stage {self.position}"

    @property
    def group(self) -> str:
        """The same as `key`."""
        return self.key


@dataclass(frozen=True, slots=True)
class Trial:
    """One question to the judge."""

    chain_id: str
    position: int
    variant: Variant
    candidate_first: bool
    repeat: int
    case: Case

    @property
    def subject(self) -> str:
        """The subject in the ledger."""
        return f"calibrate/{self.chain_id}/{self.position}/{self.variant}"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The judge's verdict on a trial."""

    chain_id: str
    position: int
    variant: Variant
    candidate_first: bool
    repeat: int
    score: float | None
    error: str | None
    stored: bool


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict of a rollout, with the fields that a calibration needs.

    `passed` is the result of the tests; None if there is none.
    """

    score: float | None
    judge_error: str | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class UnmeasuredStage:
    """A stage that could not be measured, and why."""

    chain_id: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a run; `stages`, `unread` and `left` add up to all stages."""

    results: tuple[TrialResult, ...]
    verdicts: tuple[StoredVerdict, ...]
    stages: int
    unread: tuple[UnmeasuredStage, ...] = ()
    other_judges: int = 0
    """Stored verdicts of another model or prompt, which say nothing about this judge."""
    left: int = 0
    """Stages that it did not finish, or that another run works on."""
    taken: int = 0
    """The stages among `left` that another run works on."""
    stopped: str | None = None
    """Why it ended early."""
    failed: tuple[UnitResult[StageUnit], ...] = ()
    """The stages that were begun and not measured, also those among `left`."""

    @property
    def unbegun(self) -> int:
        """The stages among `left` that were not begun."""
        return self.left + len(self.unread) - len(self.failed)

    @property
    def done(self) -> bool:
        """Whether every stage was measured."""
        return not self.left and not self.unread


@contextmanager
def open_run(
    settings: Settings,
    options: CalibrationOptions,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[Calibrator]:
    """What a run or one of its workers needs. Workers with the same `ledger_run` share its budget.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_gateway(settings, store, (JUDGE,), budget_usd=budget_usd, run=ledger_run) as gateway,
    ):
        mirrors, secrets = settings.mirrors_dir, settings.secrets
        yield Calibrator(store, Judge(gateway), options, mirrors=mirrors, progress=progress, secrets=secrets)


class Calibrator:
    """Measures a judge (`prchain.core.runs.Work`)."""

    title = "stages"

    def __init__(
        self,
        store: Store,
        judge: Judge,
        options: CalibrationOptions,
        *,
        mirrors: Path,
        progress: Progress = SILENT,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.judge = judge
        self._store = store
        self._options = options
        self._mirrors = mirrors
        self._progress = progress
        self._secrets = secrets

    def pending(self) -> list[StageUnit]:
        """The stages to measure, those of the best chains first. Raises `UsageError`."""
        with self._store.reading() as tx:
            chains = selected_ids(tx, self._options.strategy, self._options.repository)
            return [StageUnit(*stage) for stage in proved_stages(tx, chains)[: self._options.limit]]

    def estimate(self) -> tuple[int, CostEstimate, tuple[UnmeasuredStage, ...]]:
        """The number of stages that a run would measure, its highest cost, and the stages that cannot be read.

        Makes no calls. Raises `PrchainError`.
        """
        stages = self.pending()
        task = self._progress.task("estimating", len(stages))
        total, unread = CostEstimate(), list[UnmeasuredStage]()
        for unit in stages:
            try:
                estimates = (
                    self.judge.estimate(trial.case, subject=trial.subject, sample=trial.repeat)
                    for trial in self._trials(unit)
                )
                total = reduce(add, estimates, total)
            except (ChainGone, GitError) as error:
                unread.append(UnmeasuredStage(unit.chain_id, unit.position, scrub_mined(f"{error.name}: {error}")))
            task.advance()
        task.done()
        return len(stages) - len(unread), total, tuple(unread)

    def run(self, workers: int = 2) -> Calibration:
        """Run the trials that are not stored yet. Raises as `prchain.core.runs.run_units`."""
        units = self.pending()
        run_result = run_units(self, units, workers=workers, progress=self._progress, secrets=self._secrets)
        return self._calibration(units, run_result)

    def holding(self, unit: StageUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self._store, f"judge-{unit.chain_id}-{unit.position}", "prchain judge calibrate")

    def work_on(self, unit: StageUnit, tell: Tell) -> UnitResult[StageUnit]:
        """See `Work`; `detail` is the list of its `TrialResult`."""
        results = []
        for number, trial in enumerate(self._trials(unit), 1):
            tell(f"trial {number}, {trial.variant}")
            results.append(_result(trial, self._judgement(trial)))
        return UnitResult(unit, MEASURED, None, results)

    def failed(self, unit: StageUnit, outcome: str, reason: str) -> UnitResult[StageUnit]:
        """See `Work`; the replies so far are in the ledger."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.judge.gateway.spending()

    def _calibration(self, units: Sequence[StageUnit], run_result: RunResult[StageUnit]) -> Calibration:
        measured = {result.unit: result.detail for result in run_result.results if result.outcome == MEASURED}
        unread = [
            UnmeasuredStage(result.unit.chain_id, result.unit.position, f"{result.outcome}: {result.reason}")
            for result in run_result.results
            if result.outcome not in {MEASURED, _BUDGET, TAKEN}
        ]
        with self._store.reading() as tx:
            verdicts, other_count = stored_verdicts(tx, self.judge.model, self.judge.prompts)
        return Calibration(
            tuple(result for unit in units for result in measured.get(unit, ())),
            verdicts,
            len(measured),
            tuple(unread),
            other_count,
            len(units) - len(measured) - len(unread),
            run_result.counts.get(TAKEN, 0),
            run_result.stopped,
            tuple(
                sorted(
                    (result for result in run_result.results if result.outcome != MEASURED),
                    key=lambda result: units.index(result.unit),
                )
            ),
        )

    def _judgement(self, trial: Trial) -> Judgement:
        case = trial.case
        return self.judge.judge(
            subject=trial.subject,
            sample=trial.repeat,
            attempt=0,
            query=case.query,
            reference_patch=case.reference_patch,
            agent_patch=case.agent_patch,
            candidate_first=case.candidate_first,
        )

    def _trials(self, unit: StageUnit) -> Iterator[Trial]:
        """Every trial of a stage. An empty patch is judged without a call, so one trial is enough."""
        chain_id, position = unit.chain_id, unit.position
        with self._store.reading() as tx:
            chain = read_chain(tx, chain_id)
            query = _query(tx, chain, position)
        git = open_git(chain, self._mirrors)
        reference = b""
        for variant, patch in variants(git, chain.stages, position):
            reference = patch if variant is Variant.REFERENCE else reference
            orders = {"both": (False, True), "reference": (False,), "candidate": (True,)}[self._options.orders]
            for candidate_first in orders if patch.strip() else orders[:1]:
                for repeat in range(self._options.repeats if patch.strip() else 1):
                    case = Case(query, reference, patch, candidate_first)
                    yield Trial(chain_id, position, variant, candidate_first, repeat, case)


def proved_stages(tx: Transaction, chains: Iterable[str]) -> list[tuple[str, int]]:
    """The stages of these chains, in order, with proved tests and a query."""
    query = (
        select(StageTests.chain_id, StageTests.position)
        .join(
            TaskStage,
            and_(TaskStage.chain_id == StageTests.chain_id, TaskStage.position == StageTests.position),
        )
        .where(StageTests.outcome == PROVED, TaskStage.outcome == READY)
        .order_by(StageTests.chain_id, StageTests.position)
    )
    found: dict[str, list[int]] = {}
    for chain_id, position in tx.connection.execute(query):
        found.setdefault(chain_id, []).append(position)
    return [(chain_id, position) for chain_id in chains for position in found.get(chain_id, ())]


def stored_verdicts(tx: Transaction, model: str, prompts: Mapping[str, str]) -> tuple[tuple[StoredVerdict, ...], int]:
    """The verdicts of rollouts by this judge (its model and prompt), and the number of verdicts by others.

    A judge that saw what tests say is another one. A branch holds copies of its parent's verdicts; only the parent's
    count.
    """
    query = (
        select(
            Verdict.trajectory_id,
            Verdict.position,
            Verdict.attempt,
            Verdict.at,
            Verdict.tree,
            Verdict.score,
            Verdict.judge_error,
            Verdict.judge_sees,
            Verdict.tests,
            Trajectory.parent_id,
            Trajectory.judge,
            Trajectory.prompts,
        )
        .join(Trajectory, Trajectory.id == Verdict.trajectory_id)
        .where(or_(Verdict.score.is_not(None), Verdict.judge_error.is_not(None)))
        .order_by(Verdict.trajectory_id, Verdict.position, Verdict.attempt)
    )
    rows = list(tx.connection.execute(query))
    keys = {(row.trajectory_id, row.position, row.attempt, row.at, row.tree) for row in rows}
    own_verdicts: list[StoredVerdict] = []
    other_count = 0
    for row in rows:
        if (row.parent_id, row.position, row.attempt, row.at, row.tree) in keys:
            continue
        # A judge that saw results of tests agrees with them for that reason.
        same_judge = row.judge == model and row.prompts.get(JUDGE) == prompts[JUDGE]
        if same_judge and row.judge_sees != "tests":
            passed = None if row.tests in {None, STATE_BROKEN} else row.tests == PASSED
            own_verdicts.append(StoredVerdict(row.score, row.judge_error, passed))
        else:
            other_count += 1
    return tuple(own_verdicts), other_count


def _query(tx: Transaction, chain: ChainStages, position: int) -> str:
    """The query as an agent reads it."""
    [(query, needs)] = tx.rows(TaskStage, "query", "interface", chain_id=chain.id, position=position)
    return full_query(str(query), interface_of(parse_needs(needs)))


def _result(trial: Trial, judgement: Judgement) -> TrialResult:
    return TrialResult(
        trial.chain_id,
        trial.position,
        trial.variant,
        trial.candidate_first,
        trial.repeat,
        judgement.score,
        judgement.error,
        judgement.stored,
    )
