"""Review comments that are gone from pull requests that were read again.

The repository's list of comments tells by time what is there, and never what went. So the ids of a pull request's own
list are asked for: one request for each that was read again and has such comments, none for the others.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from miner import archive
from miner.archive import Page
from miner.github import cursors, rows
from miner.github.cursors import StreamState
from miner.github.faults import Malformed, Overloaded
from miner.github.reading import MAX_MALFORMED, MAX_STUMBLES, RepositoryReading
from prchain.core.errors import BadAnswer, RepositoryNotFound
from sql.store import Transaction

PER_PAGE = 100
STREAM = "comments_present"


def note_reread(tx: Transaction, repository_id: int, numbers: Collection[int]) -> None:
    """Remember which of the pull requests just read have stored review comments, in the transaction of their rows."""
    having = rows.with_review_comments(tx, repository_id, numbers)
    if having:
        state = cursors.load(tx, repository_id, STREAM)
        state.detail["todo"] = sorted({*state.detail.get("todo", ()), *having})
        cursors.save(tx, state)


class VanishedComments:
    """Compares the stored review comments with those that are there; comes before new ones are read."""

    def __init__(self, reading: RepositoryReading) -> None:
        self._reading = reading

    def run(self) -> None:
        """Compare all that wait; the list shrinks in the transaction of the rows."""
        reading = self._reading
        with reading.store.reading() as tx:
            state = cursors.load(tx, reading.repository_id, STREAM)
        if not state.detail.get("todo"):
            return
        task = reading.task("review comments that may be gone", len(state.detail["todo"]))
        for number in list(state.detail["todo"]):
            with suppress(Malformed):  # That is told, and the pull request waits for the next run.
                self._compare(state, number)
            task.advance(1)
        task.done()

    def _compare(self, state: StreamState, number: int) -> None:
        reading = self._reading
        present = self._present(number)
        state.detail["todo"] = [other for other in state.detail["todo"] if other != number]
        with reading.store.transaction() as tx:
            if present is not None and rows.keep_review_comments(tx, reading.repository_id, number, present):
                page = Page(STREAM, {"number": number, "at": reading.now()}, sorted(present))
                archive.keep(tx, reading.repository_id, page, reading.now())
                reading.changed = True
            cursors.save(tx, state)

    def _present(self, number: int) -> set[str] | None:
        """The ids of the pull request's review comments; None where that cannot be said for sure.

        Where some seem to be gone, the list may be of another repository that has taken the name. And a comment that is
        deleted while several pages are read shifts another one out of them: long lists are read twice, and have to
        agree. Raises `Malformed` where some have not the form they must have.
        """
        reading = self._reading
        try:
            present, pages = self._listed(number)
            with reading.store.reading() as tx:
                gone = rows.other_review_comments(tx, reading.repository_id, number, present)
            if gone and reading.follow():
                return self._present(number)
            return present if not gone or pages == 1 or self._listed(number)[0] == present else None
        except RepositoryNotFound:
            return None  # The pull request went meanwhile: the next check of numbers finds that.

    def _listed(self, number: int) -> tuple[set[str], int]:
        reading = self._reading
        path = f"/repos/{reading.repository.full_name}/pulls/{number}/comments"
        ids: set[str] = set()
        page, stumbles, doubts = 1, 0, 0
        while True:
            parameters = {"per_page": str(PER_PAGE), **({"page": str(page)} if page > 1 else {})}
            try:
                answer = reading.client.review_comments(path, parameters)
            except Overloaded:
                stumbles += 1
                if stumbles == MAX_STUMBLES:
                    raise BadAnswer(f"GitHub does not list the review comments of #{number}; run again later") from None
                reading.client.pause(stumbles - 1)
                continue
            if answer.malformed:
                doubts += 1
                if doubts == MAX_MALFORMED:
                    reading.malformed.extend(answer.malformed)
                    raise Malformed(answer.malformed[0])
                reading.client.pause(doubts - 1)
                continue
            ids.update(str(item["id"]) for item in answer.items or ())
            if not answer.has_next:
                return ids, page
            page += 1
