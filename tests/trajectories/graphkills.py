"""A run of process graphs that is killed, by SIGKILL, at every point of its work, each point once.

A point is what the process is about to do, or has just done: a transaction, before and after its commit; a request to
the model; a command, file or snapshot of the sandbox. Every process goes on where the last one was killed, until it
comes to a point at which none was killed yet. Processes are forked from one that has loaded all modules, which makes a
kill cost no more than the work that is repeated.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from sql.store import Store, Transaction
from sql.tables import GraphMessage, GraphRow, LlmCall
from tests.trajectories.graphworld import distilling, graph_run
from tests.trajectories.rolloutworld import PolicyModel
from trajectories.curation.run import make_graph

_MOST = 400
"""Processes; more are a run that never ends."""


class Points:
    """The points at which a process was killed, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = set(path.read_text().splitlines()) if path.exists() else set()

    def reach(self, *words: object) -> None:
        """Come to a point: the process ends here where none has ended before."""
        name = json.dumps(words)
        if name not in self.seen:
            with self.path.open("a") as file:
                file.write(f"{name}\n")
            os.kill(os.getpid(), signal.SIGKILL)


class FatalStore(Store):
    """A database whose transactions are points: by the function that writes, and how far the graph had come."""

    points: Points

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        writer, line = _writer()
        with self.reading() as tx:
            state: list[object] = [count for (count,) in tx.rows(GraphRow, "rounds")]
            if writer != make_graph.__qualname__:  # which writes once a round
                state += [tx.count(GraphMessage), tx.count(LlmCall, state="stored")]
        with super().transaction() as tx:
            yield tx
            self.points.reach("before", writer, line, *state)
        self.points.reach("after", writer, line, *state)


def _writer() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in {__file__, contextmanager.__code__.co_filename}:
        frame = frame.f_back
    return frame.f_code.co_qualname, frame.f_lineno


def _run(folder: Path) -> None:
    points = Points(folder / "points")
    store = FatalStore.open(str(folder / "prchain.db"))
    assert isinstance(store, FatalStore)
    store.points = points

    def asked(request: Any) -> None:
        points.reach("request", request.purpose, len(request.messages), hash_of(request))

    def done(what: str, words: str) -> None:
        with store.reading() as tx:
            rounds = [count for (count,) in tx.rows(GraphRow, "rounds")]
        points.reach(what, rounds, words)

    report = graph_run(store, folder, PolicyModel(distilling(), asked), before=done).run(1)
    assert report.done, report
    store.close()


def hash_of(request: Any) -> int:
    """Tells requests of one length apart."""
    return sum(len(message.content) for message in request.messages)


def _process(folder: Path) -> NoReturn:
    try:
        _run(folder)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def kill_everywhere(folder: Path) -> None:
    """Start processes until one comes to the end. Exits with 1 where one fails otherwise than by our kills."""
    store = Store.open(str(folder / "prchain.db"))
    graph_run(store, folder).pending()  # loads what is loaded late
    store.close()
    for _ in range(_MOST):
        if (pid := os.fork()) == 0:
            _process(folder)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        assert os.WTERMSIG(status) == signal.SIGKILL
    sys.exit("the run does not end")


if __name__ == "__main__":
    kill_everywhere(Path(sys.argv[1]))
