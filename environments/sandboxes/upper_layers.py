"""What a sandbox that stands on an overlay has written since it began, where its upper layer lies on this machine.

Whatever changes below the sandbox's root is in that layer: a file that is written to, renamed or touched is copied into
it, and one that is removed leaves a whiteout. So it says what changed without a look at the files that did not.

Nothing in it is trusted: names are taken folder by folder, no link is followed, and what cannot be read is no answer.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_MOST_WRITTEN = 2_000
"""So many names are read in no more time than a command takes that lists some thousand files."""

TICK = 0.05
"""Seconds that the kernel's clock for files lags behind the time of day at most: it ticks every 1 to 10 ms."""

_DEEPEST = 64
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPAQUE, _REDIRECT = "opaque", "redirect"


@dataclass(frozen=True, slots=True)
class UpperLayer:
    """The part of an upper layer that stands for one folder of a sandbox."""

    root: Path
    """The whole layer."""
    below: tuple[str, ...]
    """The names that lead from there to the part."""
    attributes: str
    """What the names of the overlay's own attributes begin with."""
    since: float
    """Seconds since the epoch. No file of the layer has changed before, and what lies under it not after that."""
    under: tuple[str, ...] = ()
    """What names the layers under it, topmost first: the same names say the same files. Empty where nobody knows."""


@dataclass(frozen=True, slots=True)
class Written:
    """What is in an upper layer below a folder, by path, without what is called ``.git``."""

    files: dict[bytes, tuple[os.stat_result, bytes]] = field(default_factory=dict)
    """All that is no folder: what the kernel says of it, and where it leads if it is a symbolic link."""
    folders: set[bytes] = field(default_factory=set)
    gone: set[bytes] = field(default_factory=set)
    """Names of lower layers that are no more."""
    emptied: set[bytes] = field(default_factory=set)
    """Folders in which nothing of lower layers is seen."""


class TooMuchWritten(Exception):
    """More than can be read in little time. There will hardly be less."""


def read_upper(layer: UpperLayer, leave_out: Collection[bytes] = ()) -> Written | None:
    """What a layer holds, without what is in the folders to be left out; None where it cannot be read as a whole, or
    files vanish meanwhile. Raises `TooMuchWritten`."""
    written = Written()
    try:
        with ExitStack() as opened:
            folder = os.open(layer.root, FOLDER)
            opened.callback(os.close, folder)
            for name in layer.below:
                try:
                    folder = os.open(name, FOLDER, dir_fd=folder)
                except FileNotFoundError:
                    return written
                opened.callback(os.close, folder)
                if _has(folder, layer.attributes + _OPAQUE) or _has(folder, layer.attributes + _REDIRECT):
                    return None
            _UpperReader(layer.attributes, frozenset(leave_out), written).read(folder, b"", 0)
    except OSError:
        return None
    return written


def open_written(layer: UpperLayer, path: bytes) -> IO[bytes]:
    """A plain file of a layer. Raises `OSError` where there is none on the way to it."""
    with ExitStack() as opened:
        folder = os.open(layer.root, FOLDER)
        opened.callback(os.close, folder)
        *above, name = (*map(os.fsencode, layer.below), *path.split(b"/"))
        for word in above:
            folder = os.open(word, FOLDER, dir_fd=folder)
            opened.callback(os.close, folder)
        file = os.open(name, _FILE, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "it is no plain file")
        return os.fdopen(file, "rb")


class _UpperReader:
    def __init__(self, attributes: str, leave_out: frozenset[bytes], written: Written) -> None:
        self._attributes = attributes
        self._leave_out = leave_out
        self._written = written
        self._names = 0

    def read(self, folder: int, above: bytes, depth: int) -> None:
        folders = []
        with os.scandir(folder) as found:
            for entry in found:
                self._names += 1
                if self._names > _MOST_WRITTEN or depth > _DEEPEST:
                    raise TooMuchWritten
                path = above + os.fsencode(entry.name)
                status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
                if entry.name == ".git":
                    continue
                if stat.S_ISDIR(status.st_mode):
                    self._written.folders.add(path)
                    if path not in self._leave_out:
                        folders.append((entry.name, path))
                elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                    self._written.gone.add(path)
                else:
                    is_link = stat.S_ISLNK(status.st_mode)
                    target = os.fsencode(os.readlink(entry.name, dir_fd=folder)) if is_link else b""
                    self._written.files[path] = status, target
        for name, path in folders:
            below = os.open(name, FOLDER, dir_fd=folder)
            try:
                if _has(below, self._attributes + _REDIRECT):
                    raise OSError(errno.ENOTSUP, "the folder stands for another one of the layers under it")
                if _has(below, self._attributes + _OPAQUE):
                    self._written.emptied.add(path)
                self.read(below, path + b"/", depth + 1)
            finally:
                os.close(below)


def _has(folder: int, attribute: str) -> bool:
    try:
        os.getxattr(folder, attribute)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return False
    return True


def reads_attributes(attributes: str) -> bool:
    """Whether this process may read attributes of such names. Where it may not, the kernel says that there are none."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        try:
            os.setxattr(folder, attributes + "prchain", b"y")
        except OSError:
            return False
    return True


def are_nested(one: str, other: str) -> bool:
    """Whether of two paths one is the other, or below it."""
    first, second = (path.rstrip("/") + "/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)
