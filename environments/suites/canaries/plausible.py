"""False values that are as plausible as the true one, for duels (`environments.suites.canaries.duels`). Pure.

Code that sees one form of a test can ask whether its value looks right: is it what the test was given, a sum or a
length of that, is it made of words that the file knows. So a false value is one of which all these questions have the
answer that they have for the true one, as far as there is one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from environments.suites.canaries.falsify import near

_WORD = re.compile(r"[A-Za-z]+|[0-9]+")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_USUAL = (0, 1, 2)
_MOST_FACTORS = 6
_MOST_WORDS = 60
"""Words and texts of a file that are tried in the place of others."""
_SHORT = 6
"""Letters of the form of a text of few words."""
_MOST = 120
"""Values that are looked at."""
_OF_LETTERS = 2
"""The place among falsehoods of the one that has the true text's letters."""
_MOST_GAPS = 6
"""Blanks of a text that are left out, one at a time."""
ENOUGH = 3
"""Values among which falsehoods are drawn, where there are so many."""


def words_of(text: str) -> list[str]:
    """The words and numbers of a text, in small letters."""
    return [it.lower() for it in _WORD.findall(text)]


def made_of(given: Iterable[object]) -> set[int]:
    """The numbers that a test with these literals may well ask for."""
    values = [*given]
    numbers = [it for it in values if type(it) is int and abs(it) < 10**9]
    lengths = [len(it) for it in values if isinstance(it, str)]
    pairs = {a - b for a in numbers for b in numbers if a >= b} if len(numbers) <= _MOST_FACTORS else set[int]()
    made = {*_USUAL, *numbers, *lengths, *pairs, sum(numbers), sum(lengths), len(values)}
    return made | ({math.prod(numbers)} if len(numbers) <= _MOST_FACTORS else set())


def known_words(texts: Iterable[object]) -> Counter[str]:
    """How often literals and names say each word."""
    return Counter(word for it in texts for word in words_of(str(it)))


