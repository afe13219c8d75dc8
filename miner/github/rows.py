"""From archived pages to rows in the store: the same code for a page that just came and for one read back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, not_, select, update

from miner.archive import Json, Page
from miner.github import pages
from miner.github.faults import Incomplete, Withheld
from miner.github.page_rows import Key, PageRows, PendingConnection
from sql.store import Transaction
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
    ReviewThread,
    TimelineEvent,
)

CHUNK = 500
"""Values in one IN clause; SQLite before 3.32 takes 999."""

_OWN: tuple[tuple[type[Base], ColumnElement[bool] | None], ...] = (
    (PullRequestText, PullRequestText.field != "review_comment"),
    (Label, None),
    (ClosingReference, None),
    (TimelineEvent, None),
    (ReviewThread, None),
    (IncompletePart, None),
    (PullRequestCommit, PullRequestCommit.origin == "api"),
)
"""What is replaced when a pull request is read again. Review comments come by another way."""


def parse(repository_id: int, page: Page) -> PageRows:
    """Return the rows of a page of pull requests or of their connections; raises `Incomplete`.

    ``request["absent"]`` names the nodes, by index or alias, that GitHub says are gone; ``request["refused"]`` has path
    and type of each error beside the data.
    """
    absent = set(page.request.get("absent", ()))
    repository = page.request["repository"]
    rows = PageRows()
    if page.stream == "sweep":
        place = ("repository", "pullRequests", "nodes")
        for index, node in enumerate(_nodes_at(page.answer, *place)):
            _expect_given(node, _refusals(page, *place, index))
        for index, node in enumerate(pages.listing(page.answer).nodes):
            refusals = _refusals(page, *place, index)
            rows.merge(pages.pull_request(repository_id, repository, node, refusals))
    elif page.stream == "pull_requests":
        nodes = page.answer.get("nodes") or []
        if len(nodes) != len(page.request["ids"]):
            raise Incomplete("nodes are missing in the answer")
        for index, node in enumerate(nodes):
            if index not in absent:
                refusals = _refusals(page, "nodes", index)
                _expect_given(node, refusals)
                _expect(node, page.request["ids"][index])
                rows.merge(pages.pull_request(repository_id, repository, node, refusals))
    else:
        connection = page.stream.removeprefix("more:")
        for alias, (node_id, after, *rest) in page.request["nodes"].items():
            node = page.answer.get(alias)
            if alias not in absent:
                _expect(node, node_id)
                key = Key(repository_id, repository, int(node["number"]))
                asked = PendingConnection(connection, node_id, key.number, after, *rest)
                part = pages.page_of(key, node, asked, _refusals(page, alias))
                if any(owed.after is not None and owed.after == after for owed in part.owed):
                    raise Incomplete(f"the cursor of {connection} leads back")
                rows.merge(part)
    return rows


def _refusals(page: Page, *place: str | int) -> Mapping[str, str]:
    """What GitHub's errors about the fields of the node at `place` are called, by field."""
    depth = len(place)
    return {
        str(path[depth]): kind
        for path, kind in page.request.get("refused", ())
        if tuple(path[:depth]) == place and len(path) > depth
    }


def _nodes_at(answer: Json, *place: str) -> list[Json]:
    for name in place:
        answer = (answer or {}).get(name)
    return answer or []


def _expect_given(node: Json, refusals: Mapping[str, str]) -> None:
    """Raise `Withheld` for a pull request that is null because of errors about what is in it."""
    if node is None and refusals:
        parts = ", ".join(f"{field} ({kind})" for field, kind in sorted(refusals.items()))
        raise Withheld(f"GitHub keeps it back: {parts}")


def _expect(node: Json, node_id: str) -> None:
    if not isinstance(node, dict) or node.get("id") != node_id:
        raise Incomplete("a node is missing in the answer, or another one came")


def write(tx: Transaction, repository_id: int, rows: PageRows, *, replace: bool) -> None:
    """Write the rows; with `replace` they are whole pull requests, and what these had before goes."""
    if replace:
        numbers = [row["number"] for row in rows.of(PullRequest)]
        known = [n for (n,) in _select_by_number(tx, repository_id, numbers, PullRequest.number)]
        for table, condition in _OWN:
            _delete(tx, table, repository_id, known, condition)
        if known:
            _drop_orphans(tx, repository_id)
    tx.upsert(PullRequest, rows.of(PullRequest))
    for table in (Issue, Label, PullRequestText, TimelineEvent, ClosingReference, ReviewThread, IncompletePart):
        tx.upsert(table, rows.of(table))
    tx.insert_new(Commit, rows.of(Commit))
    tx.upsert(PullRequestCommit, rows.of(PullRequestCommit))


