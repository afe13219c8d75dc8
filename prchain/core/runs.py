"""One run over many units of work: its workers, the boundary that keeps a failure with its unit, and when it ends.

What a stage does is a `Work`; what it works on is a `Unit`: a plain value that can be pickled. Any process that opens
the same work can take any of its units. Several runs may share one database: one of them holds a unit while it works on
it, and the others skip it.

A run ends early by one rule for all kinds of work: its budget is spent, or three units in a row ended with the same
kind of infrastructure failure (`prchain.core.errors.PrchainError.infrastructure`). A defect ends only its own unit. An
error of the settings or the database ends the run at once.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from prchain.core.console.progress import Progress
from prchain.core.console.terminal import tally
from prchain.core.errors import (
    BudgetExceeded,
    EngineUnavailable,
    PrchainError,
    PromptError,
    StoreError,
    StoreInUse,
    UsageError,
    infrastructure_failures,
    no_room,
)
from prchain.core.llm.ledger import Spending
from prchain.core.secrets.scrub import redact, scrub_mined
from prchain.core.waiting import telling

log = logging.getLogger(__name__)

DEFECT = "defect"
"""The outcome of a unit whose work raised an error without a name: a defect of ours."""

TAKEN = "taken"
"""The outcome of a unit that another run works on."""

MAX_FAILURES_IN_A_ROW = 3
"""After so many units in a row with the same kind of infrastructure failure the run ends: the others would fail, too,
and may cost money."""

LONGEST_REASON = 500
"""Characters of a reason."""

_BUDGET_EXCEEDED = BudgetExceeded("").name

_ENGINE_FAILURE = EngineUnavailable.infrastructure
"""The only kind of failure that may concern one group of units alone: the image of one chain may be missing."""

_RUN_ENDING_ERRORS = (UsageError, StoreError, PromptError)
"""Errors that are not a unit's: settings, prompts, the database."""

Tell = Callable[[str], None]
"""Takes a few words on what is being done for a unit."""


class Unit(Protocol):
    """What a run works on, one after the other: a plain value that can be pickled."""

    @property
    def key(self) -> str:
        """Names the unit among all of its work, for people."""

    @property
    def group(self) -> str:
        """Units of one group can share an engine failure, such as a missing image: in a row they then count once."""


U = TypeVar("U", bound=Unit)


@dataclass(frozen=True, slots=True)
class UnitResult(Generic[U]):
    """How a unit ended in a run; `detail` is what the kind of work adds."""

    unit: U
    outcome: str
    reason: str | None = None
    detail: Any = None


class Work(Protocol[U]):
    """What one stage does with its units. Safe for several threads."""

    @property
    def title(self) -> str:
        """What the units are, in the plural, for people: ``chains``."""

    def holding(self, unit: U) -> AbstractContextManager[object]:
        """Keeps other runs from the unit while it is worked on. Raises `StoreInUse` where one of them has it."""

    def work_on(self, unit: U, tell: Tell) -> UnitResult[U]:
        """Work on a unit that is held, and store what came of it. Raises `PrchainError`."""

    def failed(self, unit: U, outcome: str, reason: str) -> UnitResult[U]:
        """Store, where there is a row for it, that `work_on` raised; `outcome` is an error's name, or `DEFECT`."""

    def spent(self) -> Spending | None:
        """What the run has paid models so far; None where it asks none."""


@dataclass(frozen=True, slots=True)
class RunResult(Generic[U]):
    """What a run did."""

    results: tuple[UnitResult[U], ...] = ()
    """Of the units that it worked on, in the order in which they ended."""
    left: int = 0
    """Units that it did not get to."""
    stopped: str | None = None
    """Why it ended early."""

    @property
    def counts(self) -> dict[str, int]:
        """Outcome to number of units."""
        return dict(sorted(Counter(result.outcome for result in self.results).items()))


def run_units(
    work: Work[U], units: Sequence[U], *, workers: int, progress: Progress, secrets: tuple[str, ...] = ()
) -> RunResult[U]:
    """Work on the units in their order, `workers` at once. `secrets` are kept out of reasons.

    Raises `UsageError`, `PromptError` and `StoreError`; no unit is started after that. Units under way are then not
    waited for, nor when the run is interrupted: each of their steps is a transaction that may be cut off.
    """
    return _Run(work, units, progress, secrets).run(workers)


