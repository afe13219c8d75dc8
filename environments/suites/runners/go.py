"""``go test``. Its report is what ``go test -json`` prints: one event a line (``go doc test2json``)."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from environments.suites.canaries.blocks import GO
from environments.suites.runner import PARENT, Runner
from environments.suites.testlogs import Status, failures, join, worst

_ACTIONS = {"pass": Status.passed, "fail": Status.failed, "skip": Status.skipped, "run": Status.collected}
_UNBUILT = re.compile(r"FAIL\t(?P<package>\S+) \[(?:build|setup) failed\]")


def parse_go(log: str) -> dict[str, Status]:
    """The tests of ``go test -json``, as ``package.TestName/subtest``.

    A package that fails without a failing test of its own (it does not build, it panics, it calls ``os.Exit``) has its
    name as id and is an error. Go makes the events from what the test binary prints, so a test can print some of its
    own: a pass without a run is an error, and so is a test that ran when its package ended, and every pass of a package
    that ended without the ``PASS`` or ``FAIL`` that the binary prints last. Other lines are passed over.
    """
    packages: dict[str, _Package] = {}
    reports: list[tuple[str, Status]] = []
    for line in log.splitlines():
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
    printed_verdict: bool = False
    ended: Status | None = None

    def take(self, event: dict[str, object]) -> None:
        test, status = event.get("Test"), _ACTIONS.get(str(event.get("Action")))
        if not isinstance(test, str):
            self.printed_verdict = self.printed_verdict or event.get("Output") in {"PASS\n", "FAIL\n"}
            self.ended = status or self.ended
        elif status is Status.collected:
            self.found.setdefault(test, status)
        elif status is not None:
            was = self.found.get(test)
            self.found[test] = worst((status, was or Status.error)) if was is not Status.collected else status

    def reports(self) -> Iterator[tuple[str, Status]]:
        # FAIL is left out by a binary that panics; its package fails, which no test can take back.
        complete = self.ended is Status.failed or (self.ended is not None and self.printed_verdict)
        for test, status in self.found.items():
            cut_off = status is Status.collected and self.ended is not None
            forged = status is Status.passed and not complete
            yield f"{self.name}.{test}", Status.error if cut_off or forged else status
        if self.ended is Status.failed and not failures(self.found):
            yield self.name, Status.error


def _event(line: str) -> dict[str, object]:
    if not line.startswith("{"):
        return {}
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def packages(files: Sequence[str]) -> list[str]:
    """The folders of the files' packages."""
    return list(dict.fromkeys(f"./{posixpath.dirname(path)}".rstrip("/") for path in files))


RUNNER = Runner(
    name="go",
    template=f"{PARENT} go test -json -count=1 {{files}}",
    plain="go test -v -count=1 {files}",
    typed="go test PACKAGES",
    files=r"_test\.go$",
    parse=parse_go,
    reports=False,
    arguments=packages,
    plant=GO.plant,
)
