"""The run that writes tasks: many chains at once, each task written whole in one transaction when it ends.

A run can be killed at any moment. The replies of models are in the ledger, so the next run reuses them up to the point
where the last run was. A task with a final outcome is not written again, except by ``--retry`` (rejected tasks) and
``--renew`` (tasks that other prompts or another model wrote).

Every write reads the rows again first, because `chains build` may choose anew during a run.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from chains.tasks.excerpt import ExcerptLimits
from chains.tasks.model import CHAIN_REJECTED, FINAL, NOT_REACHED, TaskDraft
from chains.tasks.query import QueryConstructor, SaidNames
from chains.tasks.rows import (
    StoredTask,
    count_attempts,
    read_draft,
    read_task_chain,
    require_selected,
    require_unchanged,
    stored_tasks,
    write_defect,
    write_draft,
)
from chains.tasks.run_report import TaskRunReport
from chains.tasks.said import last_screening
from chains.tasks.screening import ChainScreener, Screening
from chains.tasks.writer import TaskWriter
from prchain.core.cli_options import IMPORTED
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import ChainGone, GitError, UsageError
from prchain.core.leaks.finding import Finder
from prchain.core.llm.gateway import CostEstimate, Gateway
from prchain.core.llm.ledger import Spending
from prchain.core.llm.purposes import OVERVIEW, PLAN, QUERY, REVIEW, SCREEN
from prchain.core.runs import DEFECT, Tell, UnitResult, run_units
from prchain.core.secrets.scrub import scrub_mined
from prchain.core.settings import Settings
from sql.chosen import ChainChoice, ChainUnit, find_chain, resolved, selected_ids
from sql.label_filter import LabelFilter, fits
from sql.labels import labels_by_chain
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.outcomes import READY
from sql.store import Store, Transaction

PURPOSES = (PLAN, QUERY, OVERVIEW)

_KEPT_NOTE = "the task that stood stays"


@dataclass(frozen=True)
class TaskRunOptions(ChainChoice):
    """Which chains a run works on, and what it does with those that have tasks. The strategy must have chosen a chain
    that is named."""

    retry: bool = False
    """Begin another round for tasks that were rejected."""
    renew: bool = False
    """Write tasks anew that other prompts or another model wrote. Where the new task is rejected, the old one stays."""
    review: bool = False
    """Have every query that passes the leak check read by a reviewer. Its prompt is then one of those of the task."""
    names: SaidNames = "none"
    """Which new names queries may say. With others than none a prompt says so, which is then one of the task's."""
    least_worth: int | None = None
    """Have every chain screened before anything is written for it, and write the tasks of those of this worth, 1 to 5,
    or more. The prompt is then one of those of the task."""
    labels: LabelFilter = LabelFilter.ANY
    """What people have to say of a chain."""


@dataclass(frozen=True, slots=True)
class TaskUnit(ChainUnit):
    """The task of one chain; `attempts` is how many texts had been written for it when the run began."""

    attempts: int = 0


@dataclass(frozen=True, slots=True)
class PendingTasks:
    """What a run would do."""

    units: tuple[TaskUnit, ...]
    """Best chain first."""
    standing: Mapping[str, int]
    """Outcome to number of tasks that are kept."""
    outdated: int
    """How many of these were written with other prompts or by another model."""
    unlabelled: int = 0
    """How many chains `TaskRunOptions.labels` leaves out."""


