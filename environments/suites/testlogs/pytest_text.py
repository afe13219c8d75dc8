"""What pytest prints of its tests: ``pytest -rA`` and ``pytest -v``, with xdist's lines, and with ``-s``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from environments.suites.testlogs.values import Status, join, uncoloured

_WORDS = {
    "PASSED": Status.passed,
    "FAILED": Status.failed,
    "ERROR": Status.error,
    "SKIPPED": Status.skipped,
    "XFAIL": Status.xfail,
    "XPASS": Status.xpass,
}
_WORD = rf"(?:(?<!SUB)(?:{'|'.join(_WORDS)})|SUBFAIL(?:ED)?(?: ?\[.*?\]| ?\(.*?\))*)"
"""pytest 9, and pytest-subtests before it, report a failed subtest beside its test, which they may call passed. Other
subtests (``SUBPASSED``, ``SUBSKIPPED``) are no results: those of their tests follow."""
_BEGINS = re.compile(r"[^\s:]+\.\w+::\S")
"""An id begins with the path of a file."""
_FUNCTION = re.compile(r"[^\s:]\S*?\.py::[^\s\[]+(?:\[.*?\](?= |$))?")
"""An id of Python's: only between brackets it has blanks."""
_ENDS_LINE = re.compile(rf"(?P<word>{_WORD})(?: \(.*\))?(?: +\[ *\d+%\])? *$")
_SOMEWHERE = re.compile(_WORD)
_WORKER = re.compile(rf"\[gw\d+\] \[ *\d+%\] (?P<word>{_WORD}) (?P<test>\S.*?) *$")
"""What stands before it was printed, and had no end."""
_SECTION = re.compile(r"=+ (?:FAILURES|ERRORS|X?PASSES|warnings summary.*|short test summary info) =+")
_SUMMARY = re.compile(r"=+ short test summary info =+")
_SUMMARY_LINE = re.compile(rf"(?P<word>{_WORD}) (?P<test>\S.*)")
_RESULT = re.compile(
    r"(?P<counts>(?:\d+ (?:subtests )?[a-z]+(?:, )?)+|no tests ran) in [\d.]+s(?: \([^()]*\))?(?: =+)?$"
)
_LONGEST = 400
"""Characters of a line's end in which the result stands."""


def parse_pytest(log: str) -> dict[str, Status]:
    """The tests of ``pytest -rA`` or ``pytest -v``, xdist's lines too.

    The output of a test can hold such lines as well. Before the first section a test has the last word that ends a line
    before the next test is named (with ``-s`` what it prints stands there); one without a word is an error. Of the
    summary only what stands behind its last heading is read, and a test of two words has the worse one. ``SKIPPED [1]
    path:7: why`` names no test and is left out. Ids end before `` - message``; one with `` - `` in its brackets is kept
    whole. Nothing passed in a run without its result (``3 passed in 0.1s``), or where more tests passed than it says.
    """
    lines = uncoloured(log).splitlines()
    open_ids: list[str] = []
    statuses = join([*_verbose(lines, open_ids), *_summary(lines)])
    statuses = {**dict.fromkeys(open_ids, Status.error), **statuses}
    if sum(status is Status.passed for status in statuses.values()) <= _passed(lines):
        return statuses
    return {test: Status.error if status is Status.passed else status for test, status in statuses.items()}


def _verbose(lines: Sequence[str], open_ids: list[str]) -> Iterator[tuple[str, Status]]:
    """What stands before the first section; tests without a word are added to `open_ids`."""
    test, texts = "", list[str]()
    for line in [*lines, "=== FAILURES ==="]:
        worker = _WORKER.search(line)
        is_end = _SECTION.fullmatch(line) is not None
        named = None if worker or is_end else _named(line)
        if test and (worker or is_end or named):
            if word := _last_word(texts):
                yield test, _status(word)
            else:
                open_ids.append(test)
            test = ""
        if worker:
            yield worker["test"], _status(worker["word"])
        elif is_end:
            return
        elif named:
            test, texts = named[0], [named[1]]
        elif test:
            texts.append(line)


def _named(line: str) -> tuple[str, str] | None:
    """The test that a line begins with, and what follows."""
    if not _BEGINS.match(line):
        return None
    ended = _ENDS_LINE.search(line[-_LONGEST:])
    whole = line[: len(line) - len(ended[0])] if ended else line
    test = whole.removesuffix(" ") if whole.endswith(" ") else ""
    function = _FUNCTION.match(line)
    if function and not (test and _is_function(test)):
        test = function[0]
    return (test, line[len(test) :]) if test else None


def _is_function(test: str) -> bool:
    """Whether a text is an id of Python's as a whole."""
    path, _, name = test.partition(".py::")
    return " " not in path and (" " not in name or (name.endswith("]") and " " not in name.partition("[")[0]))


def _last_word(texts: Sequence[str]) -> str | None:
    for text in reversed(texts):
        if found := _ENDS_LINE.search(text[-_LONGEST:]):
            return found["word"]
    words = [found[0] for text in texts for found in _SOMEWHERE.finditer(text)]
    return words[-1] if words else None


def _summary(lines: Sequence[str]) -> Iterator[tuple[str, Status]]:
    heading = max((n for n, line in enumerate(lines) if _SUMMARY.fullmatch(line)), default=len(lines))
    for line in lines[heading + 1 :]:
        if _RESULT.search(line[-_LONGEST:]):
            return
        found = _SUMMARY_LINE.fullmatch(line)
        if found and not (found["word"] == "SKIPPED" and re.match(r"\[\d+\] ", found["test"])):
            yield _without_message(found["test"]), _status(found["word"])


def _passed(lines: Sequence[str]) -> int:
    """How many tests passed by the last result; -1 without one."""
    for line in reversed(lines):
        if found := _RESULT.search(line[-_LONGEST:]):
            passed = re.search(r"(\d+) passed", found["counts"])
            return int(passed[1]) if passed else 0
    return -1


def _status(word: str) -> Status:
    return _WORDS.get(word, Status.failed)


def _without_message(text: str) -> str:
    for cut in re.finditer(" - ", text):
        test = text[: cut.start()]
        if test.count("[") <= test.count("]"):
            return test
    return text
