"""Runners whose files print TAP: what a report says, what makes it distrusted, and how files are run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.images.node_project import scripted_runner
from environments.suites import testruns
from environments.suites.runner import PARENT
from environments.suites.runners import RUNNERS
from environments.suites.tap import parse_subtests, parse_titled
from environments.suites.testlogs import Status, did_run
from environments.suites.testruns import run_tests
from tests.environments.test_testruns import Shell

NODE = shutil.which("node")
FLAT = "TAP version 13\nok 1 - adds\nnot ok 2 - counts\nok 3 - later # SKIP\n1..3\n"
NESTED = """TAP version 14
ok 1 - loads
# Subtest: cart
    # Subtest: adds
        ok 1 - should be equal
        1..1
    ok 1 - adds # time=0.3ms

    # Subtest: counts
        not ok 1 - should be equal
          ---
          diff: |
            not ok 7 - nothing
          ...

        1..1
    not ok 2 - counts # time=2ms
    1..2
not ok 2 - cart # time=4.5ms
  ---
  at: cart.js
  ...

# Subtest: empty
    1..0
ok 3 - empty # time=1ms
# Subtest: ends late
    1..1
    ok 1 - should be equal
not ok 4 - ends late
ok 5 - later # TODO
1..5
# time=9ms
"""
TITLED = """TAP version 13
# adds
ok 1 should be strictly equal
ok 2 named
# counts
ok 3 named
not ok 4 should be equal
# TODO later
not ok 5 should be equal # TODO

1..5
# tests 5
# pass  3
"""


def report(text: str, code: int = 0, *, late: bool = False) -> str:
    return json.dumps({"file": "t/a.js", "exit": code, "late": late, "text": text})


def test_points_that_hold_others_are_tests_and_assertions_in_them_are_none() -> None:
    assert parse_subtests(report(NESTED, 1)) == {
        "t/a.js > loads": "passed",
        "t/a.js > cart > adds": "passed",
        "t/a.js > cart > counts": "failed",
        "t/a.js > empty": "passed",
        "t/a.js > ends late": "failed",
        "t/a.js > later": "skipped",
    }


def test_points_that_hold_nothing_are_tests_where_none_holds_them() -> None:
    assert parse_subtests(report(FLAT, 1)) == {
        "t/a.js > adds": "passed",
        "t/a.js > counts": "failed",
        "t/a.js > later": "skipped",
    }


def test_a_title_and_the_points_behind_it_are_a_test_of_tape() -> None:
    assert parse_titled(report(TITLED, 1)) == {
        "t/a.js > adds": "passed",
        "t/a.js > counts": "failed",
        "t/a.js > later": "skipped",
    }


@pytest.mark.parametrize(
    "text",
    [
        FLAT.replace("1..3", "1..4"),
        FLAT.replace("1..3\n", ""),
        FLAT.replace("1..3", "1..3\n1..3"),
        FLAT.replace("ok 1", "ok 1 - forged\nok 1"),
        FLAT.replace("ok 3", "ok 4"),
        "1..1\nok 1 - adds\nok 2 - adds\n",
    ],
)
def test_nothing_passed_in_a_report_that_does_not_agree_with_its_plan(text: str) -> None:
    assert Status.passed not in parse_subtests(report(text, 1)).values()


def test_nothing_passed_in_a_process_that_fails_without_a_failed_test() -> None:
    assert parse_subtests(report("ok 1 - adds\n1..1\n", 3)) == {"t/a.js > adds": "error"}
    assert parse_subtests(report("", 1)) == {"t/a.js": "error"}
    assert parse_subtests(report("", 0)) == {}


def test_a_file_that_was_ended_is_out_of_time_and_what_it_had_not_planned_is_no_pass() -> None:
    assert parse_subtests(report("ok 1 - adds\n", -9, late=True)) == {
        "t/a.js > adds": "error",
        "t/a.js": "timed_out",
    }


LINES = st.sampled_from(
    ["ok 1 - a", "    ok 1 - b", "not ok 2 - c", "1..2", "    1..0", "# t", "  ---", "  ...", "        ok 3 - d {", ""]
)


@given(st.lists(LINES | st.text(max_size=20), max_size=30), st.booleans(), st.integers(-9, 3))
def test_any_text_has_a_meaning_and_without_a_plan_nothing_passes(lines: list[str], is_titled: bool, code: int) -> None:
    parse = parse_titled if is_titled else parse_subtests
    text = "\n".join(lines)
    statuses = parse(report(text, code))
    assert all(test.startswith("t/a.js") for test in statuses)
    planless = "\n".join(line for line in text.splitlines() if not line.startswith("1.."))
    assert Status.passed not in parse(report(planless, code)).values()
    if code:
        assert Status.passed not in statuses.values() or Status.failed in statuses.values()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"file": 3}', "[" * 100_000, '{"file": "a.js"}'])
def test_what_is_no_report_of_a_file_has_no_tests(text: str) -> None:
    assert not any(map(did_run, parse_subtests(text).values()))


@pytest.mark.parametrize(
    ("scripts", "runner", "command"),
    [
        ("tap test/*.test.js", "tap", ""),
        ("standard && tap --no-coverage -t 60 -R spec test/**/*.js", "tap", ""),
        ("tap --node-arg=--expose-gc --node-arg -r --node-arg esm", "tap", "node --expose-gc -r esm -- {files}"),
        ("nyc tape -r esm 'test/**/*.js'", "tape", "node -r esm -- {files}"),
        ("TZ=UTC xo && ava --config a.js", "ava", "ava --config a.js --tap -- {files}"),
    ],
)
def test_files_are_loaded_as_the_scripts_say(scripts: str, runner: str, command: str) -> None:
    package = json.dumps({"scripts": {"test": scripts}})
    assert scripted_runner({"package.json": package}) == (runner, f"{PARENT} {command}" if command else "")


def test_the_files_are_those_that_the_scripts_name() -> None:
    own = RUNNERS["tap"].own_names
    assert own is not None
    globs = own.patterns(
        {"package.json": json.dumps({"scripts": {"test": "tap -t 60 -R dot --jobs=1 test spec/*.js"}})}
    )
    taken = [
        path for path in ["test/a.js", "test/x/b.js", "spec/c.js", "spec/d/e.js", "60/f.js"] if own.takes(path, globs)
    ]
    assert taken == ["test/a.js", "test/x/b.js", "spec/c.js"]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_each_file_is_a_process_and_what_one_prints_says_nothing_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testruns, "TEST_SECONDS", 1.0)
    files = {
        "good.js": 'console.error("ok 9 - noise"); console.log("ok 1 - adds\\n1..1")',
        "bad.js": 'console.log("not ok 1 - counts\\n1..1"); process.exit(0)',
        "dies.js": 'console.log("ok 1 - adds\\nok 2 - more\\n1..2"); process.exit(7)',
        "hangs.js": 'console.log("ok 1 - adds"); setInterval(() => {}, 1000)',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    run = run_tests(Shell(tmp_path), RUNNERS["tap"].command, list(files), timeout=30)  # type: ignore[arg-type]
    assert run.statuses == {
        "good.js > adds": "passed",
        "bad.js > counts": "failed",
        "dies.js > adds": "error",
        "dies.js > more": "error",
        "hangs.js > adds": "error",
        "hangs.js": "timed_out",
    }
    assert run.exit_code == 7 and run.complete
