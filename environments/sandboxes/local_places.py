"""Places that this process keeps on this machine: what a stage's base was made to hold, for the sandboxes after it.

As in an engine (`environments.sandboxes.kept_places`): made before anybody but us has used the sandbox, never
written into, bounded on disk. They go with the process; those of a killed one are found as its sandboxes are.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

from environments.sandboxes.local import LocalSandbox, ProcessTransport
from environments.sandboxes.local_files import remove_folder, used_bytes
from environments.sandboxes.local_layers import Kept, LayerFamily, new_folder, own_state
from environments.sandboxes.sandbox import Begin, SandboxConfig

log = logging.getLogger(__name__)


class KeptFolders:
    """Places by name, the one that was longest not used first. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, Kept] = {}
        self._bytes: dict[str, int] = {}
        self._users: Counter[Path] = Counter()

    def find(self, name: str) -> Kept | None:
        """The place of a name, which stays until it is left; None where there is none."""
        with self._lock:
            place = self._places.pop(name, None)
            if place is not None:
                self._places[name] = place
                self._users[place.folder] += 1
            return place

    def leave(self, place: Kept) -> None:
        """Say that a use has ended."""
        with self._lock:
            self._users[place.folder] -= 1

    def keep(self, name: str, state: Path, most_bytes: int) -> Kept | None:
        """Take a sandbox's state, whose processes may still run, for a place, which counts as used; None where another
        sandbox was faster. Others go until all take at most so many bytes. Raises `OSError`."""
        with self._lock:
            if name in self._places:
                return None
            folder = own_state(new_folder())
            os.rename(state, folder)
            place = self._places[name] = Kept(folder)
            self._bytes[name] = used_bytes(folder)
            self._users[folder] += 1
            idle = [it for it, held in self._places.items() if not self._users[held.folder]]
            while idle and sum(self._bytes.values()) > most_bytes:
                self._remove(idle.pop(0))
            return place

    def drop(self) -> None:
        """Remove all."""
        with self._lock:
            for name in list(self._places):
                self._remove(name)

    def _remove(self, name: str) -> None:
        del self._bytes[name]
        remove_folder(self._places.pop(name).folder.parent)


@functools.cache
def kept_folders() -> KeptFolders:
    """Those of this process; they go when it ends."""
    kept = KeptFolders()
    atexit.register(kept.drop)
    return kept


class KeepingSandbox(LocalSandbox):
    """A sandbox of namespaces that may begin with a kept place; `most_kept` bounds the bytes of all of them."""

    def __init__(self, config: SandboxConfig, *, most_kept: int, family: LayerFamily | None = None) -> None:
        super().__init__(config, family=family)
        self._most_kept = most_kept
        self._began = Begin.NOTHING

    @property
    def _place_name(self) -> str:
        told = f"{self.config.image or ''}\n{self.config.workdir}\n{self.config.place}"
        return hashlib.sha256(told.encode()).hexdigest()[:40]

    def _make(self) -> ProcessTransport:
        self._began = Begin.NOTHING
        if self.begin_with is None and self.config.place:
            self._began = Begin.EMPTY
            place = kept_folders().find(self._place_name)
            if place is not None:
                self._stand_on(place)
                self._began = Begin.KEPT
        return super()._make()

    def _stand_on(self, place: Kept) -> None:
        """Begin with a place the next time, and leave it with the family."""
        self._family.held.callback(kept_folders().leave, place)
        self.begin_with = place

    def take_place(self) -> Begin:
        """See `KeepsPlace`."""
        began, self._began = self._began, Begin.NOTHING
        return began

    def keep_place(self) -> None:
        """See `KeepsPlace`: what it holds becomes the place, and it begins anew there."""
        self._running()
        if not self.config.place or self._layers:
            return
        try:
            place = kept_folders().keep(self._place_name, self._state(), self._most_kept)
        except OSError as error:
            log.warning("a stage's base is not kept, the next sandbox is set up anew: %s", error)
            return
        if place is not None:
            self._stand_on(place)
            self._stop()
            self.start()

    def leave_place(self) -> None:
        """See `KeepsPlace`."""
        self._stop()
        self.config = replace(self.config, place="")
        self.start()

    def _another(self) -> LocalSandbox:
        return KeepingSandbox(self.config, most_kept=self._most_kept, family=self._family)
