"""Which Node a project of some day wants: what its files name, and what was there on the day."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from environments.images.globs import matches
from environments.images.wanted_python import CI_FILES

OLDEST = 8
"""The oldest major version that our reporters run on."""
NEWEST = 26
MAJORS = range(OLDEST, NEWEST + 1)

VERSION_FILES = (".nvmrc", ".node-version")
SAYS = (*CI_FILES, *VERSION_FILES)
"""Globs of the files beside ``package.json`` that name a version."""

_LTS = {"carbon": 8, "dubnium": 10, "erbium": 12, "fermium": 14, "gallium": 16, "hydrogen": 18, "iron": 20, "jod": 22}
"""Names of long-term releases: https://github.com/nodejs/Release"""

# Files are hostile: every repetition is bounded, and so is what is read of a file.
_MOST = 200_000
_CI = re.compile(
    r"(?m)^[ \t-]{0,40}['\"]?(?:node|node[-_]version|node_js|nodejs|NODE_VERSION)s?['\"]?[ \t]*[:=][^\n]{0,300}"
    r"(?:\n[ \t]{0,40}- ['\"]?v?\d{1,2}\b[^\n]{0,40}){0,20}"
)
_CI_NUMBER = re.compile(r"(?<![\w.$#@])v?(\d{1,2})(?:\.(?:\d{1,3}|x|\*)){0,2}(?![\w.])")
_COMPARATOR = re.compile(r"(>=|<=|>|<|\^|~>?|=)?\s*v?(\d{1,4}|[xX*])((?:\.(?:\d{1,9}|[xX*])){0,2})[^\s|]{0,60}")
_HYPHEN = re.compile(r"v?(\d{1,4})[\d.xX*]{0,20}\s+-\s+v?(\d{1,4})[\d.xX*]{0,20}")
_ZEROS = re.compile(r"(?:\.0){1,2}")


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """A major version of Node, and what it was chosen by."""

    major: int
    by: str
    against: str = ""
    """What ``engines`` asks for, where the version is not among that."""


def newest_node(day: datetime) -> int:
    """The newest long-term release of a day; one begins each October: https://github.com/nodejs/Release"""
    return min(max(2 * (day.year - (2013 if day.month >= 11 else 2014)), OLDEST), NEWEST)


def majors_of(text: str) -> frozenset[int]:
    """The major versions of which some release is in a range as npm writes them; all where none can be read:
    https://github.com/npm/node-semver#ranges"""
    found: set[int] = set()
    for part in text[:400].split("||"):
        hyphen = _HYPHEN.search(part)
        if hyphen:
            found |= {it for it in MAJORS if int(hyphen[1]) <= it <= int(hyphen[2])}
            continue
        rules = _COMPARATOR.findall(part)
        if rules:
            found |= {it for it in MAJORS if all(_meets(it, *rule) for rule in rules)}
        elif not part.strip():
            found |= set(MAJORS)
    return frozenset(found or MAJORS)


def _meets(major: int, sign: str, number: str, rest: str) -> bool:
    if not number.isdigit():
        return True
    asked = int(number)
    below = major < asked
    return {
        ">=": not below,
        ">": major > asked or (major == asked and bool(rest)),
        "<": below or (major == asked and bool(rest) and not _ZEROS.fullmatch(rest)),
        "<=": major <= asked,
    }.get(sign, major == asked)


def choose_node(texts: Mapping[str, str], day: datetime) -> NodeChoice:
    """The Node for a project with these files (path to text), of a day on which its work landed.

    A version that is pinned comes first, then those on which CI runs the tests, then what ``engines`` allows; of
    several the newest long-term one that the day knew, or else the oldest.
    """
    package = package_table(texts.get("package.json", ""))
    engines = _text(_table(package.get("engines")).get("node"))
    allowed = majors_of(engines)
    for source, version in _pins(texts, package):
        pinned = _pinned(version)
        if pinned is not None:
            return NodeChoice(pinned, source, "" if pinned in allowed else f"engines ({engines[:60]})")
    newest = newest_node(day)
    of_ci = frozenset(_of_ci(texts)) & allowed
    if of_ci:
        return NodeChoice(_of_the_day(of_ci, newest), "CI files")
    return NodeChoice(_of_the_day(allowed, newest), "engines" if engines else "the day")


def package_table(text: str) -> dict[str, Any]:
    """A ``package.json`` as a table; an empty one where it is none."""
    with suppress(ValueError, RecursionError):
        return _table(json.loads(text))
    return {}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _pins(texts: Mapping[str, str], package: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path in VERSION_FILES:
        yield path, texts.get(path, "").strip()[:100]
    yield "volta", _text(_table(package.get("volta")).get("node"))[:100]


def _pinned(version: str) -> int | None:
    name = version.removeprefix("lts/").lower()
    if name in _LTS:
        return _LTS[name]
    found = re.match(r"v?(\d{1,2})(?![\d])", version)
    return int(found[1]) if found and int(found[1]) in MAJORS else None


def _of_ci(texts: Mapping[str, str]) -> Iterator[int]:
    for path, text in sorted(texts.items()):
        if matches(path, CI_FILES):
            for line in _CI.findall(text[:_MOST]):
                yield from (int(number) for number in _CI_NUMBER.findall(line) if int(number) in MAJORS)


def _of_the_day(majors: frozenset[int], newest: int) -> int:
    known = [it for it in majors if it <= newest]
    long_term = [it for it in known if not it % 2]
    return max(long_term or known, default=min(majors))
