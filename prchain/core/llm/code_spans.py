"""Where a text is code, or quotes something: fenced blocks, backticks, quotation marks.

Only as much of Markdown as tells a quoted mark from a real one; a reply is no document, and may be cut off in a block.
See CommonMark 0.31, "Fenced code blocks" and "Code spans".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from enum import Enum

_FENCE = re.compile(r"^[ \t>]{0,12}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_INDENTED = re.compile(r"(?:^(?: {4}| {0,3}\t)[^\n]*\S[^\n]*\n?)+", re.MULTILINE)
_TICKS = re.compile(r"`+")
_DOUBLE = re.compile(r'(?<!\\)"')
_NO_WORD = re.compile(r"(?:\A|\W)[bfru]{0,2}\Z", re.IGNORECASE)
"""Before a quotation mark that opens: no word, but the letters of a Python string."""
_BLANK = re.compile(r"\s")
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb", "(": ")", "[": "]"}
_LONGEST_WORD = 80


class Code(Enum):
    """What a place of a text is."""

    NO = 0
    WORD = 1
    """In backticks, or in quotation marks around one word."""
    BLOCK = 2
    """In a fenced block, or in lines that are indented as code."""
    OPEN = 3
    """In a fenced block that does not end, or in which another begins first: a doubtful one."""


class CodeSpans:
    """The code of a text; places are found in logarithmic time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._fences: list[int] = []
        """Where each line of a fence begins, and ..."""
        self._kinds: list[Code] = []
        """... what is behind it, up to the next."""
        opened: str | None = None
        for match in _FENCE.finditer(text):
            fence, info = match["fence"], match["info"]
            if fence[0] == "`" and "`" in info:
                continue
            if opened is None:
                opened = fence
            elif fence[0] == opened[0] and len(fence) >= len(opened) and not info.strip():
                self._kinds[-1] = Code.BLOCK
                opened = None
            self._fences.append(match.start())
            self._kinds.append(Code.NO if opened is None else Code.OPEN)
        # A paragraph goes on with indented lines, and a text may begin with one.
        self._indented = [match.span() for match in _INDENTED.finditer(text) if text.endswith("\n\n", 0, match.start())]
        self._ticks = [match.start() for match in _TICKS.finditer(text)]
        self._double = [match.start() for match in _DOUBLE.finditer(text)]

    def line_start(self, place: int) -> int:
        """Where the line of a place begins."""
        return self._lines[bisect_right(self._lines, place) - 1]

    def at(self, start: int, end: int) -> Code:
        """What the text is from `start` to `end`, which are on one line."""
        before = bisect_right(self._fences, start) - 1
        if before >= 0 and self._kinds[before] is not Code.NO:
            return self._kinds[before]
        block = bisect_right(self._indented, (start, len(self._text))) - 1
        if block >= 0 and start < self._indented[block][1]:
            return Code.BLOCK
        inside = any(self._between(signs, start, end) for signs in (self._ticks, self._double))
        return Code.WORD if inside or self._in_quotes(start, end) else Code.NO

    def _between(self, signs: list[int], start: int, end: int) -> bool:
        """Whether a place is between two of the signs on its line: an odd number stands before it, and behind it."""
        line = bisect_right(self._lines, start)
        line_end = self._lines[line] if line < len(self._lines) else len(self._text)
        before = bisect_left(signs, start) - bisect_left(signs, self._lines[line - 1])
        return before % 2 == 1 and (bisect_left(signs, line_end) - bisect_left(signs, end)) % 2 == 1

    def _in_quotes(self, start: int, end: int) -> bool:
        """Whether a word without a blank around the place stands in quotation marks or brackets."""
        before = self._text[max(start - _LONGEST_WORD, self.line_start(start)) : start]
        word = _BLANK.split(before)[-1]
        rest = _BLANK.split(self._text[end : end + _LONGEST_WORD], maxsplit=1)[0]
        for place, char in enumerate(word):
            closing = _QUOTES.get(char)
            if closing is None or not _NO_WORD.search(word, 0, place) or closing in word[place + 1 :]:
                continue
            found = rest.find(closing)
            if found >= 0 and not rest[found + 1 : found + 2].isalnum():
                return True
        return False