class _Run(Generic[U]):
    def __init__(self, work: Work[U], units: Sequence[U], progress: Progress, secrets: tuple[str, ...]) -> None:
        self._work = work
        self._units = units
        self._secrets = secrets
        self._task = progress.task(work.title, len(units), cost=self._cost)
        self._stop = threading.Event()
        self._stop_rule = StopRule(work.title)

    def run(self, workers: int) -> RunResult[U]:
        results: list[UnitResult[U]] = []
        counts: Counter[str] = Counter()
        pool = ThreadPoolExecutor(max(1, min(workers, len(self._units))), thread_name_prefix="worker")
        try:
            futures = [pool.submit(self._run_unit, unit) for unit in self._units]
            for future in as_completed(futures):
                result = future.result()
                if result is not None:
                    results.append(result)
                    counts[result.outcome] += 1
                    self._task.advance()
                    self._task.update(note=tally(dict(sorted(counts.items()))))
        finally:
            self._stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            self._task.done(f"{len(results):,} of {len(self._units):,} ended")
        return RunResult(tuple(results), len(self._units) - len(results), self._stop_rule.stopped)

    def _run_unit(self, unit: U) -> UnitResult[U] | None:
        if self._stop.is_set():
            return None
        started = monotonic()
        log.info("%s: %s begins", self._work.title, unit.key)
        try:
            result = self._work_on(unit)
        except BaseException as error:
            self._stop.set()  # before this thread takes the next unit
            log.warning("%s: %s ends the run: %s", self._work.title, unit.key, type(error).__name__)
            raise
        finally:
            self._task.tell(unit.key, "")
        log.info("%s: %s ended %s after %.1f s", self._work.title, unit.key, result.outcome, monotonic() - started)
        if self._stop_rule.ends(result):
            self._stop.set()
        return result

    def _work_on(self, unit: U) -> UnitResult[U]:
        """The boundary that keeps the failure of one unit from ending all others."""
        try:
            with self._work.holding(unit):
                try:
                    with telling(partial(self._task.tell, unit.key)) as tell:
                        return self._work.work_on(unit, tell)
                except _RUN_ENDING_ERRORS:
                    raise
                except PrchainError as error:
                    log.warning("%s: %s failed: %s", self._work.title, unit.key, error.name)
                    log.debug("%s: %s failed in", self._work.title, unit.key, exc_info=True)
                    return self._failed(unit, error.name, self._reason_text(str(error)))
                except Exception as error:  # what has no name is a defect of ours: told, not hidden
                    if full := no_room(error):
                        raise full from error
                    self._log_defect(unit)
                    return self._failed(unit, DEFECT, self._reason_text(defect_words(error)))
        except StoreInUse:
            return UnitResult(unit, TAKEN, "another run works on it")
        except _RUN_ENDING_ERRORS:
            raise
        except Exception as error:  # of `holding` itself
            self._log_defect(unit)
            return UnitResult(unit, DEFECT, self._reason_text(defect_words(error)))

    def _cost(self) -> str | None:
        spending = self._work.spent()
        return spending.words_so_far() if spending is not None else None

    def _log_defect(self, unit: U) -> None:
        log.warning("%s: %s met a defect of prchain; -vv logs where", self._work.title, unit.key)
        log.debug("%s: %s met it in", self._work.title, unit.key, exc_info=True)

    def _failed(self, unit: U, outcome: str, reason: str) -> UnitResult[U]:
        """Store that the work on a unit failed; where that fails too, both are reported."""
        try:
            return self._work.failed(unit, outcome, reason)
        except _RUN_ENDING_ERRORS:
            raise
        except PrchainError as error:  # its row is gone, or another run's
            return UnitResult(unit, error.name, self._reason_text(f"{error}; before that {outcome}: {reason}"))
        except Exception as error:  # a defect of ours, as above
            return UnitResult(unit, outcome, self._reason_text(f"{reason}; not stored: {defect_words(error)}"))

    def _reason_text(self, text: str) -> str:
        return scrub_mined(redact(text, self._secrets))[:LONGEST_REASON]


def defect_words(error: Exception) -> str:
    """The words for a failure without a name: its last line, and the file and line that raised it."""
    last_line = " ".join(traceback.format_exception_only(error)[-1].split())
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last_line[: LONGEST_REASON - 100]} ({Path(place.filename).name}:{place.lineno})"


class StopRule:
    """When a run ends early; safe for several threads."""

    def __init__(self, title: str) -> None:
        self.stopped: str | None = None
        self._title = title
        self._lock = threading.Lock()
        self._kind: str | None = None
        self._failed: list[str] = []
        """Keys or groups of the latest units that failed in this way."""

    def ends(self, result: UnitResult[Any]) -> bool:
        """Count a unit that ended; returns whether the run ends with it."""
        outcome, reason = result.outcome, result.reason
        if outcome == TAKEN:
            return False
        kind = infrastructure_failures().get(outcome)
        with self._lock:
            if kind is None or kind != self._kind:
                self._kind, self._failed = kind, []
            if kind is not None:
                self._failed.append(result.unit.group if kind == _ENGINE_FAILURE else result.unit.key)
            if outcome == _BUDGET_EXCEEDED:
                self.stopped = self.stopped or reason or outcome
            elif len(set(self._failed)) >= MAX_FAILURES_IN_A_ROW:
                why = f": {reason}" if reason else ""
                self.stopped = self.stopped or (
                    f"{len(self._failed)} {self._title} in a row ended {outcome}, as the others would{why}"
                )
            return self.stopped is not None
