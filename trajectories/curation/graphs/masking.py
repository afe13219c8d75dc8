"""What two runs of one command on one tree have in common: their output without times, addresses and temporary paths;
and where an excerpt that somebody claims to have seen stands in real output.

A mask covers what a run decides: when it ran and how long, where things lay in memory and below the folders for
temporary files. Counts, versions, line numbers and numbers without a unit are values, which stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

TIME: Final = "<time>"
ADDRESS: Final = "<address>"
TEMP: Final = "<temp>"
PID: Final = "<pid>"

LEFT_OUT = "[...]"
"""A line of a claim in place of any number of lines."""

_TERMINAL = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\))?")

# Text that forbids a mask beside it must still do so when it is masked itself: a second pass finds nothing more.
_FREE = r"(?<![\w.])(?<![\w.%>]-)"
"""Before a number that is part of neither a name nor a longer number."""
_NOT_MASKED = rf"(?<!{TIME})(?<!{ADDRESS})(?<!{TEMP})(?<!{PID})"

_TEMP = re.compile(
    rf"(?:(?<![\w./-]){_NOT_MASKED}|(?<=file://))(?:/private)?"
    r"(?:/(?:var/)?tmp/(?:pytest-of-[\w.-]+/pytest-(?:\d+|current)\b(?:/popen-gw\d+\b)?|[\w.-]*[\w-])"
    r"|/var/folders/[\w.-]+/[\w.-]+/[A-Z]\b(?:/[\w.-]*[\w-])?)"
    r"((?:/[\w.-]+)*)"
)
"""The folder or file that was made for one run, and the path below it, which stays: it names what the run wrote."""
_TEMP_BELOW = re.compile(r"(?<=/)tmp(?:[a-z0-9_]{8}(?=[./]|\Z)|\.[A-Za-z0-9]{6,12}(?=/|\Z))")
"""Names as Python's `tempfile` and `mktemp` make them."""

_ADDRESS = re.compile(r"(?<!\w)0x(?:0{0,7}[1-9A-Fa-f][0-9A-Fa-f]{8,11}|(?<=\bat 0x)[0-9A-Fa-f]{6,16})(?!\w)")
"""A pointer of a 64-bit process has nine to twelve digits; with fewer or more it is a value, unless `at` is before."""

_SECOND = r"[0-5]\d(?:[.,]\d+)?"
_ZONE = r"(?:Z| ?[+-](?:0\d|1[0-4]):?[0-5]\d| (?:UTC|GMT)| ?[AP]M)?"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = re.compile(
    rf"(?:{_FREE}(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"  # 2024-05-01, alone or with a time
    rf"(?:[T ]\d\d:[0-5]\d(?::{_SECOND})?{_ZONE})?(?![\w-])"
    rf"|(?<!\w)(?:{_WEEKDAY} {_MONTH} [ \d]\d \d\d:\d\d:\d\d(?: [A-Z]{{3,4}})? \d{{4}}{_ZONE}"  # date, git log
    rf"|(?:{_WEEKDAY}, )?\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}[ :]\d\d:\d\d:\d\d{_ZONE}"  # HTTP, logs of servers
    rf"|{_MONTH} [ \d]\d (?:\d\d:\d\d(?::\d\d)?| \d{{4}}))(?![\w:])"  # ls -l, syslog
    rf"|(?<!:){_FREE}(?:(?:[01]\d|2[0-3]):[0-5]\d:{_SECOND}|\d:[0-5]\d:[0-5]\d\.\d+){_ZONE}(?![\w:]))"
)

_NUMBER = r"\d+(?:,\d{3}){0,3}(?:\.\d+)?(?:[eE][+-]?\d+)?"
_SPAN = re.compile(
    rf"(?<![%/:]){_FREE}\d+:[0-5]\d (?:min|h)(?!\w)"  # Maven
    rf"|(?<![%/]){_FREE}(?:\d+ ?(?:h|hours?),? ?)?(?:\d+ ?(?:m|mins?|minutes?),? ?)?"
    rf"{_NUMBER} ?(?:[nuµμm]?s|secs?|(?:milli|micro|nano)?seconds?|minutes?)(?![\w'}}])(?!\.\w)"
)
"""A number with a unit; but no format (`%5s`, `{:5s}`), and no part of a name or path."""

_NAMED = re.compile(
    rf"(?m)(?P<time>(?<!\w)duration_ms[ :=]{{1,3}}){_NUMBER}(?![\w.])"  # node
    r"|(?P<cached>^ok[ \t]+\S+[ \t]+)\(cached\)"  # go: an earlier run's result, where another run has its time
    r"|(?P<pid>(?<!\w)[Pp][Ii][Dd] )\d+(?!\w)"
)

_PADDING = re.compile(rf"(?<! ) {{2,}}+(?={TIME})")
_TWICE = re.compile(rf"(in {TIME})(?: \((?:(?:\d+ days?, )?\d{{1,3}}:[0-5]\d:[0-5]\d|{TIME})\))+")
"""pytest says the time of a long run twice."""
_ESTIMATE = re.compile(rf"(?<={TIME})(?:, estimated {TIME})+")
"""jest knows it from the second run on."""
_RESULT = re.compile(r"[ \t]*[✓✔√✕✖✗\u00d7]|(?:PASS|FAIL) ")
_SPENT = re.compile(rf"(?<! )(?<!{TIME})(?<!{TIME}\))(?: +\(?{TIME}\)?)+(?=[ \t\r]*$)")
"""At the end of a test's line: reporters leave it out where the test was quick."""

