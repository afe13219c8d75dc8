"""Files that are written under a hidden name beside their own, and get that name when they are whole.

Whoever writes one holds a lock on it, which ends with the process however that ends: so the next writer knows which of
them nobody will finish, and removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def open_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new file under a hidden name beside `path`, and that name; what dead processes left there is removed.

    Raises `OSError`.
    """
    remove_stale_parts(path)
    return new_part(path)


def new_part(path: Path) -> tuple[Path, BinaryIO]:
    """As `open_part`, where somebody has looked for what dead processes left: one of many files of a folder.

    Raises `OSError`.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    while True:
        stream = part.open("wb")
        with contextlib.suppress(OSError):  # a file system without locks; nobody removes the file there
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(stream.fileno()).st_ino == part.stat().st_ino:
                return part, stream
        stream.close()  # another writer took it for stale before it was locked


def remove_stale_parts(path: Path) -> None:
    """Remove the parts of `path`, and of files that are named after it, that no process holds."""
    parts = re.compile(rf"\.{re.escape(path.stem)}(\..+)?\.\d+\.part")
    _remove(path.parent, lambda name: parts.fullmatch(name) is not None)


def remove_stale_parts_in(folder: Path, pattern: str) -> None:
    """Remove the parts of files of such names, as of `Path.glob`, that no process holds."""
    is_ours = re.compile(fnmatch.translate(pattern)).fullmatch
    parts = re.compile(r"\.(.+)\.\d+\.part")
    _remove(folder, lambda name: (found := parts.fullmatch(name)) is not None and is_ours(found[1]) is not None)


def _remove(folder: Path, is_ours: Callable[[str], bool]) -> None:
    with contextlib.suppress(OSError):
        for part in [part for part in folder.iterdir() if is_ours(part.name)]:
            with contextlib.suppress(OSError), part.open("rb") as stream:  # somebody's, gone, or not ours to remove
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
