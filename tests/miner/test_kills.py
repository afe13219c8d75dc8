"""The kill table of whole runs of `prchain mine`: killed at a named place, the next run ends as a calm one.

Pull requests of these worlds are incomplete, have reviews and threads, and are looked at again.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from miner import citation_rows, git_rows
from miner.github import GitHubSource
from miner.github.client import GitHubClient
from miner.github.sweep import Sweep
from miner.mine import MineOptions, Miner
from miner.repositories import parse_entry
from miner.sources.github import forge_at
from prchain.core.console.progress import open_progress
from prchain.core.git import process
from sql.store import Store, Transaction
from sql.tables import Base, Citation, IncompletePart, Landing, LandingFile, MineRun, RefusedClaim, ReviewThread
from tests.databases import open_new
from tests.emulator import Emulator, Fault, Kind, VirtualClock, World, generate_world
from tests.miner.github_lab import assert_same, facts
from tests.miner.lives import FORKED
from tests.samples import drawn

PULLS = 22

FIRST = [
    "ask Resolve",
    "ask Sweep",
    "ask MoreComments",
    "ask MoreLabels",
    "ask MoreReviews",
    "ask comments",
    "ask ThreadStarts",
    "upsert pull_requests",
    "upsert review_threads",
    "upsert incomplete_parts",
    "upsert cursors",
    "finish",
    "commit",
    "committed",
    "git",
    "write history",
    "bulk landings",
    "write citations",
    "upsert mine_runs",
]
"""Places of a first run."""

LATER = [
    "ask Listing",
    "ask PullRequests",
    "ask MoreComments",
    "ask MoreReviews",
    "ask own comments",
    "ask comments",
    "delete pull_request_texts",
    "upsert pull_requests",
    "upsert review_threads",
    "upsert incomplete_parts",
    "commit",
    "committed",
    "git",
    "write history",
    "write citations",
]
"""Places of a run that finds edits and looks again at all that is stored."""


SPREAD = {"committed": (1, 2, 3, 4)}
"""At which quarters of a place's times a run is killed, where not in the middle and at the last."""


@dataclass
class Places:
    """Counts the places that a run passes, and kills it before the one that is named as (place, number from 1)."""

    deadly: tuple[str, int] | None
    passed: list[str] = field(default_factory=list)

    def reach(self, place: str) -> None:
        self.passed.append(place)
        if self.deadly is not None and self.deadly == (place, self.passed.count(place)):
            os.kill(os.getpid(), signal.SIGKILL)

    def count(self, owner: Any, name: str, place: Callable[..., str]) -> None:
        """Let each call of a function be a place."""
        real = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.reach(place(*arguments))
            return real(*arguments, **options)

        setattr(owner, name, call)

    def watch(self, store: Store) -> None:
        """Count everything that a run does to the outside."""
        for name in ("upsert", "bulk"):
            self.count(Transaction, name, lambda tx, table, *_, name=name: f"{name} {table.__tablename__}")
        self.count(Transaction, "delete", lambda tx, table: f"delete {table.__tablename__}")
        self.count(GitHubClient, "graphql", lambda client, query, variables: f"ask {query.name}")
        own = 6  # slashes in the path of the list of one pull request
        self.count(
            GitHubClient,
            "review_comments",
            lambda client, path, *_: "ask own comments" if path.count("/") == own else "ask comments",
        )
        self.count(Sweep, "finish", lambda *_: "finish")
        self.count(process.GitStream, "__enter__", lambda stream: "git")
        self.count(git_rows, "write", lambda *_: "write history")
        self.count(citation_rows, "rebuild", lambda *_: "write citations")

        @event.listens_for(store.engine, "commit")
        def commit(connection: Any) -> None:
            self.reach("commit")
            connection.connection.driver_connection.commit()
            self.reach("committed")


def live(
    folder: Path, database: str, api_url: str, now: float, options: dict[str, Any], deadly: tuple[str, int] | None
) -> None:
    """One run of the miner over the world's repository, in a process of its own; writes which places it passed."""
    store = Store.open(str(folder / database))
    places = Places(deadly)
    clock = VirtualClock(now)
    with open_progress(stream=io.StringIO()) as progress:
        source = GitHubSource(
            store,
            forge=forge_at("github.com"),
            tokens=("test-token",),
            api_url=api_url,
            max_wait=4000,
            timeout=30,
            progress=progress,
            clock=clock,
            sleep=clock.sleep,
        )
        mirrors = folder / "mirrors"
        miner = Miner(store, MineOptions(**options), mirrors=mirrors, progress=progress, sources=[source])
        places.watch(store)
        report = miner.mine(parse_entry(f"acme/widgets = {folder / 'r.git'}", "github.com", folder))
    store.close()
    (folder / f"{database}.places").write_text(json.dumps(places.passed))
    assert report.error is None, report.error


