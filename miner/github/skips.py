"""Pull requests that GitHub could not deliver, remembered so that the next run asks for them again."""

from __future__ import annotations

from collections.abc import Iterable

from miner import archive
from miner.archive import Page
from miner.github import cursors, rows
from miner.github.faults import Malformed, Overloaded
from miner.github.reading import RepositoryReading
from sql.store import Transaction

REASON = "GitHub fails on it, however little is asked for at once"


def reason_of(fault: Overloaded) -> str:
    """Why a pull request is skipped on which GitHub answers so, though it alone was asked for."""
    return str(fault) if isinstance(fault, Malformed) else REASON


class Skips:
    """The skipped pull requests of a repository: node ids by number."""

    def __init__(self, reading: RepositoryReading) -> None:
        self._reading = reading
        with reading.store.reading() as tx:
            self._state = cursors.load(tx, reading.repository_id, "skipped")

    @property
    def known(self) -> dict[int, str]:
        """Node ids by number."""
        return {int(number): node_id for number, node_id in self._state.detail.items()}

    def add(self, tx: Transaction, number: int, node_id: str, reason: str) -> None:
        """Record a pull request as skipped."""
        self._reading.missing[number] = reason
        self._state.detail[str(number)] = node_id
        self._write(tx, number, node_id, reason)

    def settled(self, tx: Transaction, numbers: Iterable[int]) -> None:
        """These were delivered, or are gone."""
        for number in numbers:
            node_id = self._state.detail.pop(str(number), None)
            if node_id is not None:
                self._reading.missing.pop(number, None)
                self._write(tx, number, node_id, None)

    def _write(self, tx: Transaction, number: int, node_id: str, reason: str | None) -> None:
        page = Page("skipped", {"number": number, "node_id": node_id, "reason": reason}, None)
        rows.mark_skipped(tx, self._reading.repository_id, number, node_id, reason)
        archive.keep(tx, self._reading.repository_id, page, self._reading.now())
        cursors.save(tx, self._state)