_SUMMARY = re.compile(rf"(?m)^=+ ([^\n]*\bin {TIME}) =+(?=[ \t\r]*$)")
"""A line of pytest that fills the width; a long one has a single mark on each side."""
_RULE = re.compile(r"(?m)(^[ \t]*([=_-])\2\2)\2+(?=[ \t\r]|$)|((?<=[ \t])([=_-])\4\4)\4+(?=[ \t\r]*$)")

_LINE_NUMBER = re.compile(r"[ \t]*([0-9]{1,9})(?:\t|:|  |$)(.*)", re.DOTALL)
"""As `cat -n`, `grep -n` and listings give it."""


def masked(text: str) -> str:
    """The text with times, addresses and temporary paths replaced by `<time>`, `<address>` and `<temp>`; and without
    what else differs with them: escapes of a terminal, the length of rules, the padding before a time, process ids.

    Each line is masked for itself, and masking a second time changes nothing.
    """
    text = _TERMINAL.sub("", text)
    text = _TEMP.sub(lambda path: TEMP + _TEMP_BELOW.sub(TEMP, path[1]), text)
    text = _ADDRESS.sub(ADDRESS, text)
    text = _CLOCK.sub(TIME, text)
    text = _SPAN.sub(TIME, text)
    text = _NAMED.sub(lambda value: f"{value[value.lastgroup or 0]}{PID if value['pid'] else TIME}", text)
    text = _PADDING.sub(" ", text)
    text = _TWICE.sub(r"\1", text)
    text = _ESTIMATE.sub("", text)
    text = "\n".join(_SPENT.sub("", line) if _RESULT.match(line) else line for line in text.split("\n"))
    text = _SUMMARY.sub(r"=== \1 ===", text)
    return _RULE.sub(lambda rule: rule[1] or rule[3], text)


def shows(real: str, claimed: str, *, numbered: bool = False) -> bool:
    """Whether a claimed excerpt stands in real output (see `shown_lines`); an empty claim shows nothing."""
    return bool(shown_lines(real, claimed, numbered=numbered))


def shown_lines(real: str, claimed: str, *, numbered: bool = False) -> list[int]:
    """The numbers, from 0, of the real lines that a claimed excerpt covers; none where it does not stand there.

    Lines are compared masked and without white space at their ends. The claim is one run of consecutive real lines, or
    several in order, with a blank line, `LEFT_OUT` or nothing between them: a reader who is asked for the lines that
    show something leaves out those between. Of several places the first is given, and one whose lines are consecutive
    before all others.

    With `numbered` both are views of a file, in which a line may begin with its number: those of a claim may be left
    out, but not be others than the real ones.
    """
    for real_lines, claimed_lines in _readings(real, claimed) if numbered else [(_lines(real), _lines(claimed))]:
        runs = [_runs(claimed_lines, blanks_part=blanks_part) for blanks_part in (False, True)]
        for wanted in (*runs, [[line] for run in runs[1] for line in run]):
            if found := _places(real_lines, wanted):
                return found
    return []


def absent_line(real: str, claimed: str) -> str | None:
    """The first line of a claim that stands nowhere in real output, for a model that is told of its fault."""
    here = {line.strip() for line in (*_lines(real), *_numbered_lines(real)[1], "", LEFT_OUT)}
    return next((line.strip() for line in claimed.split("\n") if masked(line).strip() not in here), None)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in masked(text).split("\n")]


def _readings(real: str, claimed: str) -> Iterator[tuple[list[str], list[str]]]:
    """The lines to compare: as they are; without the real numbers; with both numbers, however they are written; and
    without those of the claim, in lines of which the real ones have none."""
    real_lines, (real_numbers, real_code) = _lines(real), _numbered_lines(real)
    claimed_lines, (claimed_numbers, claimed_code) = _lines(claimed), _numbered_lines(claimed)
    yield real_lines, claimed_lines
    yield real_code, claimed_lines
    yield _with(real_numbers, real_code), _with(claimed_numbers, claimed_code)
    no_line = " "  # no line of a claim ends in white space
    bare = [no_line if number else line for number, line in zip(real_numbers, real_lines, strict=True)]
    yield bare, claimed_code


def _numbered_lines(text: str) -> tuple[list[str], list[str]]:
    """The numbers of the lines, empty for none, and the lines without them."""
    numbers: list[str] = []
    code: list[str] = []
    for line in _TERMINAL.sub("", text).split("\n"):
        match = _LINE_NUMBER.match(line.rstrip())
        numbers.append(match[1] if match else "")
        code.append(match[2] if match else line)
    return numbers, _lines("\n".join(code))


def _with(numbers: Sequence[str], code: Sequence[str]) -> list[str]:
    return [f"{number}\t{line}" if number else line for number, line in zip(numbers, code, strict=True)]


def _runs(lines: Sequence[str], *, blanks_part: bool) -> list[list[str]]:
    """The runs of consecutive lines of a claim, without blank lines at their ends."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == LEFT_OUT or (blanks_part and not line):
            runs.append([])
        elif line or runs[-1]:
            runs[-1].append(line)
    for run in runs:
        while run and not run[-1]:
            run.pop()
    return [run for run in runs if run]


def _places(lines: Sequence[str], runs: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of the lines of all runs, each at its first place after the run before; empty where one has none.

    The search is one for text, which takes time in proportion to it whatever the lines are.
    """
    text = "\n".join(["", *lines, ""])
    found: list[int] = []
    at = number = 0
    for run in runs:
        excerpt = "\n".join(["", *run, ""])
        place = text.find(excerpt, at)
        if place < 0:
            return []
        number += text.count("\n", at, place)
        found += range(number, number + len(run))
        number += len(run)
        at = place + len(excerpt) - 1
    return found
