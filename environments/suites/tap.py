"""Files of tests that print TAP (testanything.org, versions 13 and 14), each in a process of its own.

Such a report is what `parent_reporter` signs of one file: a JSON object with ``file``, ``exit`` (the exit code of its
process), ``late`` (it was ended, for nothing was said for too long) and ``text``, what it printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from environments.suites.javascript import id_of
from environments.suites.testlogs import Status, failures, join

_STEP = 4
"""Blanks by which a subtest stands further in."""
_POINT = re.compile(
    r"( *)(not )?ok (\d{1,9})(?: -)?(?: (.*?))?( # (?:skip|todo)\b.*)?(?: # time=[\d.]+m?s)?( \{)?", re.I
)
_PLAN = re.compile(r"( *)1\.\.(\d{1,9})(?: #.*)?")
_TITLE = re.compile(r"# (?!Subtest: )(?:(?:SKIP|TODO) )?(\S.*)")


@dataclass(frozen=True, slots=True)
class _Line:
    """A point or a plan of a report, or the title above a group of points."""

    depth: int
    kind: str
    text: str = ""
    number: int = 0
    status: Status = Status.passed


def parse_subtests(log: str) -> dict[str, Status]:
    """The tests of one file whose tests are points that hold others, as node-tap's and ava's: an id is the file and the
    titles. Assertions in a test are no tests; those beside all tests are.

    Without its plan, or with other points than that says, the report was cut off or somebody else wrote in it: no test
    passed. Nor did one of a process that failed without a failed test.
    """
    return _parse(log, titled=False)


def parse_titled(log: str) -> dict[str, Status]:
    """The same where a test is a title and the points behind it, as tape's."""
    return _parse(log, titled=True)


def _parse(log: str, *, titled: bool) -> dict[str, Status]:
    report: object = None
    with suppress(ValueError, RecursionError):
        report = json.loads(log)
    if not isinstance(report, dict) or not isinstance(path := report.get("file"), str):
        return {}
    lines = list(_lines(str(report.get("text"))))
    tests = join((id_of(path, titles), status) for titles, status in (_grouped if titled else _held)(lines))
    said_nothing = report.get("exit") != 0 and not failures(tests)
    if said_nothing or not _is_whole(lines):
        tests = {test: Status.error if status is Status.passed else status for test, status in tests.items()}
    if report.get("late"):
        tests[id_of(path, [])] = Status.timed_out
    elif said_nothing and not failures(tests):
        tests[id_of(path, [])] = Status.error
    return tests


def _lines(text: str) -> Iterator[_Line]:
    """What is no diagnosis (YAML between ``---`` and ``...``) and nothing that a test printed."""
    inside = ""
    for line in text.splitlines():
        if inside:
            inside = "" if line == inside else inside
        elif line.strip() == "---" and line[:1] == " ":
            inside = line.replace("---", "...")
        elif point := _POINT.fullmatch(line.rstrip()):
            status = Status.skipped if point[5] else Status.failed if point[2] else Status.passed
            yield _Line(len(point[1]) // _STEP, "point", (point[4] or "").strip(), int(point[3]), status)
        elif plan := _PLAN.fullmatch(line.rstrip()):
            yield _Line(len(plan[1]) // _STEP, "plan", number=int(plan[2]))
        elif title := _TITLE.fullmatch(line.rstrip()):
            yield _Line(0, "title", title[1])


def _is_whole(lines: Sequence[_Line]) -> bool:
    plans = [line.number for line in lines if line.kind == "plan" and not line.depth]
    numbers = [line.number for line in lines if line.kind == "point" and not line.depth]
    return plans == [len(numbers)] and numbers == list(range(1, len(numbers) + 1))


def _held(lines: Sequence[_Line]) -> Iterator[tuple[list[str], Status]]:
    """One that holds tests is none, but where it fails by itself."""
    inside: dict[int, list[tuple[list[str], Status]]] = {}
    """By depth, the tests of those that have not ended."""
    seen: set[int] = set()
    for line in lines:
        if line.kind == "title":
            continue
        deeper = [depth for depth in seen if depth > line.depth]
        seen.add(line.depth)
        if line.kind == "plan":
            continue
        held = [test for depth in sorted(deeper) for test in inside.pop(depth, [])]
        seen.difference_update(deeper)
        tests = [([line.text, *titles], status) for titles, status in held]
        fails_alone = line.status is Status.failed and all(it not in _FAILED for _, it in held)
        if (deeper or not line.depth) and line.text and (not held or fails_alone):
            tests.append(([line.text], line.status))
        inside.setdefault(line.depth, []).extend(tests)
    yield from (test for tests in inside.values() for test in tests)


_FAILED = frozenset({Status.failed, Status.error})


def _grouped(lines: Sequence[_Line]) -> Iterator[tuple[list[str], Status]]:
    title = ""
    for line in lines:
        if line.kind == "title":
            title = line.text
        elif line.kind == "point" and not line.depth and (title or line.text):
            yield [title or line.text], line.status
