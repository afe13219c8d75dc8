"""The marks in a process reward model's reply: which of its lines are titles and keys, and what stands behind them.

Models decorate what they were asked to write plainly: with headings, bold, bullets, numbers, emoji and tables. A mark
is looked for at the beginning of a line alone, so prose that mentions a key or a title is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from trajectories.agents.guidance.taxonomy import Taxonomy
from trajectories.agents.guidance.titles import Titles


class Mark(Enum):
    """What a line, or a part of it, is."""

    PROSE = auto()
    TITLE = auto()
    """The title of a category."""
    FAMILY = auto()
    """The title of a family."""
    STRAY = auto()
    """A DETECTED key behind something that is no title."""
    END = auto()
    """Of a table's row: what stood before it is over."""
    DETECTED = auto()
    EVIDENCE = auto()
    RECOVERY = auto()
    STATUS = auto()
    GUIDANCE = auto()
    ACTION = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a reply, or a part of one."""

    mark: Mark
    text: str
    """What stands behind the mark; of prose the line as it is."""
    raw: str | None
    """The line as it is; None for the later parts of a line."""
    category: str = ""
    """Of a `TITLE`: the name of its category."""


_LEAD = r"""(?P<lead>(?:[^\w"'{]|_)*+(?:\d{1,3}(?:\.\d{1,3}){0,2}\\?[.)](?:[^\w"'{]|_)*+)?+)"""
"""Decoration and a number before a key. A quote or a brace is none: JSON is another form."""
_JOINT = r"(?:\\?[ _-])?"
_NAMES = {
    Mark.DETECTED: "detected",
    Mark.EVIDENCE: "evidence",
    Mark.RECOVERY: f"recovery(?:{_JOINT}action)?",
    Mark.STATUS: f"task{_JOINT}status",
    Mark.GUIDANCE: f"overall{_JOINT}guidance",
    Mark.ACTION: f"recommended{_JOINT}(?:next{_JOINT})?action",
}
_KEY = re.compile(
    rf"{_LEAD}(?:{'|'.join(f'(?P<{mark.name}>{name})' for mark, name in _NAMES.items())})"
    r"(?P<close>[*_`~?\])]*+)[ \t]*+(?:\([^()]{0,40}\))?+[*_`~]*+[ \t]*+(?:[:：=→]|[-–—]++(?=[ \t])|$)",  # noqa: RUF001
    re.IGNORECASE,
)
_CELLS = {mark: re.compile(rf"[\s*_`]*+{name}[\s*_`?:]*+", re.IGNORECASE) for mark, name in _NAMES.items()}
"""The keys as cells of a table."""
_DETECTED_WITHIN = re.compile(r"(?<![^\W_])detected[*_`~?)\]]*+[ \t]*+[:：=]", re.IGNORECASE)  # noqa: RUF001
_TITLE_AND_KEY = 176
"""Characters of a line in which a DETECTED key behind a title is looked for."""
_PARENTHESIS = re.compile(r"\([^()]{0,80}\)[\s*_:-]*+$")
_KEY_WITHIN = re.compile(r"(?<!\w)(EVIDENCE|RECOVERY_ACTION|OVERALL_GUIDANCE)[*_`]*+[:：]")  # noqa: RUF001
_WITHIN = {"EVIDENCE": Mark.EVIDENCE, "RECOVERY_ACTION": Mark.RECOVERY, "OVERALL_GUIDANCE": Mark.GUIDANCE}
_MAY_FOLLOW = {
    Mark.DETECTED: {Mark.EVIDENCE, Mark.RECOVERY},
    Mark.EVIDENCE: {Mark.RECOVERY},
    Mark.STATUS: {Mark.GUIDANCE},
}
"""The keys that may follow another on its line. None follows guidance, which may speak of keys."""
_BEFORE_KEY = " \t,;|*(-–—"  # noqa: RUF001
_BOLD = ("***", "**", "*", "__", "_", "`")

_PIPE = re.compile(r"(?<!\\)\|")
_RULE_CELL = re.compile(r"[\s:-]*+")
_OF_CATEGORY = (Mark.DETECTED, Mark.EVIDENCE, Mark.RECOVERY)
_OF_REPLY = (Mark.STATUS, Mark.GUIDANCE, Mark.ACTION)


def marked(text: str, taxonomy: Taxonomy) -> list[Line]:
    """The lines of a reply with their marks. Never raises: a model may write anything."""
    titles = Titles(taxonomy)
    lines: list[Line] = []
    columns: Mapping[Mark, int] = {}
    for line in text.split("\n"):
        if not line.strip():
            lines.append(Line(Mark.PROSE, line, line))
            columns = {}
            continue
        cells = _cells(line)
        if columns and cells:
            lines += _category_row(cells, columns, titles)
            continue
        columns = _columns(cells)
        if columns:
            lines.append(Line(Mark.END, "", line))
        elif len(cells) > 1 and (mark := _key_of(cells[0], _OF_REPLY)) is not None:
            lines += [Line(mark, " | ".join(filter(None, cells[1:])), line), Line(Mark.END, "", None)]
        else:
            lines += _marked_line(line, titles)
    return lines


def _marked_line(line: str, titles: Titles) -> Iterator[Line]:
    stray = False
    for found in _DETECTED_WITHIN.finditer(line, 0, _TITLE_AND_KEY):
        before = line[: found.start()]
        name = titles.whole(before) or titles.whole(_PARENTHESIS.sub("", before.rstrip(f"{_BEFORE_KEY}:")))
        if name is not None:
            is_row = line.lstrip().startswith("|")
            yield Line(Mark.TITLE, "", line, name)
            yield from _parts(Mark.DETECTED, line[found.end() :].rstrip(" \t|" if is_row else None), None)
            return
        # In small letters it is a verb.
        stray = stray or found.group()[0].isupper()
    if key := _KEY.match(line):
        mark = next(mark for mark in _NAMES if key[mark.name])
        yield from _parts(mark, _behind(key, line), line)
    elif stray:
        yield Line(Mark.STRAY, "", line)
    elif title := titles.at_start(line):
        yield Line(Mark.TITLE, title[1], line, title[0])
    else:
        yield Line(Mark.FAMILY if titles.is_family(line) else Mark.PROSE, line, line)


def _behind(key: re.Match[str], line: str) -> str:
    """What stands behind a key, without the end of a decoration that began before it: ``**KEY:** value``."""
    text = line[key.end() :]
    if not key["close"]:
        text = text.removeprefix(next((mark for mark in _BOLD if mark in key["lead"] and text.startswith(mark)), ""))
    return text


def _parts(mark: Mark, text: str, raw: str | None) -> Iterator[Line]:
    """The value of a key, and the keys with their values that follow on its line."""
    start = 0
    for found in _KEY_WITHIN.finditer(text):
        follows = _WITHIN[found[1]]
        if follows in _MAY_FOLLOW.get(mark, ()):
            yield Line(mark, text[start : found.start()].strip().rstrip(_BEFORE_KEY), raw)
            mark, raw, start = follows, None, found.end()
    yield Line(mark, text[start:].strip(), raw)


def _cells(line: str) -> list[str]:
    """The cells of a table's row; none where the line is no row."""
    text = line.strip()
    if not text.startswith("|"):
        return []
    return [cell.replace("\\|", "|").strip() for cell in _PIPE.split(text[1:].removesuffix("|"))]


def _key_of(cell: str, marks: Sequence[Mark]) -> Mark | None:
    return next((mark for mark in marks if _CELLS[mark].fullmatch(cell)), None)


def _columns(cells: Sequence[str]) -> Mapping[Mark, int]:
    """The places of the keys in a table's first row; none where it is no table of categories."""
    columns = {mark: place for place, cell in enumerate(cells) if (mark := _key_of(cell, _OF_CATEGORY)) is not None}
    return columns if Mark.DETECTED in columns and len(cells) > 1 else {}


def _category_row(cells: Sequence[str], columns: Mapping[Mark, int], titles: Titles) -> Iterator[Line]:
    """A row of a table of categories, as the lines that it stands for."""
    if all(map(_RULE_CELL.fullmatch, cells)):
        return
    others = (cell for place, cell in enumerate(cells) if place not in columns.values())
    name = next((name for cell in others if (name := titles.whole(cell)) is not None), None)
    if name is not None and columns[Mark.DETECTED] < len(cells):
        yield Line(Mark.TITLE, "", None, name)
        for mark in _OF_CATEGORY:
            if mark in columns and columns[mark] < len(cells):
                yield Line(mark, cells[columns[mark]], None)
    yield Line(Mark.END, "", None)
