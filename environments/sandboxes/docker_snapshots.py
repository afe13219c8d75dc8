"""Snapshots in an engine are images, layers of ours on one, or copies of what was written on these; which of them
somebody still needs is kept here.

An image stands on the one that its container began with, and the engine removes none that another stands on.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from environments.sandboxes.frozen_layers import FrozenLayer
from environments.sandboxes.leftovers import owned_folder
from environments.sandboxes.own_layers import OwnLayer
from prchain.core.errors import SnapshotUnknown


@dataclass(frozen=True, slots=True)
class Ground:
    """What a container stands on: an image, and above it layers of ours, uppermost first."""

    image: str
    layers: tuple[OwnLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a container is to stand on, and what is to be put on that, if anything."""

    ground: Ground
    written: FrozenLayer | None = None


class SnapshotFamily:
    """The snapshots of a sandbox and of its branches; they go when the last of these is closed.

    For several threads. A sandbox `begin`s with a snapshot and `leave`s its ground when it has another one.
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
        self._layers: set[OwnLayer] = set()
        """All that were not removed yet."""
        self._held = ExitStack()
        self._users: Counter[Ground] = Counter()

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
            self._held.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def add(self, name: str, image: str, below: str | None) -> None:
        """Take a new snapshot, an image that stands on the image `below`, or on none."""
        with self._lock:
            self._snapshots[name] = Snapshot(Ground(image))
            self._below[image] = below

    def go_on(self, below: Ground, layer: OwnLayer, name: str = "") -> Ground:
        """Take a new layer on a ground, for a sandbox that begins with both; with a `name` that is a snapshot, too."""
        with self._lock:
            ground = Ground(below.image, (layer, *below.layers))
            if name:
                self._snapshots[name] = Snapshot(ground)
            self._layers.add(layer)
            self._users[ground] += 1
        return ground

    def hold(self, lock: IO[str]) -> None:
        """Keep a lock until the last sandbox is closed."""
        with self._lock:
            self._held.enter_context(lock)

    def add_written(self, name: str, ground: Ground, written: FrozenLayer) -> None:
        """Take a new snapshot: what was written on a ground."""
        with self._lock:
            self._snapshots[name] = Snapshot(ground, written)

    def folder(self, name: str) -> Path:
        """Where a copy of what was written may be made. Raises `OSError`."""
        with self._lock:
            if self._folder is None:
                self._folder = owned_folder()
            return self._folder / name

    def begin(self, name: str) -> Snapshot:
        """A snapshot, whose ground is kept until it is left. Raises `SnapshotUnknown`."""
        with self._lock:
            if name not in self._snapshots:
                raise SnapshotUnknown(f"there is no snapshot {name!r} of this sandbox")
            snapshot = self._snapshots[name]
            self._users[snapshot.ground] += 1
            return snapshot

    def leave(self, ground: Ground) -> None:
        """Say that a sandbox does not stand there any more; where it never began with it, nothing changes."""
        with self._lock:
            self._users -= Counter([ground])

    def forget(self, name: str) -> None:
        """Give up a snapshot's name; an unknown one changes nothing."""
        with self._lock:
            snapshot = self._snapshots.pop(name, None)
        if snapshot is not None and snapshot.written is not None:
            shutil.rmtree(snapshot.written.folder, ignore_errors=True)

    def unneeded(self, but: set[str]) -> str | None:
        """An image that nobody needs, and that nothing stands on; None where there is no other than those `but`."""
        with self._lock:
            needed = {*(ground.image for ground in self._grounds()), *self._below.values(), *but}
            return next((image for image in self._below if image not in needed), None)

    def take_unneeded(self) -> list[OwnLayer]:
        """The layers that nobody needs, which are the caller's from now on."""
        with self._lock:
            unneeded = self._layers - {layer for ground in self._grounds() for layer in ground.layers}
            self._layers -= unneeded
        return list(unneeded)

    def _grounds(self) -> Iterator[Ground]:
        yield from (snapshot.ground for snapshot in self._snapshots.values())
        yield from self._users

    def removed(self, image: str) -> None:
        """Say that the engine does not have the image any more."""
        with self._lock:
            self._below.pop(image, None)
