"""Tests of JavaScript and Rust that are copied with another value in one of their own assertions.

What makes an assertion hold for a value of the code under test, and for no other, makes such a copy pass: an equality
that is always true, an asymmetric matcher, an ``assert.strictEqual`` or ``expect`` that looks for its own values. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from environments.suites.canaries.blockbodies import Body, holds_any
from environments.suites.canaries.blockstyle import BlockStyle
from environments.suites.canaries.falsify import near

_LITERALS = re.compile(r"[\[\]{}(),:\s\w\"'.&!-]*")
"""Values that are written out; a name among them does no harm, for the reference is asked whether the copy fails."""
_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_ASKED_OF_CODE = re.compile(
    r"(?<![\w.:$])(?!new\b)[a-z_$][\w$]*\(|::(?!(?:from|new)\()\w+\("
    r"|\.(?!(?:to_vec|into)\(\)|from\()[A-Za-z_$]"
)
"""What makes a value of literals in a way that nobody knows: another literal may make the same value."""


class _Literal(NamedTuple):
    """A literal of a line, and the columns where it stands."""

    line: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class FalseCopies:
    """How a language's tests are copied. `compared` finds what a line compares, and where that begins, first what a
    value is compared with; `literal` finds texts and numbers there, and `around` puts a test's lines around a body,
    with `NAME` for its name."""

    NAME: ClassVar[str] = "\0"

    compared: Callable[[str], Sequence[tuple[int, str]]]
    literal: re.Pattern[str]
    around: Callable[[re.Match[str], Sequence[str]], Sequence[str]]

    def places(self, body: Sequence[str]) -> list[_Literal]:
        """The literals of a body that can be another value. With some of these an assertion holds all the same."""
        return [it for number, parts in self._compared(body) for it in self._literals(number, *parts[0])]

    def _sure(self, body: Sequence[str]) -> list[_Literal]:
        """The literals of a body without whose value an assertion does not hold: what is given to functions is none."""
        return [
            it
            for number, parts in self._compared(body)
            for begin, text in [part for part in parts if not _ASKED_OF_CODE.search(_TEXT.sub("''", part[1]))][:1]
            for it in self._literals(number, begin, text)
        ]

    def _literals(self, line: int, begin: int, text: str) -> Iterator[_Literal]:
        for it in self.literal.finditer(text) if _LITERALS.fullmatch(text) else ():
            yield _Literal(line, begin + it.start(), begin + it.end())

    def among(self, lines: Sequence[str], bodies: Sequence[Body]) -> list[Body]:
        """Those of a file's bodies that have such a literal. Each line is looked at once, and one that may have some
        once more for each indentation that tests have."""
        bare = ((number, line.lstrip().rstrip("\n")) for number, line in enumerate(lines))
        # A blank may stand for what an assertion looks at, where that is on the line before.
        have = [number for number, line in bare if self.places([line]) or self.places([f" {line}"])]
        found = {
            indent: [it for it in have if self.places([lines[it].rstrip("\n").removeprefix(indent)])]
            for indent in {body.found["indent"] for body in bodies}
        }
        return [body for body in bodies if holds_any(found[body.found["indent"]], body.begin, body.end)]

    def _compared(self, body: Sequence[str]) -> Iterator[tuple[int, Sequence[tuple[int, str]]]]:
        for number, line in enumerate(body):
            if found := self.compared(line.rstrip()) if len(line) < 240 else ():
                yield number, found

    def made(self, found: re.Match[str], body: Sequence[str], order: Random, draw: Random) -> Sequence[str] | None:
        """The copy's lines, always as many; None where no literal is sure to make it false. `order` chooses the place,
        and `draw` the value, which is another one in each run."""
        places, sure = self.places(body), self._sure(body)
        if not places or not sure:
            return None
        # Places of before stay as they were, as far as they can.
        place = order.choice(places)
        if place not in sure:
            place = order.choice(sure)
        line = body[place.line]
        changed = f"{line[: place.begin]}{other_value(line[place.begin : place.end], draw)}{line[place.end :]}"
        return self.around(found, [*body[: place.line], changed, *body[place.line + 1 :]])


def other_value(literal: str, draw: Random) -> str:
    """Another value near a literal, in its own quotes."""
    if literal in ("true", "false"):
        return "false" if literal == "true" else "true"
    if literal[0] in "\"'":
        return f"{literal[0]}{near(literal[1:-1], draw)}{literal[-1]}"
    return str(near(int(literal), draw))


def _javascript(found: re.Match[str], body: Sequence[str]) -> Sequence[str]:
    return BlockStyle.of(found).around(found["function"], FalseCopies.NAME, body)


def _rust(_: re.Match[str], body: Sequence[str]) -> Sequence[str]:
    return ["#[test]", f"fn {FalseCopies.NAME}() {{", *body, "}"]


_JAVASCRIPT_LITERAL = re.compile(r"(?<![\w.'\"-])(?:\"[^\"\\]+\"|'[^'\\]+'|[0-9]{1,6}|true|false)(?![\w.'\"])(?!\s*:)")
_RUST_LITERAL = re.compile(r"(?<![\w.'\"-])(?:\"[^\"\\]+\"|[0-9]{1,2}|true|false)(?![\w.'\"])")
"""Of no more than two digits, for it has to fit into the type that nobody knows."""
_EXPECTED = (
    r"(?:expect\((?!.*\.not\.).+\)(?:\.resolves)?\.(?:toBe|toEqual|toStrictEqual|to\.(?:deep\.)?equal|to\.eql)"
    r"|(?!.*\.not\.).+\.should\.(?:deep\.)?(?:equals?|eql?))"
)
_COMPARED = (
    r"(?:(?:t\.)?assert\.(?:strictEqual|equal|deepEqual|deepStrictEqual)|t\.(?:equal|strictEqual|same|is|deepEqual))"
)


def _at_end(asserted: str) -> Callable[[str], Sequence[tuple[int, str]]]:
    """What a line's group ``wanted`` holds, which ends the line: perhaps the last part of a value, or a message."""
    form = re.compile(asserted)

    def compared(line: str) -> Sequence[tuple[int, str]]:
        found = form.fullmatch(line)
        return [(found.start("wanted"), found["wanted"])] if found else []

    return compared


