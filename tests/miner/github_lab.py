"""What the tests of the GitHub source share: a store, a source that talks to an emulator, and the facts to compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from miner.github import GitHubSource, ReadSummary
from miner.source import Wanted
from miner.sources.github import forge_at
from prchain.core.console.progress_state import Cost
from sql.store import Store
from sql.tables import (
    Base,
    ClosingReference,
    Commit,
    IncompletePart,
    Issue,
    Label,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    Repository,
    RepositoryAlias,
    ReviewThread,
    TimelineEvent,
)
from tests.databases import store_at
from tests.emulator import Emulator

FACTS: tuple[type[Base], ...] = (
    PullRequest,
    PullRequestText,
    Label,
    Issue,
    ClosingReference,
    TimelineEvent,
    Commit,
    PullRequestCommit,
    RepositoryAlias,
    ReviewThread,
    IncompletePart,
)
TIMINGS = {"gone_at"}
REPOSITORY = 1


class Quiet:
    """Progress that is kept instead of shown."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.titles: list[str] = []

    def task(self, name: str, total: int | None = None, *, cost: Cost | None = None) -> Quiet:
        self.titles.append(name)
        return self

    def advance(self, count: int = 1) -> None:
        assert count >= 0

    def update(self, *, total: int | None = None, note: str | None = None) -> None:
        if note:
            self.notes.append(note)

    def phase(self, words: str, total: int | None = None) -> None:
        pass

    def tell(self, unit: str, words: str) -> None:
        pass

    def done(self, message: str = "") -> None:
        pass


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """A store with one repository, number 1, which is acme/widgets."""
    store = store_at(path)
    try:
        with store.transaction() as tx:
            row = {"id": REPOSITORY, "host": "github.example", "owner": "acme", "name": "widgets", "location": ""}
            tx.insert_new(Repository, [row])
        yield store
    finally:
        store.close()


def source(store: Store, emulator: Emulator, **options: Any) -> GitHubSource:
    """A source on an emulator, in the emulator's virtual time."""
    defaults: dict[str, Any] = {
        "forge": forge_at("github.com"),
        "tokens": list(emulator.tokens),
        "api_url": emulator.api_url,
        "max_wait": 4000.0,
        "timeout": 5.0,
        "progress": Quiet(),
        "clock": emulator.clock,
        "sleep": emulator.clock.sleep,
        "jitter": lambda: 0.5,
    }
    return GitHubSource(store, **{**defaults, **options})


def mine(
    store: Store,
    emulator: Emulator,
    *,
    name: str = "widgets",
    rescan: bool = False,
    limit: int | None = None,
    since: str | None = None,
    recheck_days: int | None = None,
    **options: Any,
) -> ReadSummary:
    """Resolve and read acme/NAME."""
    github = source(store, emulator, **options)
    resolved = github.resolve("acme", name)
    return github.read(REPOSITORY, resolved, Wanted(since, limit, rescan, recheck_days))


def facts(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All fact rows by table; of times that say when the miner looked, only whether they are there."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with store.reading() as tx:
        for table in FACTS:
            rows = tx.connection.execute(select(table.__table__)).mappings()
            plain = [tuple((k, v is not None if k in TIMINGS else v) for k, v in row.items()) for row in rows]
            found[table.__tablename__] = sorted(plain, key=repr)
    return found


def pages_fetched(emulator: Emulator) -> list[tuple[Any, ...]]:
    """The requests that brought a page of facts: not the light lists, not what failed, not what had not changed."""
    return [
        (e.operation, repr(sorted(e.variables.items())), e.path, repr(sorted(e.query.items())))
        for e in emulator.log
        if e.status == 200 and e.fault is None and e.operation not in ("Resolve", "Listing")
    ]


def assert_same(actual: dict[str, list[Any]], expected: dict[str, list[Any]], but: Sequence[str] = ()) -> None:
    """Compare table by table, so that a difference shows where it is."""
    for table, rows in expected.items():
        if table not in but:
            extra, lacking = set(actual[table]) - set(rows), set(rows) - set(actual[table])
            assert not extra and not lacking, (table, sorted(extra, key=repr)[:2], sorted(lacking, key=repr)[:2])
            assert len(actual[table]) == len(rows)
