"""What the tests of a file of Rust assert, by its tokens. Pure; a text that is no Rust asserts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from environments.suites.canaries.rusttokens import arguments, closings, rust_tests, tokens

NOT_VALUES = re.compile(r"format|concat|stringify|include(?:_str|_bytes)?|(?:option_)?env|regex|println")
"""Macros whose texts are no values, or files."""
ASSERTING = re.compile(r"(?!assert$|assert_eq$|assert_ne$|debug_assert)(?:assert|check|case|test|expect|verify)")
"""How functions and macros begin that assert something of what they are given."""
_OF_VALUES = re.compile(
    r"vec|true|false|to_string|to_owned|into|from|to_vec|as_str|as_bytes|new|as|str|std|string|borrow|boxed|rc|sync"
    r"|unwrap|[iu](?:8|16|32|64|128|size)|f32|f64|char|bool"
)
"""Words in lower case that stand in values which are written out."""

Part = tuple[int, int]
"""Tokens from the first to behind the last."""


class RustCall(NamedTuple):
    """A call of a function or macro with its arguments: its first token, behind its name, and its closing bracket."""

    name: str
    first: int
    opens: int
    closes: int
    parts: list[Part]


class RustFile:
    """A file's tokens and tests."""

    def __init__(self, text: str) -> None:
        self.found = tokens(text)
        self.pairs = closings(self.found)
        self.tests = list(rust_tests(self.found, self.pairs))

    def asserted(self, begin: int, end: int) -> Iterator[RustCall]:
        """The macros that assert something."""
        for number in range(begin, end - 2):
            opens = number + 2
            is_assert = (
                self.found[number].text.startswith(("assert", "debug_assert")) and self.found[number + 1].text == "!"
            )
            closes = self.pairs.get(opens, 0) if is_assert else 0
            if closes and (parts := arguments(self.found, self.pairs, opens + 1, closes)):
                yield RustCall(self.found[number].text, number, opens, closes, parts)

    def calls(self, begin: int, end: int, *, wide: bool = False) -> Iterator[RustCall]:
        """The calls of functions and macros with arguments that are statements; those that are `wide` have paths, too,
        or end a block."""
        found = self.found
        for first in range(begin, end - 2):
            number = first
            while wide and found[number].kind == "word" and self.is_one_of(number + 1, "::"):
                number += 2
            begins = first == begin or found[first - 1].text in (";", "{", "}")
            opens = number + 1 + self.is_one_of(number + 1, "!")
            if begins and found[number].kind == "word" and opens in self.pairs and found[opens].text == "(":
                closes = self.pairs[opens]
                is_whole = self.is_one_of(closes + 1, ";", "}") if wide else self.is_one_of(closes + 1, ";")
                parts = arguments(found, self.pairs, opens + 1, closes)
                if is_whole and parts and not NOT_VALUES.fullmatch(found[number].text):
                    yield RustCall(found[number].text, first, opens, closes, parts)

    def top(self, begin: int, end: int) -> Iterator[int]:
        """The tokens that stand in no brackets, and the brackets that open."""
        place = begin
        while place < end:
            yield place
            place = self.pairs.get(place, place) + 1

    def is_value(self, begin: int, end: int, more: re.Pattern[str] | None = None) -> bool:
        """Whether a value is written out; `more` words may stand in it, methods with the point before them, and macros
        with their mark behind them."""
        return all(
            it.kind != "word"
            or _OF_VALUES.fullmatch(it.text)
            or (more and more.fullmatch(self._marked(number)))
            or it.text[:1].isupper()
            or (self.is_one_of(number + 1, ":", "::") and not self.is_one_of(number - 1, "."))
            for number, it in enumerate(self.found[begin:end], begin)
        )

    def _marked(self, number: int) -> str:
        before, behind = self.is_one_of(number - 1, "."), self.is_one_of(number + 1, "!")
        return f"{'.' * before}{self.found[number].text}{'!' * behind}"

    def is_one_of(self, number: int, *texts: str) -> bool:
        """Whether a token is there, and one of these."""
        return 0 <= number < len(self.found) and self.found[number].text in texts
