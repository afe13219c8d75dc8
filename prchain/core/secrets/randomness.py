"""Whether a word was drawn at random, as keys are, or made up by a person, as names and placeholders are."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")

_PLACEHOLDER = re.compile(
    r"example|placeholder|redacted|changeme|password|access|secret|token|dummy|your|fake|x{5}|\*{3}|12345678|abcdefgh"
    r"|odnn7|k7mdeng",
    re.IGNORECASE,
)
"""What documentation writes in place of a secret; the last two are of AWS's examples, which tests change elsewhere. A
random word of 36 letters of base 62 holds one in 5,000 cases."""

_MOST_IN_SEQUENCE = 0.6
"""A quarter of the characters of a random word of hexadecimal digits go on from one of the two before them, and in
other alphabets fewer do."""


def is_placeholder(word: str) -> bool:
    """Whether a word holds what documentation writes in place of a secret."""
    return _PLACEHOLDER.search(word) is not None


def entropy(word: str) -> float:
    """Shannon's entropy of the word's own characters, in bits a character."""
    counts = Counter(word).values()
    return sum(-count / len(word) * math.log2(count / len(word)) for count in counts)


def mixing(word: str) -> float:
    """The share of neighbours in a word of letters and digits that are of different kinds: small, capital, digit.

    62 % of them in a random word of base 62, 47 % in one of hexadecimal digits, and few in names, which are made of
    words and numbers.
    """
    kinds = [char.isdigit() + 2 * char.isupper() for char in word]
    return sum(one != other for one, other in pairwise(kinds)) / max(len(word) - 1, 1)


def in_sequence(word: str) -> float:
    """The share of characters that repeat one of the two before them or come next to it in its alphabet: all of
    ``1234abcd`` and of ``a1B2c3D4`` but the first of each."""
    codes = [ord(char) for char in word.casefold()]
    goes_on = sum(
        any(code - before in (0, 1) for before in codes[max(at - 2, 0) : at]) for at, code in enumerate(codes)
    )
    return goes_on / len(codes)


def is_random(word: str, *, bits: float, mixed: float) -> bool:
    """Whether a word is as random as a key of at least so many `bits` of entropy a character and this `mixing`.

    Separators do not count: between them there may be words.
    """
    letters = _SEPARATORS.sub("", word)
    return (
        bool(letters)
        and mixing(letters) >= mixed
        and entropy(letters) >= bits
        and in_sequence(letters) <= _MOST_IN_SEQUENCE
        and not is_placeholder(word)
    )
