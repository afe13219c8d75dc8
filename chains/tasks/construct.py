"""The run that writes tasks: many chains at once, each written whole in one transaction when it ends.

A run can be killed at any moment. What a model replied is in the ledger, so the next run walks over stored replies to
where the last one was. A chain whose task has a final outcome is not touched again, but by ``--retry``.

One run works on a database at a time: two would each pay for the same questions. What writes re-reads all the same,
because `chains build` may choose anew while a run lasts.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path

from chains.tasks.context import StageContext, read_chain
from chains.tasks.model import (
    DEFECT,
    FINAL,
    NOT_REACHED,
    OVERVIEW_REJECTED,
    QUERY_REJECTED,
    READY,
    Found,
    StageQuery,
    TaskChain,
    TaskDraft,
)
from chains.tasks.query import ROUND, Constructor, Written, all_findings
from chains.tasks.rows import (
    outcomes,
    read_draft,
    read_task_chain,
    require_selected,
    require_unchanged,
    write_defect,
    write_draft,
)
from chains.tasks.run_report import RunReport, TaskReport
from prchain.errors import (
    BudgetExceeded,
    ChainGone,
    GitError,
    LlmError,
    PrchainError,
    TaskSuperseded,
    UsageError,
)
from prchain.git import GitRepository, open_mined
from prchain.llm.desk import Estimate
from prchain.progress import Progress
from prchain.scrub import scrub_mined
from sql.chosen import find_chain, selected_ids
from sql.lock import alone
from sql.store import Store, Transaction

_GIVES_UP_AFTER = 5
"""So many tasks in a row that end with the same kind of failure of the model or its endpoint, and the run ends: the
rest would too, and may have to be paid for."""

_LONGEST_REASON = 500

_SYSTEMATIC = {
    **dict.fromkeys(("endpoint_refused", "endpoint_unreachable", "endpoint_timeout", "rate_limited"), "endpoint"),
    "bad_reply": "reply",
    "model_refused": "refusal",
}
"""Outcome to the kind of failure that it is. A prompt that is too long is the chain's own fault, and costs nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """Which chains a run is about, and how many at once."""

    strategy: str = "reference"
    repository: str | None = None
    limit: int | None = None
    chain: str | None = None
    """The one chain whose id begins so; it has to be one that the strategy chose."""
    workers: int = 2
    retry: bool = False
    """Begin another round for tasks that were rejected."""


