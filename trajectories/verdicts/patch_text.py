"""A patch as the judge reads it: git's own text, made safe to show and cut to a number of characters.

Patches that are too large are cut *source first*: source is shown before configuration and data, these before docs,
then tests, and generated, vendored and lock files last; within a kind, files named as `first` come first. Files that
fit are whole, the largest of the others are cut, and files without room are named. So padding can push out other
padding, but not the source files that the reference touches.

A patch with whole functions (`GitRepository.patch_text`) has unchanged lines that are further than three from any
change. They get what room the changes leave, in the same order of files, and the largest runs of them are cut first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise, takewhile
from typing import NamedTuple

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.errors import GitError
from prchain.core.git import FilePatch, parse_patch
from prchain.core.llm.excerpt import SHORTEST, cut, fair_cap
from prchain.core.secrets.scrub import scrub_mined

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
_CONTEXT = 3
"""Unchanged lines next to a change that belong to it, as git shows them by default."""
_LEAST = 80
"""Characters. A shorter run of unchanged lines takes no more room than the line that says what was left out."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HUNK, _UNCHANGED, _CHANGED = "@@ ", " ", "+"
"""What the lines of a hunk begin with; `_CHANGED` stands for any other mark, too."""


class Piece(NamedTuple):
    """Lines of a patch, with their ends; `further` where they are unchanged and further than three from a change."""

    text: str
    further: bool = False


@dataclass(frozen=True, slots=True)
class FileText:
    """One file's part of a patch, as text that is safe in a prompt."""

    path: str
    pieces: tuple[Piece, ...]
    """Joined they are the text."""
    hidden: bool = False
    """Whether it is binary, so that the text says nothing of its content."""

    @property
    def size(self) -> int:
        """The characters of its changes, with three unchanged lines around each."""
        return sum(len(piece.text) for piece in self.pieces if not piece.further)

    @property
    def further(self) -> list[int]:
        """The characters of each run of unchanged lines further away."""
        return [len(piece.text) for piece in self.pieces if piece.further]

    def shown(self, cap: int) -> str:
        """The text with no more than `cap` characters of each run of unchanged lines that is further away."""
        return "".join(_pared(piece.text, cap) if piece.further else piece.text for piece in self.pieces).rstrip("\n")

    @property
    def rank(self) -> int:
        """Its place in the order of files, by kind; 0 is first."""
        return _RANKS[kind_of(self.path)]


