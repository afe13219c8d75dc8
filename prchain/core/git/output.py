"""What git's streaming commands print, as values: commits of `git log`, changes and counts of `git diff-tree`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain
from typing import Any, NamedTuple

from prchain.core.errors import GitError

BLOCK = 1 << 20
"""Bytes read at once."""


class RawCommit(NamedTuple):
    """One commit as git stores it. `message` is UTF-8 as far as git could convert it; times are Unix seconds."""

    sha: str
    parents: tuple[str, ...]
    tree: str
    author: str
    author_email: str
    author_time: int
    committer: str
    commit_time: int
    message: bytes


class RawChange(NamedTuple):
    """One changed path between two trees, as `git diff-tree --raw` says it."""

    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str
    status: str
    path: str
    old_path: str | None = None


class LineCount(NamedTuple):
    """Lines added and removed in one path; both None for a binary file."""

    path: str
    additions: int | None
    deletions: int | None


def split_nul(output: BufferedReader) -> Iterator[bytes]:
    """The NUL-terminated parts of a stream, of which no more than a block is held."""
    return chain.from_iterable(_split_blocks(output))


def _split_blocks(output: BufferedReader) -> Iterator[list[bytes]]:
    rest = b""
    while block := output.read1(BLOCK):  # what is there: `read` would wait for a whole block
        *parts, rest = (rest + block).split(b"\0")
        yield parts
    if rest.strip(b"\n"):
        yield [rest]


def raw_commit(
    sha: bytes,
    parents: bytes,
    tree: bytes,
    author: bytes,
    email: bytes,
    author_time: bytes,
    committer: bytes,
    commit_time: bytes,
    message: bytes,
) -> RawCommit:
    return RawCommit(
        sha=sha.lstrip(b"\n").decode(),
        parents=tuple(parents.decode().split()),
        tree=tree.decode(),
        author=author.decode("utf-8", "replace"),
        author_email=email.decode("utf-8", "replace"),
        author_time=_time(author_time),
        committer=committer.decode("utf-8", "replace"),
        commit_time=_time(commit_time),
        message=message,
    )


def _time(field: bytes) -> int:
    # Damaged commits have an empty or an absurd time; 0 keeps them in the history.
    try:
        value = int(field)
    except ValueError:
        return 0
    return value if 0 <= value < 253_402_300_800 else 0


def path_text(path: bytes) -> str:
    """A path as text: UTF-8, with every other byte as ``\\xNN``.

    A backslash that would read like one of these is written as ``\\x5c``, so that no two paths share a text.
    """
    if b"\\" in path:
        path = _LIKE_AN_ESCAPE.sub(rb"\\x5c", path)
    return path.decode("utf-8", "backslashreplace")


def path_name(text: str) -> str:
    """The other way round: the name of the file that `path_text` tells, as Python has it (`os.fsdecode` of UTF-8)."""
    path = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode("utf-8", "surrogateescape"))
    return path.decode("utf-8", "surrogateescape")


def name_text(name: str) -> str:
    """A text that holds names of files as Python has them, with ``\\xNN`` for what is no text."""
    return _NO_TEXT.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", name)


_ESCAPE = re.compile(rb"\\x([89a-f][0-9a-f]|5c)")
_NO_TEXT = re.compile("[\udc80-\udcff]")
_LIKE_AN_ESCAPE = re.compile(rb"\\(?=x(?:[89a-f][0-9a-f]|5c))")


def parse_raw(parts: Iterator[bytes], shas: list[str]) -> Iterator[list[RawChange]]:
    answers = _Answers(shas)
    for part in parts:
        if not part.startswith(b":"):
            yield from answers.next(part)
            continue
        old_mode, new_mode, old_blob, new_blob, status = part[1:].decode().split(" ")
        path = path_text(next(parts))
        old_path = None
        if status[0] in "RC":
            old_path, path = path, path_text(next(parts))
        answers.add(RawChange(old_mode, new_mode, old_blob, new_blob, status[0], path, old_path))
    yield from answers.rest()


def parse_numstat(parts: Iterator[bytes], shas: list[str]) -> Iterator[list[LineCount]]:
    answers = _Answers(shas)
    for part in parts:
        if b"\t" in part:
            answers.add(_line_count(part, parts))
        else:
            yield from answers.next(part)
    yield from answers.rest()


def line_counts(parts: Iterator[bytes]) -> Iterator[LineCount]:
    for part in parts:
        yield _line_count(part, parts)


def _line_count(part: bytes, following: Iterator[bytes]) -> LineCount:
    added, removed, name = part.split(b"\t", 2)
    if not name:  # a rename: old and new path follow
        next(following)
        name = next(following)
    binary = added == b"-"
    return LineCount(path_text(name), None if binary else int(added), None if binary else int(removed))


class _Answers:
    """Matches diff-tree's answers to the commits asked for, in their order."""

    def __init__(self, shas: list[str]) -> None:
        self._shas = shas
        self._answered = 0
        self._current: list[Any] | None = None

    def next(self, sha: bytes) -> Iterator[list[Any]]:
        name = sha.decode()
        if self._answered + (self._current is not None) >= len(self._shas) or (
            self._shas[self._answered + (self._current is not None)] != name
        ):
            raise GitError(f"git diff-tree answered {name[:60]!r} out of turn")
        yield from self._flush()
        self._current = []

    def add(self, change: Any) -> None:
        assert self._current is not None
        self._current.append(change)

    def rest(self) -> Iterator[list[Any]]:
        yield from self._flush()

    def _flush(self) -> Iterator[list[Any]]:
        if self._current is not None:
            self._answered += 1
            yield self._current
