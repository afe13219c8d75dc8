"""Reviews are kept whole: with and without text, with their comments, where these stand, and what was resolved."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from miner.github import replay
from miner.github.threads import Start, Thread, link
from prchain import cli
from sql.store import Store
from sql.tables import ArchivedPage, PullRequestText, ReviewThread
from tests.emulator import Emulator, Fault, Kind, World, generate_world
from tests.miner.github_lab import REPOSITORY, assert_same, facts, mine, opened

PULLS = 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "mined.db") as opened_store:
        yield opened_store


@pytest.fixture
def world() -> World:
    return generate_world(5, PULLS)


def view(store: Store) -> dict[str, dict[str, Any]]:
    with store.reading() as tx:
        rows = tx.connection.execute(text("SELECT * FROM review_comments")).mappings()
        return {row["comment"]: dict(row) for row in rows}


def assert_resolution_is_githubs(store: Store, world: World) -> int:
    """Compare what the view says of every review comment; returns how many there are."""
    shown = view(store)
    threads = [thread for pull in world.home.pulls for thread in pull.threads]
    truth = {str(comment.database_key): comment for thread in threads for comment in thread.comments}
    assert shown.keys() == truth.keys()
    for key, comment in truth.items():
        row, thread = shown[key], comment.thread
        assert bool(row["resolved"]) is thread.is_resolved, (comment.pull.number, key)
        assert row["resolved"] is not None
        assert (row["path"], row["line"], row["original_line"]) == (thread.path, comment.line, thread.line)
        assert row["side"] == thread.diff_side
        assert row["review"] == (str(comment.review.database_key) if comment.review else None)
        assert row["review_state"] == (comment.review.state if comment.review else None)
    return len(truth)


def test_every_review_is_kept_with_state_author_time_and_commit(store: Store, world: World) -> None:
    with Emulator(world) as github:
        mine(store, github)
    columns = ("key", "state", "author", "created_at", "commit_sha")
    with store.reading() as tx:
        kept = sorted(tuple(row) for row in tx.rows(PullRequestText, *columns, field="review"))
    reviews = [review for pull in world.home.pulls for review in pull.reviews]
    assert kept == sorted(
        (
            str(review.database_key),
            review.state,
            review.author.login.removesuffix("[bot]") if review.author else None,
            review.submitted_at,
            review.commit.oid if review.commit else None,
        )
        for review in reviews
    )
    assert sum(not review.body for review in reviews) > 10


def test_each_review_comment_has_its_review_its_line_and_whether_it_was_resolved(store: Store, world: World) -> None:
    with Emulator(world) as github:
        mine(store, github)
        assert assert_resolution_is_githubs(store, world) > 100
        asked = [exchange for exchange in github.log if exchange.operation == "ThreadStarts"]
        assert sum(exchange.points for exchange in asked) <= 1


def test_threads_of_one_place_that_end_differently_are_asked_for(store: Store, world: World) -> None:
    pull = world.home.pulls[3]
    for body in ("Rename this", "Why?", "Remove it", "And here?"):
        world.add_review_comment(pull, body, None, path="one.py")
    twins = [thread for thread in pull.threads if thread.path == "one.py"]
    for thread, resolved in zip(twins, (True, False, False, True), strict=True):
        thread.is_resolved = resolved
    world.add_review_comment(pull, "Because", None, thread=twins[1])
    world.delete_comment(twins[1].comments[0])
    with Emulator(world) as github:
        mine(store, github)
        assert_resolution_is_githubs(store, world)
        asked = [exchange for exchange in github.log if exchange.operation == "ThreadStarts"]
        assert {twin.id for twin in twins} <= {id_ for exchange in asked for id_ in exchange.variables["ids"]}
        before, requests = facts(store), github.requests
        assert not mine(store, github).changed
        assert github.requests - requests == 3
        replay(store, REPOSITORY)
        assert_same(facts(store), before)


def test_many_threads_in_doubt_are_asked_for_over_several_runs(store: Store, world: World) -> None:
    for place in range(220):
        comment = world.add_review_comment(world.home.pulls[0], "Here", None, path="one.py")
        comment.thread.is_resolved = place % 2 == 0
    with Emulator(world) as github:
        for asked in (1, 2, 3):
            mine(store, github)
            assert sum(exchange.operation == "ThreadStarts" for exchange in github.log) == asked
        assert_resolution_is_githubs(store, world)
        requests = github.requests
        assert not mine(store, github).changed
        assert github.requests - requests == 3


def test_a_resolution_is_found_when_the_pull_request_is_read_again(store: Store, world: World) -> None:
    pull = next(pull for pull in world.home.pulls if len(pull.threads) > 1)
    with Emulator(world) as github:
        mine(store, github)
        world.tick(86_400)
        for thread in pull.threads:
            thread.is_resolved = not thread.is_resolved
        world.add_comment(pull, "All done", None)
        mine(store, github)
        assert_resolution_is_githubs(store, world)


def test_a_run_that_fails_before_threads_were_told_leaves_that_to_the_next(store: Store, world: World) -> None:
    for resolved in (True, False):
        world.add_review_comment(world.home.pulls[3], "Here", None, path="one.py").thread.is_resolved = resolved
    with Emulator(world, faults=[Fault(Kind.BAD_GATEWAY_502, operation="ThreadStarts", times=None)]) as github:
        assert mine(store, github).missing == ()
        assert len([exchange for exchange in github.log if exchange.operation == "ThreadStarts"]) < 10
    with Emulator(world) as github:
        mine(store, github)
        assert_resolution_is_githubs(store, world)


def test_pages_archived_before_threads_were_asked_for_still_give_the_reviews(store: Store, world: World) -> None:
    """The archive of an older version has no threads, but reviews without text, and where comments stand."""
    with Emulator(world) as github:
        mine(store, github)
    with store.transaction() as tx:
        for number, body in list(tx.rows(ArchivedPage, "id", "body", stream="sweep")):
            page = json.loads(zlib.decompress(body))
            for node in page["answer"]["repository"]["pullRequests"]["nodes"]:
                del node["reviewThreads"]
            changed = update(ArchivedPage).where(ArchivedPage.id == number)
            tx.connection.execute(changed.values(body=zlib.compress(json.dumps(page).encode())))
        for stream in ("more:threads", "thread_starts"):
            tx.delete(ArchivedPage, repository_id=REPOSITORY, stream=stream)
    replay(store, REPOSITORY)
    with store.reading() as tx:
        assert not list(tx.rows(ReviewThread, "key"))
        kept = [key for (key,) in tx.rows(PullRequestText, "key", field="review")]
    assert len(kept) == sum(len(pull.reviews) for pull in world.home.pulls)
    assert {row["resolved"] for row in view(store).values()} == {None}
    assert all(row["original_line"] for row in view(store).values())


A, B = ("a.py", 3, "RIGHT", None), ("a.py", 9, "RIGHT", None)
LINKS = {
    "one place each": ([("t1", A, True), ("t2", B, False)], [("c2", B), ("c1", A)], {"t1": "c1", "t2": "c2"}, []),
    "one place, one state": ([("t1", A, True), ("t2", A, True)], [("c1", A), ("c2", A)], {"t1": "c1", "t2": "c2"}, []),
    "one place, two states": ([("t1", A, True), ("t2", A, False)], [("c1", A), ("c2", A)], {}, ["t1", "t2"]),
    "a line that moved, one state": ([("t1", A, True)], [("c1", B)], {"t1": "c1"}, []),
    "lines that moved, two states": ([("t1", A, True), ("t2", A, False)], [("c1", B)], {}, ["t1", "t2"]),
    "more comments than threads": ([("t1", A, True)], [("c1", A), ("c2", A)], {}, ["t1"]),
    "a thread without a comment": ([("t1", A, True)], [], {}, []),
    "a comment without a thread": ([], [("c1", A)], {}, []),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_place_tells_a_thread_where_no_two_states_share_it(name: str) -> None:
    threads, starts, found, asked = LINKS[name]
    assert link([Thread(*thread) for thread in threads], [Start(*start) for start in starts]) == (found, asked)


def test_show_counts_reviews_and_what_was_resolved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = generate_world(5, 3)
    pull = world.home.pulls[1]
    for held in (pull.reviews, pull.threads):
        held.clear()
    world.home.review_comments[:] = [comment for comment in world.home.review_comments if comment.pull is not pull]
    review = world.add_review(pull, "CHANGES_REQUESTED", None, None)
    world.add_review(pull, "APPROVED", None, None)
    first = world.add_review_comment(pull, "Rename", None, review=review)
    first.thread.is_resolved = True
    world.add_review_comment(pull, "Done", None, thread=first.thread)
    world.add_review_comment(pull, "Why?", None, path="other.py")
    with Emulator(world) as github, opened(tmp_path / "mined.db") as store:
        mine(store, github)
    assert cli.run(["show", f"acme/widgets#{pull.number}", "--db", str(tmp_path / "mined.db")]) == 0
    assert "reviews   1 approved, 1 changes requested, 3 comments (2 resolved)" in capsys.readouterr().out
    assert cli.run(["show", f"acme/widgets#{pull.number}", "--json", "--db", str(tmp_path / "mined.db")]) == 0
    texts = {text["key"]: text for text in json.loads(capsys.readouterr().out)["texts"]}
    assert texts[str(first.database_key)]["review"] == str(review.database_key)
    assert texts[str(first.database_key)]["line"] == 1
