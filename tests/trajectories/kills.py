"""A run that is killed, by SIGKILL, at points of its work, each point once: at all, or at those that the seed draws.

A point is what the process is about to do, or has just done: a transaction, before and after its commit; a request to a
model; a command, file or snapshot of a sandbox. Every process goes on where the last one was killed, until it comes to
a point at which none was killed yet. Processes are forked from one that has loaded all modules, which makes a kill cost
no more than the work that is repeated.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from sql.store import Store, Transaction
from tests.samples import ALL, is_drawn

ONE_IN = 32
"""At one of so many points a process is killed, where not at all of them."""

ENOUGH = 100 if ALL else 3
"""Kills that a run of a test has at least."""


class Points:
    """The points at which a process was killed, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = set(path.read_text().splitlines()) if path.exists() else set()
        self.kinds = {json.loads(name)[0] for name in self.seen}

    def reach(self, *words: object) -> None:
        """Come to a point: the process ends here where none has ended before, if the point was drawn or is the first of
        its kind."""
        name = json.dumps(words)
        if name not in self.seen and (is_drawn(name, ONE_IN) or words[0] not in self.kinds):
            with self.path.open("a") as file:
                file.write(f"{name}\n")
            os.kill(os.getpid(), signal.SIGKILL)


class FatalStore(Store):
    """A database whose transactions are points: by the function that writes, and how far the work had come.

    `state` counts that, of a transaction and the name of the writing function."""

    points: Points
    state: Callable[[Transaction, str], list[object]]

    @classmethod
    def at(cls, folder: Path, points: Points, state: Callable[[Transaction, str], list[object]]) -> FatalStore:
        """The database of a world."""
        store = cls.open(str(folder / "prchain.db"))
        assert isinstance(store, cls)
        store.points, store.state = points, state
        return store

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        writer, line = _writer()
        with self.reading() as tx:
            state = self.state(tx, writer)
        with super().transaction() as tx:
            yield tx
            self.points.reach("before", writer, line, *state)
        self.points.reach("after", writer, line, *state)


def _writer() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in {__file__, contextmanager.__code__.co_filename}:
        frame = frame.f_back
    return frame.f_code.co_qualname, frame.f_lineno


def hash_of(request: Any) -> int:
    """Tells requests of one length apart."""
    return sum(len(message.content) for message in request.messages)


def kill_everywhere(run: Callable[[], None], *, most: int) -> None:
    """Start processes until one comes to the end of `run`; what it needs is loaded. Exits with 1 where one fails
    otherwise than by our kills, and after `most` processes: the run never ends."""
    for _ in range(most):
        if (pid := os.fork()) == 0:
            _process(run)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        assert os.WTERMSIG(status) == signal.SIGKILL
    sys.exit("the run does not end")


def _process(run: Callable[[], None]) -> NoReturn:
    try:
        run()
    except BaseException:  # the fork must not go on with the parent's work
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
