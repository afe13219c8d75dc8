"""From stored texts to stored citations, on a real database: the same rows every time, and a stamp that knows when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from miner import citation_rows
from sql.store import Store, Transaction
from sql.tables import (
    Citation,
    Commit,
    Label,
    Landing,
    LandingFile,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    Repository,
    RepositoryAlias,
    TimelineEvent,
)
from tests.databases import open_new
from tests.miner.gitworld import GITHUB

TIME = "2024-01-01T00:00:00Z"
COLUMNS = [column.name for column in Citation.__table__.columns]


def commit_row(sha: str, message: str, **values: Any) -> dict[str, Any]:
    row = {"sha": sha, "author": "A", "authored_at": f"{sha}", "committed_at": TIME, "parents": 1, "message": message}
    return {"repository_id": 1, **row, **values}


def text_row(number: int, field: str, body: str, key: str = "", **values: Any) -> dict[str, Any]:
    row = {"author": "somebody", "author_kind": "User", "updated_at": None, "body": body}
    return {"repository_id": 1, "number": number, "field": field, "key": key, **row, **values}


def event_row(number: int, key: str, other: int, **values: Any) -> dict[str, Any]:
    row = {
        "kind": "CrossReferencedEvent",
        "other_repository": "O/N",
        "other_number": other,
        "other_kind": "PullRequest",
    }
    return {"repository_id": 1, "number": number, "key": key, "closes": False, "created_at": TIME, **row, **values}


def landing_row(number: int, sha: str, **values: Any) -> dict[str, Any]:
    row = {
        "branch": "main",
        "is_default": True,
        "style": "squash",
        "base_sha": "0",
        "landed_sha": sha,
        "landed_at": TIME,
        "subject": "",
        "position": number,
        "claim": "subject_tail",
        "evidence": "same_patch",
        "counts": "none",
    }
    return {"repository_id": 1, "number": number, **row, **values}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_new(tmp_path / "p.db")
    with opened.transaction() as tx:
        fill(tx)
    yield opened
    opened.close()


def fill(tx: Transaction) -> None:
    """Pull requests 1 to 3 landed as squashes, 4 as a merge; 5 and 12 are open."""
    tx.upsert(Repository, [{"id": 1, "host": "github.com", "owner": "O", "name": "N", "location": "/x"}])
    tx.upsert(
        PullRequest,
        [
            {"repository_id": 1, "number": n, "outcome": "landed" if n < 5 else "open", "head_sha": f"{n}e" * 20}
            for n in (1, 2, 3, 4, 5, 12)
        ],
    )
    tx.upsert(
        Commit,
        [
            commit_row("1a" * 20, "Write a parser (#1)"),
            commit_row("2a" * 20, "Correct the parser (#2)\n\nFollow-up to #1."),
            commit_row("3a" * 20, "Revert (#3)\n\nThis reverts commit " + "2a" * 20),
            commit_row("4a" * 20, "Merge pull request #4 from x/backport-pr-12-to-2\n\nBring it back", parents=2),
            commit_row("1e" * 20, "Write a parser"),
            commit_row("2e" * 20, "Correct the parser\n\nFollow-up to #1."),
            commit_row("5e" * 20, "Depends on #1"),
            commit_row("5d" * 20, "Merge main\n\nDepends on #3", parents=2),
        ],
    )
    tx.upsert(Landing, [landing_row(n, f"{n}a" * 20) for n in (1, 2, 3)])
    tx.upsert(Landing, [landing_row(4, "4a" * 20, style="merge", claim="merge_subject")])
    tx.upsert(
        LandingFile,
        [
            {
                "repository_id": 1,
                "number": n,
                "branch": "main",
                "path": "a.py",
                "status": "M",
                "old_mode": "100644",
                "new_mode": "100644",
                "old_blob": "0",
                "new_blob": "1",
            }
            for n in (1, 2, 3)
        ],
    )
    own = [(2, "git", "1e" * 20), (2, "git", "2e" * 20), (5, "api", "5d" * 20), (5, "api", "5e" * 20)]
    own.append((1, "git", "1e" * 20))
    tx.upsert(
        PullRequestCommit,
        [
            {"repository_id": 1, "number": n, "origin": origin, "sha": sha, "position": i}
            for i, (n, origin, sha) in enumerate(own)
        ],
    )
    tx.upsert(
        PullRequestText,
        [
            text_row(1, "title", "Write a parser"),
            text_row(2, "body", "> see #1\n\nReally."),
            text_row(2, "comment", "follow-up to #1", "10"),
            text_row(2, "comment", "follow-up to #1", "11", author_kind="Bot"),
            text_row(2, "review", "see #77", "12"),
            text_row(2, "review_comment", "as old/name#1 did", "13"),
        ],
    )
    tx.upsert(RepositoryAlias, [{"repository_id": 1, "alias": "old/name", "evidence": "api"}])
    tx.upsert(
        TimelineEvent,
        [
            event_row(1, "E1", 2),
            event_row(1, "E2", 3, other_repository="someone/else"),
            event_row(1, "E3", 4, other_kind="Issue"),
            event_row(1, "E4", 5, closes=True, other_repository="Old/Name"),
            event_row(1, "E5", 3, kind="ConnectedEvent"),
        ],
    )


def rebuild(store: Store) -> list[tuple[Any, ...]]:
    with store.transaction() as tx:
        count = citation_rows.rebuild(tx, 1, "O/N", GITHUB)
        rows = [tuple(row) for row in tx.rows(Citation, *COLUMNS, repository_id=1)]
    assert count == len(rows)
    return rows


def test_every_text_becomes_the_citations_it_makes(store: Store) -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in rebuild(store)]
    assert [
        (row["source"], row["target"], row["relation"], row["field"], row["key"][:4], row["reason"]) for row in rows
    ] == [
        (2, 1, "follow_up", "comment", "10", None),
        (2, 1, "follow_up", "comment", "11", None),
        (2, 1, "follow_up", "commit", "2e2e", None),
        (2, 1, "follow_up", "landing", "2a2a", None),
        (2, 1, "mentions", "body", "", "quote"),
        (2, 1, "mentions", "event", "E1", None),
        (2, 1, "mentions", "review_comment", "13", None),
        (2, 1, "stacked_on", "history", "1e1e", None),
        (2, 77, "mentions", "review", "12", "not_a_pull_request"),
        (3, 2, "reverts", "landing", "3a3a", None),
        (4, 12, "backports", "branch", "4a4a", None),
        (5, 1, "closes", "event", "E4", None),
        (5, 1, "depends_on", "commit", "5e5e", None),
        (5, 3, "depends_on", "commit", "5d5d", "merge_message"),
    ]
    by_key = {row["key"]: row for row in rows}
    assert by_key["11"]["weak_signs"] == "bot"
    assert by_key["11"]["confidence"] < by_key["10"]["confidence"]
    assert by_key["10"]["weak_signs"] is None


def places(store: Store, source: int) -> list[tuple[int, str, str]]:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in rebuild(store)]
    return [(row["target"], row["field"], row["key"][:2]) for row in rows if row["source"] == source]


@pytest.mark.parametrize(("style", "found"), [("rebase", False), ("fast_forward", False), ("squash", True)])
def test_a_message_that_landed_as_it_was_is_read_once(style: str, found: bool, store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(Landing, [landing_row(2, "2a" * 20, style=style)])
    assert ((1, "landing", "2a") in places(store, 2)) is found
    assert (1, "commit", "2e") in places(store, 2)


def test_commits_that_git_walked_outrank_those_of_the_api(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(Commit, [commit_row("7e" * 20, "Depends on #1")])
        own = {"repository_id": 1, "number": 2, "origin": "api", "sha": "7e" * 20, "position": 0}
        tx.upsert(PullRequestCommit, [own])
        tx.upsert(PullRequestCommit, [{**own, "number": 12}])
    assert (1, "commit", "7e") not in places(store, 2)
    assert (1, "commit", "7e") in places(store, 12)


@pytest.mark.parametrize(
    ("style", "found"), [("squash", False), ("other", False), ("merge", True), ("fast_forward", True)]
)
def test_the_sha_of_an_own_commit_resolves_where_the_commit_itself_landed(
    style: str, found: bool, store: Store
) -> None:
    with store.transaction() as tx:
        tx.upsert(Landing, [landing_row(2, "2a" * 20, style=style)])
        tx.upsert(PullRequestText, [text_row(3, "body", "Reverts commit " + "2e" * 20)])
    assert ((2, "body", "") in places(store, 3)) is found


def test_a_body_that_a_bot_edited_is_still_the_authors(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(PullRequestText, [text_row(3, "body", "see #1", author_kind="Bot")])
        tx.upsert(PullRequestText, [text_row(3, "comment", "see #1", "20", author="ci[bot]", author_kind=None)])
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in rebuild(store)]
    signs = {row["field"]: row["weak_signs"] for row in rows if row["source"] == 3 and row["target"] == 1}
    assert signs == {"body": None, "comment": "bot"}


def test_a_second_rebuild_makes_equal_rows(store: Store) -> None:
    assert rebuild(store) == rebuild(store)


def test_citations_that_nothing_makes_any_more_are_gone(store: Store) -> None:
    before = rebuild(store)
    with store.transaction() as tx:
        tx.delete(PullRequestText, repository_id=1, key="10")
    assert {row[5] for row in before} - {row[5] for row in rebuild(store)} == {"10"}


def test_another_repository_is_left_alone(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(Repository, [{"id": 2, "host": "github.com", "owner": "p", "name": "q", "location": "/y"}])
        tx.upsert(PullRequest, [{"repository_id": 2, "number": n, "outcome": "open"} for n in (1, 2)])
        tx.upsert(PullRequestText, [{**text_row(2, "body", "see #1"), "repository_id": 2}])
        assert citation_rows.rebuild(tx, 2, "p/q", GITHUB) == 1
    rebuild(store)
    rebuild(store)
    with store.reading() as tx:
        assert list(tx.rows(Citation, "source", "target", repository_id=2)) == [(2, 1)]


def test_the_view_has_one_row_for_each_source_target_relation_and_field(store: Store) -> None:
    rebuild(store)
    with store.reading() as tx:
        edges = [dict(row) for row in tx.connection.execute(text("SELECT * FROM citation_edges")).mappings()]
    places = [(edge["source"], edge["target"], edge["relation"], edge["field"]) for edge in edges]
    assert len(places) == len(set(places)) == 12
    assert {edge["counted"] for edge in edges} == {0, 1}
    assert all((edge["reason"] is None) == (edge["counted"] == 1) for edge in edges)
    assert {edge["repository"] for edge in edges} == {"O/N"}
    assert {edge["target"] for edge in edges} == {1, 2, 3, 12}
    assert [edge["syntax"] for edge in edges if edge["field"] == "history"] == ["ancestry"]


def stamp(store: Store) -> str:
    with store.reading() as tx:
        return citation_rows.stamp(tx, 1)


CHANGES: dict[str, Callable[[Transaction], Any]] = {
    "a new text": lambda tx: tx.upsert(PullRequestText, [text_row(3, "body", "see #1")]),
    "an edited text of equal length and time": lambda tx: tx.upsert(
        PullRequestText, [text_row(2, "comment", "follow-up to #3", "10")]
    ),
    "a deleted text": lambda tx: tx.delete(PullRequestText, repository_id=1, key="12"),
    "two texts that swap": lambda tx: tx.upsert(
        PullRequestText, [text_row(1, "title", "> see #1\n\nReally."), text_row(2, "body", "Write a parser")]
    ),
    "another author": lambda tx: tx.upsert(
        PullRequestText, [text_row(2, "comment", "follow-up to #1", "10", author_kind="Bot")]
    ),
    "a new alias": lambda tx: tx.upsert(RepositoryAlias, [{"repository_id": 1, "alias": "x/y", "evidence": "api"}]),
    "a lost alias": lambda tx: tx.delete(RepositoryAlias, repository_id=1),
    "a new event": lambda tx: tx.upsert(TimelineEvent, [event_row(2, "E9", 3)]),
    "a changed event": lambda tx: tx.upsert(TimelineEvent, [event_row(1, "E1", 3)]),
    "an event that closes": lambda tx: tx.upsert(TimelineEvent, [event_row(1, "E1", 2, closes=True)]),
    "another head branch": lambda tx: tx.connection.execute(update(PullRequest).values(head_branch="backport-pr-1")),
    "a new pull request": lambda tx: tx.upsert(PullRequest, [{"repository_id": 1, "number": 77, "outcome": "open"}]),
    "a new commit of the API": lambda tx: tx.upsert(
        PullRequestCommit, [{"repository_id": 1, "number": 3, "origin": "api", "sha": "5e" * 20, "position": 0}]
    ),
    "another name": lambda tx: tx.connection.execute(update(Repository).values(name="M")),
}

NO_CHANGES: dict[str, Callable[[Transaction], Any]] = {
    "nothing": lambda tx: None,
    "the same text again": lambda tx: tx.upsert(PullRequestText, [text_row(1, "title", "Write a parser")]),
    "a label": lambda tx: tx.upsert(Label, [{"repository_id": 1, "number": 1, "name": "bug"}]),
    "another state": lambda tx: tx.connection.execute(update(PullRequest).values(state="closed", updated_at=TIME)),
    "the citations themselves": lambda tx: tx.delete(Citation, repository_id=1),
    "another repository": lambda tx: tx.upsert(
        Repository, [{"id": 2, "host": "github.com", "owner": "p", "name": "q", "location": "/y"}]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_stamp_changes_with_what_citations_are_made_from(
    change: Callable[[Transaction], Any], store: Store
) -> None:
    before = stamp(store)
    with store.transaction() as tx:
        change(tx)
    assert stamp(store) != before


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES.keys())
def test_the_stamp_stays_with_everything_else(change: Callable[[Transaction], Any], store: Store) -> None:
    rebuild(store)
    before = stamp(store)
    with store.transaction() as tx:
        change(tx)
    assert stamp(store) == before


def test_the_stamp_changes_with_the_rules(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stamp(store)
    monkeypatch.setattr(citation_rows, "RULES", "another")
    assert stamp(store) != before


@pytest.mark.parametrize(
    ("owners", "alias"),
    [
        (["first"] * 10, "first/n"),
        (["first"] * 10 + ["other"] * 10, "first/n"),
        (["first"] * 9, None),
        (["first"] * 10 + ["second"] * 6 + ["third"] * 5, None),
        (["O"] * 20, None),
    ],
)
def test_the_owner_of_the_first_merges_is_a_former_name(owners: list[str], alias: str | None, store: Store) -> None:
    with store.transaction() as tx:
        tx.delete(RepositoryAlias, repository_id=1)
        tx.delete(Landing, repository_id=1)
        for number, owner in enumerate(owners, 100):
            tx.upsert(PullRequest, [{"repository_id": 1, "number": number, "outcome": "landed"}])
            tx.upsert(Commit, [commit_row(f"{number:040d}", f"Merge pull request #{number} from {owner}/b", parents=2)])
            tx.upsert(Landing, [landing_row(number, f"{number:040d}", style="merge", claim="merge_subject")])
    rebuild(store)
    first = stamp(store)
    with store.reading() as tx:
        found = dict(map(tuple, tx.rows(RepositoryAlias, "alias", "evidence")))
    assert found == ({alias: "merge_subject"} if alias else {})
    rebuild(store)
    assert stamp(store) == first
