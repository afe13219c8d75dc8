"""Which Python a project of some day wants: what its files name, and what was there on the day."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

Minor = tuple[int, int]

OLDEST: Minor = (3, 6)
"""The oldest Python that our reporters run on."""
_NEWEST = 20
"""Minor version of a Python that is not there yet."""

# Files are hostile: every repetition is bounded, and so is what is read of a file.
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d{1,2})\b")
_TOX = re.compile(r"\bpy(?:thon)?(3\d{1,2})\b|\bpy\{([^{}\n]{0,200})\}")
_TOX_NUMBER = re.compile(r"(?<!\d)3\d{1,2}(?!\d)")
_VERSION = re.compile(r"(?<![\d.])(3\.\d{1,2})(?![\d])")
_CI = re.compile(
    r"(?m)^[ \t-]{0,40}(?:python|python-version|python_version|version|PYTHON|py)s?\b[^\n]{0,400}"
    r"|^[ \t]{0,40}- ['\"]?3\.\d{1,2}\b[^\n]{0,40}"
)

_MOST_TOLD = 12
"""Versions that are told of one file."""

_MOST = 200_000
"""Characters that are read of a file."""

CI_FILES = (
    ".travis.yml",
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
    "azure-pipelines.yml",
    ".azure-pipelines/*.yml",
    ".circleci/config.yml",
    "appveyor.yml",
)
"""Globs of the files that say on which Pythons a project is checked."""
SAYS = (*CI_FILES, ".python-version", "tox.ini")
"""Of the files that name Pythons those that may be no manifests."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A Python, and what it was chosen by."""

    minor: Minor
    by: str
    against: tuple[str, ...] = ()
    """What other files name, where it is not among that: ``tox.ini (3.6)``."""

    @property
    def text(self) -> str:
        """``3.8``."""
        return ".".join(map(str, self.minor))


def newest_at(day: datetime) -> Minor:
    """The newest Python that packages of a day know: they come every October (PEP 602), 3.7 in June 2018 and 3.8 in
    2019, and one needs half a year until most packages have wheels for it."""
    months = day.year * 12 + day.month
    if months < 2020 * 12 + 4:
        return (3, 7) if months >= 2018 * 12 + 12 else OLDEST
    return (3, (months - 16) // 12 - 2011)


def era_of(minor: Minor) -> datetime:
    """The first day on which packages know a Python: half a year after it came."""
    known = {(3, 6): (2017, 6), (3, 7): (2018, 12)}
    year, month = known.get(minor, (2012 + minor[1], 4))
    return datetime.fromisoformat(f"{year}-{month:02d}-01T00:00:00+00:00")


def named_pythons(texts: Mapping[str, str]) -> list[tuple[str, frozenset[Minor]]]:
    """What a tree's files (path to text) name, by source, the surest first; sources that name none are left out."""
    texts = {path: text[:_MOST] for path, text in texts.items()}
    packaging = "\n".join(texts.get(path, "") for path in ("pyproject.toml", "setup.cfg", "setup.py"))
    ci = [path for path in sorted(texts) if path.startswith(".") or "pipelines" in path or "appveyor" in path]
    lines = (line for path in ci if path != ".python-version" for line in _CI.findall(texts[path]))
    found = [
        ("classifiers", _CLASSIFIER.findall(packaging)),
        ("CI files", [version for line in lines for version in _VERSION.findall(line)]),
        (".python-version", _VERSION.findall(texts.get(".python-version", ""))),
        ("tox.ini", _of_tox(texts.get("tox.ini", ""))),
    ]
    named = [(source, frozenset((3, int(version.split(".")[1])) for version in versions)) for source, versions in found]
    return [(source, minors) for source, minors in named if minors]


def _of_tox(text: str) -> list[str]:
    found: list[str] = []
    for one, several in _TOX.findall(text):
        found += _TOX_NUMBER.findall(one or several)
    return [f"3.{number[1:]}" for number in found]


def choose_python(
    requires: str,
    named: Sequence[tuple[str, frozenset[Minor]]],
    day: datetime,
    offered: Collection[Minor],
    default: Minor,
) -> Choice | None:
    """The Python for a project, of those that are offered; None where none of them is one that it asks for.

    `requires` is its ``requires-python``; `default` the base image's own, which is taken wherever it fits what is named
    and the day. Else the newest that fits, up to what the day knew; where all that fit are newer, the oldest of them.
    """
    fitting = [minor for minor in sorted({*offered, default}) if _meets(minor, requires)]
    if not fitting:
        return None
    newest = max(newest_at(day), OLDEST)
    for source, minors in named:
        among = [minor for minor in fitting if minor in minors]
        if among:
            return _choice(_of_the_day(among, newest, default), source, named)
    return _choice(_of_the_day(fitting, newest, default), "requires-python" if requires else "the day", named)


def _choice(minor: Minor, by: str, named: Sequence[tuple[str, frozenset[Minor]]]) -> Choice:
    others = [(source, minors) for source, minors in named if minor not in minors]
    return Choice(minor, by, tuple(f"{source} ({_texts(minors)})" for source, minors in others))


def _texts(minors: Collection[Minor]) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in sorted(minors)[:_MOST_TOLD])


def can_come(requires: str) -> bool:
    """Whether some Python that tests can run on is one that a project asks for by its ``requires-python``."""
    return any(_meets((3, minor), requires) for minor in range(OLDEST[1], _NEWEST + 1))


def _of_the_day(fitting: Sequence[Minor], newest: Minor, default: Minor) -> Minor:
    if default in fitting and default <= newest:
        return default
    known = [minor for minor in fitting if minor <= newest]
    return max(known) if known else min(fitting)


def _meets(minor: Minor, requires: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415  loaded with the first plan

    try:
        # Of a minor version the newest patch is meant.
        return SpecifierSet(requires).contains(f"{minor[0]}.{minor[1]}.99") or SpecifierSet(requires).contains(
            f"{minor[0]}.{minor[1]}.0"
        )
    except InvalidSpecifier:
        return True