def mark_gone(tx: Transaction, repository_id: int, numbers: Sequence[int], at: str) -> None:
    """Note that GitHub no longer has these pull requests."""
    gone_rows = [{"repository_id": repository_id, "number": number, "gone_at": at} for number in numbers]
    tx.upsert(PullRequest, gone_rows)


def mark_skipped(tx: Transaction, repository_id: int, number: int, node_id: str, reason: str | None) -> None:
    """Note that GitHub could not deliver this pull request, and why; or, without a reason, that it now did.

    The reason of what the history has located stays: it is the history's.
    """
    row = {"repository_id": repository_id, "number": number, "node_id": node_id}
    tx.upsert(PullRequest, [row])
    is_it = (PullRequest.repository_id == repository_id) & (PullRequest.number == number)
    located = PullRequest.outcome.in_(("landed", "carried", "merged_unlocated"))
    tx.connection.execute(update(PullRequest).where(is_it, not_(located)).values(reason=reason))


@dataclass(frozen=True)
class Window:
    """The times of last update that one page of review comments covers wholly: from `start` to before `end`.

    A stored comment whose time lies in it and that is not in the page has vanished or was edited since. An open
    side is None; `after_start` leaves `start` itself out.
    """

    start: str | None
    end: str | None
    after_start: bool = False


@dataclass(frozen=True)
class PageResult:
    """What a page of review comments did: whether any row changed, and which pull requests were not known."""

    changed: bool
    strangers: tuple[int, ...]


def write_review_comments(
    tx: Transaction, repository_id: int, items: Iterable[Json], window: Window | None, *, bounded: bool
) -> PageResult:
    """Write a page of review comments and remove those that vanished from its window.

    In a bounded read, comments on pull requests that were not read are left out; otherwise such a pull request came
    into being meanwhile: it gets an empty row, which the next look at what changed fills.
    """
    comments = {row["key"]: row for row in (pages.review_comment(repository_id, item) for item in items)}
    numbers = sorted({row["number"] for row in comments.values()})
    known = {
        n
        for n, node_id in _select_by_number(tx, repository_id, numbers, PullRequest.number, PullRequest.node_id)
        if node_id
    }
    strangers = tuple(number for number in numbers if number not in known)
    if bounded:
        comments = {key: row for key, row in comments.items() if row["number"] in known}
    stored = _stored_comments(tx, repository_id, numbers)
    changed = {key: row for key, row in comments.items() if stored.get(key) != row}
    vanished = _vanished(tx, repository_id, set(comments), window) if window else []
    for number, key in vanished:
        tx.delete(PullRequestText, repository_id=repository_id, number=number, field="review_comment", key=key)
    if not bounded:
        tx.insert_new(PullRequest, [{"repository_id": repository_id, "number": number} for number in strangers])
    tx.upsert(PullRequestText, list(changed.values()))
    return PageResult(bool(changed or vanished), strangers)


def keep_review_comments(tx: Transaction, repository_id: int, number: int, keys: Collection[str]) -> bool:
    """Delete the review comments of a pull request but those of `keys`; returns whether there were any."""
    gone = other_review_comments(tx, repository_id, number, keys)
    for key in gone:
        own = {"repository_id": repository_id, "number": number, "field": "review_comment"}
        tx.delete(PullRequestText, key=key, **own)
    return bool(gone)


def other_review_comments(tx: Transaction, repository_id: int, number: int, keys: Collection[str]) -> list[str]:
    """The keys of the pull request's stored review comments that are not among `keys`."""
    own = {"repository_id": repository_id, "number": number, "field": "review_comment"}
    return [key for (key,) in tx.rows(PullRequestText, "key", **own) if key not in keys]


def with_review_comments(tx: Transaction, repository_id: int, numbers: Collection[int]) -> list[int]:
    """Those of the pull requests that have stored review comments."""
    comment = exists().where(
        PullRequestText.repository_id == repository_id,
        PullRequestText.number == PullRequest.number,
        PullRequestText.field == "review_comment",
    )
    found = _select_by_number(tx, repository_id, sorted(numbers), PullRequest.number, comment)
    return [number for number, has_one in found if has_one]


