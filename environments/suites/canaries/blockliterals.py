"""Literals of a file of JavaScript, and values that are as plausible in the place of one. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from environments.suites.canaries.falsify import PlausibleDice
from environments.suites.canaries.plausible import Around, known_words

_LITERAL = re.compile(
    r"(?P<quote>['\"`])(?P<text>(?:(?!(?P=quote))[^\\\n])*)(?P=quote)|(?<![\w.])(?P<number>\d{1,9})\b(?!\.\d)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_LONGEST = 240
_Place = tuple[int, int, int]
"""Line, begin and end of a literal."""


class BlockLiterals:
    """The literals of a file, as it was before any of its tests was made false."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [*lines]
        self._found = {number: [*_literals(line)] for number, line in enumerate(self._lines)}
        self._counts = Counter(it.strip() for it in self._lines)
        self._known = known_words(it for line in self._lines for it in _IDENTIFIER.findall(line))
        self._known.update(known_words(it for line in self._lines for it in re.findall(r"\d+", line)))

    def alone(self, places: Sequence[_Place], known: Collection[str] = ()) -> Sequence[_Place]:
        """Those places whose line stands nowhere else, and is not `known`, for such a line is seen to be true; all,
        where there is none."""
        alone = [it for it in places if self._counts[self._lines[it[0]].strip()] == 1]
        return [it for it in alone if not self.is_known(it, known)] or alone or places

    def is_known(self, place: _Place, known: Collection[str]) -> bool:
        """Whether a place's line is one of these."""
        return self._lines[place[0]].strip() in known

    def news(self, block: range, known: Collection[str]) -> Sequence[_Place]:
        """All literals of a block's lines that stand nowhere else and are not `known`; none where nothing is known."""
        return [
            (line, it.start(), it.end())
            for line in block
            for it in _found(self._lines[line])
            if known and self._counts[self._lines[line].strip()] == 1 and self._lines[line].strip() not in known
        ]

    def other(self, block: range, asked: Collection[_Place], place: _Place, order: PlausibleDice) -> str:
        """Another literal for the one in a place of a block; `asked` are the places of all that the block asks for."""
        number, begin, end = place
        literal = self._lines[number][begin:end]
        if literal in ("true", "false"):
            return "false" if literal == "true" else "true"
        true: object = literal[1:-1] if literal[0] in "\"'`" else int(literal)
        begins = {(line, at) for line, at, _ in asked}
        inner = {(line, at): it for line in block for at, it in self._found[line]}
        given = [it for where, it in inner.items() if where not in begins]
        here = [it for where, it in inner.items() if where in begins and where != (number, begin)]
        other = [it for line, found in self._found.items() if line not in block for _, it in found]
        before = self._lines[number][:begin].strip()
        peers = [
            it
            for line, found in self._found.items()
            for at, it in found
            if line != number and self._lines[line][:at].strip() == before
        ]
        around = Around(true, given, [*here, *peers], other, self._known, peers, order.signs)
        quote = literal[0]
        fit = [it for it in around.others(order.place) if not isinstance(it, str) or _fits(it, quote)]
        value = order.taken(fit or [true])
        return f"{quote}{value}{quote}" if isinstance(value, str) else str(value)


def _literals(line: str) -> Iterator[tuple[int, object]]:
    """Where literals begin, and their values."""
    for it in _found(line):
        yield it.start(), int(it["number"]) if it["number"] else it["text"]


def _found(line: str) -> Iterator[re.Match[str]]:
    return _LITERAL.finditer(line) if len(line) <= _LONGEST else iter(())


def _fits(text: str, quote: str) -> bool:
    return quote not in text and "\n" not in text and "\\" not in text and "${" not in text
