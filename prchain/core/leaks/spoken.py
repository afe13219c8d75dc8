"""Names of hidden tests that a text tells in words: "a test that the empty limit is rejected"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from prchain.core.leaks.facts import StageFacts
from prchain.core.leaks.finding import Finding, finding
from prchain.core.leaks.folding import words_of
from prchain.core.leaks.reading import TextReading
from prchain.core.leaks.vocabulary import lists

_TEST = frozenset({"test", "tests", "tested", "testing"})
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n[ \t]*\n")
_QUOTED = re.compile(
    r"([\"`\u2018\u2019\u201c\u201d'])(?P<quote>[^\"`\u2018\u2019\u201c\u201d]{3,200}?)[\"`\u2018\u2019\u201c\u201d']"
)
_TEST_NAME = re.compile(r"test(?:_|[A-Z])|Test[A-Z_]")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FEWEST = 3
"""Words with a meaning that a name has to have: two in a row, such as those of `test_duplicate_rule`, are what anybody
would call the subject."""
_BEFORE, _AFTER = 6, 4
"""Words between the word for a test and the name: more, and the sentence is not about that test."""


@lru_cache(maxsize=256)
def _spoken(names: frozenset[str]) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """The words with a meaning of each name of a test, by the first of them."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name in sorted(names):
        if _TEST_NAME.match(name):
            parts = _parts(name)
            if len(parts) >= _FEWEST:
                found.setdefault(parts[0], []).append((parts, name))
    return found


def spoken_findings(reading: TextReading, chain: Sequence[StageFacts], position: int) -> Iterator[Finding]:
    """Names of tests that stages introduce, told word for word near a word for a test, or as a quote in a sentence that
    has one; words of grammar between them count as nothing. Own and later ones leak, those of earlier stages stand in
    the tree."""
    for sentence in _SENTENCE.split(reading.masked):
        words = words_of(sentence)
        tests = [at for at, word in enumerate(words) if word in _TEST]
        if not tests:
            continue
        quoted = {_parts(match["quote"]) for match in _QUOTED.finditer(sentence)}
        kept = [(at, _stem(word)) for at, word in enumerate(words) if _has_meaning(word)]
        for place, (at, word) in enumerate(kept):
            for stage, facts in enumerate(chain, 1):
                for parts, _ in _spoken(facts.introduced).get(word, ()):
                    run = kept[place : place + len(parts)]
                    if tuple(part for _, part in run) == parts and (parts in quoted or _is_near(tests, at, run[-1][0])):
                        yield finding(
                            "introduced_name" if stage == position else "other_stage_name",
                            "leak" if stage >= position else "warning",
                            " ".join(words[at : run[-1][0] + 1]),
                            stage,
                        )


def _parts(name: str) -> tuple[str, ...]:
    """The words with a meaning of a name or of a phrase."""
    words = words_of(_CAPITAL.sub(" ", name.replace("_", " ")))
    return tuple(_stem(word) for word in words if _has_meaning(word))


def _is_near(tests: Collection[int], first: int, last: int) -> bool:
    return any(first - _BEFORE <= at < first or last < at <= last + _AFTER for at in tests)


def _has_meaning(word: str) -> bool:
    return word not in _TEST and word not in lists().function_words


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
