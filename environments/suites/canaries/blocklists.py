"""Lists of a test of JavaScript that say the opposite of their values, as ``valid`` and ``invalid``. Pure.

Helpers of other files are given such lists, so that no assertion is seen where they stand. A value that stands in the
other list makes the test false: work that passes the true test says of it the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from environments.suites.canaries.falsify import PlausibleDice

_NAMED = re.compile(r"(?P<indent>\s*)(?P<quote>['\"]?)(?P<name>[A-Za-z_]\w*)(?P=quote)\s*:\s*\[")
_ITEM = re.compile(
    r"\s*(?:(?P<literal>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d[\d_.]*)\s*(?:,|(?=\])|(?=//)|$)|//.*$)"
)
_CLOSED = re.compile(r"\s*\]")
_COMMA = re.compile(r"\s*,[^\S\n]*")
_LONGEST = 400
"""Letters of a line that is looked at."""
_MOST = 1000
"""Values of a list that are looked at."""
_NEGATIONS = ("in", "un", "non", "not", "no", "dis", "mis", "il", "ir", "im", "non_", "not_")
"""What a name begins with that says the opposite of the rest."""
_OPPOSITES = (
    {"accept", "accepts", "accepted", "allow", "allows", "allowed", "pass", "passes", "passing", "good", "ok", "right"},
    {"reject", "rejects", "rejected", "deny", "denies", "denied", "fail", "fails", "failing", "bad", "wrong"},
)
_PAIRS = frozenset(
    {("truthy", "falsy"), ("positive", "negative"), ("positives", "negatives"), ("yes", "no"), ("true", "false")}
)


class _Value(NamedTuple):
    """A literal, and where it stands."""

    line: int
    begin: int
    end: int
    text: str


class _List(NamedTuple):
    """A list of literals that has a name; `begin` is the column behind its bracket, in its first line."""

    name: str
    indent: str
    first: int
    begin: int
    last: int
    values: Sequence[_Value]


def with_moved(lines: Sequence[str], block: range, order: PlausibleDice) -> dict[int, str]:
    """The lines of a block, by their numbers, that are others where one value of two opposed lists stands in the other
    list, in the place of another one, if it has one of its own; new lines first. Nothing where a block has no such
    lists. Each dice of a place move another value, by turns out of each list: who refuses all of one list is found by
    the one, who takes all of the other by the other."""
    ways = [way for pair in _opposed([*_lists(lines, block)]) for way in (pair, pair[::-1])]
    moves = [(value, *way) for way in ways if not way[1].values or _own(*reversed(way)) for value in _own(*way)]
    new = [it for it in moves if lines[it[0].line].strip() not in order.known]
    shuffled = order.place.sample(new or moves, len(new or moves))
    if not shuffled:
        return {}
    out_of: dict[str, list[tuple[_Value, _List, _List]]] = {}
    for move in shuffled:
        out_of.setdefault(move[1].name, []).append(move)
    value, one, other = order.taken([it for some in zip_longest(*out_of.values()) for it in some if it])
    place = order.place.choice(_own(other, one)) if other.values else _Value(other.first, other.begin, other.begin, "")
    made = {it.line: lines[it.line] for it in (value, place)}
    for it in sorted((value, place), key=lambda it: -it.begin):
        line = made[it.line]
        made[it.line] = _without(line, it) if it is value else f"{line[: it.begin]}{value.text}{line[it.end :]}"
    return made


def _without(line: str, value: _Value) -> str:
    """A line without a value and what parts it from the next one; nothing of a line that holds it alone."""
    before, after = line[: value.begin], line[value.end :]
    if behind := _COMMA.match(after):
        left = f"{before}{after[behind.end() :]}"
    else:
        left = f"{before.rstrip().removesuffix(',') if before.strip() else before}{after}"
    return left if left.strip() else ""


def _own(one: _List, other: _List) -> list[_Value]:
    """The values of one list that the other has not."""
    known = {it.text for it in other.values}
    return [it for it in one.values if it.text not in known]


def _opposed(lists: Sequence[_List]) -> Iterator[tuple[_List, _List]]:
    """Those lists that stand in one object, one behind the other, with names that say the opposite."""
    for one, other in pairwise(lists):
        if one.indent == other.indent and other.first - one.last == 1 and _are_opposites(one.name, other.name):
            yield one, other


def _are_opposites(one: str, other: str) -> bool:
    short, long = sorted((one.lower(), other.lower()), key=len)
    if any(long == negation + short for negation in _NEGATIONS) or (one, other) in _PAIRS or (other, one) in _PAIRS:
        return True
    good, bad = _OPPOSITES
    return (short in good and long in bad) or (short in bad and long in good)


def _lists(lines: Sequence[str], block: range) -> Iterator[_List]:
    """The lists of literals alone, each from its own line on."""
    number = block.start
    while number < block.stop:
        found = _NAMED.match(lines[number]) if len(lines[number]) <= _LONGEST else None
        read = _read(lines, block, number, found.end()) if found else None
        if found and read:
            values, last = read
            yield _List(found["name"], found["indent"], number, found.end(), last, values)
            number = last
        number += 1


def _read(lines: Sequence[str], block: range, number: int, place: int) -> tuple[list[_Value], int] | None:
    """The values of the list that is opened there, and the line where it ends; None where it holds something else."""
    values: list[_Value] = []
    while number < block.stop and len(lines[number]) <= _LONGEST and len(values) <= _MOST:
        line = lines[number].rstrip()
        while place < len(line):
            if _CLOSED.match(line, place):
                return values, number
            item = _ITEM.match(line, place)
            if item is None:
                return None
            if item["literal"]:
                values.append(_Value(number, item.start("literal"), item.end("literal"), item["literal"]))
            place = item.end()
        number, place = number + 1, 0
    return None
