"""What a sandbox wrote, kept as a copy of its upper layer, and put into that of another one on the same layers.

That takes a hundredth of the time in which an engine makes an image of it. Nothing in a layer is trusted: names are
taken folder by folder, no link is followed, and what cannot be copied as it is, or changes meanwhile, is no copy. A
layer is written to before its sandbox runs, so that nobody else is in it.

A file that has not changed since an earlier copy of the same sandbox is not read again: both have one file.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from environments.sandboxes.upper_layers import FOLDER, TICK, TooMuchWritten

_MOST_NAMES = 2_000
_MOST_BYTES = 32 << 20
"""Of what is written: each sandbox that begins there has all of it again, and with a layer under it none has."""

_DEEPEST = 64
_LONGEST = 1_000
"""Bytes of a path."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPAQUE = "opaque"
_LEFT_OUT = ("origin", "impure", "uuid")
"""The overlay's own attributes that tell nothing of what is seen: where a file was copied from, say."""

Facts = tuple[int, int, int, int, int]
"""What changes whenever a file does: device, inode, size, the times of its modification and of its last change."""


@dataclass(frozen=True, slots=True)
class FrozenName:
    """One name of a layer."""

    path: bytes
    status: os.stat_result
    attributes: Mapping[str, bytes] = field(default_factory=dict)
    target: bytes = b""
    """Where a symbolic link leads."""
    content: str = ""
    """The copy's file with the content; empty where there is none."""
    same_as: bytes = b""
    """An earlier name of the same file."""


@dataclass(frozen=True, slots=True)
class FrozenLayer:
    """A copy of a layer: its names, each after its folder, and a folder of contents, which is this copy's alone."""

    folder: Path
    names: tuple[FrozenName, ...]
    known: Mapping[Facts, Path]
    """Contents of the layer's files, as far as these cannot have changed since without a trace."""


def freeze(root: Path, attributes: str, folder: Path, known: Mapping[Facts, Path]) -> FrozenLayer:
    """Copy an upper layer into a new folder; contents that are `known` are linked. `attributes` is what the names of
    the overlay's own attributes begin with.

    No process may run in the sandbox. Raises `TooMuchWritten`, and `OSError` where it cannot be copied as it is.
    """
    until = time.time() - TICK
    freezer = _Freezer(attributes, folder, known)
    with _opened(root, FOLDER) as top:
        _Size().add(top, 0)  # in a hundredth of the time that it takes to copy what is no copy in the end
        folder.mkdir()
        freezer.names.append(FrozenName(b"", os.fstat(top), freezer.attributes_of(top)))
        freezer.read(top, b"", 0)
    young = int(until * 1e9)
    old = {it: at for it, at in freezer.copied.items() if it[4] < young}
    return FrozenLayer(folder, tuple(freezer.names), old)


class _Size:
    """How much there is in a folder. Raises `TooMuchWritten`."""

    def __init__(self) -> None:
        self._names = self._bytes = 0

    def add(self, folder: int, depth: int) -> None:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found]
        self._names += len(names)
        if self._names > _MOST_NAMES or depth > _DEEPEST:
            raise TooMuchWritten
        for name in names:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                with _opened(name, FOLDER, folder) as below:
                    self.add(below, depth + 1)
            elif stat.S_ISREG(status.st_mode):
                self._bytes += status.st_size
            if self._bytes > _MOST_BYTES:
                raise TooMuchWritten


