"""Which lines commits change, for histories of any length: what `git diff-tree -p -U0` prints, read as it comes.

Unlike `prchain.core.git.patches` it keeps bytes, knows blobs, and reads only what a walk over all commits needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from prchain.core.errors import GitError
from prchain.core.git.patch_lines import PathNames, hunk_header, shared_path

_SHA = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n")
SUBMODULE = b"160000"


class LineHunk(NamedTuple):
    """One hunk without context. Line numbers begin at 1; without old lines `old_start` is the line before."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: bytes
    """The line that git shows as the function around the hunk; it stands in the old file."""
    removed: tuple[bytes, ...]
    """Without marks; with the line ends that they have."""
    added: tuple[bytes, ...]

    @property
    def before(self) -> int:
        """How many lines of the old file stand before the hunk."""
        return self.old_start - 1 if self.old_count else self.old_start


@dataclass(slots=True)
class FileLines:
    """What a commit does to one file. A path is None where the file is not; blobs are abbreviated or full ids."""

    old_path: bytes | None
    new_path: bytes | None
    old_blob: bytes = b""
    new_blob: bytes = b""
    binary: bool = False
    submodule: bool = False
    hunks: list[LineHunk] = field(default_factory=list)


def read_line_changes(output: Iterable[bytes]) -> Iterator[tuple[str, list[FileLines]]]:
    """Commits with their files, of ``git diff-tree --stdin -p -U0 -M --full-index --always``, one at a time.

    Raises `GitError` for output that is none of git's.
    """
    lines = iter(output)
    line = next(lines, None)
    while line is not None:
        if line == b"\n":
            line = next(lines, None)
            continue
        if not _SHA.fullmatch(line):
            raise GitError(f"git printed no commit: {line[:60]!r}")
        sha, files = line.strip().decode(), list[FileLines]()
        line = next(lines, None)
        while line is not None and (line.startswith(b"diff --git ") or line == b"\n"):
            if line == b"\n":
                line = next(lines, None)
                continue
            file, line = _file(line, lines)
            files.append(file)
        yield sha, files


def _file(head: bytes, lines: Iterator[bytes]) -> tuple[FileLines, bytes | None]:
    """One file, and the line behind it."""
    both = head[len(b"diff --git ") :].rstrip(b"\n")
    found = FileLines(b"", b"")
    names = PathNames()
    line = next(lines, None)
    while line is not None:
        if line.startswith(b"@@ "):
            hunk, line = _hunk(line, lines)
            found.hunks.append(hunk)
            continue
        if found.hunks or line.startswith(b"diff --git ") or line == b"\n" or _SHA.fullmatch(line):
            break
        text = line.rstrip(b"\n")
        if text.startswith(b"index "):
            blobs = text[6:].split(b" ")
            found.old_blob, _, found.new_blob = blobs[0].partition(b"..")
            found.submodule |= blobs[-1] == SUBMODULE
        elif text.startswith((b"new file mode ", b"new mode ")):
            found.old_path = None if text.startswith(b"new file") else found.old_path
            found.submodule |= text.endswith(SUBMODULE)
        elif text.startswith((b"deleted file mode ", b"old mode ")):
            found.new_path = None if text.startswith(b"deleted") else found.new_path
            found.submodule |= text.endswith(SUBMODULE)
        elif text.startswith((b"Binary files ", b"GIT binary patch")):
            found.binary = True
        else:
            names.read(text)
        line = next(lines, None)
    path = names.new or names.old or shared_path(both)
    found.old_path = None if found.old_path is None else names.old or path
    found.new_path = None if found.new_path is None else names.new or path
    return found, line


def _hunk(header: bytes, lines: Iterator[bytes]) -> tuple[LineHunk, bytes | None]:
    where = hunk_header(header)
    removed, line = _side(b"-", where.old_count, lines)
    added, line = _side(b"+", where.new_count, lines, line)
    return LineHunk(*where, removed, added), next(lines, None) if line is None else line


def _side(
    mark: bytes, count: int, lines: Iterator[bytes], first: bytes | None = None
) -> tuple[tuple[bytes, ...], bytes | None]:
    """So many lines with a mark, without it, and the line behind them if it was read; `first` was read already."""
    if not count:
        return (), first
    taken = [first] if first is not None else []
    taken += islice(lines, count - len(taken))
    if len(taken) < count or any(line[:1] != mark for line in taken):
        raise GitError(f"git's patch is cut off, or has other lines than it says: {taken[-1:]!r:.80}")
    behind = next(lines, None)
    if behind is not None and behind.startswith(b"\\ "):
        taken[-1] = taken[-1].removesuffix(b"\n")
        behind = next(lines, None)
    return tuple(line[1:] for line in taken), behind
