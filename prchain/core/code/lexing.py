"""Splits source lines into code, strings and comments.

For fragments of files, such as the added lines of a hunk: a string or comment may begin or end outside of them. So the
rules are few and forgiving, and every one of them is linear in the text, whatever stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

_FAMILIES = {
    "python": "py pyi pyx pxd",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "rust": "rs",
    "go": "go",
    "java": "java kt kts scala groovy cs dart swift php",
    "c": "c h cc cpp cxx hpp hh m mm cu",
    "hash": "rb sh bash yaml yml toml pl r jl ex exs cfg ini",
}
_FAMILY_OF = {extension: family for family, extensions in _FAMILIES.items() for extension in extensions.split()}

_TOKENS = {
    "python": r'#|"""|\'\'\'|"|\'',
    "hash": r"#|\"|'",
    "javascript": r"//|/\*|\"|'|`",
    "rust": r"//|/\*|\bb?r#*\"|\"|'",
    "go": r"//|/\*|\"|'|`",
    "java": r'//|/\*|"""|"|\'',
    "c": r"//|/\*|\"|'",
}
_OPENERS = {family: re.compile(tokens) for family, tokens in _TOKENS.items()}
_ENDS = {
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"(?:[^'\\\n]|\\.)*+'"),
    "rust'": re.compile(r"(?:\\[^\n']{1,10}|[^\\'\n])'"),
}
_DOC_LINE = re.compile(r"(?m)^[ \t]*\*+(?:[ \t][^\n]*)?$")
_C_LIKE = frozenset({"javascript", "rust", "go", "java", "c"})
_TRIPLES = re.compile(r'"""|\'\'\'')


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words(
    "abstract and as assert async await bool break case catch class const continue def default del do double elif else "
    "enum except export extends extern final finally float fn for from func function global go if impl implements "
    "import in inline instanceof int interface internal is lambda let long loop match mod module mut namespace new "
    "nonlocal not of or override package pass private protected pub public raise readonly record ref return self short "
    "signed static struct super switch template this throw throws trait try type typedef typename typeof union unsafe "
    "unsigned use using val var virtual void volatile when where while with yield"
)
"""Keywords of the families' languages, all together."""


@dataclass(frozen=True, slots=True)
class LexedCode:
    """`code` without strings and comments, lines kept; `strings` and `comments` in order, without their marks."""

    code: str
    strings: tuple[str, ...]
    comments: tuple[str, ...] = ()


class _Span(NamedTuple):
    """Where a string or comment ends, and its content when it is a string."""

    end: int
    content: str | None


def family_of(path: str) -> str | None:
    """The family of languages whose lexical rules a path's file follows, by its extension; None for no code."""
    return _FAMILY_OF.get(PurePosixPath(path).suffix[1:].lower())


def lex(lines: Iterable[str], path: str) -> LexedCode:
    """Take apart a run of lines of the file at `path`; for a file that is no code, nothing is found."""
    family = family_of(path)
    if family is None:
        return LexedCode("", ())
    text = "\n".join(lines)
    return _Scanner(text, family).lexed()


def is_prose(line: str) -> bool:
    """Whether a line holds three words in a row as only sentences do: what is left of a docstring cut in two."""
    streak = 0
    for word in line.split():
        plain = word.rstrip(".,:;")
        streak = streak + 1 if plain.isalpha() and plain not in KEYWORDS else 0
        if streak == 3:
            return True
        if plain != word:
            streak = 0
    return False


class _Scanner:
    def __init__(self, text: str, family: str) -> None:
        if family in _C_LIKE:
            text = _DOC_LINE.sub("", text)
        self.text, self.family = _balanced(text) if family == "python" else text, family
        self.absent: set[str] = set()

    def lexed(self) -> LexedCode:
        code: list[str] = []
        strings: list[str] = []
        comments: list[str] = []
        at = 0
        opener = _OPENERS[self.family]
        while (match := opener.search(self.text, at)) is not None:
            code.append(self.text[at : match.start()])
            span = self.span(match[0], match.end())
            skipped = self.text[match.start() : span.end]
            if span.content is not None:
                strings.append(span.content)
                code.append('""')
            else:
                comments.append(skipped.strip("/*#!- \t"))
            code.append("\n" * skipped.count("\n"))
            at = span.end
        code.append(self.text[at:])
        return LexedCode("".join(code), tuple(strings), tuple(comments))

    def span(self, opener: str, start: int) -> _Span:
        if opener in {"#", "//"}:
            return _Span(self.line_end(start), None)
        if opener == "/*":
            return _Span(self.find("*/", start, 2), None)
        if opener in {'"""', "'''", "`"}:
            return self.string(opener, start)
        if opener[-1] == '"' and "r" in opener:
            return self.string('"' + "#" * opener.count("#"), start)
        end = _ENDS["rust'" if opener == "'" and self.family == "rust" else opener].match(self.text, start)
        if end is None:
            return _Span(start, None)
        return _Span(end.end(), self.text[start : end.end() - 1])

    def string(self, closer: str, start: int) -> _Span:
        end = self.find(closer, start, len(closer))
        closed = self.text.startswith(closer, end - len(closer)) and end - len(closer) >= start
        return _Span(end, self.text[start : end - len(closer)] if closed else self.text[start:end])

    def find(self, closer: str, start: int, length: int) -> int:
        """The end of what `closer` closes, or of the line where it is absent; an absent one is searched once."""
        place = -1 if closer in self.absent else self.text.find(closer, start)
        if place < 0:
            self.absent.add(closer)
            return self.line_end(start)
        return place + length

    def line_end(self, start: int) -> int:
        place = self.text.find("\n", start)
        return len(self.text) if place < 0 else place


def _balanced(text: str) -> str:
    """Python source with an even number of triple quotes. Of an odd number, the first closes or the last opens a string
    that is partly outside; where the sentences are decides which."""
    marks = [match.start() for match in _TRIPLES.finditer(text)]
    if len(marks) % 2 == 0:
        return text
    first, last = marks[0], marks[-1]
    inside_if_last_opens = _sentences(text, marks[:-1])
    inside_if_first_closes = _sentences(text, marks[1:])
    before, after = _prose_lines(text[:first]), _prose_lines(text[last + 3 :])
    if inside_if_first_closes + before > inside_if_last_opens + after:
        return "\n" * text.count("\n", 0, first) + text[first + 3 :]
    return text[:last]


def _sentences(text: str, marks: Sequence[int]) -> int:
    return sum(_prose_lines(text[start:end]) for start, end in zip(marks[::2], marks[1::2], strict=True))


def _prose_lines(text: str) -> int:
    return sum(map(is_prose, text.split("\n")))
