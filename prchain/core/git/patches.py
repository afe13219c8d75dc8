"""Patches as values: what `git diff-tree -p` prints, read without trusting a byte of it.

Lines are counted by the hunk headers, so a line of the content that looks like a header is content.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from prchain.core.errors import GitError
from prchain.core.git.output import path_text
from prchain.core.git.patch_lines import PathNames, hunk_header, shared_path

_STATUS = {b"new file": "A", b"deleted file": "D", b"rename from": "R", b"copy from": "C"}


class Hunk(NamedTuple):
    """One hunk. `lines` carry their mark, ``+``, ``-`` or a space, and no line end; line numbers begin at 1."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FilePatch:
    """What a patch does to one path. `status` is A, D, M, R or C; the text is UTF-8, with other bytes replaced."""

    path: str
    old_path: str | None = None
    status: str = "M"
    binary: bool = False
    hunks: tuple[Hunk, ...] = ()

    @cached_property
    def added(self) -> tuple[str, ...]:
        """The lines it adds, without marks."""
        return tuple(line[1:] for hunk in self.hunks for line in hunk.lines if line[0] == "+")

    @cached_property
    def removed(self) -> tuple[str, ...]:
        """The lines it removes, without marks."""
        return tuple(line[1:] for hunk in self.hunks for line in hunk.lines if line[0] == "-")


def parse_patch(text: str) -> list[FilePatch]:
    """The files of one patch as git prints it; raises `GitError` for one that is cut off or no patch."""
    lines = _Lines(line.encode("utf-8", "surrogateescape") + b"\n" for line in text.split("\n"))
    return list(_files(lines))


def patch_fields(name: str, patch: bytes) -> dict[str, str | None]:
    """A patch as JSON can hold it, below `name`: its text and, as ``{name}_base64``, its bytes.

    The bytes are None where the text is exact. In that of others, bytes that are no UTF-8 are replaced.
    """
    try:
        return {name: patch.decode(), f"{name}_base64": None}
    except UnicodeDecodeError:
        return {name: patch.decode("utf-8", "replace"), f"{name}_base64": base64.b64encode(patch).decode("ascii")}


def read_patches(output: Iterable[bytes], shas: list[str]) -> Iterator[list[FilePatch]]:
    """The patches of ``git diff-tree --stdin -p --always``, one per commit asked for, in order.

    Raises `GitError` where git answers something else. Of a commit that it does not know it says nothing at all.
    """
    lines = _Lines(output)
    for at, sha in enumerate(shas):
        line = lines.take()
        answered_sha = None if line is None else line.strip().decode("utf-8", "replace")
        if answered_sha is None or (answered_sha != sha and answered_sha in shas[at + 1 :]):
            raise GitError(f"the repository holds no commit {sha}")
        if answered_sha != sha:
            raise GitError(f"git diff-tree answered {answered_sha[:60]!r} out of turn")
        yield list(_files(lines))


class _Lines:
    """Lines with one of look-ahead."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._next: bytes | None = None

    def take(self) -> bytes | None:
        line, self._next = self._next, None
        return line if line is not None else next(self._lines, None)

    def peek(self) -> bytes | None:
        if self._next is None:
            self._next = next(self._lines, None)
        return self._next


def _files(lines: _Lines) -> Iterator[FilePatch]:
    while (line := lines.peek()) is not None:
        if line.startswith(b"diff --git "):
            yield _file(lines)
        elif line == b"\n":
            lines.take()
        else:
            return


def _file(lines: _Lines) -> FilePatch:
    head = lines.take()
    assert head is not None
    both_paths = head[len(b"diff --git ") :].rstrip(b"\n")
    names, status, binary = PathNames(), "M", False
    hunks: list[Hunk] = []
    while (line := lines.peek()) is not None and not line.startswith(b"diff --git "):
        if line.startswith(b"@@ "):
            lines.take()
            hunks.append(_hunk(line, lines))
            continue
        if hunks or not _is_header(line):
            break
        lines.take()
        text = line.rstrip(b"\n")
        names.read(text)
        binary = binary or text.startswith((b"Binary files ", b"GIT binary patch"))
        status = next((mark for words, mark in _STATUS.items() if text.startswith(words)), status)
    path = names.new or names.old or shared_path(both_paths)
    old_path = path_text(names.old) if status in "RC" and names.old else None
    return FilePatch(path_text(path), old_path, status, binary, tuple(hunks))


_HEADERS = (
    b"index ",
    b"old mode ",
    b"new mode ",
    b"new file mode ",
    b"deleted file mode ",
    b"similarity index ",
    b"dissimilarity index ",
    b"rename from ",
    b"rename to ",
    b"copy from ",
    b"copy to ",
    b"--- ",
    b"+++ ",
    b"Binary files ",
)


def _is_header(line: bytes) -> bool:
    return line.startswith(_HEADERS)


def _hunk(header: bytes, lines: _Lines) -> Hunk:
    found = hunk_header(header)
    old_left, new_left = found.old_count, found.new_count
    content: list[str] = []
    while old_left or new_left or (lines.peek() or b"").startswith(b"\\ "):
        line = lines.take()
        if line is None:
            raise GitError("git's patch is cut off")
        mark = line[:1]
        if mark == b"\\":
            continue
        old_left -= mark != b"+"
        new_left -= mark != b"-"
        if mark not in {b"+", b"-", b" "} or old_left < 0 or new_left < 0:
            raise GitError(f"git's patch has a line that is none: {line[:60]!r}")
        content.append(line.removesuffix(b"\n").decode("utf-8", "replace"))
    return Hunk(*found[:4], found.section.decode("utf-8", "replace"), tuple(content))
