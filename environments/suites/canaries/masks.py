"""Tests whose expected values are not in the sandbox: masks stand in their place, and tell what the tested code gives.

Who can read a test can give what it asks for. Of a masked test the literals that assertions ask for are replaced by
masks. A mask takes whatever it is compared with, and writes that to a file, the report of the masks; whether it is
right is decided outside, by what M_t gave in the proof. So nothing in the process says what is right, neither before
the comparison nor after it, and it does not matter that code there can see masks, or write to the report: it has to
know the value. Pure.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

EQUAL, HOLDS = "=", "~"
"""Begin what a mask tells: a value that has to equal what is asked for, and one that has to hold it."""
TOLD_LIMIT = 1 << 20
"""Bytes of a report of masks that are read."""
_LONGEST = 96
"""Characters of a told text that a proof keeps; of a longer one it keeps a hash."""
_LINE = re.compile(r"(?P<number>[0-9]{1,9}) (?P<text>[=~].*)")
_MOST_TOLD = 64
"""Different texts that a mask may tell."""


@dataclass(frozen=True, slots=True)
class Masking:
    """What masks of a file's tests need: the path of the `report`, to which each mask appends lines ``NUMBER TEXT``,
    the number of the file's `first` mask, and by a test's name which of its places are masked, from 0 (None: all)."""

    report: str
    first: int
    places: Callable[[str], Collection[int] | None]


class Masked(NamedTuple):
    """A test file's text with masks, and by the name of each test that has places for them the literals that stand
    there, as they are written. The masks of a file are numbered in the order of this mapping, masked or not."""

    text: str
    literals: Mapping[str, Sequence[str]]

    def numbers(self, first: int) -> dict[int, tuple[str, int]]:
        """The test and its place by a mask's number."""
        places = [(name, place) for name, found in self.literals.items() for place in range(len(found))]
        return dict(enumerate(places, first))


Masker = Callable[[str, Masking], Masked]
"""Masks the tests of a language. Lines keep their numbers. A text that cannot be read has no places."""


def told(report: str) -> dict[int, set[str]]:
    """What masks told, by their numbers; lines of another form say nothing."""
    found = defaultdict[int, set[str]](set)
    for line in report.splitlines():
        if (it := _LINE.fullmatch(line)) and len(found[int(it["number"])]) <= _MOST_TOLD:
            found[int(it["number"])].add(it["text"])
    return dict(found)
