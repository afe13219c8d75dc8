"""Tests whose expected values are not in the sandbox: masks stand in their place, and tell what the tested code gives.

Who can read a test can give what it asks for. Of a masked test the literals that assertions ask for are replaced by
masks. A mask takes whatever it is compared with, and writes that to a file, the report of the masks; whether it is
right is decided outside, by what M_t gave in the proof. So nothing in the process says what is right, neither before
the comparison nor after it, and it does not matter that code there can see masks, or write to the report: it has to
know the value. Pure.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from environments.suites.canaries.nearness import is_loose, is_near

EQUAL, HOLDS, MATCHES, NEAR = "=", "~", "%", "@"
"""Begin what a mask tells: a value that has to equal what is asked for, a text or list that has to hold it, a text in
which what is asked for, a regular expression, has to be found, and, behind a rule
(`environments.suites.canaries.nearness`), a value that has to be near it."""
TOLD_LIMIT = 1 << 20
"""Bytes of a report of masks that are read."""
COMPUTED = "*"
"""The name of all tests of a file whose titles are not written out there."""
UNWRITTEN = "*"
"""Stands for a literal that the test does not hold: a file has it as a snapshot, or masked values make it."""
MOST_MASKS = 5_000
"""Masks of a file; one that could have more has none."""
_LONGEST = 96
"""Characters of a told text that a proof keeps; of a longer one it keeps a hash."""
_LINE = re.compile(r"(?P<number>[0-9]{1,9}) (?P<text>[=~%@].*)")
_OF_CLASS = re.compile(r"=object (\w+) ")
_MOST_TOLD = 1_000
"""Different texts of one mask that are looked at."""
_ROOM = 200
"""Letters that a text may have beside twice those of M_t: a longer one could hold all that may be asked for."""
_PLAIN = re.compile(r"[A-Za-z]{3,}|[0-9]{2,}")
"""What a value has that is not hit by chance."""
_WORD = re.compile(r"[0-9]+(?:[_.][0-9]+)*|[^\W\d_]+")
"""A number or a word of a text."""
_PLAIN_WORD = re.compile(r"[^\W_]+")
_POINTS = re.compile(r"(?<=[0-9])[._,](?=[0-9])")
_LONG_WORD = 3
"""Letters of one that is not met by chance."""
_LONG_NUMBER = 4
"""Digits of a number that is no sum, product or difference of a few others: of two numbers below a hundred these have
thousands of values, so that a test file with twenty numbers leads to most of three digits."""
_UNSEEN = frozenset({"=[object]", "=object[]"})
"""Told of values that have no text of their own."""
_AWAITS = re.compile(r"(?i)raises|throw|reject|panic|catch|err\b|error|exception")
"""Of a line: an error is awaited, or looked at."""
_REPLACES = re.compile(r"(?i)mock|monkeypatch|\bpatch(?:ed)?\b|stub|spyon|sinon|defineProperty|prototype\.\w+\s*=[^=]")
"""Of a test: functions are replaced that the tested code calls."""
ENOUGH = 2
"""Of `weight`: a test with as much tells whether work is right."""
_LEAF = re.compile(r"""\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<![\w.])\d[\w.]*""")
"""A text or a number of a list or an object."""
_CONSTANTS = frozenset({"None", "True", "False", "null", "true", "false", "undefined"})


@dataclass(frozen=True, slots=True)
class Masking:
    """What masks of a file's tests need: the path of the `report`, to which each mask appends lines ``NUMBER TEXT``,
    the number of the file's `first` mask, and by a test's name which of its places are masked, from 0 (None: all)."""

    report: str
    first: int
    places: Callable[[str], Collection[int] | None]


class Masked(NamedTuple):
    """A test file's text with masks, and by the name of each test that has places for them the literals that stand
    there, as they are written. The masks of a file are numbered in the order of this mapping, masked or not. What the
    ids of tests hold in the place of a literal is `shown`, with the literal's own text in ids. A text that asked for
    some of a file of snapshots, and asks for none any more, is `without_snapshots`."""

    text: str
    literals: Mapping[str, Sequence[str]]
    shown: Mapping[str, str] = MappingProxyType({})
    without_snapshots: bool = False

    def numbers(self, first: int) -> dict[int, tuple[str, int]]:
        """The test and its place by a mask's number."""
        places = [(name, place) for name, found in self.literals.items() for place in range(len(found))]
        return dict(enumerate(places, first))


Masker = Callable[[str, Masking], Masked]
"""Masks the tests of a language. A text that cannot be read has no places."""


def told(report: str) -> dict[int, set[str]]:
    """What masks told, by their numbers; lines of another form say nothing."""
    found = defaultdict[int, set[str]](set)
    for line in report.splitlines():
        if (it := _LINE.fullmatch(line)) and len(found[int(it["number"])]) <= _MOST_TOLD:
            found[int(it["number"])].add(it["text"])
    return dict(found)


def told_once(report: str) -> set[int]:
    """The masks that told one time: of others, as in a loop, one time that is right would do for all."""
    often = Counter(int(it["number"]) for line in report.splitlines() if (it := _LINE.fullmatch(line)))
    return {number for number, count in often.items() if count == 1}


