"""A curated run that is killed at every point of its work (`tests.trajectories.kills`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prchain.core.llm.model import Request
from sql.store import Store, Transaction
from sql.tables import CurationCandidate, CurationWindow, LlmCall, TrajectoryMessage
from tests.trajectories.curationworld import CurationModel, Steps, agent, agent_steps, curated_run
from tests.trajectories.kills import FatalStore, Points, hash_of, kill_everywhere
from trajectories.rollouts.rollout import _begin

_MOST = 600

WINDOWS = {"window": 4, "stride": 3}


def _state(tx: Transaction, writer: str) -> list[object]:
    state: list[object] = [tx.count(TrajectoryMessage), tx.count(CurationWindow), tx.count(CurationCandidate)]
    if writer != _begin.__qualname__:  # which every process does
        state.append(tx.count(LlmCall, state="stored"))
    return state


def short_steps(number: int) -> Steps:
    """A short way through a stage."""
    steps = agent_steps(number)
    return [steps[place] for place in (0, 5, 6, 8)]


def model(before: Callable[[Request], None] = lambda request: None) -> CurationModel:
    """The models of a short run."""
    return CurationModel({"agent": lambda request, messages: agent(request, messages, short_steps)}, before)


def _run(folder: Path) -> None:
    points = Points(folder / "points")
    store = FatalStore.at(folder, points, _state)

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


def main(folder: Path) -> None:
    """Kill the run of the world in a folder."""
    store = Store.open(str(folder / "prchain.db"))
    curated_run(store, folder, windows=WINDOWS).curation()  # loads what is loaded late
    store.close()
    kill_everywhere(lambda: _run(folder), most=_MOST)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
