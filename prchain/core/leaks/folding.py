"""One form for what looks the same: invisible characters fall away, look-alike letters become Latin ones."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_LOOKALIKES = str.maketrans(
    "аеорсхуіјѕһԁԛԝɡⅼոΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχАВЕКМНОРСТХУІЈЅ‐‑＿‿⁀⁔ˍ‘’“”",  # noqa: RUF001
    "aeopcxyijshdqwglnABEZHIKMNOPTYXaivopuxABEKMHOPCTXYIJS--_____''\"\"",
)
"""Cyrillic, Greek and Armenian letters drawn as Latin ones (Unicode TS 39, the most usual of its confusables), and what
is drawn as an underscore."""

_MARKUP = re.compile(r"(?<=[\w/-])(?:[*~`]|</?[A-Za-z][^<>\n]{0,80}>)++(?=[\w/-])")

_UNDRAWN = frozenset({"Cf", "Mn", "Me"})

_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_AROUND = re.compile(
    r"^(?:(?:return|yield|await|raise|throw|assert)\b[ \t]*"
    r"|(?:(?:const|let|var|mut|pub)[ \t]+){0,3}[\w.\[\]]{1,120}[ \t]*(?::[^=\n]{1,120})?=(?![=>]))"
)
_BLANK = re.compile(r"\s+")


def fold(text: str) -> str:
    """The text in NFKC without invisible (format) characters, letters' accents kept and other combining marks not,
    look-alike letters in Latin.

    Lines stay lines. A name spelt with foreign or hidden characters reads as the name; `prchain.core.leaks.encodings`
    reads what is encoded or spaced out letter by letter.
    """
    if text.isascii():
        return text
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in _UNDRAWN)
    return visible.translate(_LOOKALIKES)


def joined(text: str) -> str:
    """A folded text as it is drawn: without HTML comments, without emphasis and tags within a word, without accents."""
    text = _MARKUP.sub("", _without_comments(text))
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def _without_comments(text: str) -> str:
    first, *rest = text.split("<!--")
    parted = (piece.partition("-->") for piece in rest)
    return first + "".join(after if end else f"<!--{inside}" for inside, end, after in parted)


def digest(value: str) -> str:
    """48 bits of a hash, which stand for code in the facts of a stage: enough to know it again, not to read it."""
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:12]


def bare_lines(line: str) -> tuple[str, ...]:
    """A line of code as it is compared: without white space, since a quoted line is seldom indented as it was, and
    also the expression in it alone, without what returns or assigns it and without the mark at its end."""
    whole = _BLANK.sub("", line)
    expression = _BLANK.sub("", _AROUND.sub("", line.strip())).rstrip(";,:{")
    return (whole,) if expression == whole else (whole, expression)


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without marks."""
    return [word.lower() for word in _WORDS.findall(text)]
