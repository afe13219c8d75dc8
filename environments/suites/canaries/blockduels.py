"""Tests of JavaScript that are made false in their own place, for duels (`environments.suites.canaries.duels`). Pure.

A false test stays as it is but for one literal of its own assertions. Tests are found by their first and last lines, as
formatters lay them out; whether a false one fails, the proof tries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from environments.suites.canaries.blockcopies import JAVASCRIPT_COPIES, JAVASCRIPT_VALUES, FalseCopies, other_value
from environments.suites.canaries.blocklists import with_moved
from environments.suites.canaries.blockliterals import BlockLiterals
from environments.suites.canaries.duels import Falsifier
from environments.suites.canaries.falsify import PlausibleDice, ValueDice

_TITLE = r"(?P<quote>['\"`])(?P<title>(?:(?!(?P=quote)).)*)(?P=quote)"
_FUNCTION = r"(?:async\s*)?(?:\([^()]*\)\s*=>|\w+\s*=>|function\b\s*\w*\s*\([^()]*\))\s*\{\s*"
_TEST = re.compile(rf"(?P<indent>[ \t]*)(?:it|test)\(\s*{_TITLE},\s*{_FUNCTION}")
_INNER = re.compile(r"\b(?:it|test|describe|context|suite)(?:\.\w+)*\((?P<object>\s*\{)?")
"""Begins a test, or a call of a helper that is called so: it is given an object."""
_CLOSED = re.compile(r"(?P<indent>[ \t]*)\}\);?\s*")
_LONGEST = 400
"""Characters of a line that is looked at."""


class _Block(NamedTuple):
    """The lines of a test's body."""

    begin: int
    end: int
    has_helpers: bool
    """Whether it calls what is called as a test is, and is none."""

    @property
    def body(self) -> range:
        return range(self.begin, self.end)


def falsify_javascript(text: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
    """`Falsifier.falsify`: the text with tests made false, and the titles of all that can be; of a title that several
    tests have, all. Dice that are no `ValueDice` find the places that proofs of before have tried."""
    lines = text.splitlines(keepends=True)
    blocks: dict[str, list[_Block]] = {}
    listed: dict[str, list[_Block]] = {}
    for title, block in _blocks(lines):
        listed.setdefault(title, []).append(block)
        if not block.has_helpers:
            blocks.setdefault(title, []).append(block)
    draws = {title: order(title) for title in sorted(listed)}
    by_kind = {title: it for title, it in draws.items() if isinstance(it, PlausibleDice) and it.by_kind}
    moved = {title: [with_moved(lines, it.body, draw) for it in listed[title]] for title, draw in by_kind.items()}
    moved = {title: found for title, found in moved.items() if all(found)}
    blocks = {title: found for title, found in blocks.items() if title not in by_kind}
    forms = {title: JAVASCRIPT_VALUES if isinstance(draws[title], ValueDice) else JAVASCRIPT_COPIES for title in blocks}
    literals = BlockLiterals(lines) if any(isinstance(it, PlausibleDice) for it in draws.values()) else None
    can = {title for title, found in blocks.items() if all(_places(lines, block, forms[title]) for block in found)}
    for title in sorted(can):
        if (draw := draws[title]) is not None:
            for block in blocks[title]:
                places = _places(lines, block, forms[title])
                if literals is not None and isinstance(draw, PlausibleDice):
                    chosen = literals.alone(places, draw.known)
                    if draw.news and all(literals.is_known(it, draw.known) for it in chosen):
                        chosen = literals.news(block.body, draw.known) or chosen
                    number, begin, end = draw.place.choice(chosen)
                    value = literals.other(block.body, places, (number, begin, end), draw)
                else:
                    number, begin, end = draw.choice(places)
                    value = other_value(lines[number][begin:end], draw)
                line = lines[number]
                lines[number] = f"{line[:begin]}{value}{line[end:]}"
    for number, line in (it for found in moved.values() for one in found for it in one.items()):
        lines[number] = line
    return "".join(lines), frozenset({*can, *moved})


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, _Block]]:
    for number, line in enumerate(lines):
        test = _TEST.fullmatch(line) if len(line) <= _LONGEST else None
        # What stands in a report of such a title is another text, or parts that the reader of ids takes for several.
        if test is None or any(it in test["title"] for it in ("\\", "${", " > ")):
            continue
        if found := _end(lines, number, test["indent"]):
            yield test["title"], _Block(number + 1, *found)


def _end(lines: Sequence[str], start: int, indent: str) -> tuple[int, bool] | None:
    """The last line of the test that begins there, and whether it calls helpers that are called as tests are; None
    where it cannot be told, or holds tests of its own."""
    has_helpers = False
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if (closed := _CLOSED.fullmatch(line)) and closed["indent"] == indent:
            return number, has_helpers
        inner = [it["object"] for it in _INNER.finditer(line)]
        has_helpers = has_helpers or bool(inner)
        if not all(inner) or (line.strip() and not line.startswith(indent)):
            return None
    return None


def _places(lines: Sequence[str], block: _Block, forms: FalseCopies) -> list[tuple[int, int, int]]:
    """Line, begin and end of the literals that can be others."""
    body = [line.rstrip("\r\n") for line in lines[block.begin : block.end]]
    return [(block.begin + it.line, it.begin, it.end) for it in forms.places(body)]


JAVASCRIPT_FALSIFIER = Falsifier(falsify_javascript, (28, 29, 30, 31, 32), (34,), first_seeds=(40, 41, 42))
"""The last seed changes another place."""
