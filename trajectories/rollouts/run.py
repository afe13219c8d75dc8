"""Many rollouts: which samples of which chains, by how many workers, and what became of them.

The unit of work is `trajectories.rollouts.rollout.roll`; this is a loop around it for one machine. Several of these may
work on one database: a trajectory is worked on by one of them, and the others pass it over.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import select

from prchain.errors import ChainGone, PrchainError, RolloutError, StoreError, StoreInUse, UsageError
from prchain.progress import Progress
from prchain.scrub import scrub_mined
from sql.chosen import find_chain, selected_ids
from sql.tables import Chain, Task, Trajectory
from trajectories.identity import Parent
from trajectories.outcomes import DEFECT, FINAL, INFRASTRUCTURE
from trajectories.rollouts.forecast import Forecast, forecast
from trajectories.rollouts.rollout import AGENT, RolloutContext, leave, roll

_GIVES_UP_AFTER = 3
"""So many chains in a row whose rollouts end because machines fail, and the run ends: the rest would too. One chain can
have a fault of its own."""

_LONGEST_REASON = 500

TAKEN = "taken"
"""Another process works on it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rollouts a run is about, and how many at once."""

    strategy: str = "reference"
    repository: str | None = None
    limit: int | None = None
    """The first so many chains that have a task."""
    chain: str | None = None
    """The one chain whose id begins so."""
    samples: int = 1
    workers: int = 2
    parent: Parent | None = None
    """Where to branch off; of one chain."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One sample of one chain."""

    chain_id: str
    sample: int


