"""Which parts of a text are not prose: code, comments, quotes, folded parts, link texts, URLs.

A scanner of markers, not a renderer: it follows the rules of GitHub Flavored Markdown where they decide whether a
number is rendered as a reference, and it runs in linear time on any input.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from miner.citations.model import Kind

Span = tuple[int, int]

_BLOCK_OR_CODE = re.compile(
    r"^[ \t>]*+(?:[-*+][ \t]++)?(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)|(?P<ticks>`+)|(?P<comment><!--)", re.M
)
_TICKS = re.compile(r"`+")
_CLOSING_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.M)
_BLANK = re.compile(r"\n[ \t\r]*+\n")
_QUOTE_LINE = re.compile(r"^ {0,3}>.*+$", re.M)
_DETAILS = re.compile(r"<(/?)details\b", re.I)
_BRACKET = re.compile(r"[\[\]]")
_DESTINATION = re.compile(
    r"\([ \t]*+(?:<[^<>\n]*+>|[^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+){0,3})"
    r"(?:\s++(?:\"[^\"]*+\"|'[^']*+'))?[ \t]*+\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n]{1,200})\]:[ \t]", re.M)
_ANCHOR = re.compile(r"<a\s[^<>]*+>", re.I)
_ANCHOR_END = re.compile(r"</a\s*+>", re.I)
_URL = re.compile(r"://[^\s<>\"`]*+")
_LIST_ITEM = re.compile(r"[ \t]*+(?:[-*+]|[0-9]{1,9}[.)])[ \t]")


def _merged(spans: list[Span]) -> list[Span]:
    """Sort the spans and join those that overlap."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def inside(spans: list[Span], position: int) -> bool:
    """Whether position lies in one of the sorted, disjoint spans."""
    i = bisect_right(spans, position, key=lambda span: span[0])
    return i > 0 and position < spans[i - 1][1]


@dataclass(slots=True)
class Layout:
    """A text and the spans of it that are no plain prose. All lists are sorted and disjoint."""

    prose: str
    """The text with code and comments blanked; same length, line ends kept."""
    hidden: list[Span] = field(default_factory=list)
    """Code and HTML comments."""
    quotes: list[Span] = field(default_factory=list)
    details: list[Span] = field(default_factory=list)
    labels: list[Span] = field(default_factory=list)
    """Texts of links: a link counts by its address."""
    urls: list[Span] = field(default_factory=list)
    """Addresses from ``://`` on, of any host."""

    def context(self, position: int) -> str | None:
        """Why the text at position is not the author's own statement, or None."""
        if inside(self.quotes, position):
            return "quote"
        return "details" if inside(self.details, position) else None


def read_layout(text: str, kind: Kind) -> Layout:
    """Find the parts of text that are no prose.

    Commit messages and titles are not rendered, but are written by the same people: code marks and quotes count there
    too. An indented block is code in markdown only, and so is all that follows a fence that is never closed.
    """
    hidden = _hidden(text, unclosed_fence=kind == "markdown") if "`" in text or "<!--" in text or "~~~" in text else []
    if kind == "markdown" and ("    " in text or "\t" in text):
        hidden = _merged(hidden + _indented(text))
    layout = Layout(prose=_blanked(text, hidden), hidden=hidden)
    prose = layout.prose
    if ">" in prose:
        layout.quotes = [m.span() for m in _QUOTE_LINE.finditer(prose)]
    if "<" in prose:
        layout.details = _details(prose)
    if "](" in prose or "][" in prose or "]:" in prose or "</" in prose:
        layout.labels = _merged(_link_texts(prose) + _anchor_texts(prose))
    if "://" in prose:
        layout.urls = [m.span() for m in _URL.finditer(prose)]
    return layout


