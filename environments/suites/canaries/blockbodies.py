"""Where the bodies of a file's tests begin and end, found in one pass over its lines. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Body(NamedTuple):
    """The lines of a test's body, behind its head and before its last one, and the first line of the test."""

    begin: int
    end: int
    found: re.Match[str]


@dataclass(frozen=True, slots=True)
class BlockForm:
    """How a language lays out a test: `head` is the line behind which its body begins, the first one or the one after
    that, `last` its last line behind the indentation of the first, and a line with what `leaves` finds may end the body
    before its last line, or makes it several tests."""

    head: re.Pattern[str]
    last: str
    leaves: re.Pattern[str]

    def bodies(self, lines: Sequence[str], starts: Iterable[tuple[int, re.Match[str]]]) -> list[Body]:
        """Those of the tests with these first lines that a canary can do as well; a body has a line at least."""
        ends: dict[str, list[int]] = {}
        leaving: list[int] = []
        for number, line in enumerate(lines):
            closed = line.rstrip().removesuffix(";")
            if closed.endswith(self.last):
                ends.setdefault(closed, []).append(number)
            if self.leaves.search(line):
                leaving.append(number)
        return [
            Body(head + 1, end, found)
            for place, found in starts
            if (head := self.head_of(lines, place)) is not None
            and (end := _next(ends.get(f"{found['indent']}{self.last}", ()), head + 1)) is not None
            and end > head + 1
            and not holds_any(leaving, head + 1, end)
        ]

    def head_of(self, lines: Sequence[str], place: int) -> int | None:
        """The head of the test that begins there; None where it has none, or more before it than its first line."""
        if place and lines[place - 1].strip().startswith(("#[", "@")):
            return None
        return next((line for line in (place, place + 1) if line < len(lines) and self.head.match(lines[line])), None)


def holds_any(numbers: Sequence[int], begin: int, end: int) -> bool:
    """Whether one of these sorted numbers lies from `begin` on and before `end`."""
    return bisect_left(numbers, begin) < bisect_left(numbers, end)


def _next(numbers: Sequence[int], first: int) -> int | None:
    """The least of these sorted numbers that is not below `first`."""
    place = bisect_left(numbers, first)
    return numbers[place] if place < len(numbers) else None