@dataclass(frozen=True, slots=True)
class RolloutReport:
    """How one rollout ended in this run. `id` is None for one that left no row."""

    unit: Unit
    id: str | None
    outcome: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did."""

    rollouts: tuple[RolloutReport, ...]
    """Those it worked on, in the order in which they ended."""
    standing: int
    """Trajectories of these samples that were final before."""
    left: int
    """Samples that it did not get to."""
    without_task: int
    """Chosen chains that have no task that is ready."""
    stopped: str | None
    """Why it ended early."""

    @property
    def counts(self) -> dict[str, int]:
        """Outcome to number of trajectories, of this run; failures of machines are counted apart."""
        return dict(Counter(one.outcome for one in self.rollouts if one.outcome not in INFRASTRUCTURE))

    @property
    def infrastructure(self) -> dict[str, int]:
        """The name of what failed to number of trajectories that can be gone on with."""
        return dict(Counter(one.outcome for one in self.rollouts if one.outcome in INFRASTRUCTURE))

    @property
    def failed(self) -> tuple[RolloutReport, ...]:
        """Those that the next run has to try again."""
        return tuple(one for one in self.rollouts if one.outcome not in FINAL)

    @property
    def done(self) -> bool:
        """Whether every sample has a final outcome."""
        return not self.left and not self.failed


@dataclass
class RolloutRun:
    """Rolls out the samples of the chains that were chosen; `roll_one` is a seam for tests and engines."""

    context: RolloutContext
    choice: Choice
    progress: Progress
    roll_one: Callable[..., str] = roll
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _stopped: str | None = None
    _counts: str = ""
    _tells: Callable[[str], None] = field(default=lambda words: None, repr=False)
    _in_vain: set[str] = field(default_factory=set, repr=False)

    def pending(self) -> tuple[list[Unit], int, int]:
        """The samples to work on, all of the best chain first; how many are final already; chains without a task.

        Raises `UsageError`.
        """
        choice = self.choice
        with self.context.store.reading() as tx:
            if choice.chain is not None:
                wanted = [find_chain(tx, choice.chain)]
            else:
                wanted = selected_ids(tx, choice.strategy, choice.repository)
            ready = {name for (name,) in tx.rows(Task, "chain_id", outcome="ready")}
            chains = [one for one in wanted if one in ready][: choice.limit]
            ended = {row[0]: row[1] for row in tx.connection.execute(select(Trajectory.id, Trajectory.outcome))}
        if choice.parent is not None and len(wanted) != 1:
            raise UsageError("a branch is of one chain; name it with --chain")
        units = [Unit(chain_id, sample) for chain_id in chains for sample in range(choice.samples)]
        todo = [one for one in units if ended.get(self._id(one)) not in FINAL]
        return todo, len(units) - len(todo), sum(one not in ready for one in wanted)

    def _id(self, unit: Unit) -> str:
        return self.context.id_of(unit.chain_id, unit.sample, self.choice.parent)

    def forecast(self) -> Forecast:
        """What the run would take. Nothing is asked."""
        todo, _, _ = self.pending()
        with self.context.store.reading() as tx:
            lengths = {row[0]: row[1] for row in tx.connection.execute(select(Chain.id, Chain.length))}
            model = self.context.desk.model_name(AGENT)
            sizes = [lengths[one.chain_id] for one in todo]
            return forecast(tx, self.context.desk, self.context.options, sizes, model)

    def run(self) -> RunReport:
        """Roll out what is missing. Raises `StoreError`, and what is wrong with settings and prompts."""
        todo, standing, without = self.pending()
        shown = self.progress.task("rollouts", len(todo))
        self._tells = lambda words: shown.update(note=words)
        reports: list[RolloutReport] = []
        pool = ThreadPoolExecutor(max_workers=max(1, min(self.choice.workers, len(todo))))
        futures = [pool.submit(self._unless_stopped, unit) for unit in todo]
        try:
            for future in as_completed(futures):
                report = future.result()
                if report is not None:
                    reports.append(report)
                    counts = Counter(one.outcome for one in reports)
                    self._counts = "; " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
                    shown.update(note=f"{report.unit.chain_id} sample {report.unit.sample} ended{self._counts}")
                    shown.advance()
        except BaseException:
            # Whoever interrupts, or a database that fails, need not wait for what is under way.
            self._stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
        shown.done(f"{len(reports):,} of {len(todo):,} ended")
        return RunReport(tuple(reports), standing, len(todo) - len(reports), without, self._stopped)

    def _unless_stopped(self, unit: Unit) -> RolloutReport | None:
        """Work on a sample: the boundary at which a defect that shows on one is kept from ending all others."""
        if self._stop.is_set():
            return None
        context = replace(self.context, tell=self._tell)
        try:
            try:
                name = self.roll_one(context, unit.chain_id, unit.sample, parent=self.choice.parent)
            except PrchainError:
                raise
            except Exception as error:  # what has no name is a defect of ours: told, not hidden
                return self._defect(unit, error)
        except StoreInUse:
            return RolloutReport(unit, self._id(unit), TAKEN, "another process works on it")
        except (StoreError, UsageError):
            self._stop.set()  # before this thread takes the next sample
            raise
        except (ChainGone, RolloutError) as error:
            return RolloutReport(unit, None, error.name, str(error))
        with self.context.store.reading() as tx:
            outcome, reason = next(iter(tx.rows(Trajectory, "outcome", "reason", id=name)))
        self._watch(unit.chain_id, outcome, reason)
        return RolloutReport(unit, name, outcome, reason)

    def _tell(self, chain_id: str, sample: int, words: str) -> None:
        spent = self.context.desk.spending().usd
        cost = "" if spent is None else f"; {spent:.4f} USD so far"
        self._tells(f"{chain_id} sample {sample}: {words}{cost}{self._counts}")

    def _defect(self, unit: Unit, error: Exception) -> RolloutReport:
        said = " ".join(traceback.format_exception_only(error)[-1].split())
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{scrub_mined(said)[:_LONGEST_REASON]} ({Path(place.filename).name}:{place.lineno})"
        name = self._id(unit)
        leave(self.context, name, DEFECT, reason)
        return RolloutReport(unit, name, DEFECT, reason)

    def _watch(self, chain_id: str, outcome: str, reason: str | None) -> None:
        """End the run where its budget is spent, and where nothing but failures of machines comes any more."""
        with self._lock:
            self._in_vain = {*self._in_vain, chain_id} if outcome in INFRASTRUCTURE else set()
            if outcome == "budget_exceeded":
                self._end(str(reason))
            elif len(self._in_vain) >= _GIVES_UP_AFTER:
                self._end(f"the rollouts of {len(self._in_vain)} chains in a row failed: {reason}")

    def _end(self, why: str) -> None:
        self._stopped = self._stopped or why
        self._stop.set()
