"""Progress on a terminal of 80 columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from prchain.core.console.progress import Tick, open_progress
from prchain.core.console.progress_bars import BarProgress
from prchain.core.errors import StoreUnavailable

LONG = "a-very-long-organisation/and-a-long-repository"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """The bars, and what stands on the terminal above them."""

    def __init__(self, columns: int = 80) -> None:
        self.clock = Clock()
        self.above = io.StringIO()
        self.bars = BarProgress(self.above, lambda text: text, self.clock)
        self._columns = columns

    def lines(self) -> list[str]:
        """The live lines as they are drawn now."""
        out = io.StringIO()
        Console(file=out, width=self._columns, markup=False, highlight=False, color_system=None).print(self.bars)
        return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")


def test_phase_calls_usd_and_every_unit_with_its_time_stand_below_the_bar() -> None:
    screen = Screen()
    task = screen.bars.task("tasks", 2, cost=lambda: "7 calls, 0.0310 USD")
    task.tell("5f0c12ab90ff3344", "stage 2 of 3, query, again (1 of 3)")
    screen.clock.now += 72
    task.tell("6a1b12ab90ff3344", "overview")
    task.advance()
    task.update(note="1 ready")
    screen.bars.tick()
    first, *rest = screen.lines()
    assert first.startswith("tasks ") and first.endswith(" 1/2 0:01:12") and "━" in first
    assert rest == [
        "  7 calls, 0.0310 USD; 1 ready",
        f"{'  5f0c12ab90ff3344: stage 2 of 3, query, again (1 of 3)':<67} 1 min 12 s",
        "  6a1b12ab90ff3344: overview",
    ]


@pytest.mark.parametrize("columns", [80, 60, 120])
def test_no_line_is_wider_than_the_terminal_and_count_and_time_are_never_cut(columns: int) -> None:
    screen = Screen(columns)
    task = screen.bars.task(f"{LONG}: changed pull requests", 1_061_810)
    task.advance(1_061_809)
    task.update(note="and so on " * 20)
    for number in range(12):
        task.tell(f"{number}", "word " * 40)
    screen.clock.now += 36_000
    lines = screen.lines()
    assert max(map(len, lines)) <= columns - len("^C"), "what the terminal echoes has room"
    assert lines[0].endswith(" 1,061,809/1,061,810 10:00:00") and lines[0].startswith("a-very")
    assert len(lines) == 11 and lines[-1] == "  ... and 4 more"


def test_of_a_task_that_has_ended_one_line_stays_and_nothing_pulses() -> None:
    screen = Screen()
    task, other = screen.bars.task("o/n: git history"), screen.bars.task("repositories", 2)
    task.phase("fetching")
    assert [line.split()[0] for line in screen.lines()] == ["o/n:", "fetching", "repositories"]
    screen.clock.now += 200
    task.done("12 pull heads, 9 landed")
    task.phase("counting lines", 9)
    task.advance()
    task.done("again")
    assert screen.above.getvalue() == "o/n: git history: 12 pull heads, 9 landed (3 min 20 s)\n"
    assert [line.split()[0] for line in screen.lines()] == ["repositories"]
    other.done()
    assert screen.lines() == []


def test_what_an_error_left_behind_is_shown_no_more() -> None:
    screen = Screen()
    screen.bars.task("left behind")
    kept = screen.bars.task("kept")
    assert [line.split()[0] for line in screen.lines()] == ["kept"]
    kept.done()


def test_a_count_never_goes_back_and_a_phase_counts_for_itself() -> None:
    screen = Screen()
    task = screen.bars.task("o/n: chains")
    task.phase("walking", 300)
    task.advance(310)
    task.advance(-5)
    assert "310/310" in screen.lines()[0]
    task.phase("reading patches", 120)
    task.advance(7)
    assert "7/120" in screen.lines()[0] and screen.lines()[1].split()[:2] == ["reading", "patches"]


def test_a_cost_that_cannot_be_looked_up_keeps_the_last_one() -> None:
    screen = Screen()
    answers: list[str | None] = ["1 call, 0.0100 USD", None]

    def cost() -> str | None:
        if not answers:
            raise StoreUnavailable("the disk is gone")
        return answers.pop(0)

    task = screen.bars.task("tasks", 1, cost=cost)
    screen.bars.tick()
    screen.bars.tick()
    assert screen.lines()[1:] == ["  1 call, 0.0100 USD"], "it is asked for now and then, not with every look"
    screen.clock.now += 3
    screen.bars.tick()
    assert screen.lines()[1:] == []
    answers.append("2 calls, 0.0200 USD")
    for _ in range(3):
        screen.clock.now += 3
        screen.bars.tick()
        assert screen.lines()[1:] == ["  2 calls, 0.0200 USD"]
    task.done()


def test_while_bars_are_shown_what_goes_into_a_pipe_stays_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()

    class Heart:
        @contextmanager
        def beats(self, tick: Tick) -> Iterator[None]:
            yield

        def hurry(self) -> None:
            """Nothing beats."""

    with open_progress(terminal, heart=Heart()) as progress:
        task = progress.task("estimating", 1)
        print('{"a": 1}')
        task.done()
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert "estimating: done, 0" in terminal.getvalue() and '"a"' not in terminal.getvalue()
