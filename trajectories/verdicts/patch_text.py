"""A patch as the judge reads it: git's own words, made safe to show and cut to the room that there is.

The policy for patches that are too large has one name, *source first*: source is shown before configuration and data,
these before docs, then tests, and what is generated, vendored or locked last; within a kind, files that the other patch
touches too come first. What has room is whole, the largest of the others are cut, and files that got no room are named.
So padding can push out other padding, but not the source files that the reference touches.
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
"""Where a file's patch begins. No line of content begins so: those carry a mark, and binary ones hold no blank."""
_CONTENT = re.compile(rb"(?m)^(?:@@ |GIT binary patch|Binary files )")
_OBJECT_IDS = re.compile(r"(?m)^index [0-9a-f]{7,64}\.\.[0-9a-f]{7,64}(?: (\d{6}))?\n")
_SUSPECT = re.compile(r"[^\n\t -~]")
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that nobody sees, or that change how others are seen."""
_STATUS = {"A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
_NAMED = 200
"""So many files are named of those that got no room."""


@dataclass(frozen=True, slots=True)
class FileText:
    """One file's part of a patch, as text that may stand in a prompt."""

    path: str
    text: str

    @property
    def rank(self) -> int:
        """How late it is shown, by its kind."""
        return _RANKS[kind_of(self.path)]


@dataclass(frozen=True, slots=True)
class PatchText:
    """A patch within its limit; `cut` are paths that are shown in part, `left_out` those that are only named, or not
    even that."""

    text: str
    files: int
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, but the content of binary files."""
        return not self.cut and not self.left_out

    def extent(self) -> str:
        """How much of it is shown, in words of ours alone: none of the patch's own."""
        count = f"{self.files:,} file" + ("" if self.files == 1 else "s")
        if self.whole:
            return f"{count}, shown in full"
        return f"{count}, of which {len(self.cut):,} are shown in part and {len(self.left_out):,} not at all"


def sections(patch: bytes) -> list[bytes]:
    """The parts of a patch that git printed, one a file; joined they are the patch again. Raises `GitError`."""
    if patch.strip() and not patch.startswith(b"diff --git "):
        raise GitError(f"this is no patch: {patch[:40]!r}")
    starts = [match.start() for match in _HEAD.finditer(patch)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]


def file_patches(patch: bytes) -> list[FilePatch]:
    """The files of a patch that git printed, binary ones among them. Raises `GitError` for what is no patch."""
    return [_file_patch(section) for section in sections(patch)]


def file_texts(patch: bytes) -> list[FileText]:
    """The files of a patch that git printed, in its order: visible, without secrets; a binary file takes one line.

    Bytes that are no UTF-8 and characters that nobody sees are written as escapes (``\\xe9``, ``\\u202e``): a judge has
    to know of them, since they can break code. Raises `GitError` for what is no patch.
    """
    return [_file_text(section) for section in sections(patch)]


def shown(files: Sequence[FileText], limit: int, *, first: Collection[str] = ()) -> PatchText:
    """A patch within `limit` characters, beside the lines that say what is missing; `first` are the other's paths."""
    parts: list[str] = []
    part_of: list[str] = []
    left_out: list[str] = []
    left = limit

    def place(file: FileText) -> tuple[int, bool]:
        return file.rank, file.path not in first

    for _, group in groupby(sorted(files, key=place), key=place):
        some = list(group)
        kept = _with_room(some, left)
        left_out += [file.path for file in some if file not in kept]
        cap = fair_cap([len(file.text) for file in kept], left)
        part_of += [file.path for file in kept if len(file.text) > cap]
        parts += [cut(file.text, cap) for file in kept]
        left -= sum(min(len(file.text), cap) for file in kept)
    if left_out:
        names = cut(scrub_mined(", ".join(map(_visible, left_out[:_NAMED]))), max(limit // 4, SHORTEST))
        more = f" and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
        parts.append(f"[changed too, not shown: {names}{more}]")
    return PatchText("\n".join(parts), len(files), tuple(part_of), tuple(left_out))


def _with_room(files: Sequence[FileText], left: int) -> list[FileText]:
    """Those of which at least an excerpt has room, the smallest first served; in the order they came."""
    kept = set()
    for place in sorted(range(len(files)), key=lambda place: (len(files[place].text), place)):
        left -= min(len(files[place].text), SHORTEST)
        if left < 0:
            break
        kept.add(place)
    return [files[place] for place in sorted(kept)]


def header_of(section: bytes) -> bytes:
    """What stands before a file's hunks, or before what says that it is binary."""
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
    """Of a line of object ids only the mode says something: 160000 is a submodule, 120000 a link."""
    return f"mode {match[1]}\n" if match[1] and not match[1].startswith("100") else ""


def _visible(text: str) -> str:
    return _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if unicodedata.category(char) not in _UNSHOWN:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
