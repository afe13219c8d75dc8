"""The tests of a file of Rust, and what they assert, by its tokens. Pure; a text that is no Rust has no tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<raw>(?:b|c|br|cr)?r(?P<marks>\#{0,9})"(?P<content>.*?)"(?P=marks))
    |(?P<text>[bc]?"(?:\\.|[^"\\])*")
    |(?P<letter>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}']{1,10}\}|.)|[^'\\\n])')
    |(?P<number>[0-9][0-9a-zA-Z_]*(?:\.[0-9][0-9a-zA-Z_]*)?)
    |(?P<word>(?:r\#)?[^\W\d]\w*)
    |(?P<mark>'\w+|::|->|=>|==|!=|<=|>=|&&|\|\||\.\.=?|.)""",
    re.X | re.S,
)
_NO_TESTS = ("assert", "debug_assert", "print", "eprint", "write", "format", "panic", "matches", "vec", "_")
"""How macros begin that make no test."""
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_LONGEST = 1 << 20


class RustToken(NamedTuple):
    """A token with its place in the text; `kind` is a group of the pattern: raw, text, letter, number, word or mark."""

    kind: str
    text: str
    begin: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.begin + len(self.text)


class RustTest(NamedTuple):
    """A test, or what a macro makes one of: the tokens of its attributes, from the first to the last, and those of its
    body, without what is around."""

    name: str
    attributes: tuple[int, int]
    body: tuple[int, int]
    is_macro: bool


def tokens(text: str) -> list[RustToken]:
    """All but blanks and comments; none of a text that is too long to be somebody's."""
    found = _TOKEN.finditer(text) if len(text) <= _LONGEST else iter(())
    return [
        RustToken("raw" if it["raw"] else it.lastgroup or "", it[0], it.start())
        for it in found
        if it.lastgroup != "blank" and it[0]
    ]


def without_comments(text: str) -> str:
    """A text whose comments are left out, and whose lines stay where they are."""
    return _TOKEN.sub(lambda it: "\n" * it[0].count("\n") or " " if it[0].startswith(("//", "/*")) else it[0], text)


def closings(found: Sequence[RustToken]) -> dict[int, int]:
    """By each opening bracket the one that closes it; without those that nothing closes."""
    open_ones: list[int] = []
    pairs: dict[int, int] = {}
    for number, token in enumerate(found):
        if token.kind != "mark":
            continue
        if token.text in _CLOSES:
            open_ones.append(number)
        elif token.text in _CLOSES.values():
            while open_ones and _CLOSES[found[open_ones[-1]].text] != token.text:
                open_ones.pop()
            if open_ones:
                pairs[open_ones.pop()] = number
    return pairs


def rust_tests(found: Sequence[RustToken], pairs: dict[int, int]) -> Iterator[RustTest]:
    """Functions with ``#[test]``, and what a call of a macro may make, behind a statement or a block: a test whose name
    is the first argument, or tests each of which is written as a call."""
    number = 0
    while number < len(found):
        test = _function(found, pairs, number)
        made = [test] if test is not None else [*_macro(found, pairs, number)]
        yield from made
        number = made[-1].body[1] + 1 if made else number + 1


def _function(found: Sequence[RustToken], pairs: dict[int, int], first: int) -> RustTest | None:
    place, is_test = first, False
    while _is(found, place, "#") and _is(found, place + 1, "[") and place + 1 in pairs:
        end = pairs[place + 1]
        is_test = is_test or [it.text for it in found[place + 2 : end]] == ["test"]
        place = end + 1
    if not is_test:
        return None
    head = place
    while place < len(found) and found[place].text in ("pub", "async", "unsafe", "const"):
        place += 1
    if not _is(found, place, "fn") or not _is_word(found, place + 1):
        return None
    body = next((it for it in range(place + 2, min(place + 60, len(found))) if found[it].text == "{"), None)
    if body is None or body not in pairs:
        return None
    return RustTest(found[place + 1].text.removeprefix("r#"), (first, head), (body + 1, pairs[body]), is_macro=False)


def _macro(found: Sequence[RustToken], pairs: dict[int, int], first: int) -> Iterator[RustTest]:
    opens = first + 2
    begins = not first or found[first - 1].text in (";", "}", "]", "{")
    if not (begins and _is_word(found, first) and _is(found, first + 1, "!") and opens in pairs):
        return
    if found[first].text.startswith(_NO_TESTS) or not _is_word(found, opens + 1):
        return
    if _is(found, opens + 2, ","):
        yield RustTest(found[opens + 1].text, (first, first), (opens + 3, pairs[opens]), is_macro=True)
    place = opens + 1 if _is(found, opens + 2, "(") else pairs[opens]
    while place < pairs[opens]:
        if _is_word(found, place) and _is(found, place + 1, "(") and place + 1 in pairs:
            yield RustTest(found[place].text, (first, first), (place + 2, pairs[place + 1]), is_macro=True)
        place = pairs.get(place, place) + 1


def _is(found: Sequence[RustToken], place: int, text: str) -> bool:
    return place < len(found) and found[place].text == text


def _is_word(found: Sequence[RustToken], place: int) -> bool:
    return place < len(found) and found[place].kind == "word"


def arguments(found: Sequence[RustToken], pairs: dict[int, int], begin: int, end: int) -> list[tuple[int, int]]:
    """The parts of these tokens that commas part (not those of ``::<A, B>``), each from its first token to behind its
    last one."""
    parts: list[tuple[int, int]] = []
    start = place = begin
    types = 0
    while place < end:
        text = found[place].text
        types += text == "<" and (types > 0 or (place > 0 and found[place - 1].text == "::"))
        types -= text == ">" and types > 0
        if text == "," and not types:
            parts.append((start, place))
            start = place + 1
        place = pairs.get(place, place) + 1
    return [it for it in (*parts, (start, end)) if it[0] < it[1]]
