"""Commands of test runners: how files are named for them, and when their own reports are believed."""

from __future__ import annotations

import pytest

from environments.sandboxes.sandbox import Sandbox
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import distrust, run_tests


def test_an_unsigned_report_that_contradicts_the_exit_code_passes_nothing() -> None:
    report = {"a": Status.passed, "b": Status.skipped}
    doubted, notes = distrust(report, 1)
    assert doubted == {"a": Status.error, "b": Status.skipped} and notes
    assert distrust(report, 0) == (report, ()) and distrust({"b": Status.skipped}, 1) == ({"b": Status.skipped}, ())
    failed = {**report, "c": Status.failed}
    assert distrust(failed, 1) == (failed, ())


@pytest.mark.parametrize(
    ("runner", "files", "named"),
    [
        ("pytest", ["tests/a b.py", "-x.py"], ["tests/a b.py", "./-x.py"]),
        ("unittest", ["tests/test_a.py", "tests/pkg/__init__.py"], ["tests.test_a", "tests.pkg"]),
        ("go", ["cart/a_test.go", "cart/b_test.go", "main_test.go"], ["./cart", "."]),
        ("cargo", ["tests/cart.rs", "tests/cart/more.rs"], ["--test", "cart"]),
        ("cargo", ["tests/cart.rs", "src/tests.rs"], []),
        ("surefire", ["src/test/java/shop/CartTest.java"], ["CartTest"]),
    ],
)
def test_files_are_named_as_the_runner_takes_them(runner: str, files: list[str], named: list[str]) -> None:
    assert RUNNERS[runner].arguments(files) == named


def test_without_files_nothing_is_run() -> None:
    sandbox: Sandbox = None  # type: ignore[assignment]
    assert run_tests(sandbox, RUNNERS["pytest"].command, [], timeout=1).statuses == {}


def test_every_command_says_where_its_results_go() -> None:
    for runner in RUNNERS.values():
        command = runner.command
        assert "{tools}" in command.template if command.signed else "{report}" in command.template
        assert command.signed is ("_reporter." in command.template) and command.runner == runner.name
