"""The rest of the connections that did not fit into a page, and those that lacked something, for many pull requests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from miner import archive
from miner.archive import Page
from miner.github import cursors, queries, rows
from miner.github.faults import CursorRefused, Malformed, Overloaded
from miner.github.pace import MORE, Pace
from miner.github.page_rows import PageRows, PendingConnection
from miner.github.pages import CONNECTIONS
from miner.github.reading import RepositoryReading
from sql.store import Transaction

ENOUGH = MORE[0].first
LAST_ATTEMPTS = 3


class Overflow:
    """The connections still to be fetched. Stored with the rows that lack them, so that a kill loses none."""

    def __init__(self, reading: RepositoryReading) -> None:
        self._reading = reading
        with reading.store.reading() as tx:
            self._state = cursors.load(tx, reading.repository_id, "owed")
        self._owed: dict[str, dict[str, PendingConnection]] = {name: {} for name in CONNECTIONS}
        for name, entries in self._state.detail.items():
            self._owed[name] = {entry[0]: PendingConnection(name, *entry) for entry in entries}
        self._pace = Pace(MORE, self._state.page_size)
        self._stuck: set[str] = set()

    def note(self, tx: Transaction, written: PageRows, node_ids: Collection[str]) -> None:
        """Take over what rows just written still lack; `node_ids` are the pull requests that were read anew."""
        before = self._entries()
        for entries in self._owed.values():
            for node_id in node_ids:
                entries.pop(node_id, None)
        for owed in written.owed:
            self._owed[owed.connection][owed.node_id] = owed
        if self._entries() != before:
            self._save(tx)

    def drain(self, *, wholly: bool) -> None:
        """Fetch full batches, or, `wholly`, all that is owed.

        What GitHub cannot deliver even one item at a time stays owed, for the next run, and is named as missing.
        """
        for name, entries in self._owed.items():
            while True:
                todo = [owed for owed in entries.values() if f"{name} {owed.node_id}" not in self._stuck]
                if not todo or (len(todo) < ENOUGH and not wholly):
                    break
                fault = self._fetch(name, todo)
                if fault is not None:
                    self._stuck.add(f"{name} {todo[0].node_id}")
                    self._reading.missing[todo[0].number] = f"GitHub does not deliver all of its {name}: {fault}"

    def _fetch(self, name: str, todo: list[PendingConnection]) -> str | None:
        """Fetch one page of each of the first few; why not, when not even a page of one item of the first one came."""
        reading, last, begun_anew = self._reading, 0, False
        while True:
            chosen = todo[: self._pace.step.first]
            query = queries.batch(CONNECTIONS[name].file, len(chosen))
            variables: dict[str, object] = {"first": self._pace.step.inner}
            for i, owed in enumerate(chosen):
                variables |= {f"id{i}": owed.node_id, f"after{i}": owed.after}
            try:
                answer = reading.ask(query, variables)
                request = {
                    "repository": reading.repository.full_name,
                    "first": self._pace.step.inner,
                    "nodes": {f"n{i}": [owed.node_id, *_rest(owed)] for i, owed in enumerate(chosen)},
                    "absent": sorted(str(path[0]) for path in answer.not_found if path),
                    **answer.refusals,
                }
                page = Page(f"more:{name}", request, answer.data, query.text)
                page_rows = rows.parse(reading.repository_id, page)
            except CursorRefused as fault:
                if begun_anew:
                    return str(fault)
                # Whose cursor it was is not always said; what came before the cursors comes once more.
                begun_anew, todo = True, [replace(owed, after=None, offset=0, hidden=0) for owed in chosen]
                continue
            except Overloaded as fault:
                smaller = self._pace.single() if isinstance(fault, Malformed) else self._pace.shrink()
                last += not smaller
                if last == LAST_ATTEMPTS:
                    return str(fault)
                reading.client.pause(last)
                continue
            self._pace.succeeded()
            self._commit(name, chosen, page, page_rows)
            return None

    def _commit(self, name: str, chosen: list[PendingConnection], page: Page, page_rows: PageRows) -> None:
        reading = self._reading
        with reading.store.transaction() as tx:
            rows.write(tx, reading.repository_id, page_rows, replace=False)
            archive.keep(tx, reading.repository_id, page, reading.now())
            for owed in chosen:
                del self._owed[name][owed.node_id]
            for owed in page_rows.owed:
                self._owed[name][owed.node_id] = owed
            self._save(tx)

    def _entries(self) -> dict[str, list[list[object]]]:
        return {
            name: [[owed.node_id, owed.number, *_rest(owed)] for owed in entries.values()]
            for name, entries in self._owed.items()
            if entries
        }

    def _save(self, tx: Transaction) -> None:
        self._state.detail = dict(self._entries())
        self._state.page_size = self._pace.step.first
        cursors.save(tx, self._state)


def _rest(owed: PendingConnection) -> list[object]:
    """Where it goes on, as it is stored."""
    return [owed.after, owed.offset, owed.hidden, owed.again]