@dataclass(frozen=True, slots=True)
class PatchText:
    """A patch within its limit; `cut` are the paths whose changes are shown in part, `left_out` the paths that are only
    named, or not even named, and `hidden` those of binary files. `pared` says whether unchanged lines were left out."""

    text: str
    files: int
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    pared: bool = False
    hidden: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether no change is missing, except the content of binary files."""
        return not self.cut and not self.left_out

    def extent(self) -> str:
        """How much of it is shown, in fixed words, with nothing of the patch's content."""
        count = f"{self.files:,} file" + ("" if self.files == 1 else "s")
        binary = f", {len(self.hidden):,} of them binary, whose content is not" if self.hidden else ""
        if self.whole:
            shown = "every change shown" if self.pared else "shown" if self.hidden else "shown in full"
            return f"{count}, {shown}{binary}"
        cut, left_out = len(self.cut), len(self.left_out)
        return f"{count}, of which {cut:,} are shown in part and {left_out:,} not at all{binary and binary + ' shown'}"


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
    """A patch within `limit` characters, not counting lines on what is missing; `first` are paths that matter more."""
    changes: list[tuple[FileText, int]] = []
    left_out: list[str] = []
    room = limit

    def place(file: FileText) -> tuple[int, bool]:
        return file.rank, file.path not in first

    groups = [list(group) for _, group in groupby(sorted(files, key=place), key=place)]
    for group in groups:
        kept = _with_room(group, room)
        left_out += [file.path for file in group if file not in kept]
        cap = fair_cap([file.size for file in kept], room)
        changes += [(file, cap) for file in kept]
        room -= sum(min(file.size, cap) for file in kept)
    parts: list[str] = []
    cut_paths: list[str] = []
    pared = False
    for _, shown in groupby(changes, key=lambda change: place(change[0])):
        group_changes = list(shown)
        runs = [length for file, cap in group_changes if file.size <= cap for length in file.further]
        context_cap = fair_cap(runs, room)
        room -= sum(min(length, context_cap) for length in runs)
        pared |= any(length > context_cap for length in runs)
        for file, cap in group_changes:
            fits = file.size <= cap
            parts.append(file.shown(context_cap) if fits else cut(file.shown(0), cap))
            cut_paths += [] if fits else [file.path]
    if left_out:
        names = cut(scrub_mined(", ".join(map(visible, left_out[:_NAMED_FILES]))), max(limit // 4, SHORTEST))
        rest = f" and {len(left_out) - _NAMED_FILES:,} more" if len(left_out) > _NAMED_FILES else ""
        parts.append(f"[changed too, not shown: {names}{rest}]")
    hidden = tuple(file.path for file, _ in changes if file.hidden)
    return PatchText("\n".join(parts), len(files), tuple(cut_paths), tuple(left_out), pared, hidden)


def _with_room(files: Sequence[FileText], room: int) -> list[FileText]:
    """The files with room for at least an excerpt, chosen from the smallest on; in the order of `files`."""
    kept = set()
    for index in sorted(range(len(files)), key=lambda index: (files[index].size, index)):
        room -= min(files[index].size, SHORTEST)
        if room < 0:
            break
        kept.add(index)
    return [files[index] for index in sorted(kept)]


def _pared(text: str, cap: int) -> str:
    """The first and last lines within `cap` characters, with a line between them that says what is gone.

    Lines are whole, so that none of them loses its mark.
    """
    if len(text) <= cap:
        return text
    lines = _LINE.findall(text)
    head = _within(lines, cap - cap // 3)
    tail = _within(lines[head:][::-1], cap // 3)
    kept = "".join(lines[:head]), "".join(lines[len(lines) - tail :])
    omitted = len(text) - len(kept[0]) - len(kept[1])
    return f"{kept[0]}[... {omitted:,} characters of unchanged lines left out ...]\n{kept[1]}"


def _within(lines: Sequence[str], room: int) -> int:
    """How many of the lines, from the first on, fit."""
    sums = accumulate(map(len, lines))
    return sum(1 for _ in takewhile(lambda total: total <= room, sums))


def header_of(section: bytes) -> bytes:
    """A file's part up to its hunks, or up to git's line on binary content."""
    content = _CONTENT.search(section)
    return section[: content.start()] if content else section


def is_binary(section: bytes) -> bool:
    """Whether a file's part shows nothing of its content."""
    content = _CONTENT.search(section)
    return content is not None and not content[0].startswith(b"@@")


def _file_patch(section: bytes) -> FilePatch:
    binary = is_binary(section)
    [file] = parse_patch((header_of(section) if binary else section).decode("utf-8", "surrogateescape"))
    return replace(file, binary=True) if binary else file


def _file_text(section: bytes) -> FileText:
    [file] = parse_patch(header_of(section).decode("utf-8", "surrogateescape"))
    if is_binary(section):
        what = _STATUS.get(file.status, "changed")
        line = scrub_mined(visible(f"binary file {what}, content not shown: {file.path}"))
        return FileText(file.path, (Piece(line),), hidden=True)
    text = _OBJECT_IDS.sub(_mode, section.decode("utf-8", "backslashreplace"))
    return FileText(file.path, _pieces(scrub_mined(visible(text)).rstrip("\n")))


def _pieces(text: str) -> tuple[Piece, ...]:
    """A file's part with its unchanged lines apart that are further than three from any change.

    Marks alone are read: scrubbing may have taken lines out, so that a hunk's counts need not hold.
    """
    lines = _LINE.findall(text)
    begin = next((number for number, line in enumerate(lines) if line.startswith(_HUNK)), len(lines))
    pieces = [Piece("".join(lines[:begin]))]
    runs = [(mark, list(run)) for mark, run in groupby(lines[begin:], key=_mark)]
    marks = [mark for mark, _ in runs]
    for (mark, run), earlier, later in zip(runs, [_HUNK, *marks], [*marks[1:], _HUNK], strict=False):
        # Next to the head of a hunk, or to the end, there is no change.
        before, after = (0 if mark == _HUNK else _CONTEXT for mark in (earlier, later))
        middle = "".join(run[before : len(run) - after])
        if mark != _UNCHANGED or len(middle) < _LEAST:
            pieces.append(Piece("".join(run)))
        else:
            pieces += [Piece("".join(run[:before])), Piece(middle, True), Piece("".join(run[len(run) - after :]))]
    return tuple(piece for piece in pieces if piece.text)


def _mark(line: str) -> str:
    """What a line of a hunk is: unchanged, the head of a hunk, or anything else."""
    return next((mark for mark in (_UNCHANGED, _HUNK) if line.startswith(mark)), _CHANGED)


def _mode(match: re.Match[str]) -> str:
    """The mode of a line of object ids, if it is special: 160000 is a submodule, 120000 a link."""
    return f"mode {match[1]}\n" if match[1] and not match[1].startswith("100") else ""


def visible(text: str) -> str:
    """The text with escapes in place of characters that nobody sees, or that change how others are displayed."""
    return _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if unicodedata.category(char) not in _INVISIBLE:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
