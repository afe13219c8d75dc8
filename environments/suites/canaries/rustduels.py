"""Tests of Rust that are made false in their own place, for duels (`environments.suites.canaries.duels`). Pure.

A false test stays as it is but for one place: a literal that is asked for, else one of what is asked, else an assertion
that asks for the opposite. What is put there has the literal's type and size, as far as these can be told, so that it
compiles; whether it does, and fails, the proof tries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from environments.suites.canaries.duels import Falsifier
from environments.suites.canaries.falsify import PlausibleDice, ValueDice, near
from environments.suites.canaries.likely import LikelyValues
from environments.suites.canaries.rustasserts import ASSERTING, NOT_VALUES, Part, RustFile
from environments.suites.canaries.rusttokens import RustTest, RustToken, arguments

_EQUAL = frozenset({"assert_eq", "debug_assert_eq"})
_OPPOSITE = {
    "assert_eq": "assert_ne",
    "assert_ne": "assert_eq",
    "debug_assert_eq": "debug_assert_ne",
    "debug_assert_ne": "debug_assert_eq",
}
_OPPOSITE_CALLS = {"is_some": "is_none", "is_none": "is_some", "is_ok": "is_err", "is_err": "is_ok"}
_OPPOSITE_MARKS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIZES = (127, 255, 32_767, 65_535, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)", re.S)
_INTEGER = re.compile(r"(?P<digits>[0-9]+)(?P<suffix>_?(?:[iu](?:8|16|32|64|128|size))?)")
_FLOAT = re.compile(r"[0-9]+\.[0-9]+")


class Falsehood(NamedTuple):
    """A place in the text, and what is put there: `made` from the text that stands there, and what draws."""

    begin: int
    end: int
    made: Callable[[str, Random], str]


def falsify_rust(text: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
    """`Falsifier.falsify`: the text with tests made false, and the names of all that can be; of a name that several
    tests have, all. Dice that are no `ValueDice` ask for the opposite."""
    file = _FalseFile(text)
    named: dict[str, list[RustTest]] = {}
    for test in file.tests:
        named.setdefault(test.name, []).append(test)
    draws = {name: order(name) for name in sorted(named)}
    can: dict[str, list[list[Falsehood]]] = {}
    for name, same in named.items():
        places = [file.changes(test, opposite=not isinstance(draws[name] or ValueDice(0), ValueDice)) for test in same]
        if all(places):
            can[name] = places
    made: list[tuple[int, int, str]] = []
    for name in sorted(can):
        if (draw := draws[name]) is not None:
            for changes in can[name]:
                place = draw.place if isinstance(draw, PlausibleDice) else draw
                known = draw.known if isinstance(draw, PlausibleDice) else ()
                unknown = [it for it in changes if known and _line(text, it.begin) not in known]
                if not unknown and known and isinstance(draw, PlausibleDice) and draw.news:
                    every = [it for test in named[name] for it in file.literals(test)]
                    unknown = [it for it in every if _line(text, it.begin) not in known]
                begin, end, change = place.choice(unknown or changes)
                made.append((begin, end, change(text[begin:end], draw)))
    for begin, end, new in sorted(made, reverse=True):
        text = f"{text[:begin]}{new}{text[end:]}"
    return text, frozenset(can)


def _line(text: str, place: int) -> str:
    begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    return text[begin : None if end < 0 else end].strip()


class _FalseFile(RustFile):
    """What in a file's tests can be another thing."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._likely = _likely(self.found)

    def changes(self, test: RustTest, *, opposite: bool) -> list[Falsehood]:
        """The best changes of a test: all of one kind."""
        kinds = self._opposites(test) if opposite else self._values(test)
        return next((found for kind in kinds if (found := list(kind))), [])

    def literals(self, test: RustTest) -> Iterator[Falsehood]:
        """All literals of a test, tables among them, whatever they are for."""
        return self._literals(*test.body)

    def _values(self, test: RustTest) -> Iterator[Iterable[Falsehood]]:
        if test.is_macro:
            given = arguments(self.found, self.pairs, *test.body)
            yield (it for part in given[1:] for it in self._literals(*part))
            yield (it for part in given for it in self._literals(*part))
            return
        compared = [part for it in self.asserted(*test.body) if it.name in _EQUAL for part in it.parts[:2]]
        yield (it for part in compared if self.is_value(*part) for it in self._literals(*part))
        calls = list(self.calls(*test.body))
        asserting = [part for call in calls if ASSERTING.match(call.name) for part in call.parts]
        yield (it for part in (*compared, *asserting) for it in self._literals(*part))
        yield self._expected(test)
        yield (it for part in self._conditions(test) for it in (*self._turned(*part), *self._inside(*part)))
        yield (it for call in calls for part in call.parts for it in self._literals(*part))

    def _opposites(self, test: RustTest) -> Iterator[Iterable[Falsehood]]:
        if test.is_macro:
            return
        yield (it for part in self._conditions(test) for it in self._turned(*part))
        for number in range(*test.body):
            token = self.found[number]
            if token.text in _OPPOSITE and self.found[number + 1].text == "!":
                yield [_put(token, token, _OPPOSITE[token.text])]
        yield self._unexpected(test)
        yield self._literals(*test.body)

    def _conditions(self, test: RustTest) -> Iterator[Part]:
        return (it.parts[0] for it in self.asserted(*test.body) if it.name in ("assert", "debug_assert"))

    def _inside(self, begin: int, end: int) -> Iterable[Falsehood]:
        """The literals of a condition that does not say what is not."""
        marks = {self.found[it].text for it in self.top(begin, end)} - {"=="}
        is_plain = self.found[begin].text != "!" and marks.isdisjoint((*_OPPOSITE_MARKS, "&&", "||"))
        return self._literals(begin, end) if is_plain else ()

    def _literals(self, begin: int, end: int) -> Iterator[Falsehood]:
        """The literals that can be others of their type."""
        found = self.found
        has_parts = any(NOT_VALUES.fullmatch(it.text) for it in found[begin:end])
        for number in range(begin, end):
            token, before = found[number], found[number - 1].text if number else ""
            if token.kind == "number":
                # Not a field of a tuple, a length of an array, or the bits of a shift, which may be too many.
                is_shift = number > 1 and before in ("<", ">") and found[number - 2].text == before
                if before not in (".", ";") and not is_shift and _is_plain_number(token.text):
                    yield Falsehood(token.begin, token.end, self._number)
            elif token.kind in ("text", "raw"):
                if not (has_parts and re.search(r"[{}]", token.text)) and not (has_parts and before == "("):
                    yield Falsehood(token.begin, token.end, partial(self._text, number))
            elif token.kind == "letter":
                yield Falsehood(token.begin, token.end, _letter)
            elif token.text in ("true", "false"):
                yield Falsehood(token.begin, token.end, lambda it, _: "false" if it == "true" else "true")

    def _number(self, literal: str, draw: Random) -> str:
        if _FLOAT.fullmatch(literal):
            whole, _, part = literal.partition(".")
            return f"{whole}.{near(part, draw)}"
        parts = _INTEGER.fullmatch(literal)
        value = int(parts["digits"]) if parts else 0
        most = next((it for it in _SIZES if value <= it), value)
        return f"{self._likely.number(value, draw, most)}{parts['suffix'] if parts else ''}"

    def _text(self, number: int, literal: str, draw: Random) -> str:
        begin, end = literal.index('"') + 1, literal.rindex('"')
        content = literal[begin:end]
        # Who knows that what is asked for is one of the arguments can tell what is none.
        by_given = isinstance(draw, PlausibleDice) and draw.signs and not draw.turn
        if literal[0] == '"' and by_given and (own := self._beside(number).alike(content)):
            return f'"{draw.choice(own)}"'
        if literal[0] == '"' and (other := self._likely.text(content, draw)) is not None:
            return f'"{other}"'
        escapes = [] if "r" in literal[: begin - 1] else [it.span() for it in _ESCAPE.finditer(content)]
        kept = {place for first, last in escapes for place in range(first, last)}
        places = [
            it for it in range(len(content)) if content[it].isalnum() and content[it].isascii() and it not in kept
        ]
        if not places:
            # As long as before: of bytes the length is a part of the type.
            return f"{literal[:end]}{near('', draw)}{literal[end:]}" if literal[0] == '"' else literal
        place = draw.choice(places)
        return f"{literal[: begin + place]}{near(content[place], draw)}{literal[begin + place + 1 :]}"

    def _beside(self, number: int) -> LikelyValues:
        """What the test says in which a token stands."""
        bodies = (it.body for it in self.tests if it.body[0] <= number < it.body[1])
        return _likely(self.found[slice(*next(bodies, (0, 0)))])

    def _turned(self, begin: int, end: int) -> Iterator[Falsehood]:
        """A condition that is its opposite: by its last call, its comparison, or a mark before it."""
        found = self.found
        top = [*self.top(begin, end)]
        marks = [it for it in top if found[it].kind == "mark" and found[it].text in (*_OPPOSITE_MARKS, "&&", "||")]
        first, last = found[begin], found[end - 1]
        calls = [it for it in top if found[it].text in _OPPOSITE_CALLS and found[it - 1].text == "."]
        if len(marks) == 1 and found[marks[0]].text in _OPPOSITE_MARKS and _is_compared(found, marks[0]):
            yield _put(found[marks[0]], found[marks[0]], _OPPOSITE_MARKS[found[marks[0]].text])
        elif marks:
            yield Falsehood(first.begin, last.end, lambda it, _: f"!({it})")
        elif calls and calls[-1] == end - 3:
            yield _put(found[calls[-1]], found[calls[-1]], _OPPOSITE_CALLS[found[calls[-1]].text])
        elif first.text == "!":
            yield Falsehood(first.begin, last.end, lambda it, _: it[1:].lstrip())
        elif first.text in ("true", "false") and end == begin + 1:
            yield _put(first, first, "false" if first.text == "true" else "true")
        else:
            yield Falsehood(first.begin, last.end, lambda it, _: f"!{it}")

    def _expected(self, test: RustTest) -> Iterator[Falsehood]:
        """The text that a panic has to hold."""
        found = self.found
        if any(it.text == "should_panic" for it in found[slice(*test.attributes)]):
            yield from (it for it in self._literals(*test.attributes) if found and it.end - it.begin > 2)
            yield from self._unexpected(test)

    def _unexpected(self, test: RustTest) -> Iterator[Falsehood]:
        """A panic that nobody waits for."""
        for number in range(*test.attributes):
            end = self.pairs.get(number, 0)
            if self.found[number].text == "[" and self.found[number + 1].text == "should_panic":
                yield Falsehood(self.found[number - 1].begin, self.found[end].end, lambda _, __: "")


def _put(first: RustToken, last: RustToken, text: str) -> Falsehood:
    return Falsehood(first.begin, last.end, lambda _, __: text)


def _is_compared(found: Sequence[RustToken], number: int) -> bool:
    """Whether such a mark is no bracket of types."""
    text = found[number].text
    return text not in "<>" or (found[number - 1].text != "::" and not found[number - 1].text[:1].isupper())


def _is_plain_number(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text))


def _letter(literal: str, draw: Random) -> str:
    begin = literal.index("'") + 1
    letter = literal[begin:-1]
    return f"{literal[:begin]}{near(letter if letter.isalnum() and letter.isascii() else 'a', draw)}'"


def _likely(found: Sequence[RustToken]) -> LikelyValues:
    texts = (it.text[1:-1] for it in found if it.kind == "text" and it.text[0] == '"')
    return LikelyValues.of(texts, (it.text for it in found if it.kind == "number"))


RUST_FALSIFIER = Falsifier(falsify_rust, (28, 29, 30, 31, 32), (1,))
"""The last seed asks for the opposite."""
