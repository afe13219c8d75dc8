"""Review comments of the whole repository, in the order of their last update.

They are paged by key, not by page number: each request asks for what was updated since the last item that came, so
that neither a deep page (GitHub refuses those) nor a comment that moves while it is read is a danger. The last
request is remembered with its ETag: as long as nothing new came, asking it again costs nothing.
"""

from __future__ import annotations

from datetime import timedelta

from miner import archive
from miner.archive import Page
from miner.github import cursors, rows
from miner.github.changes import earlier
from miner.github.client import RestAnswer
from miner.github.faults import Incomplete, Overloaded
from miner.github.pages import utc
from miner.github.reading import MAX_STUMBLES, RepositoryReading
from miner.github.rows import Window
from prchain.core.errors import BadAnswer

PER_PAGE = (100, 50, 20)
SECOND = timedelta(seconds=1)
MAX_DOUBTS = 2
"""So often a page with malformed items is asked for again."""


class ReviewComments:
    """The stream of review comments; a bounded one has a cursor of its own."""

    def __init__(self, reading: RepositoryReading, *, bounded: bool) -> None:
        self._reading = reading
        self._bounded = bounded
        self._stream = "review_comments:bounded" if bounded else "review_comments"
        with reading.store.reading() as tx:
            self._state = cursors.load(tx, reading.repository_id, self._stream)
        self._page = 1
        self._per_page = PER_PAGE[0]
        self.strangers = False
        """Whether there were comments on pull requests that are not known yet."""
        self.came = False
        """Whether any comments came that were new, or have gone."""

    def run(self) -> None:
        """Read on to the newest comment."""
        task = self._reading.task("review comments", None)
        if self._state.complete:
            self._state.complete = False
            self._state.detail["again"] = True
            if "lacking" in self._state.detail:
                self._state.position = self._state.detail.pop("lacking")[0]
                self._state.detail.pop("etag", None)
        while not self._state.complete:
            answer = self._fetch()
            if self._reading.client.moved:
                self._reading.follow()
            if answer.items is None:
                break
            self._commit(answer)
            task.advance(len(answer.items))
        task.done()

    def begin_anew(self) -> None:
        """Let the next run begin with the oldest comment; what it does not find again has vanished."""
        self._state.position, self._state.complete, self._page = None, False, 1
        self._state.detail = {"turn": self._state.detail.get("turn", 0), "again": True}

    def _fetch(self) -> RestAnswer:
        repository, since = self._reading.repository, self._since()
        path = f"/repos/{repository.owner}/{repository.name}/pulls/comments"
        doubts = 0
        for attempt in range(MAX_STUMBLES):
            etag = self._state.detail.get("etag") if self._page == 1 else None
            try:
                answer = self._reading.client.review_comments(path, self._parameters(), etag)
                if since and any(str(item["updated_at"]) < since for item in answer.items or ()):
                    raise Incomplete("another list came than was asked for")
                if answer.malformed and doubts < MAX_DOUBTS:
                    doubts += 1
                    self._reading.client.pause(doubts - 1)
                    continue
                return answer
            except Overloaded:
                self._page, self._per_page = 1, PER_PAGE[min(attempt + 1, len(PER_PAGE) - 1)]
                self._reading.client.pause(attempt)
        raise BadAnswer("GitHub could not list the review comments, however few were asked for; run again later")

    def _parameters(self) -> dict[str, str]:
        since = self._since()
        return {
            "sort": "updated",
            "direction": "asc",
            "per_page": str(self._per_page),
            **({"since": since} if since else {}),
            **({"page": str(self._page)} if self._page > 1 else {}),
        }

    def _since(self) -> str | None:
        """A second before the last item: whether GitHub's ``since`` takes in its own second is not documented."""
        return earlier(self._state.position, SECOND) if self._state.position else None

    def _commit(self, answer: RestAnswer) -> None:
        reading, state = self._reading, self._state
        items = answer.items or []
        reading.malformed.extend(answer.malformed)
        if answer.malformed:
            # The next run begins here again, until the page comes whole.
            state.detail.setdefault("lacking", [state.position])
        request = {"parameters": self._parameters(), "bounded": self._bounded}
        window = self._window(answer)
        if window is not None:
            request["window"] = [window.start, window.end, window.after_start]
        page = Page(self._stream, request, items, turn=state.detail.get("turn", 0))
        self._advance(answer)
        with reading.store.transaction() as tx:
            written = rows.write_review_comments(tx, reading.repository_id, items, window, bounded=self._bounded)
            if written.changed:
                archive.keep(tx, reading.repository_id, page, reading.now())
            cursors.save(tx, state)
        reading.changed = reading.changed or written.changed
        self.came = self.came or written.changed
        self.strangers = self.strangers or bool(written.strangers)

    def _window(self, answer: RestAnswer) -> Window | None:
        """The times that the page covers wholly; None on the first pass, when nothing can have vanished yet."""
        state, items = self._state, answer.items or []
        first_pass = not state.detail.get("again") and not state.detail.get("turn")
        if first_pass or answer.malformed or (answer.has_next and len(items) < self._per_page):
            return None
        end = max(str(utc(item["updated_at"])) for item in items) if answer.has_next else None
        return Window(state.position, end, after_start=self._page > 1)

    def _advance(self, answer: RestAnswer) -> None:
        state = self._state
        state.detail.pop("etag", None)
        if not answer.has_next:
            state.complete = True
            if self._page == 1 and answer.etag:
                state.detail["etag"] = answer.etag
            return
        latest = max((str(utc(item["updated_at"])) for item in answer.items or ()), default="")
        if latest > (state.position or ""):
            state.position, self._page = latest, 1
        else:
            self._page += 1
