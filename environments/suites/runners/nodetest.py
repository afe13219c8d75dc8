"""Node's own runner, ``node --test``, from Node 18.17 on: older ones do not say in which file a test is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from environments.suites import javascript
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER
from environments.suites.canaries.blocknames import lone_titles
from environments.suites.canaries.blocks import JAVASCRIPT
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.collected import own_names
from environments.suites.runner import ManifestMarker, Runner, name_behind
from environments.suites.testlogs import Status, join

_POINT = re.compile(r"( *)(not )?ok \d+(?: - (.*?))?( # (?:SKIP|TODO).*)?")
_PLAN = re.compile(r"1\.\.(\d+)")
_STEP = 4
"""Blanks by which a subtest stands further in."""


def parse_tap(log: str) -> dict[str, Status]:
    """The tests of a report in TAP, which names no files: an id is the titles. Those that hold others are none, but for
    one that fails by itself. Without its plan, or with another number of tests, the report was cut off."""
    lines = log.splitlines()
    points = [match for line in lines if (match := _POINT.fullmatch(line.rstrip()))]
    plans = [int(match[1]) for line in lines if (match := _PLAN.fullmatch(line))]
    whole = len(plans) == 1 and plans[0] == sum(not match[1] for match in points)
    found = join(_tests(points))
    return found if whole else {test: Status.error if it is Status.passed else it for test, it in found.items()}


def _tests(points: list[re.Match[str]]) -> Iterator[tuple[str, Status]]:
    """Backwards: what holds others stands behind them."""
    above: list[str] = []
    for number in range(len(points) - 1, -1, -1):
        point = points[number]
        depth = min(len(point[1]) // _STEP, len(above))
        above = [*above[:depth], point[3] or ""]
        holds = number > 0 and len(points[number - 1][1]) > len(point[1])
        if not holds and (test := " > ".join(title for title in above if title)):
            yield test, Status.skipped if point[4] else Status.failed if point[2] else Status.passed


RUNNER = Runner(
    name="nodetest",
    template="node --test --test-reporter={tools}/node_reporter.cjs {files}",
    plain="node --test --test-reporter=spec {files}",
    typed="node --test FILES",
    files=r"(?:[.\-_]test|(?:^|/)test(?:-[^/]*)?)\.[cm]?[jt]s$|(?:^|/)tests?/(?:[^/]+/)*[^/]+\.[cm]?[jt]s$",
    parse=parse_tap,
    # From Node 21 on the arguments are patterns.
    refused=javascript.REFUSED + r"|[*?\[\]{}()!]",
    file_of=javascript.file_of,
    steering=javascript.STEERING,
    project_files=javascript.PROJECT_FILES,
    sections=javascript.package_sections("node"),
    # Behind runners that a project depends on.
    sign=ManifestMarker("javascript", "package.json", "node --test", 40),
    name_of=name_behind(" > "),
    own_names=own_names("nodetest"),
    plant=JAVASCRIPT.plant,
    lone=lone_titles,
    falsify=JAVASCRIPT_FALSIFIER,
    mask=mask_javascript,
)
