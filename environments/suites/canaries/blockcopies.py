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


class _Literal(NamedTuple):
    """A literal of a line, and the columns where it stands."""

    line: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class FalseCopies:
    """How a language's tests are copied. `asserted` matches a line that compares a value with what its group ``wanted``
    holds, `literal` the texts and numbers there, and `around` puts a test's lines around a body, with `NAME` for its
    name."""

    NAME: ClassVar[str] = "\0"

    asserted: re.Pattern[str]
    literal: re.Pattern[str]
    around: Callable[[re.Match[str], Sequence[str]], Sequence[str]]

    def places(self, body: Sequence[str]) -> list[_Literal]:
        """The literals of a body that can be another value."""
        return [
            _Literal(number, begin + it.start(), begin + it.end())
            for number, begin, wanted in self._wanted(body)
            for it in self.literal.finditer(wanted)
        ]

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

    def _wanted(self, body: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        for number, line in enumerate(body):
            found = self.asserted.fullmatch(line.rstrip()) if len(line) < 240 else None
            if found and _LITERALS.fullmatch(found["wanted"]):
                yield number, found.start("wanted"), found["wanted"]

    def made(self, found: re.Match[str], body: Sequence[str], order: Random, draw: Random) -> Sequence[str] | None:
        """The copy's lines, always as many; None where there is no literal. `order` chooses the place, and `draw` the
        value."""
        places = self.places(body)
        if not places:
            return None
        place = order.choice(places)
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


JAVASCRIPT_COPIES = FalseCopies(
    re.compile(
        r"\s*(?:await\s+)?(?:expect\((?!.*\.not\.).+\)(?:\.resolves)?\.(?:toBe|toEqual|toStrictEqual|to\.(?:deep\.)?equal"
        r"|to\.eql)\(|(?!.*\.not\.).+\.should\.(?:deep\.)?(?:equals?|eql?)\("
        r"|(?:t\.)?assert\.(?:strictEqual|equal|deepEqual|deepStrictEqual)\(.+, ?"
        r"|t\.(?:equal|strictEqual|same|is|deepEqual)\(.+, ?)(?P<wanted>.+?)\);?"
    ),
    re.compile(r"(?<![\w.'\"-])(?:\"[^\"\\]+\"|'[^'\\]+'|[0-9]{1,6}|true|false)(?![\w.'\"])(?!\s*:)"),
    _javascript,
)
RUST_COPIES = FalseCopies(
    re.compile(r"\s*assert_eq!\(.+, (?P<wanted>.+)\);"),
    # Of no more than two digits, for it has to fit into the type that nobody knows.
    re.compile(r"(?<![\w.'\"-])(?:\"[^\"\\]+\"|[0-9]{1,2}|true|false)(?![\w.'\"])"),
    _rust,
)
