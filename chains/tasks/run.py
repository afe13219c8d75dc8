"""The run that writes tasks: many chains at once, each written whole in one transaction when it ends.

A run can be killed at any moment. What a model replied is in the ledger, so the next run walks over stored replies to
where the last one was. A chain whose task has a final outcome is not touched again, but by ``--retry`` (those that were
rejected) and ``--renew`` (those that other prompts or another model wrote).

What writes re-reads all the same, because `chains build` may choose anew while a run lasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from chains.tasks.model import FINAL, NOT_REACHED, TaskDraft
from chains.tasks.query import OVERVIEW, PLAN, QUERY, QueryConstructor
from chains.tasks.rows import (
    StoredTask,
    count_attempts,
    prompts_text,
    read_draft,
    read_task_chain,
    require_selected,
    require_unchanged,
    stored_tasks,
    write_defect,
    write_draft,
)
from chains.tasks.run_report import TaskRunReport
from chains.tasks.writer import TaskWriter
from prchain.errors import ChainGone, GitError, UsageError
from prchain.llm.gateway import CostEstimate, Gateway
from prchain.progress import SILENT, Progress
from prchain.runs import DEFECT, Tell, UnitResult, run_units
from prchain.scrub import scrub_mined
from prchain.settings import Settings
from sql.chosen import ChainChoice, ChainUnit, find_chain, selected_ids
from sql.ledger import open_gateway
from sql.lock import alone
from sql.outcomes import READY
from sql.store import Store, Transaction

PURPOSES = (PLAN, QUERY, OVERVIEW)

_STAYS = "the task that stood stays"


@dataclass(frozen=True)
class TaskRunOptions(ChainChoice):
    """Which chains a run is about, and what it does with those that have tasks. A chain that is named has to be one
    that the strategy chose."""

    retry: bool = False
    """Begin another round for tasks that were rejected."""
    renew: bool = False
    """Write those anew that other prompts or another model wrote. One that is rejected then leaves the old one."""


@dataclass(frozen=True, slots=True)
class TaskUnit(ChainUnit):
    """The task of one chain; `attempts` is how many texts had been written for it when it was chosen."""

    attempts: int = 0


@dataclass(frozen=True, slots=True)
class PendingTasks:
    """What a run would do."""

    units: tuple[TaskUnit, ...]
    """Best chain first."""
    standing: Mapping[str, int]
    """Outcome to number of tasks that stand."""
    outdated: int
    """How many of these were written with other prompts or by another model."""


@contextmanager
def open_run(
    settings: Settings,
    options: TaskRunOptions,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[TaskRun]:
    """What a run, or a worker of one, needs. Workers that are given the same `ledger_run` share its budget.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_gateway(settings, store, PURPOSES, budget_usd=budget_usd, run=ledger_run) as gateway,
    ):
        writer = TaskWriter(store, QueryConstructor(gateway), settings.mirrors_dir)
        yield TaskRun(store, gateway, writer, options, progress=progress, secrets=settings.secrets)


