"""Where the items of a Rust file stand: by its tokens and brackets, without a parser.

Every rule is linear in the text, whatever stands in it. What is not closed goes to the end of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_OPAQUE = re.compile(
    r"(?P<line>//[^\n]*)|(?P<block>/\*)|\b[bc]?r(?P<marks>#*)\""
    r'|(?P<string>")|(?P<char>\'(?:\\(?:\'|[^\'\n]{1,10})|[^\\\'\n])\')'
)
"""What begins a comment, a string, or is a character; a lifetime is none of them."""
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_NO_NEWLINE = re.compile(r"[^\n]")
_BRACKETS = re.compile(r"[()\[\]{}]")

_ATTRIBUTE = re.compile(r"#\s*(?P<open>\[)")
_NEXT_ATTRIBUTE = re.compile(rf"\s*{_ATTRIBUTE.pattern}")
_CONTENT = re.compile(r"\S")
_TO_SEMICOLON = re.compile(
    r"\s*(?:pub\b(?:\s*\([^()]*\))?\s*)?"
    r"(?:use|type|static|let|extern\s+crate|const(?!\s+(?:async|unsafe|extern|fn)\b))\b"
)
_WITH_BODY = re.compile(
    r"\s*(?:pub\b(?:\s*\([^()]*\))?\s*)?(?:(?:default|async|unsafe|const|auto|safe)\s+|extern\b[\s\"]*)*+"
    r"(?:(?:fn|mod|struct|enum|union|trait)\s+\w|impl\b|macro_rules\s*!|(?<=[\s\"])\{)"
)
_STOP = re.compile(r"[;,()\[\]{}<>]")
_GOES_ON = re.compile(r"\s*(?:=>|[|.?]|else\b)")
_END_MARK = re.compile(r"\s*[,;]")
_NAMED = re.compile(
    r"[{};\]]|\b(?P<kind>fn|const|static|struct|enum|trait|type|macro_rules\s*!)\s+(?P<name>[^\W\d]\w*)"
)
_MODULE = re.compile(r"\bmod\s+(?P<name>\w+)\s*(?P<open>\{)")

_DEEPEST = 64
"""Modules within modules that are named."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """A run of attributes that belong to one thing: its offsets, and what stands in each between the brackets."""

    start: int
    end: int
    bodies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An item with a name, from its first attribute to its end. `modules` are those of the file that it is in."""

    kind: str
    name: str
    modules: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class RustText:
    """The text of a Rust file, and where its items end."""

    text: str
    code: str = field(init=False)
    """The text with blanks for comments and quotes for what is in strings and characters; of the same length."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", "".join(_code(self.text)))

    @cached_property
    def attributes(self) -> tuple[Attributes, ...]:
        """Every run of outer attributes, those within items included, in order."""
        found, at = list[Attributes](), 0
        while (first := _ATTRIBUTE.search(self.code, at)) is not None:
            bodies = list[str]()
            match: re.Match[str] | None = first
            while match is not None:
                close = self._pairs.get(match.start("open"), len(self.code))
                bodies.append(self.code[match.end() : close])
                at = close + 1
                match = _NEXT_ATTRIBUTE.match(self.code, at)
            found.append(Attributes(first.start(), min(at, len(self.code)), tuple(bodies)))
        return tuple(found)

    def end_of(self, at: int) -> int:
        """The offset behind what begins at `at`: an item, a statement, a field, a variant or an arm of a match."""
        to_semicolon = _TO_SEMICOLON.match(self.code, at) is not None
        with_body = not to_semicolon and _WITH_BODY.match(self.code, at) is not None
        angles = 0
        while (stop := _STOP.search(self.code, at)) is not None:
            mark, at = stop[0], stop.end()
            if mark in ")]}":
                return self._content_end(stop.start())
            if mark == ";":
                return at
            if mark in "([{":
                at = self._pairs.get(stop.start(), len(self.code)) + 1
                if mark == "{" and not to_semicolon and not _GOES_ON.match(self.code, at):
                    end = None if with_body else _END_MARK.match(self.code, at)
                    return min(end.end() if end else at, len(self.code))
            elif mark == "<":  # a comparison has a blank before it
                angles += self.code[stop.start() - 1] not in " \n"
            elif mark == ">":
                angles -= angles > 0 and self.code[stop.start() - 1] not in "-="
            elif not angles and not to_semicolon and not with_body:
                return at
        return self._content_end(len(self.code))

    def _content_end(self, end: int) -> int:
        while end and self.code[end - 1].isspace():
            end -= 1
        return end

    def items(self) -> Iterator[Item]:
        """The outermost functions, constants, types and macros that have a name, in order, and what modules hold."""
        starts = {run.end - 1: run.start for run in self.attributes}
        modules = deque(
            (match.start(), self._pairs.get(match.start("open"), len(self.code)), match["name"])
            for match in _MODULE.finditer(self.code)
        )
        around, before, done = list[tuple[int, int, str]](), -1, 0
        for match in _NAMED.finditer(self.code):
            at = match.start()
            if match["kind"] is None or at < done:
                before = match.end() - 1
                continue
            while modules and modules[0][0] < at:
                around.append(modules.popleft())
            while around and around[-1][1] < at:
                around.pop()
            first = _CONTENT.search(self.code, before + 1)
            start, done = starts.get(before, first.start() if first else at), self.end_of(at)
            names = tuple(name for _, end, name in around[-_DEEPEST:] if end > at)
            yield Item(match["kind"].partition(" ")[0], match["name"], names, start, done)

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """The offset of each bracket that opens to that of the one that closes it."""
        pairs, opened = dict[int, int](), list[int]()
        for match in _BRACKETS.finditer(self.code):
            if match[0] in "([{":
                opened.append(match.start())
            elif opened:
                pairs[opened.pop()] = match.start()
        return pairs


def _code(text: str) -> Iterator[str]:
    at = 0
    while (match := _OPAQUE.search(text, at)) is not None:
        yield text[at : match.start()]
        at = _end_of_opaque(text, match)
        is_comment = match["line"] is not None or match["block"] is not None
        yield _NO_NEWLINE.sub(" " if is_comment else '"', text[match.start() : at])
    yield text[at:]


def _end_of_opaque(text: str, match: re.Match[str]) -> int:
    if match["line"] is not None or match["char"] is not None:
        return match.end()
    if match["string"] is not None:
        end = _STRING_END.match(text, match.end())
        return end.end() if end else len(text)
    if match["block"] is not None:  # these nest
        depth = 1
        for mark in _COMMENT_MARK.finditer(text, match.end()):
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                return mark.end()
        return len(text)
    closer = '"' + match["marks"]
    end_at = text.find(closer, match.end())
    return len(text) if end_at < 0 else end_at + len(closer)
