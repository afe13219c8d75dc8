"""Names and values for canaries that look like those of the tests around them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from random import Random

_WORDS = ("again", "default", "edge", "empty", "first", "large", "last", "many", "nested", "other", "short", "twice")
_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 50

REASONS = ("not supported here", "slow", "needs the network", "flaky on this platform", "see the tracker", "not yet")
"""Why tests are skipped."""


def new_name(draw: Random, tests: Sequence[str], taken: Collection[str]) -> str:
    """A name made of the words of two tests' names, in their style; none of `taken`. `tests` is not empty."""
    for _ in range(_TRIES):
        name = _joined(draw, draw.choice(tests), draw.choice(tests))
        if name not in taken:
            return name
    return f"{draw.choice(tests)}_{new_word(draw)}"


def _joined(draw: Random, first: str, second: str) -> str:
    is_camel = "_" not in first.strip("_") and not first.islower()
    words = _CAMEL.findall(first) if is_camel else [word for word in first.split("_") if word]
    others = [word for word in re.split(r"_+", second) if word][1:] if not is_camel else _CAMEL.findall(second)[1:]
    kept = words[: max(1, len(words) - draw.randint(0, 2))]
    more = [draw.choice([*others, *_WORDS]) for _ in range(draw.randint(1, 2))]
    if is_camel:
        return "".join([*kept, *(word[:1].upper() + word[1:] for word in more)])
    return "_".join([*kept, *(word.lower() for word in more)])


def false_value(draw: Random, true: object) -> object:
    """A value of the kind of the true one that looks like it, and that code gives by chance once in hundreds of runs at
    most. `true` is None where it is not known."""
    match true:
        case str():
            return _false_text(draw, true)
        case bytes():
            return _false_text(draw, true.decode("latin-1")).encode("latin-1")
        case float():
            return round(abs(true) + draw.randint(100, 9_999) / 8, 3)
        case _:
            return draw.randint(101, 9_999)


def new_word(draw: Random, length: int = 6) -> str:
    """A word of small letters."""
    return "".join(draw.choice(_LETTERS) for _ in range(length))


def _false_text(draw: Random, true: str) -> str:
    """The text with a few letters and digits changed; a word where it has too few."""
    places = [place for place, letter in enumerate(true) if letter.isalnum() and letter.isascii()]
    if len(places) < 4:
        return true + new_word(draw, draw.randint(4, 6))
    letters = list(true)
    for place in draw.sample(places, min(3, len(places))):
        old = letters[place]
        pool = "0123456789" if old.isdigit() else _LETTERS.upper() if old.isupper() else _LETTERS
        letters[place] = draw.choice([letter for letter in pool if letter != old])
    return "".join(letters)
