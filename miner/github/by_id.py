"""Reading chosen pull requests by their node ids, from a list that is stored until it is done."""

from __future__ import annotations

from miner import archive
from miner.archive import Page
from miner.github import cursors, queries, rows
from miner.github.cursors import StreamState
from miner.github.faults import Malformed, Overloaded
from miner.github.overflow import Overflow
from miner.github.pace import SWEEP, Pace
from miner.github.page_rows import PageRows
from miner.github.reading import RepositoryReading
from miner.github.skips import Skips, reason_of
from miner.github.vanished import note_reread
from prchain.core.errors import BadAnswer
from sql.tables import PullRequest

LAST_ATTEMPTS = 3
MAX_SKIPS = 5


class ById:
    """Reads the pull requests that a stream's detail lists under ``todo``, as [node id, number]."""

    def __init__(self, reading: RepositoryReading, overflow: Overflow, skips: Skips) -> None:
        self._reading = reading
        self._overflow = overflow
        self._skips = skips
        self._pace = Pace(SWEEP)
        self._failures = self._skipped = 0

    def run(self, state: StreamState, title: str = "changed pull requests") -> None:
        """Read all that is listed; the list shrinks in the transaction of the rows."""
        todo = state.detail.get("todo", [])
        if not todo:
            return
        task = self._reading.task(title, len(todo))
        while todo := state.detail["todo"]:
            self._step(state, todo[: self._pace.step.first])
            task.advance(len(todo) - len(state.detail["todo"]))
            self._overflow.drain(wholly=False)
        task.done()

    def _step(self, state: StreamState, chosen: list[list[object]]) -> None:
        reading = self._reading
        ids = [str(node_id) for node_id, _ in chosen]
        numbers = [int(str(number)) for _, number in chosen]
        variables = {"ids": ids, "inner": self._pace.step.inner}
        query = queries.load("pull_requests")
        try:
            answer = reading.ask(query, variables)
            absent = [i for i in range(len(ids)) if ("nodes", i) in answer.not_found]
            request = {
                "repository": reading.repository.full_name,
                "ids": ids,
                "variables": variables,
                "absent": absent,
                "gone": [numbers[i] for i in absent],
                **({"at": reading.now()} if absent else {}),
                **answer.refusals,
            }
            page = Page("pull_requests", request, answer.data, query.text)
            page_rows = rows.parse(reading.repository_id, page)
        except Overloaded as fault:
            self._give_way(state, chosen, fault)
            return
        self._pace.succeeded()
        self._failures = self._skipped = 0
        self._commit(state, page, page_rows, ids, numbers)

    def _commit(self, state: StreamState, page: Page, page_rows: PageRows, ids: list[str], numbers: list[int]) -> None:
        reading = self._reading
        state.detail["todo"] = [entry for entry in state.detail["todo"] if entry[0] not in ids]
        with reading.store.transaction() as tx:
            rows.write(tx, reading.repository_id, page_rows, replace=True)
            rows.mark_gone(tx, reading.repository_id, page.request["gone"], page.request.get("at", ""))
            archive.keep(tx, reading.repository_id, page, reading.now())
            self._overflow.note(tx, page_rows, ids)
            self._skips.settled(tx, numbers)
            note_reread(tx, reading.repository_id, numbers)
            cursors.save(tx, state)
        reading.written.update(row["number"] for row in page_rows.of(PullRequest))
        reading.changed = True

    def _give_way(self, state: StreamState, chosen: list[list[object]], fault: Overloaded) -> None:
        """Ask for less; skip a pull request that alone is too much. Raises `BadAnswer` when all of them are."""
        self._failures += 1
        self._reading.client.pause(min(self._failures, 4) - 1)
        if self._pace.single() if isinstance(fault, Malformed) else self._pace.shrink():
            self._failures = 0
        elif self._failures >= LAST_ATTEMPTS:
            self._failures = 0
            self._skipped += 1
            if self._skipped > MAX_SKIPS:
                raise BadAnswer(f"GitHub fails on every pull request ({fault}); run again later")
            node_id, number = chosen[0]
            state.detail["todo"] = state.detail["todo"][1:]
            self._pace.forgive()
            with self._reading.store.transaction() as tx:
                self._skips.add(tx, int(str(number)), str(node_id), reason_of(fault))
                cursors.save(tx, state)
