"""A curated run that is killed, by SIGKILL, at every point of its work, each point once; as `graphkills`.

Every process works with models and sandboxes of its own; what it does comes from rows alone.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from prchain.llm.model import Request
from sql.store import Store, Transaction
from sql.tables import CurationCandidate, CurationWindow, LlmCall, TrajectoryMessage
from tests.trajectories.curationworld import CurationModel, Steps, agent, agent_steps, curated_run
from tests.trajectories.graphkills import Points, hash_of
from trajectories.rollouts.rollout import _begin

_MOST = 600
"""Processes; more are a run that never ends."""

WINDOWS = {"window": 4, "stride": 3}


class FatalWindows(Store):
    """A database whose transactions are points: by the function that writes, and how far the trajectory had come."""

    points: Points

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        writer, line = _writer()
        with self.reading() as tx:
            state: list[object] = [tx.count(TrajectoryMessage), tx.count(CurationWindow), tx.count(CurationCandidate)]
            if writer != _begin.__qualname__:  # which every process does
                state.append(tx.count(LlmCall, state="stored"))
        with super().transaction() as tx:
            yield tx
            self.points.reach("before", writer, line, *state)
        self.points.reach("after", writer, line, *state)


def _writer() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in {__file__, contextmanager.__code__.co_filename}:
        frame = frame.f_back
    return frame.f_code.co_qualname, frame.f_lineno


def short_steps(number: int) -> Steps:
    """A short way through a stage."""
    steps = agent_steps(number)
    return [steps[place] for place in (0, 5, 6, 8)]


def model(before: Callable[[Request], None] = lambda request: None) -> CurationModel:
    """The models of a short run."""
    return CurationModel({"agent": lambda request, messages: agent(request, messages, short_steps)}, before)


def _run(folder: Path) -> None:
    points = Points(folder / "points")
    store = FatalWindows.open(str(folder / "prchain.db"))
    assert isinstance(store, FatalWindows)
    store.points = points

    def asked(request: Any) -> None:
        points.reach("request", request.purpose, request.subject, len(request.messages), hash_of(request))

    def done(what: str, words: str) -> None:
        if what in {"branch", "restore", "snapshot"}:
            with store.reading() as tx:
                points.reach(what, tx.count(CurationCandidate), tx.count(LlmCall, state="stored"))

    run = curated_run(store, folder, model(asked), before=done, windows=WINDOWS)
    report = run.run(1, run.curation().rollouts)
    assert report.done, report
    store.close()


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
    curated_run(store, folder, windows=WINDOWS).curation()  # loads what is loaded late
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
