"""Tests of JavaScript that are made false in their own place, for duels (`environments.suites.canaries.duels`). Pure.

A false test stays as it is but for one literal of its own assertions. Tests are found by their first and last lines, as
formatters lay them out; whether a false one fails, the proof tries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from environments.suites.canaries.blockcopies import JAVASCRIPT_COPIES, other_value
from environments.suites.canaries.duels import Falsifier

_TITLE = r"(?P<quote>['\"`])(?P<title>(?:(?!(?P=quote)).)*)(?P=quote)"
_FUNCTION = r"(?:async\s*)?(?:\([^()]*\)\s*=>|\w+\s*=>|function\b\s*\w*\s*\([^()]*\))\s*\{\s*"
_TEST = re.compile(rf"(?P<indent>[ \t]*)(?:it|test)\(\s*{_TITLE},\s*{_FUNCTION}")
_GROUP = re.compile(rf"(?P<indent>[ \t]*)(?:describe|context|suite)(?:\.only)?\(\s*{_TITLE},\s*{_FUNCTION}")
_INNER = re.compile(r"\b(?:it|test|describe|context|suite)(?:\.\w+)*\(")
_CLOSED = re.compile(r"(?P<indent>[ \t]*)\}\);?\s*")
_LONGEST = 400
"""Characters of a line that is looked at."""


class _Block(NamedTuple):
    """The lines of a test's body."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class FalseBlocks:
    """`Falsifier.falsify`. With `whole` a test's name has the titles of its groups before its own, as reports of
    mocha do."""

    whole: bool = False

    def __call__(self, text: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
        """The text with tests made false, and the names of all that can be; of a name that several tests have, all."""
        lines = text.splitlines(keepends=True)
        blocks: dict[str, list[_Block]] = {}
        for name, block in self._blocks(lines):
            blocks.setdefault(name, []).append(block)
        can = {name for name, found in blocks.items() if all(_places(lines, block) for block in found)}
        for name in sorted(can):
            if (draw := order(name)) is not None:
                for block in blocks[name]:
                    number, begin, end = draw.choice(_places(lines, block))
                    line = lines[number]
                    lines[number] = f"{line[:begin]}{other_value(line[begin:end], draw)}{line[end:]}"
        return "".join(lines), frozenset(can)

    def _blocks(self, lines: Sequence[str]) -> Iterator[tuple[str, _Block]]:
        groups: list[tuple[int, str]] = []
        for number, line in enumerate(lines):
            if len(line) > _LONGEST:
                continue
            if closed := _CLOSED.fullmatch(line):
                groups = [it for it in groups if it[0] < len(closed["indent"])]
            elif group := _GROUP.fullmatch(line):
                depth = len(group["indent"])
                groups = [*(it for it in groups if it[0] < depth), (depth, group["title"])]
            elif (test := _TEST.fullmatch(line)) and (end := _end(lines, number, test["indent"])):
                above = [title for depth, title in groups if depth < len(test["indent"])] if self.whole else []
                titles = [*above, test["title"]]
                # What stands in a report then is another text, or parts that the reader of ids takes for several.
                if not any("\\" in it or "${" in it or " > " in it for it in titles):
                    yield " ".join(titles), _Block(number + 1, end)


def _end(lines: Sequence[str], start: int, indent: str) -> int:
    """The last line of the test that begins there; 0 where it cannot be told, or holds tests of its own."""
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if (closed := _CLOSED.fullmatch(line)) and closed["indent"] == indent:
            return number
        if _INNER.search(line) or (line.strip() and not line.startswith(indent)):
            return 0
    return 0


def _places(lines: Sequence[str], block: _Block) -> list[tuple[int, int, int]]:
    """Line, begin and end of the literals that can be others."""
    body = [line.rstrip("\r\n") for line in lines[block.begin : block.end]]
    return [(block.begin + it.line, it.begin, it.end) for it in JAVASCRIPT_COPIES.places(body)]


falsify_javascript = FalseBlocks()
falsify_mocha = FalseBlocks(whole=True)

JAVASCRIPT_FALSIFIER = Falsifier(falsify_javascript)
MOCHA_FALSIFIER = Falsifier(falsify_mocha)
