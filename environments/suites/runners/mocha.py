"""mocha."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from environments.suites import javascript
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER
from environments.suites.canaries.blocknames import lone_titles
from environments.suites.canaries.blocks import JAVASCRIPT
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.collected import own_names
from environments.suites.runner import Runner, name_behind
from environments.suites.testlogs import Status, join


def parse_mocha(log: str) -> dict[str, Status]:
    """The tests of ``mocha --reporter json``.

    The report knows describe blocks only as part of the full title, so ids are the file and the full title. A failed
    hook stands under its own name.
    """
    return join((test, status) for test, status in _tests(javascript.document(log, "stats")) if test)


def _tests(report: dict[str, Any]) -> Iterator[tuple[str, Status]]:
    groups = {
        "tests": Status.collected,
        "passes": Status.passed,
        "failures": Status.failed,
        "pending": Status.skipped,
    }
    for group, status in groups.items():
        for test in javascript.objects(report.get(group)):
            yield javascript.id_of(javascript.text(test.get("file")), [javascript.text(test.get("fullTitle"))]), status


RUNNER = Runner(
    name="mocha",
    template="mocha --reporter {tools}/mocha_reporter.cjs {files}",
    plain="mocha --reporter spec --no-color {files}",
    typed="mocha FILES",
    files=r"(?:\.|-|_)?(?:test|spec)\.[cm]?[jt]s$|(?:^|/)(?:tests?|spec)/(?:[^/]+/)*[^/]+\.[cm]?[jt]s$",
    parse=parse_mocha,
    refused=javascript.REFUSED,
    file_of=javascript.file_of,
    steering=(r"\.mocharc(?:\.\w+)?", r"mocha\.opts", *javascript.STEERING),
    project_files=javascript.PROJECT_FILES,
    sections=javascript.package_sections("mocha"),
    sign=javascript.package_sign("mocha", rank=30),
    name_of=name_behind(" > "),
    own_names=own_names("mocha"),
    plant=JAVASCRIPT.plant,
    lone=lone_titles,
    falsify=JAVASCRIPT_FALSIFIER,
    mask=mask_javascript,
)
