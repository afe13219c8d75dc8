"""A folder of files that is one task: what lies in it, and its hash."""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from prchain.core.errors import BadInstance
from prchain.core.git.output import path_text

_MOST_FILES = 100_000
_MOST_BYTES = 4 << 30
_LONGEST_TEXT = 4 << 20
"""Bytes of a file that is read as a text."""


class TaskFolder:
    """A task's folder, gone through once. Its files are never believed: whoever wrote it may have put links, pipes or
    endless files into it. Raises `BadInstance`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = _files(path)

    @property
    def digest(self) -> str:
        """Of the names, modes and contents of all that lies in it."""
        whole = hashlib.sha256()
        for name, place in sorted(self._files.items()):
            with place.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(b"%s\0%d %s\n" % (name, place.stat().st_mode & 0o100, content.encode()))
        return whole.hexdigest()

    def holds(self, name: str) -> bool:
        """Whether it has a file of this name."""
        return os.fsencode(name) in self._files

    def folder(self, name: str) -> Path | None:
        """One of its folders; None where nothing lies in there."""
        begin = os.fsencode(name) + b"/"
        return self.path / name if any(it.startswith(begin) for it in self._files) else None

    def text(self, name: str) -> str:
        """A file as a text. Raises `BadInstance`."""
        if not self.holds(name):
            raise BadInstance(f"it has no {name}")
        content = (self.path / name).read_bytes()[: _LONGEST_TEXT + 1]
        if len(content) > _LONGEST_TEXT:
            raise BadInstance(f"{name} is longer than {_LONGEST_TEXT >> 20} MB")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise BadInstance(f"{name} is no UTF-8 text from byte {error.start + 1} on") from None
        if "\0" in text:
            raise BadInstance(f"{name} holds a NUL, which is no character of a text")
        return text

    def table(self, name: str) -> dict[str, Any]:
        """A file of TOML. Raises `BadInstance`."""
        try:
            return tomllib.loads(self.text(name).replace("\r\n", "\n"))
        except RecursionError:
            raise BadInstance(f"{name} is no TOML that can be read: it is nested too deep") from None
        except tomllib.TOMLDecodeError as error:
            raise BadInstance(f"{name} is no TOML: {str(error)[:200]}") from None


def _files(path: Path) -> dict[bytes, Path]:
    """Its files by their names, links that lead to one of them among them."""
    found: dict[bytes, Path] = {}
    root, size = path.resolve(), 0
    for folder, folders, names in os.walk(path, onerror=_unreadable):
        for name in sorted([*names, *(it for it in folders if os.path.islink(os.path.join(folder, it)))]):
            place = Path(folder, name)
            shown = path_text(os.fsencode(place.relative_to(path)))
            try:
                target = place.resolve(strict=True)
                facts = target.stat()
            except (OSError, RuntimeError):
                raise BadInstance(f"{shown} is a link that leads nowhere") from None
            if not target.is_relative_to(root):
                raise BadInstance(
                    f"{shown} is a link that leads out of the folder; copy the task with its links followed"
                )
            if not stat.S_ISREG(facts.st_mode):
                raise BadInstance(f"{shown} is neither a file nor a folder")
            size += facts.st_size
            found[os.fsencode(place.relative_to(path))] = place
            if len(found) > _MOST_FILES or size > _MOST_BYTES:
                raise BadInstance(f"it holds more than {_MOST_FILES:,} files or {_MOST_BYTES >> 30} GB")
    return found


def _unreadable(error: OSError) -> None:
    raise BadInstance(f"a folder of it cannot be read: {error.strerror}") from None