@contextmanager
def open_run(
    settings: Settings,
    options: TaskRunOptions,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[TaskRun]:
    """Open store and gateway for a run, or for a worker of one. Workers with the same `ledger_run` share its budget.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    asked = (
        (SCREEN, options.least_worth is not None),
        *((purpose, True) for purpose in PURPOSES),
        (REVIEW, options.review),
    )
    purposes = [purpose for purpose, wanted in asked if wanted]
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_gateway(settings, store, purposes, budget_usd=budget_usd, run=ledger_run) as gateway,
    ):
        least = options.least_worth
        screener = ChainScreener(gateway, ExcerptLimits(), least) if least is not None else None
        constructor = QueryConstructor(gateway, review=options.review, names=options.names)
        writer = TaskWriter(store, constructor, settings.mirrors_dir, screener)
        yield TaskRun(store, gateway, writer, options, progress=progress, secrets=settings.secrets)


class TaskRun:
    """Writes the tasks of the chains that a strategy chose (`prchain.core.runs.Work`)."""

    title = "tasks"

    def __init__(
        self,
        store: Store,
        gateway: Gateway,
        writer: TaskWriter,
        options: TaskRunOptions,
        *,
        progress: Progress = SILENT,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.gateway = gateway
        self._store = store
        self._writer = writer
        self._options = options
        self._progress = progress
        self._secrets = secrets
        self._refused: Counter[Finder] = Counter()
        self._counting = threading.Lock()

    def pending(self) -> PendingTasks:
        """The tasks to write. Raises `UsageError` for a chain or a repository that does not exist."""
        options = self._options
        with self._store.reading() as tx:
            if resolved(tx, options.strategy) == IMPORTED:
                raise UsageError("imported tasks have the queries of their publishers; there is nothing to write")
            every = selected_ids(tx, options.strategy, options.repository)
            if options.chain is not None:
                every = [_selected_id(tx, options.chain, options.strategy)]
            labels = labels_by_chain(tx)
            fitting = [chain_id for chain_id in every if fits(labels, chain_id, options.labels)]
            if options.chain is not None and not fitting:
                raise UsageError(f"people's labels leave chain {every[0]} out of --labels {options.labels}")
            chain_ids = fitting[: options.limit]
            tasks = stored_tasks(tx)
            standing = {
                chain_id: tasks[chain_id]
                for chain_id in chain_ids
                if chain_id in tasks
                and self._is_kept(tasks[chain_id])
                and not self._passes(tx, chain_id, tasks[chain_id])
            }
        units = (
            TaskUnit(chain_id, tasks[chain_id].attempts if chain_id in tasks else 0)
            for chain_id in chain_ids
            if chain_id not in standing
        )
        counts = Counter(stored_task.outcome for stored_task in standing.values())
        return PendingTasks(
            tuple(units),
            dict(counts),
            sum(self._outdated(stored_task) for stored_task in standing.values()),
            len(every) - len(fitting),
        )

    def estimate(self) -> tuple[int, CostEstimate, tuple[UnitResult[TaskUnit], ...]]:
        """How many tasks a run would work on, the cost of their calls, and the chains that cannot be read now.

        Calls no model. Raises `PrchainError`.
        """
        units = self.pending().units
        task = self._progress.task("estimating", len(units))
        total = CostEstimate()
        unread: list[UnitResult[TaskUnit]] = []
        for unit in units:
            try:
                with self._store.reading() as tx:
                    chain, draft = read_task_chain(tx, unit.chain_id), read_draft(tx, unit.chain_id)
                    stored = stored_tasks(tx, unit.chain_id).get(unit.chain_id)
                    passes = stored is not None and self._passes(tx, unit.chain_id, stored)
                earlier = self._earlier_draft(draft, stored)
                total = reduce(add, self._writer.estimates(chain, earlier, screened=passes), total)
            except (ChainGone, GitError) as error:
                unread.append(UnitResult(unit, error.name, scrub_mined(str(error))))
            task.advance()
        task.done()
        return len(units) - len(unread), total, tuple(unread)

    def run(self, workers: int = 2) -> TaskRunReport:
        """Write the tasks that are missing. Raises as `prchain.core.runs.run_units`."""
        pending = self.pending()
        result = run_units(self, pending.units, workers=workers, progress=self._progress, secrets=self._secrets)
        return TaskRunReport(
            result.results,
            result.left,
            result.stopped,
            pending.standing,
            pending.outdated,
            dict(self._refused),
            pending.unlabelled,
        )

    # ---- the work on one chain

    def holding(self, unit: TaskUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self._store, f"task-{unit.chain_id}", "prchain tasks build")

    def work_on(self, unit: TaskUnit, tell: Tell) -> UnitResult[TaskUnit]:
        """See `Work`."""
        with self._store.reading() as tx:
            chain, earlier = read_task_chain(tx, unit.chain_id), read_draft(tx, unit.chain_id)
            stored = stored_tasks(tx, unit.chain_id).get(unit.chain_id)
            passes = stored is not None and self._passes(tx, unit.chain_id, stored)
        if (
            stored is not None
            and stored.outcome in FINAL
            and not passes
            and (self._is_kept(stored) or stored.attempts != unit.attempts)
        ):
            return UnitResult(unit, stored.outcome, "another run has ended it meanwhile")
        tell("reading the chain")
        draft = self._writer.draft(chain, self._earlier_draft(earlier, stored), tell, screened=passes)
        with self._counting:
            self._refused.update(draft.refused)
            self._refused.update(finder for stage in draft.stages for finder in stage.refused)
        with self._store.transaction() as tx:
            require_selected(tx, self._options.strategy, unit.chain_id)
            require_unchanged(tx, unit.chain_id, earlier)
            if earlier is not None and earlier.outcome == READY and draft.outcome != READY:
                count_attempts(tx, draft)
                return UnitResult(unit, draft.outcome, f"{draft.reason}; {_KEPT_NOTE}")
            write_draft(tx, draft, model=self._writer.model, prompts=self._writer.prompts)
        return UnitResult(unit, draft.outcome, draft.reason)

    def failed(self, unit: TaskUnit, outcome: str, reason: str) -> UnitResult[TaskUnit]:
        """See `Work`; a failure with a name leaves the rows as they were. Raises `ChainGone`, `TaskSuperseded`."""
        if outcome == DEFECT:
            with self._store.transaction() as tx:
                require_selected(tx, self._options.strategy, unit.chain_id)
                task = stored_tasks(tx, unit.chain_id).get(unit.chain_id)
                if self._options.renew and task is not None and task.outcome == READY:
                    return UnitResult(unit, outcome, f"{reason}; {_KEPT_NOTE}")
                write_defect(tx, unit.chain_id, reason, model=self._writer.model, prompts=self._writer.prompts)
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.gateway.spending()

    # ---- stored tasks

    def _is_kept(self, task: StoredTask) -> bool:
        if self._options.renew and self._outdated(task):
            return False
        return task.outcome in ({READY} if self._options.retry else FINAL)

    def _passes(self, tx: Transaction, chain_id: str, task: StoredTask) -> bool:
        """Whether a chain that a run of a higher `least_worth` rejected is worth a task in this one, by what the
        screener said of it then. One that is written anew in any case is screened anew."""
        least = self._options.least_worth
        if least is None or task.outcome != CHAIN_REJECTED or not self._is_kept(task):
            return False
        if task.prompts.get(SCREEN) != self._writer.prompts.get(SCREEN):
            return False
        said = last_screening(tx, chain_id)
        return said is not None and not Screening.model_validate(said).faults(least)

    def _outdated(self, task: StoredTask) -> bool:
        """Whether other prompts or another model wrote it."""
        return (task.model, task.prompts) != (self._writer.model, self._writer.prompts)

    def _earlier_draft(self, draft: TaskDraft | None, task: StoredTask | None) -> TaskDraft | None:
        """The draft of an earlier run to continue. If other prompts or another model wrote it, none of its texts is
        kept: no task is written half by one and half by another. Then only `retry` begins another round; without it,
        the ledger has the replies of this round."""
        if draft is None or task is None or not self._outdated(task):
            return draft
        if not self._options.retry:
            return TaskDraft(draft.chain_id, draft.outcome)
        stages = tuple(replace(stage, outcome=NOT_REACHED) for stage in draft.stages)
        return TaskDraft(draft.chain_id, draft.outcome, attempts=draft.attempts, stages=stages)


def _selected_id(tx: Transaction, prefix: str, strategy: str) -> str:
    """The id of the one chain that begins with `prefix`. Raises `UsageError` where the strategy did not choose it."""
    chain_id = find_chain(tx, prefix)
    if chain_id not in selected_ids(tx, strategy):
        asked = resolved(tx, strategy)
        raise UsageError(f"chain {chain_id} is not one that --strategy {asked} chose; `prchain chains show` says what")
    return chain_id
