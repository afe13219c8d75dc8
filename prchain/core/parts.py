"""Files that are written under a hidden name beside their own, and get that name when they are whole.

Whoever writes one holds a lock on it, which ends with the process however that ends: so the next writer knows which of
them nobody will finish, and removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import BinaryIO


def open_part(path: Path) -> tuple[Path, BinaryIO]:
    """A new file under a hidden name beside `path`, and that name; what dead processes left there is removed.

    Raises `OSError`.
    """
    remove_stale_parts(path)
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
    ours = re.compile(rf"\.{re.escape(path.stem)}(\..+)?\.\d+\.part")
    with contextlib.suppress(OSError):
        for part in [part for part in path.parent.iterdir() if ours.fullmatch(part.name)]:
            with contextlib.suppress(OSError), part.open("rb") as stream:  # somebody's, gone, or not ours to remove
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
