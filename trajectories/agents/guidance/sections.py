"""The sections of a process reward model's reply: which lines belong to which key, and which key to which category."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trajectories.agents.guidance.answers import status_of
from trajectories.agents.guidance.marks import Line, Mark

_OF_CATEGORY = (Mark.DETECTED, Mark.EVIDENCE, Mark.RECOVERY)
_OF_REPLY = (Mark.STATUS, Mark.GUIDANCE, Mark.ACTION)
_FREE = (Mark.GUIDANCE, Mark.ACTION)
"""Sections whose text may speak of categories."""

_RULE = re.compile(r"[-*_=#>|\s]*+")
_FENCE = re.compile(r"[ \t>]*+(?:```|~~~)")
_DEFINITION = re.compile(r"(?:\W|_)*+definition", re.IGNORECASE)
_NO = re.compile(r"no(?![^\W_])", re.IGNORECASE)
_ANSWER = re.compile(r"(?:yes|no)(?![^\W_])", re.IGNORECASE)


@dataclass(slots=True)
class Section:
    """A key and the lines behind it."""

    mark: Mark
    category: str
    """The name of the category whose key it is; empty for the keys of the whole reply."""
    lines: list[str]
    closed: bool = False
    """Whether another mark ends it, rather than the reply."""

    @property
    def value(self) -> Sequence[str]:
        """The lines from the first on that holds text, rather than a rule or a fence."""
        start = next((place for place, line in enumerate(self.lines) if not _is_blank(line)), len(self.lines))
        return self.lines[start:]


def is_rule(line: str) -> bool:
    """Whether a line is empty, or nothing but a rule or a bullet."""
    return _RULE.fullmatch(line) is not None


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a block of code."""
    return _FENCE.match(line) is not None


def _is_blank(line: str) -> bool:
    return is_rule(line) or is_fence(line)


def sections(lines: Sequence[Line]) -> list[Section]:
    """The sections of a reply in order, duplicates included. Lines that belong to no key are left out."""
    own = _without_quoted(lines)
    reading = _SectionReading()
    for line, is_heading in zip(own, _headings(own), strict=True):
        reading.take(line, is_heading)
    return reading.sections


def _without_quoted(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines, those of quoted replies as prose.

    A fence with keys of the whole reply holds a quote where a status and a guidance stand outside of such fences: what
    the agent read, or the form. Models also put a whole reply into a fence, or each category.
    """
    quoted: set[int] = set()
    begin: int | None = None
    for place, line in enumerate(lines):
        if line.raw is None or not is_fence(line.raw):
            continue
        if begin is None:
            begin = place
        else:
            block = range(begin, place + 1)
            if any(lines[within].mark in _OF_REPLY for within in block):
                quoted.update(block)
            begin = None
    own = {line.mark for place, line in enumerate(lines) if place not in quoted}
    if not quoted or not {Mark.STATUS, Mark.GUIDANCE} <= own:
        return lines
    return [Line(Mark.PROSE, line.raw or "", line.raw) if place in quoted else line for place, line in enumerate(lines)]


def _headings(lines: Sequence[Line]) -> list[bool]:
    """Which lines are headings: titles of categories right before a DETECTED key, and of families right before those.

    A title is anything else in a guidance that goes through the categories.
    """
    headings = [False] * len(lines)
    next_mark: Mark | None = None
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        match line.mark:
            case Mark.PROSE:
                if not (_is_blank(line.text) or _DEFINITION.match(line.text)):
                    next_mark = None
            case Mark.TITLE:
                headings[place] = next_mark is Mark.DETECTED and not _NO.match(line.text)
                next_mark = Mark.TITLE if headings[place] else None
            case Mark.FAMILY:
                headings[place] = next_mark is Mark.TITLE
                next_mark = None
            case _:
                next_mark = line.mark
    return headings


@dataclass(slots=True)
class _SectionReading:
    """What was read up to a line."""

    sections: list[Section] = field(default_factory=list)
    _open: Section | None = None
    _category: str = ""
    """Whose keys may come; empty: nobody's."""
    _titled: bool = False
    """Whether the category's DETECTED key is still to come."""

    def take(self, line: Line, is_heading: bool) -> None:
        """Take up the next line."""
        if is_heading:
            self._close(line.category)
            self._titled = line.mark is Mark.TITLE
        elif self._is_text(line):
            if self._open is not None and line.raw is not None:
                self._open.lines.append(line.raw)
        elif line.mark is Mark.DETECTED and self._titled:
            self._titled = False
            self._begin(line, self._category)
        elif line.mark in {Mark.EVIDENCE, Mark.RECOVERY}:
            self._begin(line, self._category)
        elif line.mark in _OF_REPLY:
            self._begin(line, "")
        else:
            self._close("")

    def _is_text(self, line: Line) -> bool:
        """Whether a line is text of the section in which it stands, or of none."""
        within = self._open.mark if self._open else None
        match line.mark:
            case Mark.PROSE | Mark.FAMILY:
                return True
            case Mark.TITLE:
                # Behind a category's keys, a title alone or with an answer begins the next category, without a key.
                return not (within in _OF_CATEGORY and (not line.text or _ANSWER.match(line.text)))
            case Mark.STRAY:
                return within in _FREE
            case Mark.DETECTED:
                return within in _FREE and not self._titled
            case Mark.EVIDENCE | Mark.RECOVERY:
                return within not in _OF_CATEGORY
            case Mark.STATUS:
                # Prose may begin with the key's words; what is a key says a status, or leaves it to the next line.
                return within in _FREE and bool(line.text) and status_of(line.text) is None
        return False

    def _begin(self, line: Line, category: str) -> None:
        self._close(category)
        self._open = Section(line.mark, category, [line.text])
        self.sections.append(self._open)

    def _close(self, category: str) -> None:
        if self._open is not None:
            self._open.closed = True
        self._open, self._category = None, category
