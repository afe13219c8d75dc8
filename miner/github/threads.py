"""With which comment each thread of a review begins, and so whether a review comment was resolved.

GitHub tells resolution of threads alone, and comments cheaply by REST alone, which does not name threads. To ask each
thread for its comments costs a point for 149 of them, together more than the whole sweep may. But where a thread stands
is known of both, and a place that only threads of one state share leaves no doubt. GitHub is asked about the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select, update

from miner import archive
from miner.archive import Page
from miner.github import queries
from miner.github.faults import Overloaded
from miner.github.pace import LISTING, Pace
from miner.github.page_rows import Row
from miner.github.reading import MAX_STUMBLES, RepositoryReading
from sql.store import Transaction
from sql.tables import PullRequestText, ReviewThread

Place = tuple[Any, ...]
"""Path, original line, side, original first line."""

_DEPTHS = (4, 2, 1, 0)
"""How much of a place must be equal, the most first."""
_PULLS_AT_ONCE = 500
PULLS_A_QUESTION = 300
"""For so many pull requests a run may ask GitHub once about threads, at a point: 207 for the 61,810 of the paper. The
rest is left to later runs."""


class Thread(NamedTuple):
    """A thread whose comment is looked for."""

    key: str
    place: Place
    is_resolved: bool


class Start(NamedTuple):
    """The first comment of some thread."""

    key: str
    place: Place


def link(threads: Iterable[Thread], starts: Iterable[Start]) -> tuple[dict[str, str], list[str]]:
    """Return the key of the first comment by thread, and the threads that only GitHub could tell.

    Both come in the order in which they were begun. Several threads of one place are told apart by that order alone, so
    they must be equally resolved: then each comment's resolution is right, whichever of them is its own.
    """
    open_threads, open_starts = list(threads), list(starts)
    found: dict[str, str] = {}
    for depth in _DEPTHS:
        by_place: dict[Place, tuple[list[Thread], list[Start]]] = defaultdict(lambda: ([], []))
        for thread in open_threads:
            by_place[thread.place[:depth]][0].append(thread)
        for start in open_starts:
            by_place[start.place[:depth]][1].append(start)
        for here, begun in by_place.values():
            if len({thread.is_resolved for thread in here}) == 1 and len(begun) <= len(here):
                found.update((thread.key, start.key) for thread, start in zip(here, begun, strict=False))
        taken = set(found.values())
        open_threads = [thread for thread in open_threads if thread.key not in found]
        open_starts = [start for start in open_starts if start.key not in taken]
    return found, [thread.key for thread in open_threads] if open_starts else []


class ReviewThreads:
    """Links the stored threads of a repository with their comments, when both have been read."""

    def __init__(self, reading: RepositoryReading) -> None:
        self._reading = reading
        self._pace = Pace(LISTING)

    def run(self) -> None:
        """Link all, within the allowance; what was not asked, or not answered, is left to the next run."""
        reading = self._reading
        with reading.store.reading() as tx:
            links, doubtful = find_links(tx, reading.repository_id)
        if links:
            with reading.store.transaction() as tx:
                write_links(tx, reading.repository_id, links)
            reading.changed = True
        allowed = 1 + reading.repository.pull_requests // PULLS_A_QUESTION
        stumbles = 0
        while doubtful and allowed and stumbles < MAX_STUMBLES:
            chosen = doubtful[: self._pace.step.first]
            if self._ask(chosen):
                doubtful = doubtful[len(chosen) :]
                allowed -= 1
                stumbles = 0
            else:
                stumbles += 1

    def _ask(self, ids: Sequence[str]) -> bool:
        reading, query = self._reading, queries.load("thread_starts")
        try:
            answer = reading.client.graphql(query, {"ids": list(ids)})
        except Overloaded:
            self._pace.shrink()
            reading.client.pause(0)
            return False
        self._pace.succeeded()
        page = Page("thread_starts", {"ids": list(ids)}, answer.data, query.text)
        with reading.store.transaction() as tx:
            write_starts(tx, reading.repository_id, page)
            archive.keep(tx, reading.repository_id, page, reading.now())
        reading.changed = True
        return True


def write_starts(tx: Transaction, repository_id: int, page: Page) -> None:
    """Write what GitHub told of threads, one by one; a thread that is gone, or empty, has no comment."""
    told = {node["id"]: _first_comment(node) for node in page.answer.get("nodes") or () if node}
    for thread in page.request["ids"]:
        condition = (ReviewThread.repository_id == repository_id, ReviewThread.key == thread)
        tx.connection.execute(update(ReviewThread).where(*condition).values(comment=told.get(thread), told=True))


def _first_comment(node: Mapping[str, Any]) -> str | None:
    """The key under which the thread's replies name it, also where its first comment was deleted."""
    comments = [comment for comment in (node.get("comments") or {}).get("nodes") or () if comment]
    if not comments:
        return None
    return str((comments[0].get("replyTo") or comments[0])["fullDatabaseId"])


