"""A stamp is another one after each commit, by whomever, and the same one while nothing is written."""

from __future__ import annotations

from contextlib import closing

from sql.changes import stamp_of
from sql.store import Store
from sql.tables import Repository

ROW = {"id": 1, "host": "github.com", "owner": "a", "name": "b", "location": "a/b"}


def test_a_commit_of_another_changes_the_stamp_and_reading_does_not(database_url: str) -> None:
    with closing(Store.open(database_url)) as store, closing(Store.open(database_url)) as other:
        with store.reading() as tx:
            tx.count(Repository)

        def is_kept() -> bool:
            before = stamp_of(store)
            with store.reading() as tx:
                tx.count(Repository)
            return stamp_of(store) == before

        # PostgreSQL counts the transactions of the whole server, and other tests' databases are there.
        assert any(is_kept() for _ in range(50))
        before = stamp_of(store)
        seen = {before}
        for name in ("b", "c", "d"):
            for writer in (other, store):
                with writer.transaction() as tx:
                    tx.upsert(Repository, [{**ROW, "name": name}])
                    tx.upsert(Repository, [{**ROW, "name": f"{name}2"}])
                assert stamp_of(store) not in seen
                seen.add(stamp_of(store))
