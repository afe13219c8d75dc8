"""Names for canaries that look like those of the tests around them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from random import Random

_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 50

REASONS = ("not supported here", "slow", "needs the network", "flaky on this platform", "see the tracker", "not yet")
"""Why tests are skipped."""


def new_name(draw: Random, tests: Sequence[str], taken: Collection[str], named: Sequence[str] = ()) -> str:
    """A name with the beginning of a test's name and the end of another one's, in the style of the first; none of
    `taken`. `tests` are those of the file, of which there are some, and `named` those of the repository."""
    for _ in range(_TRIES):
        name = _joined(draw, draw.choice(tests), draw.choice(named or tests))
        if name not in taken:
            return name
    first, word = draw.choice(tests), new_word(draw)
    return f"{first}{word.capitalize()}" if _is_camel(first) else f"{first}_{word}"


def _joined(draw: Random, first: str, second: str) -> str:
    words = _words(first)
    kept = words[: draw.randint(1, max(1, min(3, len(words) - 1)))]
    more = (_words(second)[1:] or [new_word(draw)])[-draw.randint(1, 3) :]
    if _is_camel(first):
        return "".join([*kept, *(word[:1].upper() + word[1:] for word in more)])
    return "_".join([*kept, *(word.lower() for word in more)])


def _is_camel(name: str) -> bool:
    return "_" not in name.strip("_") and not name.islower()


def _words(name: str) -> list[str]:
    return [word for part in name.split("_") for word in ([part] if part.islower() else _CAMEL.findall(part)) if word]


def new_word(draw: Random, length: int = 6) -> str:
    """A word of small letters."""
    return "".join(draw.choice(_LETTERS) for _ in range(length))


def unused_word(text: str, draw: Random) -> str:
    """A word that a text does not hold."""
    word = new_word(draw, draw.randint(4, 9))
    while word in text:
        word += new_word(draw)
    return word
