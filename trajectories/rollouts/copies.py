"""Trees of copies of a stage's sandbox: what is known of a snapshot's files is known of those of its copies."""

from __future__ import annotations

from collections.abc import Callable

from environments.checkouts.tracking import TrackedTree, Tracker
from environments.sandboxes.sandbox import Sandbox


class TrackedCopies:
    """See `StageCopies`. `tracker_of` makes a sandbox's tracker, and `counted` gives what counts of its tree. `placed`
    is what is known of the stage's sandbox before anybody has used it."""

    def __init__(
        self,
        tracker_of: Callable[[Sandbox], Tracker],
        counted: Callable[[str], str] = str,
        placed: TrackedTree | None = None,
    ) -> None:
        self._tracker_of = tracker_of
        self._counted = counted
        self._placed = placed
        self._known: dict[str, TrackedTree] = {}
        """By snapshot."""

    def track(self, sandbox: Sandbox, snapshot: str | None) -> TrackedCopy:
        """See `StageCopies`. Raises as `Tracker.take`."""
        tracker = self._tracker_of(sandbox)
        # The first copy alone is made before any has run: later ones could have files whose times were set back.
        placed, self._placed = self._placed, None
        if snapshot in self._known:
            tracker.begin_as(self._known[snapshot])
        elif snapshot is not None:
            if placed is not None:
                tracker.begin_as(placed)
            else:
                tracker.take()
            self._keep(snapshot, tracker)
        return TrackedCopy(tracker, self._counted, self._keep)

    def forget(self, snapshot: str) -> None:
        """See `StageCopies`."""
        self._known.pop(snapshot, None)

    def _keep(self, snapshot: str, tracker: Tracker) -> None:
        if (known := tracker.known()) is not None:
            self._known[snapshot] = known


class TrackedCopy:
    """See `CopyTrees`."""

    def __init__(self, tracker: Tracker, counted: Callable[[str], str], keep: Callable[[str, Tracker], None]) -> None:
        self._tracker = tracker
        self._counted = counted
        self._keep = keep

    def take(self) -> str:
        """See `CopyTrees`. Raises as `Tracker.take`."""
        return self._counted(self._tracker.take())

    def kept(self, snapshot: str) -> None:
        """See `CopyTrees`."""
        self._keep(snapshot, self._tracker)