class TaskRun:
    """Writes the tasks of the chains that a strategy chose."""

    def __init__(
        self, store: Store, constructor: Constructor, *, mirrors: Path, progress: Progress, options: Options
    ) -> None:
        self._store = store
        self._constructor = constructor
        self._mirrors = mirrors
        self._progress = progress
        self._options = options
        self._repositories: dict[int, GitRepository] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._stopped: str | None = None
        self._in_vain: tuple[str, int] = ("", 0)
        """The kind of failure that the latest tasks ended with, and how many in a row."""

    def pending(self) -> tuple[list[str], dict[str, int]]:
        """The ids of the chains to work on, best first; of the tasks that stand already, the number by outcome.

        Raises `UsageError` for a chain or a repository that is not there.
        """
        options = self._options
        with self._store.reading() as tx:
            wanted = selected_ids(tx, options.strategy, options.repository, options.limit)
            if options.chain is not None:
                wanted = [_chosen(tx, options.chain, options.strategy)]
            ended = outcomes(tx)
        stands = {READY} if options.retry else FINAL
        todo = [chain_id for chain_id in wanted if ended.get(chain_id) not in stands]
        return todo, dict(Counter(ended[chain_id] for chain_id in wanted if ended.get(chain_id) in stands))

    def estimate(self) -> tuple[int, Estimate, tuple[TaskReport, ...]]:
        """How many tasks a run would work on, what their calls take, and the chains that cannot be read now.

        Nothing is asked. Raises `PrchainError`.
        """
        todo, _ = self.pending()
        shown = self._progress.task("estimating", len(todo))
        total = Estimate()
        unread: list[TaskReport] = []
        for chain_id in todo:
            try:
                total = reduce(add, self._estimates(chain_id), total)
            except (ChainGone, GitError) as error:
                unread.append(TaskReport(chain_id, error.name, scrub_mined(str(error))))
            shown.advance()
        shown.done()
        return len(todo) - len(unread), total, tuple(unread)

    def _estimates(self, chain_id: str) -> list[Estimate]:
        with self._store.reading() as tx:
            chain, earlier = read_task_chain(tx, chain_id), read_draft(tx, chain_id)
        contexts = read_chain(self._store, self._repository(chain), chain)
        kept = _kept(earlier)
        starts = {one.position: _stage_start(earlier, one.position) for one in chain.stages if one.position not in kept}
        return list(self._constructor.estimates(chain, contexts, starts, _start(earlier.attempts if earlier else 0)))

    def run(self) -> RunReport:
        """Write the tasks that are missing.

        Raises `StoreInUse` where another run is at work on the database, `StoreError`, and what is wrong with the
        settings.
        """
        with alone(self._store, "tasks", "prchain tasks build"):
            return self._run()

    def _run(self) -> RunReport:
        todo, before = self.pending()
        shown = self._progress.task("tasks", len(todo))
        reports: list[TaskReport] = []
        pool = ThreadPoolExecutor(max_workers=max(1, min(self._options.workers, len(todo))))
        futures = [pool.submit(self._unless_stopped, chain_id) for chain_id in todo]
        try:
            for future in as_completed(futures):
                report = future.result()
                if report is not None:
                    reports.append(report)
                    counts = Counter(one.outcome for one in reports)
                    shown.update(note=", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
                    shown.advance()
        finally:
            # Whoever interrupts, or a database that fails, need not wait for the calls under way.
            self._stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        shown.done(f"{len(reports):,} of {len(todo):,} ended")
        return RunReport(tuple(reports), before, len(todo) - len(reports), self._stopped)

    def _unless_stopped(self, chain_id: str) -> TaskReport | None:
        """Work on a chain: the boundary at which a defect that shows on one chain is kept from ending all others."""
        if self._stop.is_set():
            return None
        try:
            try:
                return self._work_on(chain_id)
            except PrchainError:
                raise
            except Exception as error:  # what has no name is a defect of ours: told, not hidden
                return self._defect(chain_id, error)
        except (ChainGone, TaskSuperseded) as skipped:
            return TaskReport(chain_id, skipped.name, str(skipped))

    def _work_on(self, chain_id: str) -> TaskReport:
        with self._store.reading() as tx:
            chain, earlier = read_task_chain(tx, chain_id), read_draft(tx, chain_id)
        draft = self._draft(chain, earlier)
        with self._store.transaction() as tx:
            require_selected(tx, self._options.strategy, chain_id)
            require_unchanged(tx, chain_id, earlier)
            write_draft(tx, draft, model=self._constructor.model, prompts=self._constructor.prompts)
        self._watch(draft.outcome)
        return TaskReport(chain_id, draft.outcome, draft.reason)

    def _defect(self, chain_id: str, error: Exception) -> TaskReport:
        said = " ".join(traceback.format_exception_only(error)[-1].split())
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{scrub_mined(said)[:_LONGEST_REASON]} ({Path(place.filename).name}:{place.lineno})"
        with self._store.transaction() as tx:
            require_selected(tx, self._options.strategy, chain_id)
            write_defect(tx, chain_id, reason, model=self._constructor.model, prompts=self._constructor.prompts)
        return TaskReport(chain_id, DEFECT, reason)

    def _draft(self, chain: TaskChain, earlier: TaskDraft | None) -> TaskDraft:
        try:
            contexts = read_chain(self._store, self._repository(chain), chain)
        except GitError as error:
            unread = tuple(StageQuery(one.position, NOT_REACHED) for one in chain.stages)
            return TaskDraft(chain.id, error.name, scrub_mined(str(error)), stages=unread)
        stages: list[StageQuery] = []
        for context in contexts:
            if stages and stages[-1].outcome != READY:
                stages.append(_unreached(context))
            else:
                stages.append(self._stage(chain, contexts, context.stage.position, earlier))
        failed = next((one for one in stages if one.outcome not in {READY, NOT_REACHED}), None)
        if failed is not None:
            where = f"stage {failed.position}: {failed.reason or failed.outcome}"
            return TaskDraft(chain.id, failed.outcome, where, stages=tuple(stages))
        return self._overview(chain, contexts, stages, earlier)

    def _stage(
        self, chain: TaskChain, contexts: Sequence[StageContext], position: int, earlier: TaskDraft | None
    ) -> StageQuery:
        kept = _kept(earlier).get(position)
        if kept is not None:
            return kept
        context = contexts[position - 1]
        start = _stage_start(earlier, position)
        result = replace(_unreached(context), attempts=start)
        try:
            plan = self._constructor.plan(chain, context, start // ROUND)
            result = replace(result, plan=plan)
            written = self._constructor.query(chain, contexts, position, plan, start)
        except LlmError as error:
            return replace(
                result, outcome=error.name, reason=scrub_mined(str(error)), attempts=self._spent(error, start)
            )
        return replace(
            result,
            outcome=READY if written.clean else QUERY_REJECTED,
            reason=None if written.clean else _reason(written),
            query=written.text,
            findings=all_findings(context, written),
            attempts=written.attempts,
        )

    def _overview(
        self, chain: TaskChain, contexts: Sequence[StageContext], stages: list[StageQuery], earlier: TaskDraft | None
    ) -> TaskDraft:
        start = _start(earlier.attempts if earlier else 0)
        draft = TaskDraft(chain.id, READY, stages=tuple(stages), attempts=start)
        try:
            written = self._constructor.overview(chain, contexts, [one.query or "" for one in stages], start)
        except LlmError as error:
            why = scrub_mined(f"overview: {error}")
            return replace(draft, outcome=error.name, reason=why, attempts=self._spent(error, start))
        return replace(
            draft,
            outcome=READY if written.clean else OVERVIEW_REJECTED,
            reason=None if written.clean else f"overview: {_reason(written)}",
            overview=written.text,
            findings=tuple(Found("overview", one).row() for one in written.findings),
            attempts=written.attempts,
        )

    def _spent(self, error: LlmError, start: int) -> int:
        """The attempts that are gone after an error: the whole round where another run would meet it again."""
        if isinstance(error, BudgetExceeded):
            self._end(str(error))
        return start + ROUND if error.name in FINAL else start

    def _watch(self, outcome: str) -> None:
        """End the run where nothing but one kind of failure comes any more."""
        kind = _SYSTEMATIC.get(outcome, "")
        with self._lock:
            before, times = self._in_vain
            self._in_vain = (kind, times + 1 if kind == before else 1)
            if kind and self._in_vain[1] >= _GIVES_UP_AFTER:
                self._end(f"{self._in_vain[1]} tasks in a row ended {outcome}, as the others would")

    def _end(self, why: str) -> None:
        self._stopped = self._stopped or why
        self._stop.set()

    def _repository(self, chain: TaskChain) -> GitRepository:
        with self._lock:
            if chain.repository_id not in self._repositories:
                opened = open_mined(chain.location, self._mirrors, chain.host, chain.full_name)
                self._repositories[chain.repository_id] = opened
            return self._repositories[chain.repository_id]


def _chosen(tx: Transaction, prefix: str, strategy: str) -> str:
    """The id of the one chain that begins so, which the strategy chose."""
    chain_id = find_chain(tx, prefix)
    if chain_id not in selected_ids(tx, strategy):
        raise UsageError(
            f"chain {chain_id} is not one that --strategy {strategy} chose; `prchain chains show` says what"
        )
    return chain_id


def _kept(earlier: TaskDraft | None) -> dict[int, StageQuery]:
    """The stages that an earlier run ended with; their queries stand, whatever became of the others."""
    return {one.position: one for one in earlier.stages if one.outcome == READY} if earlier else {}


def _start(attempts: int) -> int:
    """The first attempt of the round that begins, or that was cut off; see `chains.tasks.query.ROUND`."""
    return attempts - attempts % ROUND


def _stage_start(earlier: TaskDraft | None, position: int) -> int:
    before = [one.attempts for one in earlier.stages if one.position == position] if earlier else []
    return _start(before[0] if before else 0)


def _unreached(context: StageContext) -> StageQuery:
    return StageQuery(context.stage.position, NOT_REACHED, interface=context.interface, files=context.files)


def _reason(written: Written) -> str:
    """What was found in a rejected text, in short."""
    kinds = Counter(one.kind for one in written.findings if one.severity == "leak")
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
