"""What changed since the last read, what a bounded read wants, and whether anything is missing or gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from miner import archive
from miner.archive import Page
from miner.github import cursors, rows
from miner.github.by_id import ById
from miner.github.cursors import StreamState
from miner.github.pages import utc
from miner.github.reading import CREATED_ASC, CREATED_DESC, UPDATED_DESC, RepositoryReading, listings
from miner.github.skips import Skips
from prchain.core.timestamps import stamp

OVERLAP = timedelta(minutes=5)
"""How far before the watermark is looked again: a list can show an update later than the update's own time."""

Node = Mapping[str, Any]


class Changes:
    """Finds pull requests to read by their numbers and times, which cost a hundredth of a point, and has them read."""

    def __init__(self, reading: RepositoryReading, by_id: ById, skips: Skips) -> None:
        self._reading = reading
        self._by_id = by_id
        self._skips = skips
        self.total = reading.repository.pull_requests

    def catch_up(self) -> None:
        """Read everything that was created or updated since the watermark, and move the watermark."""
        state = self._resume("changes")
        floor = earlier(state.watermark, OVERLAP) if state.watermark else ""
        updated_nodes: dict[int, Node] = {}
        for page in listings(self._reading, UPDATED_DESC):
            self.total = page.total
            updated_nodes.update((node["number"], node) for node in page.nodes if node["updatedAt"] >= floor)
            if any(node["updatedAt"] < floor for node in page.nodes):
                break
        newest = max((node["updatedAt"] for node in updated_nodes.values()), default=state.watermark)
        skipped = [] if self._reading.missing else [[node_id, n] for n, node_id in self._skips.known.items()]
        self._read(state, [*skipped, *self._differing(updated_nodes)])
        if state.watermark != newest:
            state.watermark = newest
            self._save(state)

    def bounded(self, since: str | None, limit: int | None) -> set[int]:
        """Read the `limit` newest pull requests, of those updated since `since`; leaves the watermark alone.

        Returns their numbers, changed or not.
        """
        state = self._resume("bounded")
        requested: dict[int, Node] = {}
        first = min(limit, 100) if limit and not since else None
        for page in listings(self._reading, UPDATED_DESC if since else CREATED_DESC, first):
            requested.update((node["number"], node) for node in page.nodes if not since or node["updatedAt"] >= since)
            if since and any(node["updatedAt"] < since for node in page.nodes):
                break
            if limit and not since and len(requested) >= limit:
                break
        newest = sorted(requested.values(), key=lambda node: (node["createdAt"], node["number"]), reverse=True)[:limit]
        self.total = len(newest)
        chosen = {node["number"]: node for node in newest}
        todo = self._differing(chosen)
        if todo:
            self._widen(utc(min(chosen[number]["createdAt"] for _, number in todo)) or "", state, todo)
        self._read(state, todo)
        return set(chosen)

    def check(self, *, thoroughly: bool = False) -> int:
        """Compare with GitHub's count; where it differs, or when asked to, compare number by number.

        Reads what is missing and marks what is gone. Returns how many GitHub counts but does not list.
        """
        state = self._load("check")
        with self._reading.store.reading() as tx:
            known = rows.present(tx, self._reading.repository_id)
        counts = [len(known), self.total]
        if not thoroughly and (counts[0] == counts[1] or counts == state.detail.get("settled")):
            return max(counts[1] - counts[0], 0)
        listed: dict[int, str] = {}
        for page in listings(self._reading, CREATED_ASC):
            self.total = page.total
            listed.update((node["number"], node["id"]) for node in page.nodes)
        missing = [[node_id, number] for number, node_id in listed.items() if number not in known]
        gone = sorted(set(known) - set(listed)) if len(listed) >= self.total else []
        if gone:
            self._mark_gone(gone)
        self._read(state, missing)
        with self._reading.store.reading() as tx:
            known = rows.present(tx, self._reading.repository_id)
        state.detail["settled"] = [len(known), self.total]
        self._save(state)
        return max(self.total - len(known), 0)

    def _resume(self, stream: str) -> StreamState:
        """Finish what an earlier run had begun to read."""
        state = self._load(stream)
        self._by_id.run(state)
        return state

    def _read(self, state: StreamState, todo: list[list[Any]]) -> None:
        if todo:
            state.detail["todo"] = todo
            self._save(state)
            self._by_id.run(state)

    def _differing(self, nodes: Mapping[int, Node]) -> list[list[Any]]:
        """Those that are not stored as GitHub has them now, the least recently updated first."""
        with self._reading.store.reading() as tx:
            known = rows.known_pull_requests(tx, self._reading.repository_id, nodes)
        differing: Iterable[Node] = (
            node
            for number, node in nodes.items()
            if known.get(number)
            != (node["id"], utc(node["updatedAt"]), node["headRefOid"], node["state"].lower(), None)
            and number not in self._reading.missing
        )
        return [[node["id"], node["number"]] for node in sorted(differing, key=lambda node: str(node["updatedAt"]))]

    def _widen(self, created: str, state: StreamState, todo: list[list[Any]]) -> None:
        """New pull requests may be older than the review comments read so far: read comments from `created` again."""
        with self._reading.store.transaction() as tx:
            comments = cursors.load(tx, self._reading.repository_id, "review_comments:bounded")
            if comments.position is None or created < comments.position:
                comments.position, comments.detail = created, {}
                cursors.save(tx, comments)
            state.detail["todo"] = todo
            cursors.save(tx, state)

    def _mark_gone(self, numbers: list[int]) -> None:
        reading = self._reading
        page = Page("gone", {"gone": numbers, "at": reading.now()}, None)
        with reading.store.transaction() as tx:
            rows.mark_gone(tx, reading.repository_id, numbers, page.request["at"])
            archive.keep(tx, reading.repository_id, page, reading.now())
        reading.changed = True

    def _load(self, stream: str) -> StreamState:
        with self._reading.store.reading() as tx:
            return cursors.load(tx, self._reading.repository_id, stream)

    def _save(self, state: StreamState) -> None:
        with self._reading.store.transaction() as tx:
            cursors.save(tx, state)


def earlier(time: str, by: timedelta) -> str:
    """Return a time of the store's form, moved back."""
    return stamp(datetime.fromisoformat(time) - by)
