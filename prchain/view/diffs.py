"""Patches as pages show them: files, hunks and lines with their numbers, cut where they are long. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from prchain.core.git.patches import FilePatch, Hunk
from prchain.core.secrets.private_keys import SIGN, without_private_keys
from prchain.core.secrets.scrub import REDACTED
from prchain.view.texts import beginning

LINES_OF_FILE = 600
LINES_OF_PATCH = 6_000
_LONGEST_LINE = 2_000
"""Characters; of a line that is longer, as in minified code, the beginning is shown."""

HIDDEN = "[a line of the reference]"
"""In the place of a line that a view without references must not show."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line: its mark (``+``, ``-`` or a space), its number in the old file and in the new one, 0 for none."""

    mark: str
    old: int
    new: int
    text: str
    lit: bool = False
    """Whether it is one that the page is about: the later pull request changes it."""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines that stand together, below what git names as the function around them."""

    place: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class DiffFile:
    """What a patch does to one file."""

    path: str
    old_path: str | None
    status: str
    binary: bool
    added: int
    removed: int
    lit: int
    hunks: tuple[DiffHunk, ...]
    left_out: int
    """Lines that are not shown."""
    lit_left_out: int
    """Those of them that would be lit."""


def diff_files(
    patches: Sequence[FilePatch],
    *,
    lit: Mapping[str, Collection[str | int]] | None = None,
    mark: str = "",
    hidden: Collection[str] = (),
) -> tuple[DiffFile, ...]:
    """The files of a patch, those with lit lines first. `lit` is path to those lines with the mark `mark` that are lit,
    by their texts, or by their numbers in the file that they stand in, whose path it is: the old one for ``-``, the new
    one for ``+``. A line whose text is one of `hidden` is not shown."""
    room = LINES_OF_PATCH
    found = []
    for patch in patches:
        most = min(LINES_OF_FILE, room)
        path = patch.old_path or patch.path if mark == "-" else patch.path
        shown = _file(patch, most, (lit or {}).get(path, ()), mark, hidden)
        room -= sum(len(hunk.lines) for hunk in shown.hunks)
        found.append(shown)
    return tuple(sorted(found, key=lambda file: not file.lit))


def _file(patch: FilePatch, most: int, lit: Collection[str | int], mark: str, hidden: Collection[str]) -> DiffFile:
    hunks: list[DiffHunk] = []
    left = most
    lit_lines = 0
    for hunk in patch.hunks:
        if left <= 0 and not lit:
            break
        every = _lines(hunk, lit, mark, hidden)
        lit_lines += sum(line.lit for line in every)
        lines = every[: max(left, 0)]
        left -= len(lines)
        if not lines:
            continue
        section = "" if hunk.section.strip() in hidden else hunk.section
        place = f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@ {section}".rstrip()
        hunks.append(DiffHunk(place[:_LONGEST_LINE], tuple(lines)))
    shown = sum(len(hunk.lines) for hunk in hunks)
    whole = sum(len(hunk.lines) for hunk in patch.hunks)
    lit_shown = sum(line.lit for hunk in hunks for line in hunk.lines)
    ending = (len(patch.added), len(patch.removed), lit_lines, tuple(hunks), whole - shown, lit_lines - lit_shown)
    return DiffFile(patch.path, patch.old_path, patch.status, patch.binary, *ending)


def _lines(hunk: Hunk, lit: Collection[str | int], lit_mark: str, hidden: Collection[str]) -> list[DiffLine]:
    old, new = hunk.old_start, hunk.new_start
    found = []
    for line in _without_keys(hunk.lines):
        mark, text = line[0], line[1:]
        is_lit = mark == lit_mark and (text in lit or (old if mark == "-" else new) in lit)
        if text.strip() in hidden:
            text = HIDDEN
        if len(text) > _LONGEST_LINE:
            shown = beginning(text, _LONGEST_LINE)
            text = f"{shown} [... {len(text) - len(shown):,} more characters]"
        found.append(DiffLine(mark, old if mark != "+" else 0, new if mark != "-" else 0, text, is_lit))
        old += mark != "+"
        new += mark != "-"
    return found


def _without_keys(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a hunk without those of private keys, which are known by several lines together."""
    text = "\n".join(lines)
    if SIGN not in text:
        return lines
    found = without_private_keys(text, _redacted).split("\n")
    return found if len(found) == len(lines) else [line[:1] + REDACTED for line in lines]


def _redacted(key: str) -> str:
    """As many lines as a key has; each but the one that its BEGIN mark stands in has its mark of a patch."""
    first, *rest = key.split("\n")
    begins = REDACTED if first.startswith("-----") else first[:1] + REDACTED
    return "\n".join([begins, *(line[:1] + REDACTED for line in rest)])


def whole_text(patches: Sequence[FilePatch], hidden: Collection[str] = ()) -> str:
    """A patch whole, as text to read; it is no patch to apply."""
    found = []
    for patch in patches:
        found.append(f"{patch.status} {f'{patch.old_path} -> ' if patch.old_path else ''}{patch.path}")
        for hunk in patch.hunks:
            found.append(f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@")
            found.extend(line if line[1:].strip() not in hidden else line[0] + HIDDEN for line in hunk.lines)
        found.append("")
    return "\n".join(found)
