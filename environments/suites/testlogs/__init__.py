"""Test logs: pure functions from what a runner wrote to one status a test.

`read_events` reads the log of our own reporters, which is signed; the parsers read what runners print or write by
themselves, which the code under test can write too (`environments.suites.testruns` says what is made of that).
"""

from __future__ import annotations

from collections.abc import Callable

from environments.suites.testlogs.events import EventLog, read_events, sign
from environments.suites.testlogs.go import parse_go
from environments.suites.testlogs.java import parse_surefire
from environments.suites.testlogs.javascript import parse_jest, parse_mocha, parse_vitest
from environments.suites.testlogs.python import parse_pytest, parse_unittest
from environments.suites.testlogs.rust import parse_cargo
from environments.suites.testlogs.values import Status, did_run, failures, join, worst

PARSERS: dict[str, Callable[[str], dict[str, Status]]] = {
    "pytest": parse_pytest,
    "unittest": parse_unittest,
    "jest": parse_jest,
    "vitest": parse_vitest,
    "mocha": parse_mocha,
    "go": parse_go,
    "cargo": parse_cargo,
    "surefire": parse_surefire,
}
"""Parser by the name that recipes use."""

__all__ = [
    "PARSERS", "EventLog", "Status", "did_run", "failures", "join", "parse_cargo", "parse_go", "parse_jest",
    "parse_mocha", "parse_pytest", "parse_surefire", "parse_unittest", "parse_vitest", "read_events", "sign", "worst",
]  # fmt: skip