def to_tell(literal: str, texts: Collection[str]) -> str | None:
    """What a place has to tell in a grade, by the literal that stands there in the test, and what it told on M_t; None
    where that cannot be said."""
    kinds = {it[0] for it in texts}
    if kinds == {EQUAL} and len(texts) <= _MOST_TOLD and _UNSEEN.isdisjoint(texts):
        return _kept(texts)
    if kinds in ({HOLDS}, {MATCHES}):
        (kind,) = kinds
        most = 2 * max(map(len, texts)) + _ROOM
        found = f"{kind}{most} {literal}"
        return found if agrees(found, texts) else None
    if kinds == {NEAR} and len(rules := {it[1:].partition(" ")[0] for it in texts}) == 1:
        found = f"{NEAR}{rules.pop()} {literal}"
        return found if agrees(found, texts) else None
    return None


def class_told(texts: Collection[str]) -> str:
    """The name of the class whose value was told by what it says of itself; empty for other values."""
    found = {it[1] for text in texts if (it := _OF_CLASS.match(text))}
    return found.pop() if len(found) == 1 else ""


def agrees(wanted: str, texts: Collection[str]) -> bool:
    """Whether what a place told is what it has `to_tell`."""
    if wanted[0] == EQUAL:
        return bool(texts) and _kept(texts) == wanted
    most, _, literal = wanted[1:].partition(" ")
    if wanted[0] == NEAR:
        begin = f"{NEAR}{most} "
        return bool(texts) and all(
            it.startswith(begin) and is_near(most, literal, it.removeprefix(begin)) for it in texts
        )
    return bool(texts) and all(
        it[0] == wanted[0] and len(it) <= int(most) and _is_found(wanted[0], literal, it[1:]) for it in texts
    )


def _is_found(kind: str, literal: str, text: str) -> bool:
    try:
        value, told_text = ast.literal_eval(literal), json.loads(text)
        value = value.decode("latin-1") if isinstance(value, bytes) else value
        if kind == HOLDS:
            return value in told_text
        return isinstance(told_text, str) and re.search(value, told_text) is not None
    except (ValueError, SyntaxError, TypeError, RecursionError, re.error):
        return False


def is_rough(wanted: str, digits: int) -> bool:
    """Whether what a place has `to_tell` need be known to less than so many digits, so that it may be met by chance."""
    rule, _, literal = wanted[1:].partition(" ")
    return wanted[0] == NEAR and is_loose(rule, literal, digits)


def is_given_away(literal: str, test: str) -> bool:
    """Whether who reads a test, but for its masks, can give what a literal of it asks for without the work, as people
    did: where an error is awaited it is enough to raise one that names the argument, and where functions are replaced,
    to go round them. By words alone, and in doubt True."""
    if _REPLACES.search(test):
        return True
    lines = test.splitlines()
    part = max((it.strip() for it in literal.splitlines()), key=len, default="")
    places = [number for number, line in enumerate(lines) if part and part in line]
    return any(_AWAITS.search(line) for number in places for line in lines[max(0, number - 2) : number + 1])


def _kept(texts: Collection[str]) -> str:
    words = " ".join(sorted(texts))
    if len(texts) == 1 and len(words) <= _LONGEST:
        return words
    return f"{EQUAL}{sha256(words.encode('utf-8', 'replace')).hexdigest()}"


def weight(literal: str, masked: str) -> int:
    """How much a place says of who tells it, by the literal that stands there and the masked text of the test files: 2
    for a value that is hardly met by chance, 1 for one that stands there, as an argument does, so that two of these are
    enough, 0 for others. A list or an object says as much as all its parts."""
    return min(ENOUGH, sum(_weights(literal, masked)))


def is_unlikely(literal: str, masked: str, before: str = "") -> bool:
    """Whether a literal has a word or a number that stands neither in the `masked` text of the test files and B_t nor
    in what B_t tells `before`, not as a part of another one either, and that is no number of a few digits: words that
    stand there can be put together by who does something else, and a short number be computed of others. By what people
    did: of a text that lost a part, or is made of an argument's figures and of a word that other tests show, nobody
    needs to know the rule."""
    found = {_plain(word).strip("0") for part in _parts(literal) for word in _WORD.findall(part) if not _is_short(word)}
    return any(it not in _words_of_files(masked) and it not in _plain(before) for it in found)


def contents(literal: str) -> list[str]:
    """What a literal says, without its quotes: of a list or an object each of its texts and numbers once."""
    is_whole = literal[:1] in ("[", "{")
    return [*dict.fromkeys(it.strip("\"'`") for it in (_LEAF.findall(literal) if is_whole else [literal]))]


def _weights(literal: str, masked: str) -> list[int]:
    found = _parts(literal)
    return [1 if re.search(rf"(?<!\w){re.escape(it)}(?!\w)", masked) else ENOUGH for it in found]


def _parts(literal: str) -> list[str]:
    """The texts and numbers of a literal that say something."""
    if not _PLAIN.search(literal) or literal in _CONSTANTS:
        return []
    return [it for it in contents(literal) if _PLAIN.search(it)]


def _plain(text: str) -> str:
    """A text in small letters, and its numbers without points."""
    return _POINTS.sub("", text.lower())


@lru_cache(maxsize=2)
def _words_of_files(text: str) -> str:
    """The words and numbers of a large text, each once, for it is asked for again and again."""
    return "\n".join({*_PLAIN_WORD.findall(_plain(text))})


def _is_short(word: str) -> bool:
    """Whether others lead to a word, as minutes follow from hours, or chance does."""
    if word[0].isdigit():
        return len(word.replace("_", "").replace(".", "").strip("0")) < _LONG_NUMBER
    return len(word) < _LONG_WORD
