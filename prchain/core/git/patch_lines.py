"""The lines of git's patches that say where something stands: the headers of hunks, and the names of files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from prchain.core.errors import GitError

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.S)
_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.S)


class HunkHeader(NamedTuple):
    """Where a hunk stands in the old file and in the new one, and the line that git shows as the function around it."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: bytes


def hunk_header(line: bytes) -> HunkHeader:
    """Read the line that begins a hunk. Raises `GitError` where it is none."""
    match = _HUNK.match(line.rstrip(b"\n"))
    if match is None:
        raise GitError(f"git printed no hunk header: {line[:60]!r}")
    old_start, old_count, new_start, new_count = (int(group) if group else 1 for group in match.groups()[:4])
    return HunkHeader(old_start, old_count, new_start, new_count, match[5])


@dataclass(slots=True)
class PathNames:
    """The paths that the lines of one file's header name, as they are read."""

    old: bytes | None = None
    new: bytes | None = None

    def read(self, line: bytes) -> bool:
        """Take in a line without its end; returns whether it is one that names a path."""
        if line.startswith((b"rename from ", b"copy from ")):
            self.old = quoted_path(line.split(b" from ", 1)[1])
        elif line.startswith((b"rename to ", b"copy to ")):
            self.new = quoted_path(line.split(b" to ", 1)[1])
        elif line.startswith(b"+++ "):
            if line != b"+++ /dev/null":
                self.new = self.new or side_path(line[4:])
        elif line.startswith(b"--- "):
            if line != b"--- /dev/null":
                self.old = self.old or side_path(line[4:])
        else:
            return False
        return True


def side_path(name: bytes) -> bytes:
    """The path of a ``---`` or ``+++`` line: without its prefix, and without the tab that git puts after a blank."""
    return quoted_path(name.removesuffix(b"\t"))[2:]


def shared_path(both_paths: bytes) -> bytes:
    """The path of ``a/PATH b/PATH``, where both are the same: the only case in which no other line names it."""
    if both_paths.startswith(b'"'):
        return quoted_path(both_paths[: len(both_paths) // 2])[2:]
    return both_paths[: len(both_paths) // 2][2:]


def quoted_path(name: bytes) -> bytes:
    """A path as git prints it, out of its quotes where it has some."""
    if not name.startswith(b'"'):
        return name

    def byte(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(byte, name[1:-1])
