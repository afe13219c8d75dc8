"""The cost of reading an emulated GitHub: points and requests, and the requests of an unchanged second run."""

from __future__ import annotations

import io
import tempfile
import time
from collections import Counter
from contextlib import closing

from miner.github import GitHubSource
from miner.sources.github import forge_at
from prchain.core.console.progress import open_progress
from research.bench.measures import Measure
from sql.store import Store
from sql.tables import Repository
from tests.emulator import Emulator, Exchange, World, generate_world

PULLS = 10_000
AGAIN_GOAL = 1.0
"""Percent of the first run's requests."""
GOALS_FROM = 5_000
"""The goals hold from so many pull requests: some requests are needed for any number."""

PAPER_PULLS = 61_810
"""Pull requests of the nine repositories that daVinci-Agency was made from."""
POINTS_GOAL = 3_700 / PAPER_PULLS * 1000
"""Points for 1,000 pull requests; the sweep alone, at 20 pull requests a page, takes 50."""
PLAIN_REST = 433_298
"""Requests that plain REST needs for them: seven a pull request, and the pages of the list."""
HOURLY = 5_000
"""Points, and REST requests, that GitHub gives a token in an hour."""


def run(*, pulls: int = PULLS, seed: int = 1) -> list[Measure]:
    """Read a generated world twice, without faults, and count."""
    world = generate_world(seed, pulls)
    with (
        tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder,
        Emulator(world) as emulator,
        closing(Store.open(f"sqlite:///{folder}/bench.db")) as store,
    ):
        _enter_repository(store, world)
        seconds = _read(store, emulator)
        first = list(emulator.log)
        _read(store, emulator)
        second = emulator.log[len(first) :]
    return _measures(f"github source, on an emulated world of {pulls:,} pull requests", first, second, pulls, seconds)


def _enter_repository(store: Store, world: World) -> None:
    owner, _, name = world.home.name_with_owner.partition("/")
    row = {"id": 1, "host": "github.example", "owner": owner, "name": name, "location": "", "node_id": None}
    with store.transaction() as tx:
        tx.insert_new(Repository, [row])


def _read(store: Store, emulator: Emulator) -> float:
    """One run of the source; returns its seconds."""
    started = time.perf_counter()
    with open_progress(io.StringIO()) as progress:
        source = GitHubSource(
            store,
            forge=forge_at("github.com"),
            tokens=list(emulator.tokens),
            api_url=emulator.api_url,
            max_wait=4000,
            timeout=60,
            progress=progress,
            clock=emulator.clock,
            sleep=emulator.clock.sleep,
        )
        resolved = source.resolve(*emulator.world.home.name_with_owner.split("/"))
        summary = source.read(1, resolved)
    assert summary.total_count == len(emulator.world.home.pulls) and not summary.missing
    return time.perf_counter() - started


def _measures(name: str, first: list[Exchange], second: list[Exchange], pulls: int, seconds: float) -> list[Measure]:
    graphql = [exchange for exchange in first if exchange.operation is not None]
    by_operation: Counter[str] = Counter()
    for exchange in graphql:
        by_operation[str(exchange.operation)] += exchange.points
    points = by_operation.total() / pulls
    shares = [f"{name} {1000 * count / pulls:.1f}" for name, count in by_operation.most_common()]
    rest = len(first) - len(graphql)
    again = 100 * len(second) / len(first)
    enough = pulls >= GOALS_FROM
    projected = round(PAPER_PULLS * points)
    rest_projected = round(PAPER_PULLS * rest / pulls)
    return [
        Measure(
            name,
            "points for 1,000 pull requests",
            1000 * points,
            "",
            POINTS_GOAL if enough else None,
            note=f"GitHub's formula, applied by the emulator: {', '.join(shares)}",
        ),
        Measure(name, "GraphQL requests", len(graphql)),
        Measure(name, "REST requests", rest, note="review comments, repository-wide"),
        Measure(
            name,
            f"projected for {PAPER_PULLS:,} pull requests",
            projected,
            "points",
            note=f"plus {rest_projected:,} REST requests; plain REST needs {PLAIN_REST:,} requests",
        ),
        Measure(
            name,
            "projected hours with one token",
            max(projected, rest_projected) / HOURLY,
            "h",
            note=f"at {HOURLY:,} points and as many requests an hour; plain REST {PLAIN_REST / HOURLY:.0f} h",
        ),
        Measure(
            name,
            "requests of a second, unchanged run",
            again,
            "%",
            AGAIN_GOAL if enough else None,
            note=f"{len(second)} beside {len(first):,}",
        ),
        Measure(name, "seconds of the first run", seconds, "s", note="the emulator's and ours, not GitHub's"),
    ]
