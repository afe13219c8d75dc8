"""A copy of an interpreter of this machine as a tar: regular files of its prefix alone, made relocatable.

What is copied gets into images that agents read, so nothing that lies outside of the prefix does, and nothing that
somebody put there to run at every start.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from environments.images.interpreters.elf import with_library_path
from environments.images.interpreters.host_pythons import HostPython, written_by_others

FOLDER = "/opt/python"

_LEFT_OUT = frozenset({"test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages", "dist-packages"})
"""Folders of the library that no test run needs; packages are the venv's. Setuptools of the time needs lib2to3."""

_AT_START = ("sitecustomize", "usercustomize")
"""Modules that every start imports where they are there; the library has none of its own, nor any .pth file."""

_MOST = 600_000_000
"""Bytes of a whole interpreter; one with everything has 200 million."""


def write_tar(python: HostPython, file: IO[bytes], deadline: float) -> None:
    """Write what an interpreter needs, below ``opt/python/X.Y``.

    Links are followed where they lead to a regular file below the prefix; other links, FIFOs, sockets and devices are
    left out. Raises `ValueError` where others than root or this user may write one of its files, or where it is too
    large; `OSError`, which `TimeoutError` is, also past `deadline` (of `time.monotonic`).
    """
    minor = python.minor
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        copy = _Copy(tar, Path(python.prefix).resolve(strict=True), deadline)
        copy.require(copy.prefix)
        if not copy.add(Path(python.program), f"{minor}/bin/python{minor}", b"$ORIGIN/../lib"):
            raise ValueError(f"{python.program} is no file below {python.prefix}")
        copy.link(f"{minor}/bin/python3", f"python{minor}")
        for path in sorted((copy.prefix / "lib").glob(f"libpython{minor}*.so*")):
            if path.is_symlink() and path.resolve().parent == path.parent:
                copy.link(f"{minor}/lib/{path.name}", path.resolve().name)
            else:
                copy.add(path, f"{minor}/lib/{path.name}", b"$ORIGIN")
        library = copy.prefix / "lib" / f"python{minor}"
        for path in _files(library):
            place = path.relative_to(library)
            up = b"$ORIGIN/" + b"/".join([b".."] * len(place.parts)) if path.suffix == ".so" else b""
            copy.add(path, f"{minor}/lib/python{minor}/{place}", up)
        for headers in sorted((copy.prefix / "include").glob(f"python{minor}*")):
            for path in _files(headers):
                copy.add(path, f"{minor}/include/{headers.name}/{path.relative_to(headers)}", b"")


def _files(folder: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(it for it in folders if it not in _LEFT_OUT and not it.startswith(_AT_START))
        for name in sorted(names):
            if not name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc", ".exe", ".pth")) and not name.startswith(_AT_START):
                yield Path(top) / name


@dataclass
class _Copy:
    """The tar as it is written."""

    tar: tarfile.TarFile
    prefix: Path
    deadline: float
    size: int = 0

    def require(self, path: Path) -> None:
        """Raise `ValueError` where others may write a file or a folder."""
        if written_by_others(path.lstat()):
            raise ValueError(f"others than root and this user may write {path}")

    def add(self, path: Path, place: str, libraries: bytes) -> bool:
        """Add a regular file, by its target where it is a link; says whether it is one below the prefix."""
        if time.monotonic() > self.deadline:
            raise TimeoutError("copying it took too long")
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):  # a link to nothing, or to itself
            return False
        if not target.is_relative_to(self.prefix):
            return False
        self.require(target.parent)
        if not stat.S_ISREG(target.lstat().st_mode):
            return False
        # What is there may have changed since, and a FIFO would be waited for.
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return False
            if written_by_others(status):
                raise ValueError(f"others than root and this user may write {target}")
            self.size += status.st_size
            if self.size > _MOST:
                raise ValueError(f"it is larger than {_MOST:,} bytes")
            content = file.read(status.st_size)
        if libraries:
            content = with_library_path(content, libraries)
        entry = tarfile.TarInfo(f"{FOLDER.lstrip('/')}/{place}")
        entry.size, entry.mtime = len(content), int(status.st_mtime)
        entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
        self.tar.addfile(entry, io.BytesIO(content))
        return True

    def link(self, place: str, target: str) -> None:
        """Add a link."""
        entry = tarfile.TarInfo(f"{FOLDER.lstrip('/')}/{place}")
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self.tar.addfile(entry)
