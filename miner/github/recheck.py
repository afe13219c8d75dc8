"""A second look at the pull requests of the last days, for what no date betrays.

GitHub does not move a pull request's date when an issue that it closes is edited, when another one cites it, or when a
comment on it is deleted. Such things happen to what is at work; it is read again once a day, 20 for a point.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from miner.github import cursors, rows
from miner.github.by_id import ById
from miner.github.changes import earlier
from miner.github.pace import SWEEP
from miner.github.reading import RepositoryReading
from prchain.core.console.terminal import counted
from sql.store import Transaction

DEFAULT_DAYS = 30
PAUSE = timedelta(days=1)


class Recheck:
    """The bounded second look at stored pull requests; a bounded read has a state of its own."""

    def __init__(self, reading: RepositoryReading, by_id: ById, *, bounded: bool) -> None:
        self._reading = reading
        self._by_id = by_id
        with reading.store.reading() as tx:
            self._state = cursors.load(tx, reading.repository_id, "recheck:bounded" if bounded else "recheck")

    def run(self, days: int | None, among: Collection[int] | None = None) -> None:
        """Read again what was last updated within `days` and not read by this run; of `among` only, where given.

        None stands for `DEFAULT_DAYS`, once in a `PAUSE`, without what is incomplete, which is not asked for again as
        long as its date stands; a number of days is read whenever it is asked for, all of it.
        """
        self._by_id.run(self._state)
        if days is None and self._is_recent():
            return
        by_itself = days is None
        days = DEFAULT_DAYS if days is None else days
        reading = self._reading
        floor = earlier(reading.now(), timedelta(days=days))
        with reading.store.reading() as tx:
            recent = rows.updated_since(tx, reading.repository_id, floor, incomplete=not by_itself) if days else {}
        todo = [
            [node_id, number]
            for number, node_id in recent.items()
            if number not in reading.written and number not in reading.missing and (among is None or number in among)
        ]
        self._state.detail["todo"] = todo
        if days >= DEFAULT_DAYS:
            self._state.watermark = reading.now()
        self._save()
        points = counted(-(-len(todo) // SWEEP[0].first), "point")
        self._by_id.run(self._state, f"pull requests of the last {counted(days, 'day')} again, {points}")

    def all_read(self, tx: Transaction) -> None:
        """Note that everything has just been read, in the transaction in which that ends."""
        self._state.watermark = self._reading.now()
        cursors.save(tx, self._state)

    def _is_recent(self) -> bool:
        last = self._state.watermark
        return last is not None and last > earlier(self._reading.now(), PAUSE)

    def _save(self) -> None:
        with self._reading.store.transaction() as tx:
            cursors.save(tx, self._state)