class Lab:
    """A world, an emulator that keeps things back, and the database that each life begins with."""

    def __init__(self, folder: Path, *, later: bool) -> None:
        self.folder = folder
        self.world: World = generate_world(21, PULLS, git_dir=folder / "r.git")
        for _ in range(70):
            self.world.add_comment(self.world.home.pulls[3], "One of many", None)
        kept_back = [
            Fault(Kind.NULL_NODES_200, field="reviews", keep=1, times=None),
            Fault(Kind.FORBIDDEN_FIELD_200, field="labels", times=None),
        ]
        self.emulator = Emulator(self.world, faults=kept_back, clock=VirtualClock(float(self.world.now)))
        self.options: dict[str, Any] = {}
        self.passed: Counter[str] = Counter()
        self.expected: dict[str, list[Any]] = {}
        self.later = later

    def prepare(self) -> None:
        """Make the database that lives begin with, and the rows of a calm one."""
        open_new(self.folder / "start.db").close()
        if self.later:
            assert self.run("start.db") == 0
            self.edit()
            self.options = {"recheck_days": 10_000}
        shutil.copy(self.folder / "start.db", self.folder / "calm.db")
        assert self.run("calm.db") == 0
        self.passed = Counter(json.loads((self.folder / "calm.db.places").read_text()))
        self.expected = self.facts("calm.db")

    def edit(self) -> None:
        """What happens on GitHub between the two runs, some of it without moving a date."""
        world, pulls = self.world, self.world.home.pulls
        world.tick(86_400)
        world.edit_pull(pulls[4], title="Said otherwise", body=f"Follow-up to #{pulls[2].number}")
        for _ in range(40):
            world.add_comment(pulls[4], "One more", None)
        for pull in [pull for pull in pulls if pull.threads][:4]:
            world.delete_comment(pull.threads[0].comments[-1])
            world.add_review(pull, "APPROVED", "", None)
            world.add_review_comment(pull, "Here, too", None)
            for thread in pull.threads[:1]:
                world.resolve_thread(thread, resolved=not thread.is_resolved)
        opened = next(pull for pull in pulls if pull.state == "OPEN")
        world.merge_pull(opened)
        world.sync_git()

    def run(self, database: str, deadly: tuple[str, int] | None = None) -> int:
        """One life; its exit status, negative for a signal."""
        arguments = (self.folder, database, self.emulator.api_url, float(self.world.now), self.options, deadly)
        life = FORKED.Process(target=live, args=arguments)
        life.start()
        life.join(120)
        assert life.exitcode is not None
        return life.exitcode

    def facts(self, database: str) -> dict[str, list[Any]]:
        store = Store.open(str(self.folder / database))
        found = facts(store)
        with store.reading() as tx:
            for table in (Landing, LandingFile, RefusedClaim, Citation):
                found[table.__tablename__] = sorted(_plain(tx, table), key=repr)
            assert {outcome for (outcome,) in tx.rows(MineRun, "outcome")} <= {"mined", "unchanged", "interrupted"}
        store.close()
        return found

    def survives(self, place: str) -> None:
        """Killed at a place, in the middle of the run or at its end, the next run leaves the calm rows."""
        times = self.passed[place]
        numbers = sorted({times * part // 4 for part in SPREAD.get(place, (2, 4))} - {0})
        for number in drawn(numbers, 1, f"times of {place}"):
            database = f"{place}-{number}.db"
            shutil.copy(self.folder / "start.db", self.folder / database)
            assert self.run(database, (place, number)) == -signal.SIGKILL
            assert self.run(database) == 0
            assert_same(self.facts(database), self.expected)


def _plain(tx: Transaction, table: type[Base]) -> Iterator[tuple[Any, ...]]:
    columns = [column for column in table.__table__.columns if column.name != "id"]
    return (tuple(row) for row in tx.connection.execute(select(*columns)))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("first"), later=False)
    with lab.emulator:
        lab.prepare()
        yield lab


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("later"), later=True)
    with lab.emulator:
        lab.prepare()
        yield lab


def test_these_worlds_have_the_rows_that_a_kill_could_lose(first: Lab, later: Lab) -> None:
    for lab in (first, later):
        rows = lab.expected
        assert {dict(row)["connection"] for row in rows[IncompletePart.__tablename__]} == {"labels", "reviews"}
        assert {dict(row)["is_resolved"] for row in rows[ReviewThread.__tablename__]} == {True, False}
        fields = {dict(row)["field"] for row in rows["pull_request_texts"]}
        assert {"review", "review_comment", "comment"} <= fields
        assert rows["landings"] and rows["citations"]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("place", FIRST)
def test_a_first_run_killed_there_is_gone_on_with(place: str, first: Lab) -> None:
    first.survives(place)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("place", LATER)
def test_a_later_run_killed_there_is_gone_on_with(place: str, later: Lab) -> None:
    later.survives(place)
