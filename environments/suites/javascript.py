"""What the runners on Node have in common: ids of tests, JSON reports, and the files that steer them.

A test's id is its file (from the working directory of the run, which is the tree's root), the titles of its describe
blocks and its own, joined by `` > ``.
"""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterator
from typing import Any

from environments.suites.projectfiles import Part
from environments.suites.runner import ManifestMarker, file_before
from environments.suites.testlogs import Status, join

ROOT = "/testbed"
"""Where the tree lies in a sandbox; reports name files by absolute paths."""

REFUSED = r"\\"
"""Node names files in UTF-8 alone, and takes a backslash in the address of a module for a separator: mocha 10.8 and
vitest 2.1 end where a file has either in its name. Other patterns stay names: all are given as paths, which come before
patterns (jest 29.7, mocha 10.8), or are parts of paths (vitest 2.1)."""

STEERING = (
    r"\.?nycrc(?:\.\w+)?",
    r"node_modules/(?s:.*)",
    r"\.npmrc",
    r"\.swcrc",
    r"\.?postcss(?:rc|\.config)(?:\.\w+)?",
    r"\.pnp\.\w+",
)
PROJECT_FILES = (
    r"package\.json",
    r"babel\.config\.\w+",
    r"\.babelrc(?:\.\w+)?",
    r"tsconfig[^/]*\.json",
)
_ENDED = {
    "passed": Status.passed,
    "failed": Status.failed,
    "pending": Status.skipped,
    "skipped": Status.skipped,
    "todo": Status.skipped,
    "disabled": Status.skipped,
}
_OBJECT = re.compile(r"^\{", re.M)
_INNER_OBJECT = re.compile(r'(?<=[^\n])\{(?=\s*")')
_READ_IN_VAIN = 1 << 31
"""Characters read for what looks like an object and is none, all together: about two seconds. For each, Python counts
the lines from the beginning of the log."""
_ODD = 1 << 20
"""As many count for one that is too deep, or has a number that is too long."""

file_of = file_before(" > ")
"""The file of a test, by its id."""


def id_of(path: str, titles: list[str]) -> str:
    """The id of a test in a file; `path` may be absolute."""
    relative = os.path.relpath(path, ROOT) if path.startswith(f"{ROOT}/") else path
    return " > ".join(part for part in (relative, *titles) if part)


def package_sections(runner: str) -> dict[str, tuple[Part, ...]]:
    """The parts of a ``package.json`` that steer a runner: its own section, and what decides how any code is run."""
    return {"package.json": (("scripts",), ("type",), ("babel",), (runner,))}


def package_sign(runner: str, rank: int) -> ManifestMarker:
    """A ``package.json`` that names the runner, as a dependency or in a section of its own."""
    return ManifestMarker("javascript", "package.json", f'"{runner}"', rank)


def results(log: str) -> dict[str, Status]:
    """The tests of a report in jest's shape; a file that could not run has its path as id and is an error.

    The report may have the runner's other output around it; raises nothing for a broken one, it has no tests then.
    """
    return join((test, status) for test, status in _results(document(log, "testResults")) if test)


def _results(report: dict[str, Any]) -> Iterator[tuple[str, Status]]:
    for file in objects(report.get("testResults")):
        path, tests = text(file.get("name")), objects(file.get("assertionResults"))
        for test in tests:
            above = test.get("ancestorTitles")
            titles = [text(title) for title in (*(above if isinstance(above, list) else ()), test.get("title"))]
            yield id_of(path, titles), _ENDED.get(text(test.get("status")), Status.collected)
        if not tests and file.get("status") == "failed":
            yield id_of(path, []), Status.error


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list in a report; what a test has printed can look like a report and be anything."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text in a report; empty for anything else."""
    return value if isinstance(value, str) else ""


def document(log: str, key: str) -> dict[str, Any]:
    """The last JSON object of a log that has this key; what tests print stands before the report, also on its line.

    Objects that begin a line are looked at first, then those behind the last of these.
    """
    found, end = _last_object(log, key, _OBJECT, 0)
    return _last_object(log, key, _INNER_OBJECT, end)[0] or found


def _last_object(log: str, key: str, begins: re.Pattern[str], start: int) -> tuple[dict[str, Any], int]:
    """The last object from a place on, and where it ends."""
    decoder, found, end, last, in_vain = json.JSONDecoder(), {}, start, start, 0
    for match in begins.finditer(log, start):
        if in_vain > _READ_IN_VAIN:
            break
        if match.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(log, match.start())
        except json.JSONDecodeError as error:
            in_vain += error.pos
            continue
        except (ValueError, RecursionError):
            in_vain += _ODD
            continue
        if isinstance(value, dict) and key in value:
            found, last = value, end
    return found, last
