"""Patches that only move program text from file to file: work that cut and paste does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from chains.stages.cosmetic import IMPORT
from prchain.core.git import FilePatch

_FEWEST = 10
"""Lines; fewer are alike by chance."""
_LEAST_SHARE = 0.95

_OPENS = re.compile(r"[({][^)}]*$")
_CLOSES = re.compile(r"^[^({]*[)}]")


def is_move_only(files: Sequence[FilePatch]) -> bool:
    """Whether the lines that go are those that come, but for imports and few others, and most go into another file.

    Their order does not count, nor their indentation: what moves into a class is the same work there.
    """
    sides = [(Counter(_lines(file.removed)), Counter(_lines(file.added))) for file in files]
    gone, come = (sum((side[at] for side in sides), Counter[str]()) for at in (0, 1))
    both = (gone & come).total()
    elsewhere = both - sum((removed & added).total() for removed, added in sides)
    return both >= _FEWEST and both >= _LEAST_SHARE * max(gone.total(), come.total()) and 2 * elsewhere > both


def _lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines without white space around them, without blank ones and imports."""
    inside = False
    for line in lines:
        text = line.strip()
        if inside:
            inside = not _CLOSES.match(text)
        elif IMPORT.match(line):
            inside = bool(_OPENS.search(text))
        elif text:
            yield text
