"""Snapshots in an engine are images; which of them somebody still needs is kept here.

An image stands on the one that its container began with, and the engine removes none that another stands on.
"""

from __future__ import annotations

import threading
from collections import Counter

from prchain.core.errors import SnapshotUnknown


class SnapshotFamily:
    """The snapshots of a sandbox and of its branches; they go when the last of these is closed.

    For several threads. A sandbox `begin`s with an image and `leave`s it when it has another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members = 0
        self._images: dict[str, str] = {}
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
            if not self._members:
                self._images.clear()

    def add(self, name: str, image: str, below: str | None) -> None:
        """Take a new snapshot, an image that stands on the image `below`, or on none."""
        with self._lock:
            self._images[name] = image
            self._below[image] = below

    def begin(self, name: str) -> str:
        """The image of a snapshot, which is kept until it is left. Raises `SnapshotUnknown`."""
        with self._lock:
            if name not in self._images:
                raise SnapshotUnknown(f"there is no snapshot {name!r} of this sandbox")
            image = self._images[name]
            self._users[image] += 1
            return image

    def leave(self, image: str) -> None:
        """Say that a sandbox does not stand on the image any more; one that it never began with changes nothing."""
        with self._lock:
            self._users -= Counter([image])

    def forget(self, name: str) -> None:
        """Give up a snapshot's name; an unknown one changes nothing."""
        with self._lock:
            self._images.pop(name, None)

    def unneeded(self, but: set[str]) -> str | None:
        """An image that nobody needs, and that nothing stands on; None where there is no other than those `but`."""
        with self._lock:
            needed = {*self._images.values(), *self._users, *self._below.values(), *but}
            return next((image for image in self._below if image not in needed), None)

    def removed(self, image: str) -> None:
        """Say that the engine does not have the image any more."""
        with self._lock:
            self._below.pop(image, None)