class TaskRun:
    """Writes the tasks of the chains that a strategy chose (`prchain.runs.Work`)."""

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

    def pending(self) -> PendingTasks:
        """What is to be written. Raises `UsageError` for a chain or a repository that is not there."""
        options = self._options
        with self._store.reading() as tx:
            wanted = selected_ids(tx, options.strategy, options.repository, options.limit)
            if options.chain is not None:
                wanted = [_chosen(tx, options.chain, options.strategy)]
            tasks = stored_tasks(tx)
        standing = {
            chain_id: tasks[chain_id] for chain_id in wanted if chain_id in tasks and self._stands(tasks[chain_id])
        }
        units = (
            TaskUnit(chain_id, tasks[chain_id].attempts if chain_id in tasks else 0)
            for chain_id in wanted
            if chain_id not in standing
        )
        counts = Counter(stored_task.outcome for stored_task in standing.values())
        return PendingTasks(
            tuple(units), dict(counts), sum(self._outdated(stored_task) for stored_task in standing.values())
        )

    def estimate(self) -> tuple[int, CostEstimate, tuple[UnitResult[TaskUnit], ...]]:
        """How many tasks a run would work on, what their calls take, and the chains that cannot be read now.

        Nothing is asked. Raises `PrchainError`.
        """
        units = self.pending().units
        shown = self._progress.task("estimating", len(units))
        total = CostEstimate()
        unread: list[UnitResult[TaskUnit]] = []
        for unit in units:
            try:
                with self._store.reading() as tx:
                    chain, stands = read_task_chain(tx, unit.chain_id), read_draft(tx, unit.chain_id)
                    earlier = self._earlier(stands, stored_tasks(tx, unit.chain_id).get(unit.chain_id))
                total = reduce(add, self._writer.estimates(chain, earlier), total)
            except (ChainGone, GitError) as error:
                unread.append(UnitResult(unit, error.name, scrub_mined(str(error))))
            shown.advance()
        shown.done()
        return len(units) - len(unread), total, tuple(unread)

    def run(self, workers: int = 2) -> TaskRunReport:
        """Write the tasks that are missing. Raises as `prchain.runs.run_units`."""
        pending = self.pending()
        ended = run_units(self, pending.units, workers=workers, progress=self._progress, secrets=self._secrets)
        return TaskRunReport(ended.results, ended.left, ended.stopped, pending.standing, pending.outdated)

    # ---- the work on one chain

    def holding(self, unit: TaskUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return alone(self._store, f"task-{unit.chain_id}", "prchain tasks build")

    def work_on(self, unit: TaskUnit, tell: Tell) -> UnitResult[TaskUnit]:
        """See `Work`."""
        with self._store.reading() as tx:
            chain, stands = read_task_chain(tx, unit.chain_id), read_draft(tx, unit.chain_id)
            now = stored_tasks(tx, unit.chain_id).get(unit.chain_id)
        if now is not None and now.outcome in FINAL and (self._stands(now) or now.attempts != unit.attempts):
            return UnitResult(unit, now.outcome, "another run has ended it meanwhile")
        tell("writing")
        draft = self._writer.draft(chain, self._earlier(stands, now))
        with self._store.transaction() as tx:
            require_selected(tx, self._options.strategy, unit.chain_id)
            require_unchanged(tx, unit.chain_id, stands)
            if stands is not None and stands.outcome == READY and draft.outcome != READY:
                count_attempts(tx, draft)
                return UnitResult(unit, draft.outcome, f"{draft.reason}; {_STAYS}")
            write_draft(tx, draft, model=self._writer.model, prompts=self._writer.prompts)
        return UnitResult(unit, draft.outcome, draft.reason)

    def failed(self, unit: TaskUnit, outcome: str, reason: str) -> UnitResult[TaskUnit]:
        """See `Work`; a failure with a name leaves the rows as they were. Raises `ChainGone`, `TaskSuperseded`."""
        if outcome == DEFECT:
            with self._store.transaction() as tx:
                require_selected(tx, self._options.strategy, unit.chain_id)
                task = stored_tasks(tx, unit.chain_id).get(unit.chain_id)
                if self._options.renew and task is not None and task.outcome == READY:
                    return UnitResult(unit, outcome, f"{reason}; {_STAYS}")
                write_defect(tx, unit.chain_id, reason, model=self._writer.model, prompts=self._writer.prompts)
        return UnitResult(unit, outcome, reason)

    def spent(self) -> float | None:
        """See `Work`."""
        return self.gateway.spending().cost

    # ---- what stands

    def _stands(self, task: StoredTask) -> bool:
        if self._options.renew and self._outdated(task):
            return False
        return task.outcome in ({READY} if self._options.retry else FINAL)

    def _outdated(self, task: StoredTask) -> bool:
        """Whether other prompts or another model wrote it."""
        return (task.model, task.prompts) != (self._writer.model, prompts_text(self._writer.prompts))

    def _earlier(self, draft: TaskDraft | None, task: StoredTask | None) -> TaskDraft | None:
        """What an earlier run left of a task, so that it is gone on with. Where prompts or the model were others, no
        text of it stands: no task is written half by one and half by another. Only `retry` begins another round then,
        else what models replied to this round is in the ledger."""
        if draft is None or task is None or not self._outdated(task):
            return draft
        if not self._options.retry:
            return TaskDraft(draft.chain_id, draft.outcome)
        stages = tuple(replace(stage, outcome=NOT_REACHED) for stage in draft.stages)
        return TaskDraft(draft.chain_id, draft.outcome, attempts=draft.attempts, stages=stages)


def _chosen(tx: Transaction, prefix: str, strategy: str) -> str:
    """The id of the one chain that begins so, which the strategy chose."""
    chain_id = find_chain(tx, prefix)
    if chain_id not in selected_ids(tx, strategy):
        raise UsageError(
            f"chain {chain_id} is not one that --strategy {strategy} chose; `prchain chains show` says what"
        )
    return chain_id