def updated_since(tx: Transaction, repository_id: int, floor: str, *, incomplete: bool) -> dict[int, str]:
    """Node ids, by number, of the pull requests that are there and were last updated at `floor` or later.

    Without `incomplete`, those of which GitHub counts more than it gives are left out.
    """
    columns = (PullRequest.number, PullRequest.node_id)
    lacks = exists().where(
        IncompletePart.repository_id == PullRequest.repository_id, IncompletePart.number == PullRequest.number
    )
    conditions = (*_present(repository_id), PullRequest.updated_at >= floor, *(() if incomplete else (not_(lacks),)))
    found = tx.connection.execute(select(*columns).where(*conditions))
    return {number: node_id for number, node_id in found if node_id is not None}


def forget(tx: Transaction, repository_id: int) -> None:
    """Take out everything that the API gave for the repository; what git gave stays."""
    for table in (PullRequestText, Label, Issue, TimelineEvent, ReviewThread, IncompletePart):
        tx.delete(table, repository_id=repository_id)
    tx.delete(PullRequestCommit, repository_id=repository_id, origin="api")
    tx.delete(Commit, repository_id=repository_id, parents=pages.UNKNOWN_PARENTS)
    blank = dict.fromkeys(pages.API_COLUMNS)
    tx.connection.execute(update(PullRequest).where(PullRequest.repository_id == repository_id).values(**blank))


def known_pull_requests(tx: Transaction, repository_id: int, numbers: Collection[int]) -> dict[int, tuple[Any, ...]]:
    """Return (node id, last update, head, state, gone) by number, of those of the pull requests that were read."""
    columns = (
        PullRequest.number,
        PullRequest.node_id,
        PullRequest.updated_at,
        PullRequest.api_head_sha,
        PullRequest.state,
        PullRequest.gone_at,
    )
    found = _select_by_number(tx, repository_id, sorted(numbers), *columns)
    return {row[0]: tuple(row[1:]) for row in found if row[1] is not None}


def present(tx: Transaction, repository_id: int) -> dict[int, str]:
    """Return the node ids, by number, of the pull requests that were read and are not gone."""
    rows = tx.connection.execute(select(PullRequest.number, PullRequest.node_id).where(*_present(repository_id)))
    return {number: node_id for number, node_id in rows if node_id is not None}


def _present(repository_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        PullRequest.repository_id == repository_id,
        PullRequest.node_id.is_not(None),
        PullRequest.gone_at.is_(None),
    )


def _select_by_number(tx: Transaction, repository_id: int, numbers: Sequence[int], *columns: Any) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(numbers), CHUNK):
        chosen = PullRequest.number.in_(numbers[start : start + CHUNK])
        found.extend(tx.connection.execute(select(*columns).where(PullRequest.repository_id == repository_id, chosen)))
    return found


def _delete(
    tx: Transaction,
    table: type[Base],
    repository_id: int,
    numbers: Sequence[int],
    condition: ColumnElement[bool] | None,
) -> None:
    columns = table.__table__.c
    for start in range(0, len(numbers), CHUNK):
        conditions = [columns.repository_id == repository_id, columns.number.in_(numbers[start : start + CHUNK])]
        tx.connection.execute(delete(table).where(*conditions, *([] if condition is None else [condition])))


def _drop_orphans(tx: Transaction, repository_id: int) -> None:
    """Delete issues that no pull request closes any more."""
    reference = and_(
        ClosingReference.repository_id == Issue.repository_id,
        ClosingReference.issue_repository == Issue.issue_repository,
        ClosingReference.issue_number == Issue.issue_number,
    )
    tx.connection.execute(delete(Issue).where(Issue.repository_id == repository_id, not_(exists().where(reference))))


def _stored_comments(tx: Transaction, repository_id: int, numbers: Sequence[int]) -> dict[str, dict[str, Any]]:
    table = PullRequestText.__table__
    condition = (table.c.repository_id == repository_id) & (table.c.field == "review_comment")
    found = tx.connection.execute(select(table).where(condition, table.c.number.in_(numbers)))
    return {row["key"]: dict(row) for row in found.mappings()}


def _vanished(tx: Transaction, repository_id: int, keys: Collection[str], window: Window) -> list[tuple[int, str]]:
    table = PullRequestText
    conditions = [table.repository_id == repository_id, table.field == "review_comment"]
    if window.start is not None:
        conditions.append(table.updated_at > window.start if window.after_start else table.updated_at >= window.start)
    if window.end is not None:
        conditions.append(table.updated_at < window.end)
    rows = tx.connection.execute(select(table.number, table.key).where(*conditions))
    return [(number, key) for number, key in rows if key not in keys]