def find_links(tx: Transaction, repository_id: int) -> tuple[list[Row], list[str]]:
    """Find with which comment each stored thread begins, where its place tells it.

    Returns what `write_links` takes, those that are stored so left out, and the threads to ask GitHub about.
    """
    numbers = sorted(
        number
        for (number,) in tx.connection.execute(
            select(ReviewThread.number).where(ReviewThread.repository_id == repository_id).distinct()
        )
    )
    changes: list[Row] = []
    doubtful: list[str] = []
    for start in range(0, len(numbers), _PULLS_AT_ONCE):
        chosen = numbers[start : start + _PULLS_AT_ONCE]
        stored, told = _threads(tx, repository_id, chosen)
        starts = _starts(tx, repository_id, chosen)
        for number, threads in stored.items():
            left = [it for it in starts.get(number, ()) if it.key not in told]
            found, asked = link([thread for thread, _ in threads], left)
            doubtful.extend(asked)
            changes.extend(
                {"pull": number, "thread": thread.key, "begins": found.get(thread.key)}
                for thread, comment in threads
                if found.get(thread.key) != comment
            )
    return changes, doubtful


def write_links(tx: Transaction, repository_id: int, links: Sequence[Row]) -> None:
    """Write with which comments threads begin."""
    if links:
        this = (ReviewThread.number == bindparam("pull"), ReviewThread.key == bindparam("thread"))
        statement = update(ReviewThread).where(ReviewThread.repository_id == repository_id, *this)
        tx.connection.execute(statement.values(comment=bindparam("begins")), links)


def _threads(
    tx: Transaction, repository_id: int, numbers: Sequence[int]
) -> tuple[dict[int, list[tuple[Thread, str | None]]], set[str]]:
    """The threads that GitHub was not asked about, by pull request, with the comment stored; and others' comments."""
    table = ReviewThread
    columns = (table.number, table.key, table.is_resolved, table.comment, table.told)
    places = (table.path, table.original_line, table.side, table.original_start_line)
    query = select(*columns, *places).where(table.repository_id == repository_id, table.number.in_(numbers))
    stored: dict[int, list[tuple[Thread, str | None]]] = defaultdict(list)
    told: set[str] = set()
    for number, key, is_resolved, comment, is_told, *place in tx.connection.execute(
        query.order_by(table.number, table.position)
    ):
        if is_told and comment is not None:
            told.add(comment)
        elif not is_told:
            stored[number].append((Thread(key, tuple(place), is_resolved), comment))
    return stored, told


def _starts(tx: Transaction, repository_id: int, numbers: Sequence[int]) -> dict[int, list[Start]]:
    """The first comment of each thread by pull request, in the order of time; of a deleted one its oldest reply."""
    table = PullRequestText
    columns = (table.number, table.key, table.reply_to)
    places = (table.path, table.original_line, table.side, table.original_start_line)
    mine = (table.repository_id == repository_id, table.number.in_(numbers), table.field == "review_comment")
    found: dict[int, dict[str, Start]] = defaultdict(dict)
    rows = sorted(
        tx.connection.execute(select(*columns, table.created_at, *places).where(*mine)),
        key=lambda row: (row[0], row[3] or "", len(row[1]), row[1]),
    )
    for number, key, reply_to, _, *place in rows:
        found[number].setdefault(reply_to or key, Start(reply_to or key, tuple(place)))
    return {number: list(starts.values()) for number, starts in found.items()}
