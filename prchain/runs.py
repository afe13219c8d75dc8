"""One run over many units of work: its workers, the boundary that keeps a failure with its unit, and when it ends.

What a stage does is a `Work`, and what it is done to is a `Unit`: a plain value that can be pickled. Whoever opens the
same work, in this process or in another one, can be given any of its units. Several runs may work on one database: a
unit is held by one of them while it is worked on, and the others pass it over.

A run ends early where going on is in vain, by one rule for all kinds of work: its budget is spent, or three units in a
row ended with the same kind of failure of infrastructure (`prchain.errors.PrchainError.infrastructure`). A defect ends
its own unit alone. What is wrong with the settings or the database ends the run at once, as an error.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from prchain.errors import (
    BudgetExceeded,
    EngineUnavailable,
    PrchainError,
    PromptError,
    StoreError,
    StoreInUse,
    UsageError,
    infrastructure_failures,
)
from prchain.progress import Progress, ProgressTask
from prchain.scrub import redact, scrub_mined
from prchain.terminal import counted, dollars, say, tally

log = logging.getLogger(__name__)

DEFECT = "defect"
"""The outcome of a unit whose work failed without a name: a defect of ours."""

TAKEN = "taken"
"""The outcome of a unit that another run works on."""

GIVES_UP_AFTER = 3
"""So many units in a row with the same kind of failure of infrastructure, and the run ends: the others would fail, too,
and may have to be paid for."""

LONGEST_REASON = 500
"""Characters of a reason."""

_BUDGET = BudgetExceeded("").name

_ENGINE = EngineUnavailable.infrastructure
"""The one kind of failure that a group of units can have by itself: of one chain the image may be missing."""

_SECONDS_BETWEEN_SUMS = 2.0
"""The ledger is added up for a note so often at most."""

_ENDS_THE_RUN = (UsageError, StoreError, PromptError)
"""What is not a unit's: settings, prompts, the database."""

Tell = Callable[[str], None]
"""Is told what is being done for a unit, in few words."""


class Unit(Protocol):
    """What a run works on, one after the other: a plain value that can be pickled."""

    @property
    def key(self) -> str:
        """Names the unit among all of its work, for people."""

    @property
    def group(self) -> str:
        """What units can share an engine's fault by, an image that is not there: in a row, those of one group count
        once then."""


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
        """Store, as far as there is a place for it, that `work_on` raised: an error's name, or `DEFECT`."""

    def spent(self) -> float | None:
        """USD that the run has spent so far; None where it spends nothing, or prices are not known."""


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
    """Work on the units, so many at once, in their order. `secrets` are kept out of reasons.

    Raises `UsageError`, `PromptError` and `StoreError`, after which no unit is begun; what is under way is not waited
    for then, nor when the run is interrupted: every step of it is a transaction that may be cut off.
    """
    return _Run(work, units, progress, secrets).run(workers)


class _Run(Generic[U]):
    def __init__(self, work: Work[U], units: Sequence[U], progress: Progress, secrets: tuple[str, ...]) -> None:
        self._work = work
        self._units = units
        self._secrets = secrets
        self._shown = progress.task(work.title, len(units))
        self._stop = threading.Event()
        self._under_way = UnderWay(self._shown, work.spent)
        self._stop_rule = StopRule(work.title)

    def run(self, workers: int) -> RunResult[U]:
        results: list[UnitResult[U]] = []
        pool = ThreadPoolExecutor(max(1, min(workers, len(self._units))), thread_name_prefix="worker")
        try:
            futures = [pool.submit(self._unless_stopped, unit) for unit in self._units]
            for future in as_completed(futures):
                result = future.result()
                if result is not None:
                    results.append(result)
                    self._shown.advance()
                    self._under_way.count(result.outcome)
        finally:
            self._stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        self._shown.done(f"{len(results):,} of {len(self._units):,} ended")
        return RunResult(tuple(results), len(self._units) - len(results), self._stop_rule.stopped)

    def _unless_stopped(self, unit: U) -> UnitResult[U] | None:
        if self._stop.is_set():
            return None
        begun = monotonic()
        log.info("%s: %s begins", self._work.title, unit.key)
        try:
            result = self._work_on(unit)
        except BaseException as error:
            self._stop.set()  # before this thread takes the next unit
            log.warning("%s: %s ends the run: %s", self._work.title, unit.key, type(error).__name__)
            raise
        finally:
            self._under_way.ended(unit.key)
        log.info("%s: %s ended %s after %.1f s", self._work.title, unit.key, result.outcome, monotonic() - begun)
        if self._stop_rule.ends(result):
            self._stop.set()
        return result

    def _work_on(self, unit: U) -> UnitResult[U]:
        """The boundary at which a failure that shows on one unit is kept from ending all others."""
        try:
            with self._work.holding(unit):
                try:
                    return self._work.work_on(unit, self._under_way.teller(unit.key))
                except _ENDS_THE_RUN:
                    raise
                except PrchainError as error:
                    log.warning("%s: %s failed: %s", self._work.title, unit.key, error.name)
                    log.debug("%s: %s failed in", self._work.title, unit.key, exc_info=True)
                    return self._failed(unit, error.name, self._words(str(error)))
                except Exception as error:  # what has no name is a defect of ours: told, not hidden
                    self._log_defect(unit)
                    return self._failed(unit, DEFECT, self._words(defect_words(error)))
        except StoreInUse:
            return UnitResult(unit, TAKEN, "another run works on it")
        except _ENDS_THE_RUN:
            raise
        except Exception as error:  # of `holding` itself
            self._log_defect(unit)
            return UnitResult(unit, DEFECT, self._words(defect_words(error)))

    def _log_defect(self, unit: U) -> None:
        log.warning("%s: %s met a defect of prchain; -vv logs where", self._work.title, unit.key)
        log.debug("%s: %s met it in", self._work.title, unit.key, exc_info=True)

    def _failed(self, unit: U, outcome: str, reason: str) -> UnitResult[U]:
        """Store that the work on a unit failed; where that fails in its turn, both are told."""
        try:
            return self._work.failed(unit, outcome, reason)
        except _ENDS_THE_RUN:
            raise
        except PrchainError as error:  # its row is gone, or another run's
            return UnitResult(unit, error.name, self._words(f"{error}; before that {outcome}: {reason}"))
        except Exception as error:  # a defect of ours, as above
            return UnitResult(unit, outcome, self._words(f"{reason}; not stored: {defect_words(error)}"))

    def _words(self, text: str) -> str:
        return scrub_mined(redact(text, self._secrets))[:LONGEST_REASON]


