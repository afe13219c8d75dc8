"""What sandboxes on this machine begin with: folders that stay as they are, below a folder of each one's own.

A sandbox's process mounts them on each other for itself (an overlay in a namespace of its user), so that no mount
outlives it and nobody needs to be root. Where the kernel does not do that, folders are copied.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from environments.sandboxes.leftovers import owned_folder
from environments.sandboxes.local_files import remove_folder

log = logging.getLogger(__name__)

NOBODY = 65_534
"""Whom root's sandboxes run as."""

MOST_LAYERS = 16
"""Of a sandbox that begins with a snapshot; what lies on more is copied."""

_LONGEST = 3_500
"""Bytes of a mount's options: the kernel takes a page."""

_OWN, _WORK, _SEEN = "state", "overlay", "seen"
"""Folders of a sandbox: what it wrote, what the kernel needs beside that, and where its process sees all."""

_MOUNT = 'mount=$1 options=$2 seen=$3; shift 3; "$mount" -t overlay -o "$options" overlay "$seen" && exec "$@"'

_TRY = "test -e /mnt/below && mkdir /mnt/folder && rm -r /mnt/below && rmdir /mnt/kept && mkdir /mnt/kept"


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder that stays as it is, and those below it, topmost first."""

    folder: Path
    below: tuple[Path, ...] = ()
    own_bytes: int = 0
    bytes_below: int = 0
    """What a sandbox's limit of disk counts of them; a kept place is as free as an image."""

    @property
    def all(self) -> tuple[Path, ...]:
        """All of its folders."""
        return (self.folder, *self.below)

    @property
    def is_mounted(self) -> bool:
        """Whether a sandbox that begins with it mounts it; else that has a copy, and the folders below are mounted."""
        return len(self.all) <= MOST_LAYERS and sum(len(str(path)) + 1 for path in self.all) < _LONGEST


class OnLayers(Protocol):
    """A sandbox, as its family sees it."""

    @property
    def stands_on(self) -> Sequence[Path]:
        """Folders that it needs."""


@dataclass(eq=False)
class LayerFamily:
    """The snapshots of a sandbox and of its branches; they go when the last of these is closed. For several threads."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    members: list[OnLayers] = field(default_factory=list)
    snapshots: dict[str, Kept] = field(default_factory=dict)
    forgotten: list[Path] = field(default_factory=list)
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Closed with the last member."""

    def part(self, member: OnLayers) -> None:
        """Count a member less."""
        with self.lock:
            self.members.remove(member)
            if not self.members:
                self.forgotten += [kept.folder for kept in self.snapshots.values()]
                self.snapshots.clear()
                self.held.close()
        self.clear()

    def forget(self, name: str) -> None:
        """Give up a snapshot's name; an unknown one changes nothing."""
        with self.lock:
            kept = self.snapshots.pop(name, None)
            self.forgotten += [kept.folder] if kept is not None else []
        self.clear()

    def clear(self) -> None:
        """Remove what was forgotten, but for folders that a member or another snapshot stands on."""
        with self.lock:
            needed = {path for member in self.members for path in member.stands_on}
            needed |= {path for kept in self.snapshots.values() for path in kept.all}
            unused = [path for path in self.forgotten if path not in needed]
            self.forgotten = [path for path in self.forgotten if path in needed]
        for path in unused:
            remove_folder(path.parent)


def new_folder() -> Path:
    """A temporary folder that a sandbox's process may enter, marked as this process's own."""
    folder = owned_folder()
    give(folder)
    return folder


def give(*paths: Path) -> None:
    """Make paths those of the user that sandboxes run as."""
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, NOBODY, NOBODY)


def own_state(folder: Path) -> Path:
    """Where what a sandbox of this folder wrote lies."""
    return folder / _OWN


def seen_state(folder: Path, layers: Sequence[Path]) -> Path:
    """Where the sandbox's process sees that on the layers; for others it is empty there."""
    return folder / _SEEN if layers else folder / _OWN


def on_layers(command: Sequence[str], folder: Path, layers: Sequence[Path]) -> list[str]:
    """The command of a process that sees the folder's own state on the layers, topmost first."""
    if not layers:
        return list(command)
    seen, work = folder / _SEEN, folder / _WORK
    for path in (seen, work):
        path.mkdir(exist_ok=True)
        give(path)
    lower = ":".join(map(str, layers))
    options = f"userxattr,lowerdir={lower},upperdir={own_state(folder)},workdir={work}"
    unshare, mount = (shutil.which(name) or name for name in ("unshare", "mount"))
    alone = [unshare, "--user", "--map-root-user", "--mount"]
    return [*alone, "/bin/sh", "-c", _MOUNT, "sh", mount, options, str(seen), *command]


def layers_work() -> bool:
    """Whether sandboxes can stand on layers here; says once where they cannot."""
    return _layers_work(tempfile.gettempdir())


@functools.cache
def _layers_work(place: str) -> bool:
    cause = "a name of the folder has a sign that no mount takes"
    if not set(place) & set(",:\\"):
        folder, below = new_folder(), new_folder()
        try:
            for path in (own_state(folder), own_state(below), own_state(below) / "kept"):
                path.mkdir()
                give(path)
            (own_state(below) / "below").touch()
            bubble = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--uid", "1000", "--cap-drop", "ALL"]
            bubble += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
            layers = (own_state(below),)
            bubble += ["--bind", str(seen_state(folder, layers)), "/mnt", "--", "/bin/sh", "-c", _TRY]
            done = subprocess.run(
                on_layers(bubble, folder, layers),
                check=False,
                capture_output=True,
                cwd="/",
                timeout=30,
                user=NOBODY if os.geteuid() == 0 else None,
                group=NOBODY if os.geteuid() == 0 else None,
                extra_groups=[] if os.geteuid() == 0 else None,
            )
            if done.returncode == 0:
                return True
            cause = done.stderr.decode("utf-8", "replace").strip()[-200:]
        except (OSError, subprocess.TimeoutExpired) as error:
            cause = str(error)
        finally:
            remove_folder(folder)
            remove_folder(below)
    log.info("no overlay below %s, so that sandboxes are copied as a whole: %s", place, cause)
    return False
