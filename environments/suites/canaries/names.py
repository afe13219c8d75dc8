"""Names for canaries that look like those of the tests around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random

_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TITLE_WORD = re.compile(r"[A-Za-z0-9_.,():/-]+")
"""What stands in any report as it stands in the file."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 50
_OWN_LENGTHS = range(3, 13)
_SAID_EVERYWHERE = re.compile(
    r"assert|async|await|bool|byte|case|catch|char|class|const|context|def|default|describe|else|enum|equal"
    r"|equals|expect|export|false|final|fixture|float|for|from|func|function|http|impl|import|int|integer"
    r"|interface|javax|junit|let|main|match|mod|mut|new|nil|node|null|number|object|package|panic|parametrize"
    r"|private|pub|public|pytest|raise|raises|require|return|self|static|std|str|strict|string|struct|super"
    r"|switch|test|testing|tests|the|this|throw|throws|true|try|type|typeof|undefined|unittest|use|var|void"
    r"|while|with|yield"
)
"""Words of languages and runners, which no test is called by."""
_RESERVED = re.compile(
    r"arguments|await|break|case|catch|class|const|continue|debugger|default|delete|else|enum|eval|export|extends|false"
    r"|finally|function|implements|import|interface|null|package|private|protected|public|return|static|super|switch"
    r"|this|throw|true|typeof|void|while|with|yield"
)
"""Words of four letters and more that JavaScript takes for no variable's name (ECMA-262, "Keywords and Reserved
Words", strict mode included)."""

REASONS = ("not supported here", "slow", "needs the network", "flaky on this platform", "see the tracker", "not yet")
"""Why tests are skipped."""


@dataclass(frozen=True, slots=True)
class NewNames:
    """Draws names from those of a file's `tests`, of which there are some: the beginning of one, and the end of one of
    `others`.

    Some tests are called by a word that no other test has. As many canaries are, as the share `own` says, by one of the
    file's `words` that is in no test's name: else whoever has such a word would be a test proper.
    """

    tests: Sequence[str]
    others: Sequence[str]
    own: float
    words: Sequence[str]
    joined: Callable[[Random, str, str, str | None], str]

    @classmethod
    def of_functions(cls, tests: Sequence[str], named: Sequence[str], identifiers: Iterable[str]) -> NewNames:
        """For names of functions, in the style of the first of two; `named` are those of the repository's tests, and
        `identifiers` the file's."""
        return cls._of(tests, named, identifiers, _words, _joined)

    @classmethod
    def of_titles(cls, titles: Sequence[str], identifiers: Iterable[str]) -> NewNames:
        """For titles of several words."""
        return cls._of(titles, (), identifiers, _TITLE_WORD.findall, _joined_title)

    @classmethod
    def _of(
        cls,
        tests: Sequence[str],
        named: Sequence[str],
        identifiers: Iterable[str],
        parted: Callable[[str], Sequence[str]],
        joined: Callable[[Random, str, str, str | None], str],
    ) -> NewNames:
        every = [*named, *({*tests} - {*named})]
        known = Counter(word for name in every for word in {it.lower() for it in parted(name)})
        own = sum(any(known[word.lower()] == 1 for word in parted(name)) for name in tests)
        words = {word.lower() for name in identifiers for word in _words(name)}
        words = {it for it in words if len(it) in _OWN_LENGTHS and it.isalpha() and not _SAID_EVERYWHERE.fullmatch(it)}
        fit = sorted(words - known.keys())
        return cls(tests, named or tests, own / len(tests) if tests else 0.0, fit, joined)

    def draw(self, draw: Random, taken: Collection[str], like: str = "") -> str:
        """A name that is none of `taken`. It begins as the test `like`, or as any, if none is given."""
        # Once: names without such a word are the ones that are taken.
        has_own = bool(self.words) and draw.random() < self.own
        for _ in range(_TRIES):
            word = draw.choice(self.words) if has_own else None
            name = self.joined(draw, like or draw.choice(self.tests), draw.choice(self.others), word)
            if name not in taken:
                return name
        first, word = like or draw.choice(self.tests), new_word(draw)
        return self.joined(draw, first, first, word)


def _joined(draw: Random, first: str, second: str, own: str | None) -> str:
    words = _words(first)
    kept = words[: draw.randint(1, max(1, min(3, len(words) - 1)))]
    more = (_words(second)[1:] or [new_word(draw)])[-draw.randint(1, 3) :]
    if own is not None:
        more[draw.randrange(len(more))] = own
    if _is_camel(first):
        return "".join([*kept, *(word[:1].upper() + word[1:] for word in more)])
    return "_".join([*kept, *(word.lower() for word in more)])


def _joined_title(draw: Random, first: str, second: str, own: str | None) -> str:
    begin, end = _TITLE_WORD.findall(first) or ["works"], _TITLE_WORD.findall(second) or ["too"]
    kept = begin[: draw.randint(1, max(1, len(begin) - 1))]
    more = end[-draw.randint(1, max(1, len(end) - 1)) :]
    if own is not None:
        more[draw.randrange(len(more))] = own
    return " ".join([*kept, *more])


def _is_camel(name: str) -> bool:
    return "_" not in name.strip("_") and not name.islower()


def _words(name: str) -> list[str]:
    return [word for part in name.split("_") for word in ([part] if part.islower() else _CAMEL.findall(part)) if word]


def new_word(draw: Random, length: int = 6) -> str:
    """A word of small letters."""
    return "".join(draw.choice(_LETTERS) for _ in range(length))


def unused_word(text: str, draw: Random) -> str:
    """A word that a text does not hold, and that can be a variable's name in JavaScript."""
    word = new_word(draw, draw.randint(4, 9))
    while word in text or _RESERVED.fullmatch(word):
        word += new_word(draw)
    return word
