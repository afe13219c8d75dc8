"""What one binary of Rust's test harness prints (libtest, and what prints as it does), held against its own counts.

The harness prints ``running 5 tests`` before the first test, a line for each (``test name ... ok``), the names of those
that failed and its result with the counts. What tests write to the standard output themselves can stand anywhere
between, for the harness writes a line in three pieces: before ``test``, between name and word, over several lines
(libtest of Rust 1.95 with one thread and with several; what ``println!`` prints is kept back).

The counts decide what is a result. Lines are read in three ways, the widest first, and a way that gives as many tests
as the harness counted, with the same results, is right: all that the harness wrote is among them. Where none does, but
nothing is there too often and every failure has its name, the tests that can be read count, and one whose word cannot
be told is an error. In a binary without a result, or where something is there too often, nothing passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from environments.suites.testlogs.values import Status

_DECLARED = re.compile(r"running (\d+) tests?")
_RESULT = re.compile(
    r"test result: (?P<word>ok|FAILED)\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<ignored>\d+) ignored;"
    r"(?: (?P<measured>\d+) measured;)?.*"
)
_ANYWHERE = re.compile(r"test (?P<test>\S+)(?: - should panic)? \.\.\.(?: |$)")
"""Of a test that is a function: its name has no blank."""
_LINE = re.compile(r"test (?P<test>\S.*?)(?: - should panic)? \.\.\. ?(?P<rest>.*)")
_PATH = re.compile(r"(?:r#)?[^\W\d]\w*(?:::(?:r#)?[^\W\d]\w*)*")
_LONG = re.compile(r"test (?P<test>\S+) has been running for over \d+ seconds")
_LONG_LINE = re.compile(r"test (?P<test>\S.*?) has been running for over \d+ seconds")
_IGNORED = re.compile(r"ignored(?:, .*)?")
_MAY_BE_IGNORED = re.compile(r"ignored(?:, .*)?$")
_TIME = re.compile(r" <[\d.]+s>$")
_SECTIONS = {"failures:", "successes:"}
_CAPTURED = re.compile(r"---- .+ ----")


@dataclass(frozen=True, slots=True)
class _Tally:
    """The harness's result, and the names that it lists before; None where it lists none though tests failed."""

    passed: int
    failed: int
    ignored: int
    tests: int
    failing: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _TestRecord:
    """A place where a test is named. `words` are the results that end its line (`own`) and the lines behind, up to the
    next record."""

    test: str
    begins_line: bool
    own: Status | None
    behind: frozenset[Status]

    @property
    def words(self) -> frozenset[Status]:
        return self.behind | ({self.own} if self.own else frozenset())


def read_binary(lines: Sequence[str]) -> list[tuple[str, Status]]:
    """The tests of a binary by the lines that it printed, each name once where it can be believed."""
    results = [number for number, line in enumerate(lines) if _RESULT.fullmatch(line)]
    if not results:
        records = list(_records(lines))
        names = {record.test for record in records}
        return [*_doubted(records), *((test, Status.error) for test in _long(lines) if test not in names)]
    end = results[-1]
    tally, declared = _tally(lines, end), _declared(lines)
    if tally is None or declared not in {None, tally.tests}:
        return _doubted(_records(lines[:end]))
    start = _section(lines, end, tally.tests)
    records = list(_records(lines[:start]))
    if any(number < start for number in results[:-1]):
        return _doubted(records)
    # What failing tests printed may name others; a worse word of one still counts.
    late = {record.test for record in _records(lines[start:]) if record.own is Status.failed}
    ways = (
        [record for record in records if _PATH.fullmatch(record.test)],
        records,
        [record for record in records if record.begins_line],
    )
    readings = [reading for way in ways if (reading := _reading(way, tally)) is not None]
    for statuses in (*(it for it in readings if _is_whole(it, tally)), *readings):
        return [
            (test, Status.error if status is Status.passed and test in late else status)
            for test, status in statuses.items()
        ]
    return _doubted(records)


def _doubted(records: Iterable[_TestRecord]) -> list[tuple[str, Status]]:
    """The tests where nothing can be believed that is good."""
    return [
        (record.test, record.own if record.own in {Status.failed, Status.skipped} else Status.error)
        for record in records
    ]


