"""The tokens of a file of JavaScript or TypeScript, as far as its calls and literals go. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

DECLARING = frozenset({"const", "let", "var"})
TESTS = frozenset({"it", "test", "specify"})
"""Functions that make a test."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n\r\u2028\u2029]*|/\*[\s\S]*?\*/|\A\#![^\n]*)
    |(?P<text>"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')
    |(?P<number>0[xXbBoO][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?)
    |(?P<word>[\w$\u200c\u200d#]+)
    |(?P<sign>\.\.\.|=>|===|!==|==|!=|<=|>=|&&=?|\|\|=?|\?\?=?|\?\.(?!\d)|\+\+|--|[-+*/%&|^]=|.)""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,300}\])+/\w*")
_PLAIN_TEMPLATE = re.compile(r"`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*`")
_TEMPLATE_PART = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*")
_BEFORE_REGEX = frozenset(
    {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "await", "yield", "else", "do"}
)
_CLOSING = {")": "(", "]": "[", "}": "{"}


class JsToken(NamedTuple):
    """A token: its text, where it begins, and of which kind it is: ``text`` (a template without parts, too),
    ``number``, ``word``, ``regex`` or ``sign``. A template with parts is a group between signs "`"."""

    text: str
    begin: int
    kind: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.begin + len(self.text)


class TokenRange(NamedTuple):
    """Tokens from a number to another one, which is not included."""

    begin: int
    end: int


class JsTokens(NamedTuple):
    """The tokens of a file, for each that opens or closes a group the number of its partner, and the comments."""

    all: Sequence[JsToken]
    partner: dict[int, int]
    comments: Sequence[JsToken]

    def inside(self, opening: int) -> TokenRange:
        """What a group holds that opens there."""
        return TokenRange(opening + 1, self.partner[opening])

    def outer(self, part: TokenRange) -> Iterator[int]:
        """The tokens of a part that are in no group of it; of a group the first and the last one."""
        number = part.begin
        while number < part.end:
            yield number
            partner = self.partner.get(number, number)
            number = partner if number < partner < part.end else number + 1

    def parted(self, part: TokenRange) -> list[TokenRange]:
        """A part by its commas; an empty one is none."""
        commas = [it for it in self.outer(part) if self.all[it].text == ","]
        found = zip([part.begin, *(it + 1 for it in commas)], [*commas, part.end], strict=True)
        return [TokenRange(begin, end) for begin, end in found if begin < end]

    def declared_value(self, name: int, end: int) -> int | None:
        """Where the value begins, before the token `end`, that a name is declared to be, which stands there; behind it
        may be a type of TypeScript."""
        number = name + 1
        if self.all[number].text == ":":
            while number < end and self.all[number].text not in ("=", ";"):
                number = max(self.partner.get(number, number), number) + 1
        return number + 1 if number < end and self.all[number].text == "=" else None


def tokens_of(text: str) -> JsTokens | None:
    """The tokens of a text; None where its groups do not close."""
    found: list[JsToken] = []
    comments: list[JsToken] = []
    partner: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    place = 0

    def part(begin: int) -> int:
        """Behind a part of a template that begins there, and what ends it."""
        last = _TEMPLATE_PART.match(text, begin)
        return last.end() if last else len(text)

    while place < len(text):
        sign = text[place]
        if sign == "`":
            if whole := _PLAIN_TEMPLATE.match(text, place):
                found.append(JsToken(whole[0], place, "text"))
                place = whole.end()
                continue
            opened.append(("`", len(found)))
            found.append(JsToken("`", place, "sign"))
            place = part(place + 1)
            if not text.startswith("${", place):
                return None
            opened.append(("${", len(found)))
            found.append(JsToken("${", place, "sign"))
            place += 2
            continue
        if sign == "}" and opened and opened[-1][0] == "${":
            _close(found, partner, opened, JsToken("}", place, "sign"))
            place = part(place + 1)
            if text.startswith("${", place):
                opened.append(("${", len(found)))
                found.append(JsToken("${", place, "sign"))
                place += 2
            elif place < len(text):
                _close(found, partner, opened, JsToken("`", place, "sign"))
                place += 1
            else:
                return None
            continue
        if sign == "/" and _may_be_regex(found) and (regex := _REGEX.match(text, place)):
            found.append(JsToken(regex[0], place, "regex"))
            place = regex.end()
            continue
        it = _TOKEN.match(text, place)
        if it is None:
            return None
        token = JsToken(it[0], place, it.lastgroup or "sign")
        place = it.end()
        if token.text in _CLOSING and token.kind == "sign":
            if not opened or opened[-1][0] != _CLOSING[token.text]:
                return None
            _close(found, partner, opened, token)
        elif token.text.startswith(("//", "/*")):
            comments.append(token)
        elif token.kind != "space":
            if token.text in "([{" and token.kind == "sign":
                opened.append((token.text, len(found)))
            found.append(token)
    return None if opened else JsTokens(found, partner, comments)


def _close(found: list[JsToken], partner: dict[int, int], opened: list[tuple[str, int]], token: JsToken) -> None:
    _, begin = opened.pop()
    partner[begin], partner[len(found)] = len(found), begin
    found.append(token)


def _may_be_regex(found: Sequence[JsToken]) -> bool:
    if not found:
        return True
    last = found[-1]
    if last.kind == "word":
        return last.text in _BEFORE_REGEX
    return last.kind == "sign" and last.text not in (")", "]", "`", "++", "--")
