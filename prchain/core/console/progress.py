"""How far a command has got: a bar on a terminal, plain lines in a log, which go on while something takes long.

    with open_progress() as progress:
        task = progress.task("numpy/numpy: pull requests", total=None)
        task.advance(100)
        task.update(total=9000, note="waiting 43 s for the rate limit")
        task.done("9,000 read")

A task has a count, the phase that it is in, what is being done for each unit under way, and what was paid so far.

Names, notes and closing words are shown without secrets and without control characters: they may hold mined text.
Tasks can be used from any thread.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from prchain.core.console.progress_state import Cost, TaskState, duration_text
from prchain.core.console.terminal import clean as cleaned
from prchain.core.secrets.scrub import redact

_NO_TERMINALS = ("dumb", "unknown")
"""Values of TERM under which a bar is drawn once, at its end; so it is lines there."""

_SHORTEST_WAIT = 0.05


class ProgressTask(Protocol):
    """One thing that is under way."""

    def advance(self, count: int = 1) -> None:
        """`count` more units are done."""

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        """Set how many units there are, or a note; an empty note takes the last one away."""

    def phase(self, words: str, total: int | None = None) -> None:
        """Something else is done from here on, which is counted anew, without a note."""

    def tell(self, unit: str, words: str) -> None:
        """What is being done for one of several units under way; without words nothing more is."""

    def done(self, message: str = "") -> None:
        """The task has ended, with these words; what is told of it after that is not shown."""


class Progress(Protocol):
    """Where a command shows what it is doing."""

    def task(self, name: str, total: int | None = None, *, cost: Cost | None = None) -> ProgressTask:
        """Begin a task of `total` units; None where nobody knows how many. `cost` says what it has cost so far; it is
        asked now and then, by any thread."""


class _SilentProgress:
    """Shows nothing: the progress, and its tasks, of callers that want none."""

    def task(self, name: str, total: int | None = None, *, cost: Cost | None = None) -> ProgressTask:
        return self

    def advance(self, count: int = 1) -> None:
        """See `ProgressTask`."""

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        """See `ProgressTask`."""

    def phase(self, words: str, total: int | None = None) -> None:
        """See `ProgressTask`."""

    def tell(self, unit: str, words: str) -> None:
        """See `ProgressTask`."""

    def done(self, message: str = "") -> None:
        """See `ProgressTask`."""


SILENT: Progress = _SilentProgress()
"""Shows nothing."""

Tick = Callable[[], float]
"""Prints what is due, and returns the seconds until its next call."""


class Ticker(Protocol):
    """Calls a `Tick` whenever it is due."""

    def beats(self, tick: Tick) -> AbstractContextManager[None]:
        """Call `tick` again and again, until the context is left."""

    def hurry(self) -> None:
        """Call it at once: something is due earlier than it said."""


@contextmanager
def open_progress(
    stream: TextIO | None = None,
    *,
    secrets: tuple[str, ...] = (),
    every: float = 5.0,
    alive: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    heart: Ticker | None = None,
) -> Iterator[Progress]:
    """Show progress on `stream` (standard error): a bar where it is a terminal that can, else lines.

    `secrets` are kept out of it. A log gets at most one line per task in `every` seconds of `clock`, besides the task's
    first and last line; a change in between is printed when they are over. A task without a line for `alive` seconds is
    printed again, with how long it has not changed. `heart` makes these calls; None: a thread of its own.
    """
    stream = stream or sys.stderr

    def clean(text: str) -> str:
        return cleaned(redact(text, secrets)).strip()

    heart = heart or _Thread()
    if stream.isatty() and os.environ.get("TERM", "").lower() not in _NO_TERMINALS:
        from prchain.core.console.progress_bars import BarProgress  # noqa: PLC0415  a log does not need it

        bars = BarProgress(stream, clean, clock)
        with bars.shown(), heart.beats(bars.tick):
            yield bars
    else:
        lines = LineProgress(stream, clean, every, alive, clock, heart)
        with heart.beats(lines.tick):
            yield lines


class _Thread:
    """A thread that sleeps between the calls."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stopped = False

    @contextmanager
    def beats(self, tick: Tick) -> Iterator[None]:
        thread = threading.Thread(target=self._run, args=(tick,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped = True
            self._woken.set()
            thread.join()

    def hurry(self) -> None:
        self._woken.set()

    def _run(self, tick: Tick) -> None:
        wait = 0.0
        while not self._stopped:
            # Never a busy loop, whatever a tick returns.
            if self._woken.wait(max(wait, _SHORTEST_WAIT)):
                self._woken.clear()
            if self._stopped:
                return
            try:
                wait = tick()
            except (OSError, ValueError):  # the stream is gone; whoever else writes to it is told so
                return


class LineProgress:
    """Plain lines, for logs."""

    def __init__(
        self,
        stream: TextIO,
        clean: Callable[[str], str],
        every: float,
        alive: float,
        clock: Callable[[], float],
        heart: Ticker,
    ) -> None:
        self._stream = stream
        self._clean = clean
        self._lock = threading.Lock()
        self._tasks: weakref.WeakSet[_LineTask] = weakref.WeakSet()
        self.every = every
        self.alive = alive
        self.clock = clock
        self.hurry = heart.hurry

    def task(self, name: str, total: int | None = None, *, cost: Cost | None = None) -> ProgressTask:
        self.say(name)
        task = _LineTask(self, TaskState(name, total, cost, self.clock))
        with self._lock:
            self._tasks.add(task)
        return task

    def tick(self) -> float:
        """Say of each task what is due; returns the seconds until the next one is, at the latest `alive`."""
        with self._lock:
            tasks = list(self._tasks)
        return min((task.tick() for task in tasks), default=self.alive)

    def forget(self, task: _LineTask) -> None:
        with self._lock:
            self._tasks.discard(task)

    def say(self, line: str) -> None:
        with self._lock:
            self._stream.write(self._clean(line) + "\n")
            self._stream.flush()


class _LineTask:
    def __init__(self, progress: LineProgress, state: TaskState) -> None:
        self._progress = progress
        self._state = state
        self._last_line_at = self._changed_at = progress.clock()
        self._is_new = False
        self._lock = threading.Lock()

    def advance(self, count: int = 1) -> None:
        with self._changing():
            self._state.advance(count)

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        with self._changing():
            self._state.update(total, note)

    def phase(self, words: str, total: int | None = None) -> None:
        with self._changing():
            self._state.begin(words, total)

    def tell(self, unit: str, words: str) -> None:
        self._state.add_up()
        with self._changing():
            self._state.tell(unit, words)

    def done(self, message: str = "") -> None:
        with self._lock:
            if self._state.ended:
                return
            self._state.ended = True
            self._progress.say(f"{self._state.name}: {message or f'done, {self._state.count:,}'}")
        self._progress.forget(self)

    def tick(self) -> float:
        """Say what is due of it; returns the seconds until something is."""
        self._state.add_up()
        with self._lock:
            if self._state.ended:
                return self._progress.alive
            now = self._progress.clock()
            if now - self._last_line_at >= self._patience():
                self._say(now, "" if self._is_new else duration_text(now - self._changed_at))
            return max(self._last_line_at + self._patience() - now, 0.0)

    def _patience(self) -> float:
        return self._progress.every if self._is_new else self._progress.alive

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What changes is printed now where that is allowed, else when it is due."""
        with self._lock:
            before, words = self._shown(), self._words()
            yield
            # A thread that nobody waits for goes on telling.
            if self._state.ended or self._shown() == before:
                return
            self._changed_at = self._progress.clock()
            # A wait is printed when it begins: nothing else calls while it lasts.
            if (self._words() and not words) or self._changed_at - self._last_line_at >= self._progress.every:
                self._say(self._changed_at)
            elif not self._is_new:
                self._is_new = True
                self._progress.hurry()

    def _shown(self) -> tuple[object, ...]:
        return self._state.count, self._state.total, self._words()

    def _words(self) -> tuple[str, ...]:
        return (*self._state.words, *filter(None, (self._state.note,)))

    def _say(self, now: float, lasts: str = "") -> None:
        state = self._state
        self._last_line_at = now
        self._is_new = False
        lasts = (lasts and not state.units and f"{lasts} so far") or ""
        count = f"{state.count:,}" + (f" of {state.total:,}" if state.total is not None else "")
        details = "; ".join(filter(None, (*state.aged_words(), state.cost, state.note, lasts)))
        self._progress.say(f"{state.name}: {count}" + (f" ({details})" if details else ""))
