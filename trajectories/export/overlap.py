"""Whether samples hold texts that they should not, such as a benchmark's: by n-grams of words.

Compared are the messages of users and the turns under loss. The output of tools is not compared: it shows the
repository's own files, which share licences and boilerplate with many other repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from prchain.core.errors import UsageError
from trajectories.export.samples import Sample
from trajectories.json_text import parsed

WORDS = 13
"""The length of an n-gram: long enough that prose repeats none by chance (GPT-3's check, arXiv:2005.14165, app. C)."""

_WORD = re.compile(r"\w+")
_JSON = frozenset("{[")
_BEYOND_FILE = 1 << 30


@dataclass(frozen=True, slots=True)
class OverlapHit:
    """A sample that shares text with lines of the file; with elements, if the file is one JSON list."""

    sample: str
    lines: tuple[int, ...]
    """The numbers of the first ten, from 1."""
    ngrams: int


@dataclass(slots=True)
class Overlap:
    """The n-grams of a file, and the samples that share some of them."""

    name: str
    items: int
    """Lines of the file, or elements."""
    grams: dict[int, int]
    hits: list[OverlapHit] = field(default_factory=list)
    looked_at: int = 0

    @classmethod
    def load(cls, path: Path) -> Overlap:
        """Read a file of texts: every text in a JSON document, or in each line of JSON lines, else every line itself.

        A text shorter than an n-gram is ignored. Raises `UsageError` for a file that cannot be read, that is not text
        (Parquet, archives), or that holds no n-gram.
        """
        try:
            if path.stat().st_size > _BEYOND_FILE:
                raise UsageError(f"{path} is larger than a list of texts can be (1 GiB)")
            text = path.read_text(encoding="utf-8-sig", errors="replace")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        if "\0" in text:
            raise UsageError(f"{path} is no text in UTF-8; write the texts as JSON lines, or one a line")
        grams: dict[int, int] = {}
        number = 0
        for number, texts in enumerate(_items(text), 1):
            for text in texts:
                for gram in _grams(text):
                    grams.setdefault(gram, number)
        if not grams:
            raise UsageError(f"{path} holds no text of {WORDS} words, which is the least that is looked for")
        return cls(path.name, number, grams)

    def check(self, sample: Sample) -> OverlapHit | None:
        """Compare a sample; a hit is also added to `hits`."""
        self.looked_at += 1
        lines: set[int] = set()
        count = 0
        for text in compared_texts(sample):
            for gram in _grams(text):
                if (line := self.grams.get(gram)) is not None:
                    lines.add(line)
                    count += 1
        if not count:
            return None
        hit = OverlapHit(sample.id, tuple(sorted(lines)[:10]), count)
        self.hits.append(hit)
        return hit


def compared_texts(sample: Sample) -> Iterator[str]:
    """The texts of users, and of turns under loss with their calls."""
    for turn in sample.turns:
        if turn.role == "user":
            yield turn.content
        elif turn.train:
            yield from (text for text in (turn.reasoning, turn.content) if text)
            for call in turn.tool_calls:
                yield from _texts(call.arguments)


def _items(text: str) -> Iterator[Iterator[str]]:
    """The texts of each element of a JSON list, of any other JSON document, or of each line."""
    if text.lstrip()[:1] in _JSON:
        try:
            whole = parsed(text)
        except ValueError:
            pass
        else:
            yield from map(_strings, whole if isinstance(whole, list) else [whole])
            return
    yield from map(_texts, text.removesuffix("\n").split("\n"))


def _texts(line: str) -> Iterator[str]:
    if line.lstrip()[:1] in _JSON:
        try:
            yield from _strings(parsed(line))
            return
        except ValueError:
            pass
    yield line


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for item in inner:
            yield from _strings(item)


def _grams(text: str) -> Iterator[int]:
    words = [match.group() for match in _WORD.finditer(text.lower())]
    yield from map(hash, zip(*(islice(words, start, None) for start in range(WORDS)), strict=False))
