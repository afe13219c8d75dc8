"""The first read, and every rescan: all pull requests, oldest first."""

from __future__ import annotations

from miner import archive
from miner.archive import Page
from miner.github import cursors, pages, queries, rows
from miner.github.faults import CursorRefused, Malformed, Overloaded
from miner.github.overflow import Overflow
from miner.github.pace import SWEEP, Pace
from miner.github.page_rows import PageRows
from miner.github.pages import PullRequestPage
from miner.github.reading import CREATED_ASC, MAX_DOUBTS, RepositoryReading, follows, is_short, listings
from miner.github.skips import Skips, reason_of
from prchain.core.errors import BadAnswer
from sql.store import Transaction

LAST_ATTEMPTS = 3
MAX_SKIPS = 5
"""Pull requests skipped in a row; beyond that GitHub fails, not they."""


class Sweep:
    """One pass over all pull requests. Each page's rows and the cursor behind it are one transaction."""

    def __init__(self, reading: RepositoryReading, overflow: Overflow, skips: Skips) -> None:
        self._reading = reading
        self._overflow = overflow
        self._skips = skips
        with reading.store.reading() as tx:
            self.state = cursors.load(tx, reading.repository_id, "sweep")
        self._pace = Pace(SWEEP, self.state.page_size)
        self._trail: set[str] = set() if self.state.position is None else {self.state.position}
        self._doubts = self._failures = self._skipped = 0
        self._lenient = self._begun_anew = False

    @property
    def has_begun(self) -> bool:
        """Whether a pass was ever begun, in this run or an earlier one."""
        return "turn" in self.state.detail

    @property
    def finished(self) -> bool:
        """Whether all that belongs to the pass is done, not only its list read to the end."""
        return bool(self.state.detail.get("finished"))

    @property
    def is_rescan(self) -> bool:
        """Whether there was a pass before this one."""
        return bool(self.state.detail["turn"])

    def finish(self, tx: Transaction) -> None:
        """Everything that belongs to the pass is done."""
        self.state.detail["finished"] = True
        cursors.save(tx, self.state)

    def begin(self) -> None:
        """Begin a pass. Whatever changes from here on is found by its time of update."""
        self.state.position, self.state.complete = None, False
        self.state.watermark = self._reading.repository.newest_update
        self.state.detail = {"turn": self.state.detail.get("turn", -1) + 1, "latest": ""}
        self._trail.clear()
        with self._reading.store.transaction() as tx:
            changes = cursors.load(tx, self._reading.repository_id, "changes")
            changes.watermark = self.state.watermark
            cursors.save(tx, changes)
            comments = cursors.load(tx, self._reading.repository_id, "review_comments")
            comments.position, comments.complete = None, False
            comments.detail = {"turn": self.state.detail["turn"]}
            cursors.save(tx, comments)
            cursors.save(tx, self.state)

    def run(self) -> None:
        """Read on from the pass's cursor to its end."""
        if self.state.complete:
            return
        task = self._reading.task("pull requests", self._reading.repository.pull_requests)
        while not self.state.complete:
            before = len(self._reading.written)
            self._step()
            task.advance(len(self._reading.written) - before)
            self._overflow.drain(wholly=False)
        task.done()

    def _step(self) -> None:
        reading, step = self._reading, self._pace.step
        variables = {**reading.names, "first": step.first, "after": self.state.position, "inner": step.inner}
        query = queries.load("sweep")
        try:
            answer = reading.ask(query, variables)
            request = {"repository": reading.repository.full_name, "variables": variables, **answer.refusals}
            page = Page("sweep", request, answer.data, query.text, self.state.detail["turn"])
            page_rows = rows.parse(reading.repository_id, page)
            listing = pages.listing(answer.data)
        except CursorRefused:
            self._begin_list_anew()
            return
        except Overloaded as fault:
            self._give_way(fault)
            return
        if not follows(listing, self._trail):
            self._doubt()
        elif (is_short(listing, step.first) or self._leads_back(listing)) and not self._lenient:
            self._lenient = True
        else:
            self._doubts = self._failures = self._skipped = 0
            self._pace.succeeded()
            self._commit(page, listing, page_rows)

    def _commit(self, page: Page, listing: PullRequestPage, page_rows: PageRows) -> None:
        reading = self._reading
        self._advance(listing)
        with reading.store.transaction() as tx:
            rows.write(tx, reading.repository_id, page_rows, replace=True)
            archive.keep(tx, reading.repository_id, page, reading.now())
            self._overflow.note(tx, page_rows, [node["id"] for node in listing.nodes])
            self._skips.settled(tx, [node["number"] for node in listing.nodes])
            cursors.save(tx, self.state)
        reading.written.update(node["number"] for node in listing.nodes)
        reading.changed = reading.changed or bool(listing.nodes)

    def _advance(self, listing: PullRequestPage) -> None:
        self.state.page_size = self._pace.step.first
        self.state.complete = not listing.has_next
        if listing.has_next:
            self.state.position = listing.end_cursor
            self._trail.add(str(listing.end_cursor))
        if listing.nodes:
            self.state.detail["latest"] = max(node["createdAt"] for node in listing.nodes)

    def _leads_back(self, listing: PullRequestPage) -> bool:
        """Whether pull requests come that are older than those before: a page that came before, or a wrong cursor."""
        return bool(listing.nodes) and listing.nodes[0]["createdAt"] < self.state.detail["latest"]

    def _doubt(self) -> None:
        """Ask again for a page whose cursor is missing or leads back; then for a page that ends elsewhere."""
        self._doubts += 1
        self._reading.client.pause(min(self._doubts, 4) - 1)
        if self._doubts >= MAX_DOUBTS and not self._pace.shrink():
            self._leave_rest_to_the_check()

    def _begin_list_anew(self) -> None:
        """The cursor is refused: walk the list from its beginning, by the light query, to where the pass had come to.

        What is stored stays, and less than a page of the light query of it is read again. Where GitHub refuses the new
        cursors, too, the check finds the rest.
        """
        if self._begun_anew or self.state.position is None:
            self._leave_rest_to_the_check()
            return
        self._begun_anew = True
        latest = self.state.detail["latest"]
        self.state.position, self.state.detail["latest"] = None, ""
        self._trail.clear()
        for page in listings(self._reading, CREATED_ASC):
            if not page.has_next or any(node["createdAt"] >= latest for node in page.nodes):
                break
            self._advance(page)
        with self._reading.store.transaction() as tx:
            cursors.save(tx, self.state)

    def _give_way(self, fault: Overloaded) -> None:
        """Ask for less; where one pull request alone is too much, skip it."""
        self._failures += 1
        self._reading.client.pause(min(self._failures, 4) - 1)
        if self._pace.single() if isinstance(fault, Malformed) else self._pace.shrink():
            self._failures = 0
            return
        if self._failures >= LAST_ATTEMPTS:
            self._failures = 0
            self._skip(fault)

    def _skip(self, fault: Overloaded) -> None:
        """Step over the next pull request by the light query; raises `BadAnswer` when GitHub answers nothing at all."""
        self._skipped += 1
        if self._skipped > MAX_SKIPS:
            raise BadAnswer(f"GitHub fails on every pull request ({fault}); run again later")
        reading = self._reading
        variables = {**reading.names, "first": 1, "after": self.state.position, "order": CREATED_ASC}
        try:
            listing = pages.listing(reading.ask(queries.load("listing"), variables).data)
        except Overloaded as worse:
            raise BadAnswer(f"GitHub cannot even list pull requests: {worse}") from None
        if not follows(listing, self._trail):
            self._leave_rest_to_the_check()
            return
        self._pace.forgive()
        self._advance(listing)
        with reading.store.transaction() as tx:
            for node in listing.nodes:
                self._skips.add(tx, node["number"], node["id"], reason_of(fault))
            cursors.save(tx, self.state)

    def _leave_rest_to_the_check(self) -> None:
        """The list cannot be followed any further: what is missing will show in the count, and is read by ids."""
        self.state.complete = True
        with self._reading.store.transaction() as tx:
            cursors.save(tx, self.state)
