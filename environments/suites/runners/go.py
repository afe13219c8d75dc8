"""``go test``. Its report is what ``go test -json`` prints: one event a line (``go doc test2json``)."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from environments.suites.canaries.blocks import GO
from environments.suites.runner import PARENT, Runner, last_name
from environments.suites.testlogs import Status, failures, join, worst

_ACTIONS = {"pass": Status.passed, "fail": Status.failed, "skip": Status.skipped, "run": Status.collected}
_UNBUILT = re.compile(r"FAIL\t(?P<package>\S+) \[(?:build|setup) failed\]")


_BEGINS = re.compile(r"=== RUN   (?P<test>\S+)$")
_ENDS = re.compile(r"--- (?P<word>PASS|FAIL|SKIP): (?P<test>\S+) \(\d+(?:\.\d+)?s\)$")
_LONGEST = 1 << 12
"""Characters of a line that are kept while it has no end."""
_WORDS = {"PASS": Status.passed, "FAIL": Status.failed, "SKIP": Status.skipped}
_VERDICTS = ("PASS\n", "FAIL\n", "PASS\r\n", "FAIL\r\n")
_BEHIND = ("ok  \t", "FAIL\t", "?   \t", "coverage: ", "exit status ", "signal: ")
"""What go prints behind the output of a test binary."""


def parse_go(log: str) -> dict[str, Status]:
    """The tests of ``go test -json``, as ``package.TestName/subtest``.

    A package that fails without a failing test of its own (it does not build, it panics, it calls ``os.Exit``) has its
    name as id and is an error. Go makes the events from what the test binary prints, so a test can print some of its
    own: a pass without a run is an error, and so is a test that ran when its package ended, and every pass of a package
    that ended without the ``PASS`` or ``FAIL`` that the binary prints last. Other lines are passed over.

    Before go 1.20, whose packages have a ``start`` event, lines count as such only where they begin one, so that a test
    that prints without a newline has no end, and its subtests no beginning (go 1.19; golang/go#26325). There the text
    of the lines is read as well: a failure always counts, and a pass or skip where a test has no other end and its
    package ended as it says.
    """
    packages: dict[str, _Package] = {}
    reports: list[tuple[str, Status]] = []
    for line in re.split(r"\r?\n", log):
        if broken := _UNBUILT.fullmatch(line):
            reports.append((broken["package"], Status.error))
            continue
        event = _event(line)
        if event.get("Action") == "build-fail":
            reports.append((str(event.get("ImportPath", "")).partition(" ")[0], Status.error))
        elif isinstance(name := event.get("Package"), str):
            packages.setdefault(name, _Package(name)).take(event)
    for package in packages.values():
        reports.extend(package.reports())
    return join(reports)


@dataclass(slots=True)
class _Package:
    name: str
    found: dict[str, Status] = field(default_factory=dict)
    said: dict[str, Status] = field(default_factory=dict)
    """How tests ended by the text of the output."""
    verdict: str = ""
    """The ``PASS`` or ``FAIL`` of the binary."""
    ended: Status | None = None
    marks_lines: bool = False
    """Go knows the binary's own lines, wherever they stand."""
    line: str = ""
    last_line: str = ""

    def take(self, event: dict[str, object]) -> None:
        action, test, output = event.get("Action"), event.get("Test"), event.get("Output")
        status = _ACTIONS.get(str(action))
        self.marks_lines = self.marks_lines or action == "start"
        if isinstance(output, str) and not self.marks_lines:
            self._read(output)
        if not isinstance(test, str):
            self.verdict = str(output).strip() if output in _VERDICTS else self.verdict
            self.ended = status or self.ended
        elif status is Status.collected:
            self.found.setdefault(test, status)
        elif status is not None:
            was = self.found.get(test)
            self.found[test] = worst((status, was or Status.error)) if was is not Status.collected else status

    def _read(self, output: str) -> None:
        *lines, self.line = (self.line + output).split("\n")
        for text in lines:
            line = text.removesuffix("\r")
            if found := _BEGINS.search(line):
                self.found.setdefault(found["test"], Status.collected)
            elif found := _ENDS.search(line):
                self.said[found["test"]] = worst((_WORDS[found["word"]], self.said.get(found["test"], Status.missing)))
            if line and not line.startswith(_BEHIND):
                self.last_line = line
        self.line = self.line[-_LONGEST:]

    def reports(self) -> Iterator[tuple[str, Status]]:
        verdict = self.verdict or (self.last_line[-4:] if self.last_line.endswith(("PASS", "FAIL")) else "")
        found = {test: self._with_said(test, status) for test, status in self.found.items()}
        has_failed = bool(failures(found))
        agrees = (self.ended, verdict, has_failed) in {(Status.passed, "PASS", False), (Status.failed, "FAIL", True)}
        # FAIL is left out by a binary that panics; its package fails, which no test can take back.
        complete = self.ended is Status.failed or (self.ended is not None and bool(verdict))
        for test, status in found.items():
            if status is Status.collected and self.ended is not None:
                found[test] = self.said[test] if agrees and test in self.said else Status.error
            elif status is Status.passed and not complete:
                found[test] = Status.error
            yield f"{self.name}.{test}", found[test]
        if self.ended is Status.failed and not failures(found):
            yield self.name, Status.error

    def _with_said(self, test: str, status: Status) -> Status:
        return worst((status, Status.failed)) if self.said.get(test) is Status.failed else status


def _event(line: str) -> dict[str, object]:
    if not line.startswith("{"):
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def packages(files: Sequence[str]) -> list[str]:
    """The folders of the files' packages."""
    return list(dict.fromkeys(f"./{posixpath.dirname(path)}".rstrip("/") for path in files))


_FUNCTION = re.compile(r"\.((?:Test|Example|Fuzz|Benchmark)\w*)(?:/.*)?$")


def name_of(test: str) -> str:
    """The function's name, whatever its subtests are called: ``a.com/pkg.TestIt/v1.2``."""
    found = _FUNCTION.search(test)
    return found[1] if found else last_name(test)


RUNNER = Runner(
    name="go",
    template=f"{PARENT} go test -json -count=1 {{files}}",
    plain="go test -v -count=1 {files}",
    typed="go test PACKAGES",
    files=r"_test\.go$",
    parse=parse_go,
    reports=False,
    arguments=packages,
    # No import path; go runs nothing where one is not (golang.org/x/mod/module, "CheckImportPath"): signs, a
    # point at the end, names of devices, and short names of Windows (``a~1``).
    refused=(
        r"[^A-Za-z0-9._~+/-][^/]*/|\./"
        r"|(?i:(?:^|/)(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.[^/]*)?/)|(?:^|/)[^/.]*~\d+(?:\.[^/]*)?/"
    ),
    name_of=name_of,
    plant=GO.plant,
)
