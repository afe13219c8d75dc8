"""The recorder that writes each step of a trajectory as it happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sql.store import Store, Transaction
from trajectories.agents.scaffolds.scaffold import Record
from trajectories.branches import BranchRow, write_branches
from trajectories.model import Entry, EntryKind
from trajectories.rows import drop_tokens, write_entries, write_tools


class StoreRecorder:
    """Writes the entries of one trajectory, each call one transaction, and keeps the conversation as it grows.

    `tree_now` gives the sandbox's tree; None where trees are not tracked. The next tree is compared with `last_tree`.
    `first_details` go into the details of the first entry that is added: what happened to the sandbox. `track_anew` is
    called where the sandbox went back to a snapshot: what is known of its files does not hold any more.
    """

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        entries: Sequence[Entry],
        *,
        tree_now: Callable[[], str] | None = None,
        last_tree: str | None = None,
        first_details: Mapping[str, Any] | None = None,
        track_anew: Callable[[], None] = lambda: None,
    ) -> None:
        self.entries = list(entries)
        self._store = store
        self._id = trajectory_id
        self._tree_now = tree_now
        self._last_tree = last_tree
        self._first_details = dict(first_details or {})
        self._tree_requested = False
        self._track_anew = track_anew

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        """See `Recorder`. Raises `ValueError` for entries that do not follow the stored ones."""
        if not entries:
            if records:
                with self._store.transaction() as tx:
                    _write(tx, records)
            return
        start = self.entries[-1].ordinal + 1 if self.entries else 0
        if [entry.ordinal for entry in entries] != list(range(start, start + len(entries))):
            raise ValueError(f"entries must be numbered from {start} on")
        kept = list(entries)
        if not self._tree_requested and any(entry.kind is EntryKind.OBSERVATION for entry in kept):
            # The scaffold never asked for a tree, so we take it: without a tree no step can be resumed.
            kept[-1] = replace(kept[-1], tree=self._changed_tree())
        if self._first_details:
            kept[0] = replace(kept[0], details={**kept[0].details, **self._first_details})
        with self._store.transaction() as tx:
            write_entries(tx, self._id, kept)
            _write(tx, records)
        self._first_details = {}
        self.entries.extend(kept)

    def retell(
        self,
        entries: Sequence[Entry],
        tools: Sequence[Mapping[str, Any]],
        records: Sequence[Record] = (),
        *,
        branches: Sequence[BranchRow] = (),
    ) -> None:
        """See `RetellingRecorder`. Raises `ValueError` for entries that begin elsewhere than the last one stands."""
        if not self.entries or entries[0].ordinal != self.entries[-1].ordinal:
            raise ValueError("an attempt stands in the place of its opening")
        kept = list(entries)
        if self._first_details:
            kept[0] = replace(kept[0], details={**kept[0].details, **self._first_details})
        with self._store.transaction() as tx:
            drop_tokens(tx, self._id, kept[0].ordinal)
            write_entries(tx, self._id, kept)
            write_tools(tx, self._id, tools)
            _write(tx, records)
            write_branches(tx, self._id, kept[0].position, kept[0].attempt, branches)
        self._first_details = {}
        self.entries[-1:] = kept

    def tree(self) -> str | None:
        """See `Recorder`."""
        self._tree_requested = True
        return self._changed_tree()

    def restored(self, tree: str) -> None:
        """See `Recorder`."""
        self._tree_requested = True
        self._last_tree = tree
        self._track_anew()

    def _changed_tree(self) -> str | None:
        if self._tree_now is None:
            return None
        tree = self._tree_now()
        if tree == self._last_tree:
            return None
        self._last_tree = tree
        return tree


class ReportingRecorder:
    """A recorder that reports each stored step."""

    def __init__(self, inner: StoreRecorder, report_step: Callable[[int], None]) -> None:
        self._inner = inner
        self._report_step = report_step

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        """See `Recorder`."""
        self._inner.add(entries, records)
        if entries:
            self._report_step(entries[-1].step)

    def retell(
        self,
        entries: Sequence[Entry],
        tools: Sequence[Mapping[str, Any]],
        records: Sequence[Record] = (),
        *,
        branches: Sequence[BranchRow] = (),
    ) -> None:
        """See `RetellingRecorder`."""
        self._inner.retell(entries, tools, records, branches=branches)

    def tree(self) -> str | None:
        """See `Recorder`."""
        return self._inner.tree()

    def restored(self, tree: str) -> None:
        """See `Recorder`."""
        self._inner.restored(tree)


def _write(tx: Transaction, records: Sequence[Record]) -> None:
    for record in records:
        record(tx)