def say_end(noun: str, outcomes: Sequence[str], left: int, stopped: str | None) -> None:
    """Print to standard error why a run ended early, and what to do about the units that are not done: those that ended
    in these ways, and those `left` that were not begun."""
    if stopped:
        say(f"stopped early: {stopped}", err=True)
    if outcomes or left:
        unbegun = f" ({left:,} of them not begun)" if left else ""
        todo = what_to_do([*outcomes, *["not_begun"] * left])
        say(f"{counted(len(outcomes) + left, noun)} not done{unbegun}; {todo}", err=True)


def what_to_do(outcomes: Collection[str]) -> str:
    """What a user can do about units that ended in these ways and are not done; none: they were not begun."""
    if outcomes and set(outcomes) == {TAKEN}:
        return "another run works on them; when it has ended, the same command says what is left"
    if _BUDGET in outcomes:
        return "a larger --budget goes on"
    return "mend what is said above, then run the same command again"


def defect_words(error: Exception) -> str:
    """What is told of a failure without a name: its last line, and the file and line that raised it."""
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{said[: LONGEST_REASON - 100]} ({Path(place.filename).name}:{place.lineno})"


class StopRule:
    """When a run ends early; safe for several threads."""

    def __init__(self, title: str) -> None:
        self.stopped: str | None = None
        self._title = title
        self._lock = threading.Lock()
        self._kind: str | None = None
        self._failed: list[str] = []
        """What the latest units that failed in this way count as."""

    def ends(self, result: UnitResult[Any]) -> bool:
        """Take note of a unit that ended; whether the run ends with it."""
        outcome, reason = result.outcome, result.reason
        if outcome == TAKEN:
            return False
        kind = infrastructure_failures().get(outcome)
        with self._lock:
            if kind is None or kind != self._kind:
                self._kind, self._failed = kind, []
            if kind is not None:
                self._failed.append(result.unit.group if kind == _ENGINE else result.unit.key)
            if outcome == _BUDGET:
                self.stopped = self.stopped or reason or outcome
            elif len(set(self._failed)) >= GIVES_UP_AFTER:
                why = f": {reason}" if reason else ""
                self.stopped = self.stopped or (
                    f"{len(self._failed)} {self._title} in a row ended {outcome}, as the others would{why}"
                )
            return self.stopped is not None


class UnderWay:
    """What is being done for the units that are worked on, as one note of a progress task: what hangs is seen."""

    def __init__(self, shown: ProgressTask, spent: Callable[[], float | None] = lambda: None) -> None:
        self._shown = shown
        self._spent = spent
        self._usd: float | None = None
        self._added_up = -_SECONDS_BETWEEN_SUMS
        self._words: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def teller(self, key: str) -> Tell:
        """Takes what is being done for a unit."""

        def tell(words: str) -> None:
            self._add_up()
            with self._lock:
                self._words[key] = words
                self._show()

        return tell

    def ended(self, key: str) -> None:
        """Nothing more is being done for a unit."""
        with self._lock:
            if self._words.pop(key, None) is not None:
                self._show()

    def count(self, outcome: str) -> None:
        """A unit has ended so."""
        with self._lock:
            self._counts[outcome] += 1
            self._show()

    def _add_up(self) -> None:
        now = monotonic()
        with self._lock:
            if now - self._added_up < _SECONDS_BETWEEN_SUMS:
                return
            self._added_up = now
        self._usd = self._spent()

    def _show(self) -> None:
        parts = [f"{key}: {words}" for key, words in self._words.items()]
        parts += [f"{dollars(self._usd)} so far"] if self._usd is not None else []
        parts += [tally(dict(sorted(self._counts.items())))] if self._counts else []
        self._shown.update(note="; ".join(parts))
