"""How far a command has got: a bar on a terminal, plain lines without times in a log.

    with open_progress() as progress:
        task = progress.task("numpy/numpy: pull requests", total=None)
        task.advance(100)
        task.update(total=9000, note="waiting 43 s for the rate limit")
        task.done("9,000 read")

Names, notes and closing words are shown without secrets and without control characters: they may hold mined text.
Tasks can be used from any thread.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from prchain.scrub import redact

if TYPE_CHECKING:
    import rich.progress

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Task(Protocol):
    """One thing that is under way."""

    def advance(self, count: int = 1) -> None:
        """`count` more units are done."""

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        """Set how many units there are, or what is happening just now; an empty note takes the last one away."""

    def done(self, message: str = "") -> None:
        """The task has ended, with these words."""


class Progress(Protocol):
    """Where a command shows what it is doing."""

    def task(self, name: str, total: int | None = None) -> Task:
        """Begin a task of `total` units; None where nobody knows how many."""


@contextmanager
def open_progress(
    stream: TextIO | None = None,
    *,
    secrets: tuple[str, ...] = (),
    every: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Progress]:
    """Show progress on `stream` (standard error): a bar where it is a terminal, else lines.

    `secrets` are kept out of it. A log gets at most one line per task in `every` seconds of `clock`, beside the lines
    that begin and end the task.
    """
    stream = stream or sys.stderr

    def clean(text: str) -> str:
        return _CONTROL.sub(" ", redact(text, secrets)).strip()

    if stream.isatty():
        with _bars(stream) as bars:
            yield BarProgress(bars, clean)
    else:
        yield LineProgress(stream, clean, every, clock)


class LineProgress:
    """Plain lines, for logs."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str], every: float, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clean = clean
        self._lock = threading.Lock()
        self.every = every
        self.clock = clock

    def task(self, name: str, total: int | None = None) -> Task:
        self.say(name)
        return _LineTask(self, name, total)

    def say(self, line: str) -> None:
        with self._lock:
            self._stream.write(self._clean(line) + "\n")
            self._stream.flush()


class _LineTask:
    def __init__(self, progress: LineProgress, name: str, total: int | None) -> None:
        self._progress = progress
        self._name = name
        self._total = total
        self._count = 0
        self._note = ""
        self._said = progress.clock()
        self._lock = threading.Lock()

    def advance(self, count: int = 1) -> None:
        with self._lock:
            self._count += count
            self._say()

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        with self._lock:
            self._total = self._total if total is None else total
            begins = bool(note) and not self._note
            self._note = self._note if note is None else note
            # A wait is said when it begins: while it lasts, nothing else calls.
            self._say(now=begins)

    def done(self, message: str = "") -> None:
        with self._lock:
            self._progress.say(f"{self._name}: {message or f'done, {self._count:,}'}")

    def _say(self, *, now: bool = False) -> None:
        time_now = self._progress.clock()
        if not now and time_now - self._said < self._progress.every:
            return
        self._said = time_now
        count = f"{self._count:,}" + (f" of {self._total:,}" if self._total is not None else "")
        self._progress.say(f"{self._name}: {count}" + (f" ({self._note})" if self._note else ""))


class BarProgress:
    """Bars, for terminals."""

    def __init__(self, bars: rich.progress.Progress, clean: Callable[[str], str]) -> None:
        self._bars = bars
        self._clean = clean

    def task(self, name: str, total: int | None = None) -> Task:
        return _BarTask(self._bars, self._clean, self._bars.add_task(self._clean(name), total=total, note=""))


class _BarTask:
    def __init__(self, bars: rich.progress.Progress, clean: Callable[[str], str], task: rich.progress.TaskID) -> None:
        self._bars = bars
        self._clean = clean
        self._task = task

    def advance(self, count: int = 1) -> None:
        self._bars.advance(self._task, count)

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        if total is not None:
            self._bars.update(self._task, total=total)
        if note is not None:
            self._bars.update(self._task, note=self._clean(note))

    def done(self, message: str = "") -> None:
        self._bars.update(self._task, note=self._clean(message) or "done")
        self._bars.stop_task(self._task)


def _bars(stream: TextIO) -> rich.progress.Progress:
    from rich.console import Console  # noqa: PLC0415  a log does not need it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(file=stream, markup=False, highlight=False),
    )