@dataclass(frozen=True)
class Around:
    """What stands around a `true` value that is asked for: what its test was `given`, what others ask for (`asked`),
    and of these those that ask it of the same (`peers`), the `other` literals of the file, and how often the file says
    each word, the true value's own among them. With `signs` it is asked of a text with letters that are no ASCII
    whether all else is as in the true one, for who knows what encodings do can tell others; and the third of the
    `others` of a text of several words has the letters of the true one, for who has these can tell other words."""

    true: object
    given: Sequence[object]
    asked: Sequence[object]
    other: Sequence[object]
    known: Mapping[str, int]
    peers: Sequence[object] = ()
    signs: bool = False

    @cached_property
    def _made(self) -> set[int]:
        return made_of(self.given)

    @cached_property
    def _foreign(self) -> list[re.Match[str]]:
        return [*_FOREIGN.finditer(str(self.true))] if self.signs else []

    @cached_property
    def _given_words(self) -> set[str]:
        return {word for it in self.given for word in words_of(str(it))}

    @cached_property
    def _own_words(self) -> Counter[str]:
        return Counter(words_of(str(self.true)))

    def looks(self, value: object) -> tuple[object, ...]:
        """The answers to all questions about a value in this place, those of more weight first."""
        if type(value) is int:
            size = len(str(abs(value)))
            return (value in self.peers, value in self._made, value < 0, _zeros(value), value in self.asked, size)
        text = str(value)
        words = words_of(text)
        from_given = sum(it in self._given_words for it in words)
        return (
            not self._foreign or _bare(text) == _bare(str(self.true)),
            value in self.peers,
            all(self.known.get(it, 0) > self._own_words[it] for it in words),
            from_given == len(words),
            from_given > 0,
            _form(text),
            value in self.asked,
            value in self.given,
        )

    def others(self, draw: Random) -> list[object]:
        """Values in the place of the true text or number, in an order of `draw`: those that look as it does first, and
        no worse ones where there are `ENOUGH` of these."""
        true = self.true
        found = {it for it in self._candidates(draw) if it != true and type(it) is type(true) and it != ""}
        wanted = self.looks(true)
        shuffled = draw.sample(sorted(found, key=repr), min(len(found), _MOST))
        unlike = {it: _unlike(self.looks(it), wanted) for it in shuffled}
        shuffled.sort(key=unlike.__getitem__)
        most = unlike[shuffled[min(ENOUGH, len(shuffled)) - 1]] if shuffled else 0
        best = [it for it in shuffled if unlike[it] <= most]
        if self.signs and isinstance(true, str) and len(words_of(true)) > 1:
            alike = [it for it in shuffled if _letters(str(it)) == _letters(true)]
            best = [it for it in draw.sample(best, len(best)) if it not in alike]
            best.sort(key=lambda it: bool(self._foreign) and _bare(str(it)) != _bare(true))
            best[_OF_LETTERS:_OF_LETTERS] = alike[:1]
        return best or [near(true, draw)]

    def _candidates(self, draw: Random) -> Iterator[object]:
        true = self.true
        of_kind = [*dict.fromkeys(it for it in (*self.given, *self.asked, *self.other) if type(it) is type(true))]
        yield from (it for it in self.peers if type(it) is type(true))
        yield from draw.sample(of_kind, min(len(of_kind), _MOST_WORDS))
        if type(true) is int:
            yield from self._made
            yield from (true + step for step in range(-5, 6) if (true + step < 0) == (true < 0))
            step = 10 ** _zeros(true)
            yield from (true + step * it for it in (-2, -1, 1, 2, 3) if true + step * it > 0)
        elif isinstance(true, str):
            yield from self._texts(true, draw)

    def _texts(self, true: str, draw: Random) -> Iterator[str]:
        parts = [(it.start(), it.end()) for it in _WORD.finditer(true)]
        own = [true[begin:end] for begin, end in parts]
        texts = [str(it) for it in (*self.given, *self.asked, *self.other)]
        words = [*dict.fromkeys(it for text in texts for it in _WORD.findall(text))]
        words = draw.sample(words, min(len(words), _MOST_WORDS))
        for number, (begin, end) in enumerate(parts):
            before, word, after = true[:begin], true[begin:end], true[end:]
            yield from (f"{before}{it}{after}" for it in words if it.isdigit() == word.isdigit() and it not in own)
            if word.isdigit() and len(word) < 9:
                yield from (f"{before}{it:0{len(word)}d}{after}" for it in _near_numbers(int(word)))
            if number:
                yield f"{true[: parts[number - 1][1]]}{after}"
            for other_begin, other_end in parts[number + 1 :]:
                between, other = true[end:other_begin], true[other_begin:other_end]
                if between and other.isdigit() == word.isdigit():
                    yield f"{before}{other}{between}{word}{true[other_end:]}"
        runs = [*dict.fromkeys(it for text in texts for it in _FOREIGN.findall(text))]
        for found in self._foreign:
            before, own_signs, after = true[: found.start()], found[0], true[found.end() :]
            yield from (f"{before}{it}{after}" for it in (*runs, own_signs[::-1], own_signs[1:], own_signs[:-1]) if it)
            yield f"{before}{own_signs[:-1]}{chr(ord(own_signs[-1]) ^ 1)}{after}"
        yield from (way(true) for way in _WAYS)
        yield from _shortened(true)
        if self.signs:
            gaps = [it.start() for it in re.finditer(r"\s", true)]
            yield from (true[:it] + true[it + 1 :] for it in draw.sample(gaps, min(len(gaps), _MOST_GAPS)))
            yield from (f"{true}{it}" for it in (" ", ".") if len(own) > 1 and not true.endswith(it))


_WAYS: tuple[Callable[[str], str], ...] = (
    str.lower,
    str.upper,
    str.title,
    str.capitalize,
    str.strip,
    lambda text: text.replace("-", "_"),
    lambda text: text.replace("_", "-"),
    lambda text: text.replace(" ", ""),
    lambda text: text.replace(", ", ","),
    lambda text: text.rstrip(".!?"),
)
"""What work that is nearly right may do to a text."""


def _shortened(true: str) -> Iterator[str]:
    """Of a text of a single word, what may be a word as well; of one of signs alone, fewer or more of them."""
    if len(true) > 3 and true.isalpha():
        yield true.removesuffix("s") if true.endswith("s") else f"{true}s"
        yield true[:-1]
        yield true[1:]
    elif true and not _WORD.search(true):
        yield true + true[-1]
        yield true[:-1]


def _near_numbers(number: int) -> Iterator[int]:
    yield from (number + step for step in (-2, -1, 1, 2) if number + step >= 0)


def _zeros(number: int) -> int:
    """How many zeros end a number."""
    text = str(abs(number))
    return len(text) - len(text.rstrip("0")) if number else 0


def _form(text: str) -> str:
    """A text without what its words are: only their letters' cases and the signs between them; of one of many words its
    ends."""
    form = re.sub(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", _kind, text)
    return form if len(form) < _SHORT else form[:1] + form[-1:]


def _kind(word: re.Match[str]) -> str:
    return "0" if word[0].isdigit() else "A" if word[0][0].isupper() else "a"


def _bare(text: str) -> str:
    """A text with a mark in the place of letters that are no ASCII."""
    return _FOREIGN.sub("\0", text)


def _letters(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text)


def _unlike(looks: Sequence[object], wanted: Sequence[object]) -> int:
    """How much one differs from the other, the first questions the most."""
    return sum(1 << (len(wanted) - place) for place, it in enumerate(wanted) if looks[place] != it)
