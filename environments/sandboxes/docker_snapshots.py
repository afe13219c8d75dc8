"""Snapshots in an engine are images, or copies of what was written on one; which of them somebody still needs is kept
here.

An image stands on the one that its container began with, and the engine removes none that another stands on.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from environments.sandboxes.frozen_layers import FrozenLayer
from environments.sandboxes.leftovers import owned_folder
from prchain.core.errors import SnapshotUnknown


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An image, and what is to be put on it, if anything."""

    image: str
    written: FrozenLayer | None = None


class SnapshotFamily:
    """The snapshots of a sandbox and of its branches; they go when the last of these is closed.

    For several threads. A sandbox `begin`s with a snapshot and `leave`s its image when it has another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members = 0
        self._snapshots: dict[str, Snapshot] = {}
        self._folder: Path | None = None
        self.layers_at: Path | None = None
        """The engine's folder of layers, where it is known to be on this machine."""
        self._below: dict[str, str | None] = {}
        """Image to the one that it stands on, if any, for all that were not removed yet."""
        self._users: Counter[str] = Counter()

    def join(self) -> None:
        """Count one more sandbox."""
        with self._lock:
            self._members += 1

    def part(self) -> None:
        """Count one sandbox less; the last one forgets all snapshots."""
        with self._lock:
            self._members -= 1
            if self._members:
                return
            self._snapshots.clear()
            folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def add(self, name: str, image: str, below: str | None) -> None:
        """Take a new snapshot, an image that stands on the image `below`, or on none."""
        with self._lock:
            self._snapshots[name] = Snapshot(image)
            self._below[image] = below

    def add_written(self, name: str, image: str, written: FrozenLayer) -> None:
        """Take a new snapshot: what was written on an image."""
        with self._lock:
            self._snapshots[name] = Snapshot(image, written)

    def folder(self, name: str) -> Path:
        """Where a copy of what was written may be made. Raises `OSError`."""
        with self._lock:
            if self._folder is None:
                self._folder = owned_folder()
            return self._folder / name

    def begin(self, name: str) -> Snapshot:
        """A snapshot, whose image is kept until it is left. Raises `SnapshotUnknown`."""
        with self._lock:
            if name not in self._snapshots:
                raise SnapshotUnknown(f"there is no snapshot {name!r} of this sandbox")
            snapshot = self._snapshots[name]
            self._users[snapshot.image] += 1
            return snapshot

    def leave(self, image: str) -> None:
        """Say that a sandbox does not stand on the image any more; one that it never began with changes nothing."""
        with self._lock:
            self._users -= Counter([image])

    def forget(self, name: str) -> None:
        """Give up a snapshot's name; an unknown one changes nothing."""
        with self._lock:
            snapshot = self._snapshots.pop(name, None)
        if snapshot is not None and snapshot.written is not None:
            shutil.rmtree(snapshot.written.folder, ignore_errors=True)

    def unneeded(self, but: set[str]) -> str | None:
        """An image that nobody needs, and that nothing stands on; None where there is no other than those `but`."""
        with self._lock:
            taken = {snapshot.image for snapshot in self._snapshots.values()}
            needed = {*taken, *self._users, *self._below.values(), *but}
            return next((image for image in self._below if image not in needed), None)

    def removed(self, image: str) -> None:
        """Say that the engine does not have the image any more."""
        with self._lock:
            self._below.pop(image, None)
