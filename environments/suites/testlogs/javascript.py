"""The JSON reports of jest, vitest and mocha.

A test's id is its file (from the working directory of the run, which is the tree's root), the titles of its describe
blocks and its own, joined by `` > ``.
"""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from environments.suites.testlogs.values import Status, join

_JEST = {
    "passed": Status.passed, "failed": Status.failed, "pending": Status.skipped, "skipped": Status.skipped,
    "todo": Status.skipped, "disabled": Status.skipped,
}  # fmt: skip
ROOT = "/testbed"
"""Where the tree lies in a sandbox; reports name files by absolute paths."""


def parse_jest(log: str) -> dict[str, Status]:
    """The tests of ``jest --json``; a file that could not run has its path as id and is an error.

    The report may have the runner's other output around it; raises nothing for a broken one, it has no tests then.
    """
    return join(_jest(_document(log, "testResults")))


def parse_vitest(log: str) -> dict[str, Status]:
    """The tests of ``vitest run --reporter=json``, which has the shape of jest's."""
    return parse_jest(log)


def _jest(report: dict[str, Any]) -> Iterator[tuple[str, Status]]:
    for file in report.get("testResults", ()):
        path, tests = file.get("name", ""), file.get("assertionResults", ())
        for test in tests:
            yield test_id(path, [*test["ancestorTitles"], test["title"]]), _JEST.get(test["status"], Status.collected)
        if not tests and file.get("status") == "failed":
            yield test_id(path, []), Status.error


def parse_mocha(log: str) -> dict[str, Status]:
    """The tests of ``mocha --reporter json``.

    The report knows describe blocks only as part of the full title, so ids are the file and the full title. A failed
    hook stands under its own name.
    """
    return join(_mocha(_document(log, "stats")))


def _mocha(report: dict[str, Any]) -> Iterator[tuple[str, Status]]:
    ended = {"passes": Status.passed, "failures": Status.failed, "pending": Status.skipped}
    for test in report.get("tests", ()):
        yield test_id(test.get("file") or "", [test["fullTitle"]]), Status.collected
    for group, status in ended.items():
        for test in report.get(group, ()):
            yield test_id(test.get("file") or "", [test["fullTitle"]]), status


def test_id(path: str, titles: list[str]) -> str:
    """The id of a test in a file; `path` may be absolute."""
    shown = os.path.relpath(path, ROOT) if path.startswith(f"{ROOT}/") else path
    return " > ".join(part for part in (shown, *titles) if part)


test_id.__test__ = False  # type: ignore[attr-defined]  # pytest takes the name for a test's where it is imported


_OBJECT = re.compile(r"^\{", re.M)
_TRIES = 1000


def _document(log: str, key: str) -> dict[str, Any]:
    """The last JSON object of a log that has this key and begins a line; what tests print stands before the report."""
    decoder, found, end = json.JSONDecoder(), {}, 0
    for begun in islice(_OBJECT.finditer(log), _TRIES):
        if begun.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(log, begun.start())
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict) and key in value:
            found = value
    return found
