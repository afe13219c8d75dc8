"""A patch as the judge reads it: git's own text, made safe to show and cut to a number of characters.

Patches that are too large are cut *source first*: source is shown before configuration and data, these before docs,
then tests, and generated, vendored and lock files last; within a kind, files that the other patch touches too come
first. Files that fit are whole, the largest of the others are cut, and files without room are named. So padding can
push out other padding, but not the source files that the reference touches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from prchain.errors import GitError
from prchain.excerpt import SHORTEST, cut, fair_cap
from prchain.git import FilePatch, parse_patch
from prchain.kinds import FileKind, kind_of
from prchain.scrub import scrub_mined

_RANKS = {
    FileKind.SOURCE: 0,
    FileKind.CONFIG: 1,
    FileKind.DATA: 1,
    FileKind.BINARY: 1,
    FileKind.DOCS: 2,
    FileKind.CI: 2,
    FileKind.TEST: 3,
    FileKind.GENERATED: 4,
    FileKind.VENDORED: 4,
    FileKind.LOCK: 4,
}

_HEAD = re.compile(rb"(?m)^diff --git ")
"""The beginning of a file's patch. No line of content begins so: it has a mark, or is binary data without blanks."""
_CONTENT = re.compile(rb"(?m)^(?:@@ |GIT binary patch|Binary files )")
_OBJECT_IDS = re.compile(r"(?m)^index [0-9a-f]{7,64}\.\.[0-9a-f]{7,64}(?: (\d{6}))?\n")
_SUSPECT = re.compile(r"[^\n\t -~]")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are invisible, or that change how others are displayed."""
_STATUS = {"A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
_NAMED_FILES = 200
"""The most files without room that are named."""


@dataclass(frozen=True, slots=True)
class FileText:
    """One file's part of a patch, as text that is safe in a prompt."""

    path: str
    text: str

    @property
    def rank(self) -> int:
        """Its place in the order of files, by kind; 0 is first."""
        return _RANKS[kind_of(self.path)]


@dataclass(frozen=True, slots=True)
class PatchText:
    """A patch within its limit; `cut` are the paths shown in part, `left_out` the paths that are only named, or not
    even named."""

    text: str
    files: int
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, except the content of binary files."""
        return not self.cut and not self.left_out

    def extent(self) -> str:
        """How much of it is shown, in fixed words, with nothing of the patch's content."""
        count = f"{self.files:,} file" + ("" if self.files == 1 else "s")
        if self.whole:
            return f"{count}, shown in full"
        return f"{count}, of which {len(self.cut):,} are shown in part and {len(self.left_out):,} not at all"


def sections(patch: bytes) -> list[bytes]:
    """The parts of git's patch, one for each file; joined they are the patch again. Raises `GitError`."""
    if patch.strip() and not patch.startswith(b"diff --git "):
        raise GitError(f"this is no patch: {patch[:40]!r}")
    starts = [match.start() for match in _HEAD.finditer(patch)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]


def file_patches(patch: bytes) -> list[FilePatch]:
    """The files of git's patch, with binary ones. Raises `GitError` for an invalid patch."""
    return [_file_patch(section) for section in sections(patch)]


def file_texts(patch: bytes) -> list[FileText]:
    """The files of git's patch, in its order: visible, without secrets; a binary file takes one line.

    Bytes that are not UTF-8 and invisible characters are written as escapes (``\\xe9``, ``\\u202e``): a judge has to
    see them, since they can break code. Raises `GitError` for an invalid patch.
    """
    return [_file_text(section) for section in sections(patch)]


def render_patch(files: Sequence[FileText], limit: int, *, first: Collection[str] = ()) -> PatchText:
    """A patch within `limit` characters, not counting lines on what is missing; `first` are the other patch's paths."""
    parts: list[str] = []
    cut_paths: list[str] = []
    left_out: list[str] = []
    room = limit

    def place(file: FileText) -> tuple[int, bool]:
        return file.rank, file.path not in first

    for _, group in groupby(sorted(files, key=place), key=place):
        group_files = list(group)
        kept = _with_room(group_files, room)
        left_out += [file.path for file in group_files if file not in kept]
        cap = fair_cap([len(file.text) for file in kept], room)
        cut_paths += [file.path for file in kept if len(file.text) > cap]
        parts += [cut(file.text, cap) for file in kept]
        room -= sum(min(len(file.text), cap) for file in kept)
    if left_out:
        names = cut(scrub_mined(", ".join(map(_visible, left_out[:_NAMED_FILES]))), max(limit // 4, SHORTEST))
        rest = f" and {len(left_out) - _NAMED_FILES:,} more" if len(left_out) > _NAMED_FILES else ""
        parts.append(f"[changed too, not shown: {names}{rest}]")
    return PatchText("\n".join(parts), len(files), tuple(cut_paths), tuple(left_out))


def _with_room(files: Sequence[FileText], room: int) -> list[FileText]:
    """The files with room for at least an excerpt, chosen from the smallest on; in the order of `files`."""
    kept = set()
    for index in sorted(range(len(files)), key=lambda index: (len(files[index].text), index)):
        room -= min(len(files[index].text), SHORTEST)
        if room < 0:
            break
        kept.add(index)
    return [files[index] for index in sorted(kept)]


def header_of(section: bytes) -> bytes:
    """A file's part up to its hunks, or up to git's line on binary content."""
    content = _CONTENT.search(section)
    return section[: content.start()] if content else section


def _is_binary(section: bytes) -> bool:
    content = _CONTENT.search(section)
    return content is not None and not content[0].startswith(b"@@")


def _file_patch(section: bytes) -> FilePatch:
    binary = _is_binary(section)
    [file] = parse_patch((header_of(section) if binary else section).decode("utf-8", "surrogateescape"))
    return replace(file, binary=True) if binary else file


def _file_text(section: bytes) -> FileText:
    [file] = parse_patch(header_of(section).decode("utf-8", "surrogateescape"))
    if _is_binary(section):
        what = _STATUS.get(file.status, "changed")
        return FileText(file.path, scrub_mined(_visible(f"binary file {what}, content not shown: {file.path}")))
    text = _OBJECT_IDS.sub(_mode, section.decode("utf-8", "backslashreplace"))
    return FileText(file.path, scrub_mined(_visible(text)).rstrip("\n"))


def _mode(match: re.Match[str]) -> str:
    """The mode of a line of object ids, if it is special: 160000 is a submodule, 120000 a link."""
    return f"mode {match[1]}\n" if match[1] and not match[1].startswith("100") else ""


def _visible(text: str) -> str:
    return _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
