from __future__ import annotations

import io
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from prchain.core.console.progress import Tick, open_progress
from prchain.core.console.progress_state import duration_text
from tests.prchain.secrets_table import DRAWN_TOKEN


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Heart(Clock):
    """A clock, and what ticks by it: nothing happens but when a test lets time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.due = 0.0
        self.ticks = 0

    @contextmanager
    def beats(self, tick: Tick) -> Iterator[None]:
        self._tick = tick
        yield

    def hurry(self) -> None:
        self.due = self.now

    def passes(self, seconds: float) -> None:
        """Let time pass, with a tick whenever the last one said that it is due."""
        end = self.now + seconds
        while self.due <= end:
            self.now = max(self.now, self.due)
            wait = self._tick()
            assert wait > 0, "a busy loop"
            self.ticks += 1
            self.due = self.now + wait
        self.now = end


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_at_begin_and_end_and_one_every_few_seconds_between() -> None:
    log, clock = io.StringIO(), Clock()
    with open_progress(log, every=5, clock=clock) as progress:
        task = progress.task("o/n: pull requests", total=None)
        for _ in range(11):
            clock.now += 1
            task.advance(100)
        task.update(total=2000)
        task.done("1,100 read")
    assert log.getvalue().splitlines() == [
        "o/n: pull requests",
        "o/n: pull requests: 500",
        "o/n: pull requests: 1,000",
        "o/n: pull requests: 1,100 read",
    ]


def test_a_wait_is_said_when_it_begins() -> None:
    log = io.StringIO()
    with open_progress(log, every=5, clock=Clock()) as progress:
        task = progress.task("x", total=10)
        task.update(note="waiting 43 s for the rate limit")
        task.update(note="waiting 42 s for the rate limit")
        task.update(note="")
        task.done()
    assert log.getvalue().splitlines() == ["x", "x: 0 of 10 (waiting 43 s for the rate limit)", "x: done, 0"]


def test_neither_secrets_nor_control_characters_reach_a_log_or_a_terminal() -> None:
    for stream in (io.StringIO(), Terminal()):
        with open_progress(stream, secrets=("hunter2hunter2",), every=0) as progress:
            task = progress.task("https://u:secretword@host/x\x1b]0;evil\x07")
            task.update(note="hunter2hunter2\nnext")
            task.done(f"[bold] {DRAWN_TOKEN}")
        text = stream.getvalue()
        assert "host/x" in text
        for bad in ("secretword", "hunter2", DRAWN_TOKEN, "\x1b]0;evil", "\x07"):
            assert bad not in text
        assert "[bold]" in text


def test_tasks_can_be_used_from_many_threads() -> None:
    log = io.StringIO()
    with open_progress(log, every=0) as progress:
        task = progress.task("x")

        def work() -> None:
            for _ in range(200):
                task.advance()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        task.done()
    lines = log.getvalue().splitlines()
    assert lines[-1] == "x: done, 1,600"
    assert lines[1:-1] == [f"x: {count:,}" for count in range(1, 1601)]


def test_the_newest_note_comes_out_when_the_time_between_two_lines_is_over() -> None:
    log, heart = io.StringIO(), Heart()
    with open_progress(log, every=5, alive=30, clock=heart, heart=heart) as progress:
        task = progress.task("chains", total=1)
        heart.passes(10)
        task.update(note="stage 1: image")
        heart.passes(2)
        task.update(note="stage 1: after, run 1")
        task.update(note="stage 1: before, run 1")
        heart.passes(2.9)
        assert log.getvalue().splitlines() == ["chains", "chains: 0 of 1 (stage 1: image)"]
        heart.passes(0.2)
        assert log.getvalue().splitlines()[2:] == ["chains: 0 of 1 (stage 1: before, run 1)"]
        task.advance()
        heart.passes(5)
        assert log.getvalue().splitlines()[3:] == ["chains: 1 of 1 (stage 1: before, run 1)"]


def test_a_phase_that_lasts_gives_a_sign_of_life_with_how_long_it_has_lasted() -> None:
    log, heart = io.StringIO(), Heart()
    with open_progress(log, every=5, alive=30, clock=heart, heart=heart) as progress:
        task = progress.task("chains", total=1)
        task.update(note="stage 1: image")
        heart.passes(2)
        task.update(note="stage 1: before, run 1")
        heart.passes(150)
        assert log.getvalue().splitlines()[2:] == [
            "chains: 0 of 1 (stage 1: before, run 1)",
            "chains: 0 of 1 (stage 1: before, run 1; 33 s so far)",
            "chains: 0 of 1 (stage 1: before, run 1; 1 min 3 s so far)",
            "chains: 0 of 1 (stage 1: before, run 1; 1 min 33 s so far)",
            "chains: 0 of 1 (stage 1: before, run 1; 2 min 3 s so far)",
        ]
        assert heart.ticks < 10, "nobody looks all the time"
        task.update(note="stage 1: before, run 1")
        heart.passes(5)
        assert log.getvalue().splitlines()[7:] == ["chains: 0 of 1 (stage 1: before, run 1; 2 min 33 s so far)"]


def test_a_task_that_has_ended_or_that_nobody_holds_is_told_no_more() -> None:
    log, heart = io.StringIO(), Heart()
    with open_progress(log, every=5, alive=30, clock=heart, heart=heart) as progress:
        task = progress.task("ended")
        progress.task("left behind by an error")
        task.update(note="first")
        task.update(note="second")
        task.done("well")
        task.update(note="a thread that goes on")
        task.advance()
        heart.passes(300)
    lines = ["ended", "left behind by an error", "ended: 0 (first)", "ended: well"]
    assert log.getvalue().splitlines() == lines


class Lines(io.StringIO):
    """A log that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[str] = queue.Queue()

    def write(self, text: str) -> int:
        self.lines.put(text.rstrip())
        return len(text)


