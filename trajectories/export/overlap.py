"""Whether samples hold texts that they should not, such as a benchmark's: by n-grams of words.

Looked at are the texts that a sample teaches and asks: users' words, and the turns under loss. What tools printed is
left out; it is the repository's own files, which share licences and boilerplate with half the world.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from prchain.errors import UsageError
from trajectories.export.samples import Sample

WORDS = 13
"""The length of an n-gram: long enough that prose repeats none by chance (GPT-3's check, arXiv:2005.14165, app. C)."""

_WORD = re.compile(r"\w+")
_BEYOND_FILE = 1 << 30


@dataclass(frozen=True, slots=True)
class Hit:
    """A sample that shares text with lines of the file."""

    sample: str
    lines: tuple[int, ...]
    """Their numbers, 1 is the first; the first ten."""
    ngrams: int


@dataclass(slots=True)
class Overlap:
    """The n-grams of a file, and the samples that were found to share some."""

    name: str
    items: int
    grams: dict[int, int]
    hits: list[Hit] = field(default_factory=list)
    looked_at: int = 0

    @classmethod
    def load(cls, path: Path) -> Overlap:
        """Read a file of texts: of JSON lines every text in them, else every line as it is. A text that is shorter than
        an n-gram is not looked for. Raises `UsageError`."""
        grams: dict[int, int] = {}
        number = 0
        try:
            if path.stat().st_size > _BEYOND_FILE:
                raise UsageError(f"{path} is larger than a list of texts can be (1 GiB)")
            with path.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    for text in _texts(line):
                        for gram in _grams(text):
                            grams.setdefault(gram, number)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        return cls(path.name, number, grams)

    def check(self, sample: Sample) -> Hit | None:
        """Look at a sample; a hit is kept, too."""
        self.looked_at += 1
        lines: set[int] = set()
        count = 0
        for text in taught(sample):
            for gram in _grams(text):
                if (line := self.grams.get(gram)) is not None:
                    lines.add(line)
                    count += 1
        if not count:
            return None
        hit = Hit(sample.id, tuple(sorted(lines)[:10]), count)
        self.hits.append(hit)
        return hit


def taught(sample: Sample) -> Iterator[str]:
    """The texts of users, and of turns under loss with their calls."""
    for turn in sample.turns:
        if turn.role == "user":
            yield turn.content
        elif turn.train:
            yield from (text for text in (turn.reasoning, turn.content) if text)
            for call in turn.tool_calls:
                yield from _texts(call.arguments)


def _texts(line: str) -> Iterator[str]:
    if line.lstrip()[:1] in {"{", "["}:
        try:
            yield from _strings(json.loads(line))
            return
        except ValueError:
            pass
    yield line


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for one in inner:
            yield from _strings(one)


def _grams(text: str) -> Iterator[int]:
    words = [match.group() for match in _WORD.finditer(text.lower())]
    yield from map(hash, zip(*(islice(words, start, None) for start in range(WORDS)), strict=False))
