"""How wide a terminal is, and lines folded into it: the one place where a width is decided.

Into a pipe or a file every line is written whole, so that `grep` and a script find what belongs together.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import TextIO

_FALLBACK = 80
"""Columns of a terminal that does not say how many it has."""

_NARROWEST = 20
"""Less than this is taken for no answer."""

_FURTHER = 2
"""Columns that the next lines of a folded one are indented further than the first."""

_GAP = re.compile(r" {2,}(?=\S)")
_WORD = re.compile(r"\s*\S+")


def columns(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal behind a stream (standard output); None where there is none.

    `COLUMNS` overrules what the terminal says, as it does for other programs.
    """
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    found = int(told) if told.isdecimal() else 0
    if not found:
        try:
            found = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):  # no descriptor behind it, or one that is no terminal's
            found = _FALLBACK
    return found if found >= _NARROWEST else _FALLBACK


def cell_length(text: str) -> int:
    """The columns that a text takes; some characters take two, others none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  few lines need it

    return cell_len(text)


def folded(line: str, width: int | None) -> Iterator[str]:
    """The line in lines of `width` columns at most (None: as it is), broken between words.

    The next lines begin below the last column that a wide gap sets off, as the value in ``  name     value``; where
    there is none, a little further in than the first. A word that is longer than a line stays whole: it can be copied.
    """
    if width is None or cell_length(line) <= width:
        yield line
        return
    words = _WORD.findall(line)
    hang = _hang(line, width, max(cell_length(word.strip()) for word in words) if words else 0)
    current = ""
    for word in words:
        if current.strip() and cell_length(current + word) > width:
            yield current
            current = " " * hang + word.lstrip()
        else:
            current += word
    yield current


def _hang(line: str, width: int, longest: int) -> int:
    """How far the next lines of a folded one are indented, so that its longest word fits where that can be."""
    indent = len(line) - len(line.lstrip())
    gaps = (gap.end() for gap in _GAP.finditer(line, indent))
    places = [place for place in gaps if place <= width // 2 and place + longest <= width]
    return max(places, default=indent + _FURTHER)
