"""Names for canaries that look like those of the tests around them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from random import Random

_WORDS = ("again", "default", "edge", "empty", "first", "large", "last", "many", "nested", "other", "short", "twice")
_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def new_name(draw: Random, tests: Sequence[str], taken: Collection[str]) -> str:
    """A name made of the words of two tests' names, in their style; none of `taken`. `tests` is not empty."""
    while True:
        first, second = draw.choice(tests), draw.choice(tests)
        name = _joined(draw, first, second)
        if name not in taken:
            return name


def _joined(draw: Random, first: str, second: str) -> str:
    is_camel = "_" not in first.strip("_") and not first.islower()
    words = _CAMEL.findall(first) if is_camel else [word for word in first.split("_") if word]
    others = [word for word in re.split(r"_+", second) if word][1:] if not is_camel else _CAMEL.findall(second)[1:]
    kept = words[: max(1, len(words) - draw.randint(0, 2))]
    more = [draw.choice([*others, *_WORDS]) for _ in range(draw.randint(1, 2))]
    if is_camel:
        return "".join([*kept, *(word[:1].upper() + word[1:] for word in more)])
    return "_".join([*kept, *(word.lower() for word in more)])


def new_number(draw: Random) -> int:
    """A number that no code gives by chance."""
    return draw.randint(100_000, 99_999_999)


def new_word(draw: Random, like: str = "") -> str:
    """A word that no code gives by chance; with the beginning of `like`."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    begin = "".join(letter for letter in like[:12] if letter.isalnum() or letter in " _-./")
    return begin + "".join(draw.choice(letters) for _ in range(12))
