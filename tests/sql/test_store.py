"""What every store must do, on every database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from sql.store import Store, Transaction
from sql.tables import ArchivedPage, Citation, Label, LandingFile, PullRequest, Repository
from tests.sql.rows import REPOSITORY, citation, fill, landing, pull_request

FILE_COLUMNS = ("repository_id", "number", "branch", "path", "status", "old_mode", "new_mode", "old_blob", "new_blob")


def numbers(store: Store) -> list[Any]:
    with store.reading() as tx:
        return [number for (number,) in tx.rows(PullRequest, "number")]


def test_upsert_changes_the_named_columns_and_no_others(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
        assert tx.upsert(PullRequest, [pull_request(1, state="open", head_sha="a")]) == 1
        tx.upsert(PullRequest, [{"repository_id": 1, "number": 1, "state": "merged"}])
    with store.reading() as tx:
        assert [tuple(row) for row in tx.rows(PullRequest, "state", "head_sha", "outcome")] == [
            ("merged", "a", "landed")
        ]


def test_insert_new_leaves_rows_that_are_there_as_they_are(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
        tx.insert_new(PullRequest, [pull_request(1, outcome="other"), pull_request(2, outcome="other")])
    with store.reading() as tx:
        assert [tuple(row) for row in tx.rows(PullRequest, "number", "outcome")] == [(1, "landed"), (2, "other")]


def test_a_row_of_keys_alone_can_be_upserted_twice(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx)
        label = {"repository_id": 1, "number": 1, "name": "bug"}
        assert tx.upsert(Label, [label, label]) == 2
        assert [tuple(row) for row in tx.rows(Label, "name")] == [("bug",)]


def test_no_rows_are_no_work(store: Store) -> None:
    with store.transaction() as tx:
        assert tx.upsert(PullRequest, []) == 0
        tx.bulk(LandingFile, FILE_COLUMNS, iter(()))


def test_bulk_writes_every_type_and_nulls_and_hostile_text(store: Store) -> None:
    hostile = "x'; DROP TABLE labels; --\t\\N\\.\n\u2028\U0001f600%s:name"
    with store.transaction() as tx:
        fill(tx, landings=[landing(1, "main")])
        tx.bulk(
            Citation,
            (
                "repository_id",
                "source",
                "target",
                "relation",
                "field",
                "key",
                "syntax",
                "snippet",
                "counted",
                "reason",
                "confidence",
            ),
            [(1, 1, 2, "mentions", "body", "", "hash", hostile, False, None, 0.25)],
        )
        tx.bulk(
            ArchivedPage,
            ("id", "repository_id", "stream", "request_key", "fetched_at", "body"),
            [(1, 1, "sweep", "k", "t", b"\x00\xff\\")],
        )
        assert [tuple(row) for row in tx.rows(Citation, "snippet", "counted", "reason", "confidence")] == [
            (hostile, False, None, 0.25)
        ]
        assert [bytes(body) for (body,) in tx.rows(ArchivedPage, "body")] == [b"\x00\xff\\"]


def test_a_block_that_raises_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        fill(tx)
        raise ZeroDivisionError
    assert numbers(store) == []
    with store.transaction() as tx:
        fill(tx, pulls=2)
    assert numbers(store) == [1, 2]


def test_a_broken_key_undoes_the_whole_transaction_and_is_shown_as_the_defect_it_is(store: Store) -> None:
    with pytest.raises(IntegrityError) as caught, store.transaction() as tx:
        fill(tx, pulls=2)
        tx.upsert(Citation, [citation(99, 1, snippet="words of a pull request")])
    assert "words of a pull request" not in str(caught.value)
    assert numbers(store) == []


def test_deleting_a_row_takes_what_hangs_on_it_along(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=3, landings=[landing(1, "main"), landing(2, "main")], citations=[citation(1, 2)])
        tx.bulk(LandingFile, FILE_COLUMNS, [(1, 1, "main", "a.py", "M", "100644", "100644", "a", "b")])
        tx.delete(PullRequest, repository_id=1, number=1)
    with store.reading() as tx:
        assert [tuple(row) for row in tx.rows(LandingFile, "path")] == []
        assert [tuple(row) for row in tx.rows(Citation, "source")] == []
    assert numbers(store) == [2, 3]


def test_a_reader_sees_one_state_from_beginning_to_end(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
    with store.reading() as before:
        assert [number for (number,) in before.rows(PullRequest, "number")] == [1]
        with store.transaction() as tx:
            tx.upsert(PullRequest, [pull_request(2)])
        assert [number for (number,) in before.rows(PullRequest, "number")] == [1]
    assert numbers(store) == [1, 2]


def test_a_reader_cannot_write_and_the_next_writer_can(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
    for statement in ("DELETE FROM pull_requests", "DROP VIEW citation_edges", "CREATE TABLE x (y INTEGER)"):
        with pytest.raises((DBAPIError, OSError), match=r"readonly|read-only"), store.reading() as tx:
            tx.connection.execute(text(statement))
    with store.transaction() as tx:
        tx.upsert(PullRequest, [pull_request(2)])
    assert numbers(store) == [1, 2]


def test_transactions_of_many_threads_queue(store: Store) -> None:
    def add(start: int) -> None:
        for number in range(start, start + 5):
            with store.transaction() as tx:
                (count,) = tx.connection.execute(text("SELECT count(*) FROM pull_requests")).one()
                tx.upsert(PullRequest, [pull_request(number, commit_count=count)])

    with store.transaction() as tx:
        fill(tx, pulls=0)
    threads = [threading.Thread(target=add, args=(start,)) for start in range(100, 900, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.reading() as tx:
        assert sorted(count for (count,) in tx.rows(PullRequest, "commit_count")) == list(range(40))


def test_nested_transactions_are_refused_instead_of_waiting_for_themselves(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
        with pytest.raises(RuntimeError, match="open already"), store.transaction():
            pass
    assert numbers(store) == [1]


def test_rows_come_in_the_order_of_their_key_and_can_be_chosen(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(Repository, [REPOSITORY, REPOSITORY | {"id": 2, "name": "m"}])
        tx.upsert(
            PullRequest,
            [pull_request(number, repository_id=repository) for number in (3, 1, 2) for repository in (2, 1)],
        )
        assert [tuple(row) for row in tx.rows(PullRequest, "repository_id", "number")] == [
            (1, 1),
            (1, 2),
            (1, 3),
            (2, 1),
            (2, 2),
            (2, 3),
        ]
        assert [number for (number,) in tx.rows(PullRequest, "number", repository_id=2, number=3)] == [3]


def test_many_rows_go_in_and_out_without_being_held_in_memory(store: Store) -> None:
    count = 40_000

    def files() -> Iterator[tuple[Any, ...]]:
        for number in range(count):
            yield (1, 1, "main", f"{number:06d}" + "x" * 100, "M", "100644", "100644", "a" * 40, "b" * 40)

    with store.transaction() as tx:
        fill(tx, pulls=1, landings=[landing(1, "main")])
        tracemalloc.start()
        tx.bulk(LandingFile, FILE_COLUMNS, files())
        assert sum(1 for _ in tx.rows(LandingFile, "path", "old_blob")) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10_000_000  # all of them at once are over 20 MB


KILLED = """
import os, signal, sys
from sql.store import Store
from tests.sql.rows import fill, pull_request
from sql.tables import PullRequest
store = Store.open(sys.argv[1])
with store.transaction() as tx:
    fill(tx, pulls=3)
with store.transaction() as tx:
    tx.upsert(PullRequest, [pull_request(n) for n in range(4, 5000)])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_within_a_transaction_leaves_what_was_committed(database_url: str) -> None:
    root = str(Path(__file__).parents[2])
    process = subprocess.run(
        [sys.executable, "-c", KILLED, database_url], env=os.environ | {"PYTHONPATH": root}, check=False
    )
    assert process.returncode == -signal.SIGKILL
    store = Store.open(database_url)
    assert numbers(store) == [1, 2, 3]
    store.close()


def test_a_reader_does_not_wait_for_a_writer(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=1)
    with store.transaction() as tx:
        tx.upsert(PullRequest, [pull_request(2)])
        assert isinstance(tx, Transaction)
        seen_numbers: list[Any] = []
        thread = threading.Thread(target=lambda: seen_numbers.extend(numbers(store)))
        thread.start()
        thread.join(timeout=10)
        assert seen_numbers == [1]