def test_a_thread_says_what_is_due_while_the_command_is_busy_and_ends_with_it() -> None:
    log = Lines()
    with open_progress(log, every=0.2, alive=0.4) as progress:
        task = progress.task("x")
        task.update(note="first")
        task.update(note="second")
        lines = [log.lines.get(timeout=30) for _ in range(4)]
    assert lines == ["x", "x: 0 (first)", "x: 0 (second)", "x: 0 (second; 0 s so far)"]
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_a_log_that_cannot_be_written_ends_the_thread_and_not_the_command() -> None:
    class Full(Lines):
        def write(self, text: str) -> int:
            super().write(text)
            if "so far" in text:
                raise OSError("no space left on device")
            return len(text)

    log = Full()
    with open_progress(log, every=0.1, alive=0.1) as progress:
        task = progress.task("x")
        assert [log.lines.get(timeout=30) for _ in range(2)] == ["x", "x: 0 (0 s so far)"]
        for thread in threading.enumerate():
            if thread.name == "progress":
                thread.join(30)
        task.done()
    assert log.lines.get_nowait() == "x: done, 0"


def test_on_a_terminal_the_note_is_live_and_a_long_one_does_not_push_out_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")

    class Live(Terminal):
        def __init__(self) -> None:
            super().__init__()
            self.note_drawn = threading.Event()

        def write(self, text: str) -> int:
            if "stage 1: before" in text:
                self.note_drawn.set()
            return super().write(text)

    terminal = Live()
    with open_progress(terminal) as progress:
        task = progress.task("chains", total=7)
        task.update(note="stage 1: image")
        task.update(note="stage 1: before, run 1, " + "and so on " * 20)
        assert terminal.note_drawn.wait(30), "it is drawn while the command is busy with something else"
        last = terminal.getvalue().rpartition("\r")[2]
        assert "chains" in last and "0/7" in last and "0:00:" in last
        task.done()


def test_a_terminal_that_cannot_draw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with open_progress(terminal, clock=Clock()) as progress:
        progress.task("x").update(note="first")
        assert terminal.getvalue().splitlines() == ["x", "x: 0 (first)"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (153, "2 min 33 s"), (3600, "1 h"), (7530, "2 h 5 min")],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