def _blanked(text: str, spans: list[Span]) -> str:
    """Replace the spans with blanks, keeping line ends and positions."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts.append(text[at:start])
        parts.append("\n".join(" " * len(line) for line in text[start:end].split("\n")))
        at = end
    parts.append(text[at:])
    return "".join(parts)


class _Fences:
    """The lines that can close a fenced block."""

    def __init__(self, text: str) -> None:
        self._lines = [(m.start(1), m[1], m.end()) for m in _CLOSING_FENCE.finditer(text)]
        self._unclosed: dict[str, int] = {}

    def closing(self, fence: str, position: int) -> int:
        """Where the block that fence opened before position ends, or -1. Positions must not fall."""
        char, length = fence[0], len(fence)
        if length >= self._unclosed.get(char, length + 1):
            return -1
        for i in range(bisect_left(self._lines, (position,)), len(self._lines)):
            _, line, end = self._lines[i]
            if line[0] == char and len(line) >= length:
                return end
        self._unclosed[char] = length
        return -1


def _hidden(text: str, *, unclosed_fence: bool) -> list[Span]:
    """Fenced blocks, inline code and HTML comments, in the order in which they open."""
    runs: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text):
        runs.setdefault(len(run[0]), []).append(run.start())
    blanks = [m.start() for m in _BLANK.finditer(text)]
    fences = _Fences(text)
    out: list[Span] = []
    comment_closes = True
    at = 0
    while m := _BLOCK_OR_CODE.search(text, at):
        start, at = m.start(), m.end()
        if fence := m["fence"]:
            closing = fences.closing(fence, at)
            if closing >= 0:
                at = closing
            elif unclosed_fence:
                at = len(text)
            else:
                continue
            out.append((start, at))
        elif ticks := m["ticks"]:
            same_length = runs[len(ticks)]
            i = bisect_left(same_length, at)
            paragraph = bisect_left(blanks, at)
            limit = blanks[paragraph] if paragraph < len(blanks) else len(text)
            if i < len(same_length) and same_length[i] < limit:
                at = same_length[i] + len(ticks)
                out.append((start, at))
        elif comment_closes:
            end = text.find("-->", at)
            comment_closes = end >= 0
            if comment_closes:
                at = end + 3
                out.append((start, at))
            elif start == 0 or text[start - 1] == "\n":
                out.append((start, len(text)))
                break
    return out


def _indented(text: str) -> list[Span]:
    """Lines of four or more blanks after a blank line, outside lists."""
    out: list[Span] = []
    at = 0
    after_blank, in_code, in_list = True, False, False
    for line in text.split("\n"):
        end = at + len(line)
        if not line.strip():
            after_blank = True
        elif line.startswith(("    ", "\t")) and not in_list and (in_code or after_blank):
            out.append((at, end))
            in_code, after_blank = True, False
        else:
            if _LIST_ITEM.match(line):
                in_list = True
            elif after_blank and not line[0].isspace():
                in_list = False
            in_code, after_blank = False, False
        at = end + 1
    return out


def _details(text: str) -> list[Span]:
    """What ``<details>`` folds; an unclosed one folds the rest."""
    out: list[Span] = []
    depth, opened = 0, 0
    for m in _DETAILS.finditer(text):
        if not m[1]:
            opened = m.start() if depth == 0 else opened
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                out.append((opened, m.end()))
    if depth:
        out.append((opened, len(text)))
    return out


def _link_texts(text: str) -> list[Span]:
    """Texts of ``[text](address)``, ``[text][label]``, ``[label]`` with a definition, and definitions' labels."""
    defined = {m[1].lower() for m in _DEFINITION.finditer(text)} if "]:" in text else set()
    out: list[Span] = []
    opened: list[int] = []
    for m in _BRACKET.finditer(text):
        at = m.start()
        if text[at] == "[":
            opened.append(at)
        elif opened:
            start = opened.pop()
            following = text[at + 1 : at + 2]
            if following == "(":
                linked = _DESTINATION.match(text, at + 1) is not None
            else:
                linked = bool(defined) and (
                    following == "[" or text[start + 1 : min(at, start + 201)].lower() in defined
                )
            if linked:
                out.append((start, at + 1))
    return out


def _anchor_texts(text: str) -> list[Span]:
    """Texts of ``<a href=...>text</a>``."""
    out: list[Span] = []
    at = 0
    while (m := _ANCHOR.search(text, at)) is not None:
        closing = _ANCHOR_END.search(text, m.end())
        if closing is None:
            break
        out.append((m.end(), closing.start()))
        at = closing.end()
    return out
