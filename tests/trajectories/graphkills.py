"""A run of process graphs that is killed at every point of its work (`tests.trajectories.kills`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sql.store import Store, Transaction
from sql.tables import GraphMessage, GraphRow, LlmCall
from tests.trajectories.graphworld import distilling, graph_run
from tests.trajectories.kills import FatalStore, Points, hash_of, kill_everywhere
from tests.trajectories.rolloutworld import PolicyModel
from trajectories.curation.graphs.run import make_graph

_MOST = 400


def _state(tx: Transaction, writer: str) -> list[object]:
    state: list[object] = [count for (count,) in tx.rows(GraphRow, "rounds")]
    if writer != make_graph.__qualname__:  # which writes once a round
        state += [tx.count(GraphMessage), tx.count(LlmCall, state="stored")]
    return state


def _run(folder: Path) -> None:
    points = Points(folder / "points")
    store = FatalStore.at(folder, points, _state)

    def asked(request: Any) -> None:
        points.reach("request", request.purpose, len(request.messages), hash_of(request))

    def done(what: str, words: str) -> None:
        with store.reading() as tx:
            rounds = [count for (count,) in tx.rows(GraphRow, "rounds")]
        points.reach(what, rounds, words)

    report = graph_run(store, folder, PolicyModel(distilling(), asked), before=done).run(1)
    assert report.done, report
    store.close()


def main(folder: Path) -> None:
    """Kill the run of the world in a folder."""
    store = Store.open(str(folder / "prchain.db"))
    graph_run(store, folder).pending()  # loads what is loaded late
    store.close()
    kill_everywhere(lambda: _run(folder), most=_MOST)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
