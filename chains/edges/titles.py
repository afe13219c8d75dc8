"""What the titles of pull requests have in common: words that few other titles of the repository have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from math import log

_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])")
_EVERYDAY = frozenset(
    {
        "add",
        "added",
        "adding",
        "adds",
        "allow",
        "allowed",
        "allows",
        "and",
        "are",
        "base",
        "better",
        "change",
        "changed",
        "changes",
        "chore",
        "docs",
        "feat",
        "feature",
        "fix",
        "fixed",
        "fixes",
        "fixing",
        "for",
        "from",
        "improve",
        "improved",
        "improves",
        "into",
        "main",
        "make",
        "makes",
        "master",
        "merge",
        "new",
        "not",
        "now",
        "pull",
        "refactor",
        "remove",
        "removed",
        "removes",
        "request",
        "support",
        "supports",
        "test",
        "tests",
        "that",
        "the",
        "this",
        "update",
        "updated",
        "updates",
        "use",
        "used",
        "uses",
        "using",
        "when",
        "with",
    }
)
"""Words of any title; what a repository's own titles repeat weighs little by itself."""
_ENDINGS = ("ing", "ers", "er", "ed", "es", "s")
_SHORTEST = 3
_SHORTEST_STEM = 4


class TitleWords:
    """The titles of one repository. Words are compared without endings, and names by their parts."""

    def __init__(self, titles: Mapping[int, str]) -> None:
        self._words = {number: _words(title) for number, title in titles.items()}
        counts = Counter(word for words in self._words.values() for word in words)
        self._weights = {word: log(len(titles) / count) for word, count in counts.items()}

    def common(self, first: int, second: int) -> tuple[float, tuple[str, ...]]:
        """How much the words that two titles share tell, in nats (the logarithm of how rare each is), and the words,
        the rarest first."""
        shared = self._words[first] & self._words[second]
        words = sorted(shared, key=lambda word: (-self._weights[word], word))
        return sum(self._weights[word] for word in words), tuple(words)


def _words(title: str) -> frozenset[str]:
    found = (word.lower() for word in _WORD.findall(title) if len(word) >= _SHORTEST)
    return frozenset(_stem(word) for word in found if word not in _EVERYDAY)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
