"""Progress on a terminal: of what is under way a line with its bar, below it what is being done; of what has ended a
line above, which stays."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prchain.core.console.progress_state import Cost, TaskState, duration_text

_BAR = 16
"""Characters of a bar. With count and time it leaves half of 80 columns to the name."""
_COUNT = 13
"""Characters that a count takes at least, so that bars stand below each other."""
_TIME = 7
_MOST_UNITS = 8
"""Units under way of which a line is shown."""
_ECHO = 2
"""Columns left free at the end of a line, for the ^C that a terminal echoes: else that would begin another line, and
the bars would be drawn anew below the old ones."""
_REFRESHES = 4
"""Per second."""
_SECONDS_BETWEEN_TICKS = 1.0


class BarProgress:
    """Bars, for terminals. Fits any width: a long name and long words are cut."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str], clock: Callable[[], float]) -> None:
        self.clean = clean
        self.clock = clock
        self._console = Console(file=stream, markup=False, highlight=False)
        self._numbers = itertools.count()
        # A task that an error left behind is shown until nobody holds it.
        self._tasks: weakref.WeakValueDictionary[int, _BarTask] = weakref.WeakValueDictionary()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the tasks until the block ends; what others print to the terminal stands above them."""
        with Live(
            self,
            console=self._console,
            refresh_per_second=_REFRESHES,
            redirect_stdout=sys.stdout.isatty(),  # a pipe gets what is its own
        ):
            yield

    def task(self, name: str, total: int | None = None, *, cost: Cost | None = None) -> _BarTask:
        """See `prchain.core.console.progress.Progress`."""
        number = next(self._numbers)
        self._tasks[number] = task = _BarTask(self, number, TaskState(name, total, cost, self.clock))
        return task

    def tick(self) -> float:
        """Look up what is paid so far."""
        for task in self._shown():
            task.add_up()
        return _SECONDS_BETWEEN_TICKS

    def end(self, number: int, line: str) -> None:
        """Say the last words of a task, which is shown no more."""
        self._tasks.pop(number, None)
        self._console.print(Text(self.clean(line)))

    def _shown(self) -> list[_BarTask]:
        return [task for _, task in sorted(self._tasks.items())]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for task in self._shown():
            yield from (Constrain(line, options.max_width - _ECHO) for line in task.lines())


class _BarTask:
    def __init__(self, progress: BarProgress, number: int, state: TaskState) -> None:
        self._progress = progress
        self._number = number
        self._state = state
        self._lock = threading.Lock()

    def advance(self, count: int = 1) -> None:
        with self._lock:
            self._state.advance(count)

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        with self._lock:
            self._state.update(total, note)

    def phase(self, words: str, total: int | None = None) -> None:
        with self._lock:
            self._state.begin(words, total)

    def tell(self, unit: str, words: str) -> None:
        with self._lock:
            self._state.tell(unit, words)

    def add_up(self) -> None:
        self._state.add_up()

    def done(self, message: str = "") -> None:
        with self._lock:
            if self._state.ended:
                return
            self._state.ended = True
            words = message or f"done, {self._state.count:,}"
            took = int(self._progress.clock() - self._state.began)
        after = f" ({duration_text(took)})" if took else ""
        self._progress.end(self._number, f"{self._state.name}: {words}{after}")

    def lines(self) -> Iterator[RenderableType]:
        """The task's lines: name, bar, count and time; phase, cost and note; and one for each unit under way."""
        with self._lock:
            state, now = self._state, self._progress.clock()
            count = f"{state.count:,}" + (f"/{state.total:,}" if state.total is not None else "")
            bar = ProgressBar(state.total, state.count, _BAR) if state.total else Text()
            name, phase_age = state.name, now - state.phase_began if state.phase else None
            took = _clock_text(now - state.began)
            words = "; ".join(filter(None, (state.phase, state.cost, state.note)))
            units = [(f"{key}: {words}", now - since) for key, (words, since) in state.units.items()]
        cells = (bar, _BAR), (Text(count, justify="right"), max(_COUNT, len(count))), (took, max(_TIME, len(took)))
        yield _row(self._text(name), *cells)
        if words:
            yield self._below(words, phase_age)
        for words, age in units[:_MOST_UNITS]:
            yield self._below(words, age)
        if len(units) > _MOST_UNITS:
            yield self._below(f"... and {len(units) - _MOST_UNITS:,} more", None)

    def _below(self, words: str, age: float | None) -> Table:
        text = duration_text(age) if age is not None and age >= 1 else ""
        return _row(self._text(words, "  "), *([(Text(text), len(text))] if text else []))

    def _text(self, words: str, indent: str = "") -> Text:
        return Text(indent + self._progress.clean(words))


def _row(first: Text, *others: tuple[RenderableType, int]) -> Table:
    """One line: the first cell takes what the others, of the given widths, leave of it, and is cut."""
    row = Table.grid(expand=True, padding=(0, 1))
    row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for _, width in others:
        row.add_column(width=width, no_wrap=True, overflow="ellipsis")
    row.add_row(first, *(cell for cell, _ in others))
    return row


def _clock_text(seconds: float) -> Text:
    whole = int(seconds)
    return Text(f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}", justify="right")
