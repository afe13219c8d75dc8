"""What pytest and unittest print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from environments.suites.testlogs.values import Status, join

_TERMINAL = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
_WORDS = {
    "PASSED": Status.passed, "FAILED": Status.failed, "ERROR": Status.error, "SKIPPED": Status.skipped,
    "XFAIL": Status.xfail, "XPASS": Status.xpass,
}  # fmt: skip
_WORD = "|".join(_WORDS) + r"|SUBFAILED(?:\[.*?\]|\(.*?\))*"
"""pytest 9 reports a failed subtest beside its test, which it calls passed."""
_VERBOSE = re.compile(rf"(?P<test>\S+?::.*) (?P<word>{_WORD})(?: \(.*\))? +\[ *\d+%\]")
_WORKER = re.compile(rf"\[gw\d+\] \[ *\d+%\] (?P<word>{_WORD}) (?P<test>\S.*?) *")
_SUMMARY = re.compile(r"=+ short test summary info =+")
_SUMMARY_LINE = re.compile(rf"(?P<word>{_WORD}) (?P<test>\S.*)")
_SUMMARY_END = re.compile(r"=+ .*\bin [\d.]+s.* =+")


def parse_pytest(log: str) -> dict[str, Status]:
    """The tests of ``pytest -rA`` or ``pytest -v``, xdist's lines too.

    The output of a test can hold such lines as well; only what stands behind the last heading of the summary is read
    as summary, and a test of two words has the worse one. ``SKIPPED [1] path:7: why`` names no test and is left out.
    Ids end before `` - message``; one with `` - `` in its brackets is kept whole.
    """
    return join(_pytest(_TERMINAL.sub("", log).splitlines()))


def _pytest(lines: list[str]) -> Iterator[tuple[str, Status]]:
    heading = max((n for n, line in enumerate(lines) if _SUMMARY.fullmatch(line)), default=len(lines))
    for line in lines[:heading]:
        if found := _VERBOSE.fullmatch(line) or _WORKER.fullmatch(line):
            yield found["test"], _status(found["word"])
    for line in lines[heading + 1 :]:
        if _SUMMARY_END.fullmatch(line):
            return
        found = _SUMMARY_LINE.fullmatch(line)
        if found and not (found["word"] == "SKIPPED" and re.match(r"\[\d+\] ", found["test"])):
            yield _without_message(found["test"]), _status(found["word"])


def _status(word: str) -> Status:
    return _WORDS.get(word, Status.failed)


def _without_message(text: str) -> str:
    for cut in re.finditer(" - ", text):
        test = text[: cut.start()]
        if test.count("[") <= test.count("]"):
            return test
    return text


_UNITTEST = re.compile(
    r"(?P<method>[^\s()]+) \((?P<place>[^\s()]+)\)(?: [(\[][^\n]*[)\]])?(?:\n.*?)?? \.\.\. "
    r"(?:.*?)(?P<word>ok|FAIL|ERROR|skipped(?: .*)?|expected failure|unexpected success)",
    re.S,
)
_UNITTEST_START = re.compile(r"^(?:  )?[^\s()]+ \([^\s()]+\)", re.M)
_UNITTEST_WORDS = {
    "ok": Status.passed, "FAIL": Status.failed, "ERROR": Status.error, "expected failure": Status.xfail,
    "unexpected success": Status.xpass,
}  # fmt: skip
_UNITTEST_HEADING = re.compile(r"^=+\n(?P<word>ERROR|FAIL): (?P<method>[^\s()]+) \((?P<place>[^\s()]+)\)", re.M)


def parse_unittest(log: str) -> dict[str, Status]:
    """The tests of ``python -m unittest -v``, by their dotted ids (``tests.test_a.Case.test_b``).

    Python 3.11 and newer print the whole id in the brackets, older ones the class alone; a docstring takes a second
    line. What a test prints may stand between ``...`` and its word.
    """
    log = log.replace("\r\n", "\n")
    body = log.partition("\n" + "=" * 70)[0]
    starts = [found.start() for found in _UNITTEST_START.finditer(body)]
    reports = []
    for start, end in pairwise([*starts, len(body)]):
        if found := _UNITTEST.fullmatch(body[start:end].partition("\n" + "-" * 70)[0].strip()):
            word = found["word"].split(" '")[0]
            status = Status.skipped if word.startswith("skipped") else _UNITTEST_WORDS[word]
            reports.append((_dotted(found["method"], found["place"]), status))
    for found in _UNITTEST_HEADING.finditer(log):
        reports.append((_dotted(found["method"], found["place"]), _UNITTEST_WORDS[found["word"]]))
    return join(reports)


def _dotted(method: str, place: str) -> str:
    return place if place.endswith(f".{method}") else f"{place}.{method}"
