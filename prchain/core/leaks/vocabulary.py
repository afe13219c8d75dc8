"""Plain English: which words a text may use although a patch uses them too, and whether a text is English at all."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class WordLists(NamedTuple):
    """The word lists of `vocabulary.toml`, in small letters."""

    technical: frozenset[str]
    brands: frozenset[str]
    function_words: frozenset[str]


@lru_cache(maxsize=1)
def lists() -> WordLists:
    """The word lists, read once."""
    values = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return WordLists(*(frozenset(values[name].split()) for name in WordLists._fields))


@lru_cache(maxsize=1)
def dictionary() -> frozenset[str]:
    """The English words that pyspellchecker ships, some 160,000; loading them takes about 0.15 s, once."""
    from spellchecker import SpellChecker  # noqa: PLC0415  (a heavy import that most commands do without)

    return frozenset(SpellChecker(language="en").word_frequency.dictionary)


_ENDINGS = (
    ("'s", ""),
    ("s", ""),
    ("es", ""),
    ("ies", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
    ("er", ""),
    ("er", "e"),
    ("able", ""),
    ("able", "e"),
    ("ability", "able"),
    ("ness", ""),
    ("ization", "ize"),
)


@lru_cache(maxsize=65536)
def is_plain(word: str) -> bool:
    """Whether a word, in any case, is English or of the trade, itself or without the ending of a plural or a tense."""
    small = word.lower()
    if _is_listed(small):
        return True
    stems = (small[: -len(ending)] + instead for ending, instead in _ENDINGS if small.endswith(ending))
    return any(len(stem) > 2 and _is_listed(stem) for stem in stems)


def _is_listed(small: str) -> bool:
    return small in lists().technical or small in lists().brands or small in dictionary()