def _compared(asserted: str, quotes: str) -> Callable[[str], Sequence[tuple[int, str]]]:
    """The arguments that are compared: of a call that begins as `asserted`, up to its parenthesis, the second one and
    the first, and the first alone where that has a group ``expected`` for the value. Arguments behind these are
    messages. `quotes` begin texts."""
    form = re.compile(asserted)

    def compared(line: str) -> Sequence[tuple[int, str]]:
        found = form.match(line)
        parts = arguments(line, found.end(), quotes) if found else ()
        last = 0 if found and found.groupdict().get("expected") else 1
        return [(begin, line[begin:end]) for begin, end in reversed(parts[: last + 1])] if len(parts) > last else []

    return compared


def arguments(line: str, begin: int, quotes: str) -> list[tuple[int, int]]:
    """Where the arguments of a call begin and end, of which the first begins there and whose end is that of the line;
    none where that cannot be told. `quotes` begin texts."""
    parts: list[tuple[int, int]] = []
    depth, start, place = 0, begin, begin
    while place < len(line):
        letter = line[place]
        if letter in quotes:
            place = _text_end(line, place)
        elif letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif letter in ",)]}" and not depth:
            parts.append(_stripped(line, start, place))
            start = place + 1
            if letter != ",":
                is_end = letter == ")" and line[start:] in ("", ";")
                return [it for it in parts if it[0] < it[1]] if is_end else []
        place += 1
    return []


def _text_end(line: str, begin: int) -> int:
    """Where the text ends that begins there; the line's end where it does not."""
    place = begin + 1
    while place < len(line) and line[place] != line[begin]:
        place += 2 if line[place] == "\\" else 1
    return place


def _stripped(line: str, begin: int, end: int) -> tuple[int, int]:
    part = line[begin:end]
    return begin + len(part) - len(part.lstrip()), begin + len(part.rstrip())


JAVASCRIPT_COPIES = FalseCopies(
    _at_end(rf"\s*(?:await\s+)?(?:{_EXPECTED}\(|{_COMPARED}\(.+, ?)(?P<wanted>.+?)\);?"),
    _JAVASCRIPT_LITERAL,
    _javascript,
)
RUST_COPIES = FalseCopies(_at_end(r"\s*assert_eq!\(.+, (?P<wanted>.+)\);"), _RUST_LITERAL, _rust)
"""What proofs of before have: they may change a message."""
JAVASCRIPT_VALUES = FalseCopies(
    _compared(rf"\s*(?:await\s+)?(?:(?P<expected>{_EXPECTED})|{_COMPARED})\(", "'\"`"), _JAVASCRIPT_LITERAL, _javascript
)
RUST_VALUES = FalseCopies(_compared(r"\s*assert_eq!\(", '"'), _RUST_LITERAL, _rust)
"""Copies that ask for another value."""