class _Freezer:
    def __init__(self, attributes: str, folder: Path, known: Mapping[Facts, Path]) -> None:
        self.names: list[FrozenName] = []
        self.copied: dict[Facts, Path] = {}
        self._size = 0
        self._attributes = attributes
        self._folder = folder
        self._known = known
        self._paths: dict[tuple[int, int], bytes] = {}
        """Of files with several names, by device and inode."""

    def read(self, folder: int, above: bytes, depth: int) -> None:
        with os.scandir(folder) as found:
            names = sorted({os.fsencode(entry.name) for entry in found})
        for name in names:
            path = above + name
            if len(self.names) >= _MOST_NAMES or depth > _DEEPEST or len(path) > _LONGEST:
                raise TooMuchWritten
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                with _opened(name, FOLDER, folder) as below:
                    self.names.append(FrozenName(path, os.fstat(below), self.attributes_of(below)))
                    self.read(below, path + b"/", depth + 1)
            elif stat.S_ISREG(status.st_mode):
                with _opened(name, _FILE, folder) as file:
                    self.names.append(self._file(path, file))
            elif stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                self.names.append(FrozenName(path, status, target=target))
            elif stat.S_ISFIFO(status.st_mode) or _is_whiteout(status):
                self.names.append(FrozenName(path, status))
            elif not stat.S_ISSOCK(status.st_mode):  # an engine's image has none either
                raise OSError(errno.ENOTSUP, "a device")

    def _file(self, path: bytes, file: int) -> FrozenName:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ESTALE, "it changes meanwhile")
        attributes = self.attributes_of(file)
        if status.st_nlink > 1:
            first = self._paths.setdefault((status.st_dev, status.st_ino), path)
            if first != path:
                return FrozenName(path, status, same_as=first)
        content = self._content(file, status) if status.st_size else ""
        if _facts(os.fstat(file)) != _facts(status):
            raise OSError(errno.ESTALE, "it changes meanwhile")
        return FrozenName(path, status, attributes, content=content)

    def _content(self, file: int, status: os.stat_result) -> str:
        self._size += status.st_size
        if self._size > _MOST_BYTES:
            raise TooMuchWritten
        facts = _facts(status)
        name = str(len(self.copied))
        place = self._folder / name
        if (before := self._known.get(facts)) is None or not _is_linked(before, place):
            with place.open("xb") as out:
                _copy(file, out.fileno(), status.st_size)
        self.copied[facts] = place
        return name

    def attributes_of(self, file: int) -> dict[str, bytes]:
        """Those that a copy has to have. Raises `OSError` where the name stands for something else."""
        found = {}
        for name in os.listxattr(file):
            if name.startswith(self._attributes):
                own = name.removeprefix(self._attributes)
                if own in _LEFT_OUT:
                    continue
                if own != _OPAQUE or os.getxattr(file, name) != b"y":
                    raise OSError(errno.ENOTSUP, f"the attribute {name}")
            elif name.startswith(("security.", "trusted.")) and name != "security.capability":
                continue  # the machine's own
            found[name] = os.getxattr(file, name)
        return found


def thaw(frozen: FrozenLayer, root: Path) -> Mapping[Facts, Path]:
    """Put a copy into an upper layer in which nothing runs yet; returns the `known` contents of its files. Raises
    `OSError`, `FileNotFoundError` where the copy is gone."""
    known = {}
    for name in frozen.names:
        place = root / os.fsdecode(name.path)
        mode = name.status.st_mode
        if name.path:
            _make_way(place, folder=stat.S_ISDIR(mode))
        if name.same_as:
            os.link(root / os.fsdecode(name.same_as), place, follow_symlinks=False)
            continue
        if stat.S_ISDIR(mode):
            place.mkdir(exist_ok=True)
        elif stat.S_ISLNK(mode):
            os.symlink(os.fsdecode(name.target), place)
        elif stat.S_ISREG(mode):
            with place.open("xb") as out:
                if name.content:
                    with _opened(frozen.folder / name.content, _FILE) as source:
                        _copy(source, out.fileno(), name.status.st_size)
        else:
            os.mknod(place, mode, 0)
        _settle(place, name)
        if name.content:
            # Nobody writes to it for longer than the clock's tick.
            known[_facts(os.stat(place, follow_symlinks=False))] = frozen.folder / name.content
    for name in reversed(frozen.names):
        if stat.S_ISDIR(name.status.st_mode):
            _set_times(root / os.fsdecode(name.path), name.status)
    return known


def _make_way(place: Path, *, folder: bool) -> None:
    """Remove what an engine has made there already, such as a mount's place, unless it is a folder that is wanted."""
    if not os.path.lexists(place):
        return
    if place.is_dir() and not place.is_symlink():
        if not folder:
            place.rmdir()
    else:
        place.unlink()


def _settle(place: Path, name: FrozenName) -> None:
    status = name.status
    os.chown(place, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        place.chmod(stat.S_IMODE(status.st_mode))
        for attribute, value in name.attributes.items():
            os.setxattr(place, attribute, value)
    _set_times(place, status)


def _set_times(place: Path, status: os.stat_result) -> None:
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)


@contextmanager
def _opened(path: Path | bytes | str, flags: int, folder: int | None = None) -> Iterator[int]:
    file = os.open(path, flags, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _copy(source: int, target: int, size: int) -> None:
    """So many bytes, which must be there."""
    done = 0
    while done < size:
        sent = os.sendfile(target, source, done, size - done)
        if not sent:
            raise OSError(errno.ESTALE, "it changes meanwhile")
        done += sent


def _is_linked(before: Path, place: Path) -> bool:
    try:
        os.link(before, place)
    except OSError:
        return False
    return True


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _facts(status: os.stat_result) -> Facts:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
