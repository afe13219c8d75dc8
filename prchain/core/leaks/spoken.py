"""Names that a text tells in words: of hidden tests, as in "a test that the empty limit is rejected", and such as are
spelt out, as in "max age with an underscore"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from prchain.core.code.identifiers import name_parts
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

_SPELT = re.compile(
    r"(?i)\b(?:with|by|in|using)(?:\s+(?:an?|one|two|the))?\s+(?:underscores?\b|snake[ -]?case\b|camel[ -]?case\b)"
)
"""How a text spells a name out, behind its words."""
_LONGEST_NAME = 6
"""Words of a name that is spelt out."""
_BESIDE = frozenset(
    "a all and are as between connected in is joined linked lower lowercase name named one parted separated single "  # noqa: SIM905
    "spelled spelt the together two word words written".split()
)
"""Words that stand between those of the name and how it is spelt."""


@lru_cache(maxsize=256)
def _by_parts(names: frozenset[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(parts for name in names if len(parts := tuple(name_parts(name))) > 1)


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
        yield from _spelt_out(sentence, chain, position)
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


def _spelt_out(sentence: str, chain: Sequence[StageFacts], position: int) -> Iterator[Finding]:
    """Hidden names whose words stand before how they are joined; not those that may be said."""
    for match in _SPELT.finditer(sentence):
        words = [word for word in words_of(sentence[: match.start()]) if word not in _BESIDE][-_LONGEST_NAME:]
        for stage, facts in enumerate(chain[max(0, position - 1) :], max(1, position)):
            names = _by_parts(facts.introduced - facts.interface - facts.told)
            if any(tuple(words[at:]) in names for at in range(len(words) - 1)):
                kind = "introduced_name" if stage == position else "other_stage_name"
                yield finding(kind, "leak", f"{' '.join(words)} {match[0]}", stage)
                break


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