def _reading(records: Sequence[_TestRecord], tally: _Tally) -> dict[str, Status] | None:
    """The statuses of tests by these records; None where they contradict the counts."""
    statuses = {record.test: _status(record, tally.failing) for record in records}
    if len(statuses) < len(records) or None in statuses.values():
        return None
    found: dict[str, Status] = {test: status for test, status in statuses.items() if status is not None}
    found |= {test: Status.failed for test in tally.failing or () if test not in found}
    if len(found) > tally.tests or _count(found, Status.failed) != tally.failed:
        return None
    if _count(found, Status.passed) > tally.passed or _count(found, Status.skipped) > tally.ignored:
        return None
    return found


def _is_whole(statuses: dict[str, Status], tally: _Tally) -> bool:
    passed, ignored = _count(statuses, Status.passed), _count(statuses, Status.skipped)
    return (len(statuses), passed, ignored) == (tally.tests, tally.passed, tally.ignored)


def _count(statuses: dict[str, Status], kind: Status) -> int:
    return sum(status is kind for status in statuses.values())


def _status(record: _TestRecord, failing: frozenset[str] | None) -> Status | None:
    """What became of a test; `failing` are all that failed, where that is known. None for a contradiction."""
    words = record.words
    if failing is None:
        return next(iter(words)) if len(words) == 1 else Status.error
    if record.test in failing:
        return Status.failed
    if record.own is Status.skipped:
        return Status.skipped
    if Status.passed in words:
        return Status.passed
    if record.own is Status.failed:
        return None
    return Status.skipped if Status.skipped in words else Status.error


def _places(lines: Sequence[str]) -> Iterator[tuple[int, str, bool, str | None]]:
    """Where tests are named, in order: the line's number, the name, whether it begins the line, and what ends it."""
    for number, line in enumerate(lines):
        found = list(_ANYWHERE.finditer(line))
        if not found and (whole := _LINE.fullmatch(line)):
            yield number, whole["test"], True, whole["rest"]
        for at, one in enumerate(found, 1):
            yield number, one["test"], one.start() == 0, line[one.end() :] if at == len(found) else None


def _records(lines: Sequence[str]) -> Iterator[_TestRecord]:
    """The places where tests are named, with the results behind."""
    places = list(_places(lines))
    ends = [*(number for number, *_ in places[1:]), len(lines)]
    for (number, test, begins_line, rest), end in zip(places, ends, strict=False):
        behind = {word for line in lines[number + 1 : end] if (word := _word(line))}
        if rest and _MAY_BE_IGNORED.search(rest):
            behind.add(Status.skipped)
        yield _TestRecord(test, begins_line, _word(rest) if rest else None, frozenset(behind))


def _word(text: str) -> Status | None:
    """The result that ends a text."""
    if _IGNORED.fullmatch(text):
        return Status.skipped
    text = _TIME.sub("", text)
    return Status.passed if text.endswith("ok") else Status.failed if text.endswith("FAILED") else None


def _long(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if found := _LONG.search(line) or _LONG_LINE.fullmatch(line):
            yield found["test"]


def _declared(lines: Sequence[str]) -> int | None:
    """How many tests the harness said it runs, before any of them could say something."""
    found = next(filter(None, map(_DECLARED.fullmatch, lines)), None)
    return int(found[1]) if found else None


def _tally(lines: Sequence[str], end: int) -> _Tally | None:
    """The result in this line; None where it contradicts itself."""
    found = _RESULT.fullmatch(lines[end])
    assert found is not None
    passed, failed, ignored = (int(found[name]) for name in ("passed", "failed", "ignored"))
    if (found["word"] == "ok") is not (failed == 0):
        return None
    names = _failing(lines[:end]) if failed else frozenset[str]()
    tests = passed + failed + ignored + int(found["measured"] or 0)
    return _Tally(passed, failed, ignored, tests, names if len(names) == failed else None)


def _failing(lines: Sequence[str]) -> frozenset[str]:
    """The names in the list that ends these lines."""
    names: list[str] = []
    for line in reversed(lines):
        if line == "failures:":
            return frozenset(names)
        if line.startswith("    "):
            names.append(line[4:])
        elif line:
            break
    return frozenset()


def _section(lines: Sequence[str], end: int, tests: int) -> int:
    """Where the harness begins to show what tests printed. A test can print such a heading too: it is the first behind
    as many tests as there are, else one that output follows."""
    headings = [number for number, line in enumerate(lines[:end]) if line in _SECTIONS]
    places = list(_places(lines[:end]))
    names: set[str] = set()
    at = 0
    for heading in headings:
        while at < len(places) and places[at][0] < heading:
            names.add(places[at][1])
            at += 1
        if len(names) >= tests:
            return heading
    shown = (it for it in headings if it + 2 < end and not lines[it + 1] and _CAPTURED.fullmatch(lines[it + 2]))
    return next(shown, end)
