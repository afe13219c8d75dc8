from __future__ import annotations

import io
import threading

from prchain.progress import open_progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


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
            task.done("[bold] ghp_0123456789abcdef0123456789abcdef0123")
        text = stream.getvalue()
        assert "host/x" in text
        for bad in ("secretword", "hunter2", "ghp_0123", "\x1b]0;evil", "\x07"):
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
