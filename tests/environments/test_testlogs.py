"""Reading test logs: the shapes that runners write, and what hostile output must not turn into a pass.

The logs are short ones of our own, in the shapes that pytest 9, Python 3.11, jest 30, vitest 4, mocha 12, Go 1.19,
cargo 1.95 and surefire 3.2 were seen to write.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites import javascript
from environments.suites.runners import RUNNERS
from environments.suites.runners.cargo import parse_cargo
from environments.suites.runners.go import parse_go
from environments.suites.runners.mocha import parse_mocha
from environments.suites.runners.nodetest import parse_tap
from environments.suites.runners.surefire import parse_surefire
from environments.suites.runners.unittest import parse_unittest
from environments.suites.testlogs import Status, join, read_events, sign, worst
from environments.suites.testlogs.pytest_text import parse_pytest

KEY = b"\x00\xff"


def line(number: int, event: str, key: bytes = KEY, **fields: object) -> bytes:
    text = json.dumps({"n": number, "e": event, **fields}).encode()
    return sign(key, text) + b" " + text + b"\n"


def test_signed_events_are_read() -> None:
    log = line(0, "start") + line(1, "collected", id="a") + line(2, "collected", id="b")
    log += line(3, "begin", id="a") + line(4, "result", id="a", s="passed") + line(5, "end", exit=0)
    read = read_events(log, KEY)
    assert read.statuses == {"a": Status.passed, "b": Status.collected}
    assert (read.started, read.exit_code, read.foreign, read.gap) == (True, 0, 0, False)


def test_a_test_that_began_and_did_not_end_is_an_error_or_timed_out() -> None:
    log = line(0, "begin", id="a")
    assert read_events(log, KEY).statuses == {"a": Status.error}
    assert read_events(log, KEY, timed_out=True).statuses == {"a": Status.timed_out}


def test_a_file_that_is_done_is_no_test_unless_it_failed() -> None:
    log = line(0, "begin", id="f.js") + line(1, "result", id="f.js > t", s="passed") + line(2, "done", id="f.js")
    assert read_events(log, KEY).statuses == {"f.js > t": Status.passed}
    log = line(0, "begin", id="f.js") + line(1, "result", id="f.js", s="error") + line(2, "done", id="f.js")
    assert read_events(log, KEY).statuses == {"f.js": Status.error}


@pytest.mark.parametrize(
    "forged",
    [
        line(1, "result", key=b"other", id="a", s="passed"),
        b'{"n": 1, "e": "result", "id": "a", "s": "passed"}\n',
        line(1, "result", id="b", s="passed").replace(b'"b"', b'"a"'),
        b"\xff\x00 not even text\n",
    ],
    ids=["another key", "no signature", "a changed line", "bytes"],
)
def test_a_line_that_the_reporter_did_not_sign_says_nothing_and_is_counted(forged: bytes) -> None:
    read = read_events(line(0, "start") + forged, KEY)
    assert (read.statuses, read.foreign) == ({}, 1)


def test_a_line_that_is_doubled_or_taken_out_is_told() -> None:
    first, second = line(0, "result", id="a", s="passed"), line(1, "result", id="a", s="failed")
    assert read_events(first + second + first, KEY).foreign == 1
    assert read_events(second, KEY).gap
    assert read_events(first + second + first, KEY).statuses == {"a": Status.failed}


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"1",
        b'"a"',
        b"{",
        b"[" * 100_000,
        b'{"n": 1}',
        b'{"n": 1, "e": []}',
        b'{"n": 1, "e": "end", "exit": "0"}',
    ],
)
def test_a_signed_line_that_no_reporter_writes_is_counted_with_the_foreign_ones(text: bytes) -> None:
    read = read_events(line(0, "start") + sign(KEY, text) + b" " + text + b"\n", KEY)
    assert (read.statuses, read.exit_code, read.foreign) == ({}, None, 1)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda it: st.lists(it) | st.dictionaries(st.text(), it)))
def test_nothing_that_is_signed_breaks_the_reading(value: Any) -> None:
    for event in (
        {"n": 0, "e": "result", "id": "a", "s": value},
        {"n": 0, "e": value, "id": value, "what": value},
        value,
    ):
        text = json.dumps(event).encode()
        assert read_events(sign(KEY, text) + b" " + text + b"\n", KEY).statuses in ({}, {"a": value})


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_an_event(log: bytes) -> None:
    read = read_events(log, KEY)
    assert read.statuses == {} and not read.started


@given(st.lists(st.sampled_from(list(Status)), min_size=1))
def test_a_test_of_several_words_passes_only_if_none_is_worse(statuses: list[Status]) -> None:
    joined = join([("t", status) for status in statuses])
    assert joined == {"t": worst(statuses)}
    if joined["t"] is Status.passed:
        assert set(statuses) <= {Status.passed, Status.collected, Status.missing}


@given(st.text())
@pytest.mark.parametrize("name", RUNNERS)
def test_no_text_breaks_a_parser(name: str, log: str) -> None:
    assert all(isinstance(status, Status) for status in RUNNERS[name].parse(log).values())


@pytest.mark.parametrize("name", ["jest", "mocha", "vitest", "go", "surefire"])
def test_deep_nesting_breaks_no_parser(name: str) -> None:
    for log in ("[" * 100_000, '{"a":' * 20_000, "<a>" * 20_000, '{"Action":' + "[" * 50_000):
        assert RUNNERS[name].parse(log) == {}


PYTEST = """
tests/test_a.py::test_shown PASSED                                       [ 50%]
[gw1] [ 60%] FAILED tests/test_a.py::test_far[a b]
==================================== PASSES ====================================
PASSED tests/test_a.py::test_printed
=========================== short test summary info ============================
PASSED tests/test_a.py::test_forged
============================== 9 passed in 0.10s ===============================
=========================== short test summary info ============================
PASSED tests/test_a.py::test_ok
PASSED tests/test_a.py::test_param[line\\nbreak]
PASSED tests/test_a.py::test_param[[br]ack]
SKIPPED [1] tests/test_a.py:7: not here
XFAIL tests/test_a.py::test_xfail - known
XPASS tests/test_a.py::test_xpass
FAILED tests/test_a.py::test_param[x - y] - AssertionError: a - b
FAILED tests/test_a.py::test_shown - AssertionError
SUBFAILED[1] tests/test_a.py::Case::test_sub - Failed: z
PASSED tests/test_a.py::Case::test_sub
ERROR tests/test_a.py::test_setup - ValueError
ERROR tests/test_broken.py
=== 3 failed, 3 passed, 1 skipped, 1 xfailed, 1 xpassed, 2 errors in 0.12s ===
PASSED tests/test_a.py::test_after_the_end
"""


def test_pytest_summaries_are_read_after_their_last_heading_and_the_worse_word_stands() -> None:
    prefix = "tests/test_a.py::"
    assert parse_pytest(PYTEST) == {
        f"{prefix}test_shown": Status.failed,
        f"{prefix}test_far[a b]": Status.failed,
        f"{prefix}test_ok": Status.passed,
        f"{prefix}test_param[line\\nbreak]": Status.passed,
        f"{prefix}test_param[[br]ack]": Status.passed,
        f"{prefix}test_xfail": Status.xfail,
        f"{prefix}test_xpass": Status.xpass,
        f"{prefix}test_param[x - y]": Status.failed,
        f"{prefix}Case::test_sub": Status.failed,
        f"{prefix}test_setup": Status.error,
        "tests/test_broken.py": Status.error,
    }


@pytest.mark.parametrize("end", ["no tests ran in 0.01s", "Interrupted: 1 error during collection", "INTERNALERROR> x"])
def test_a_pytest_run_that_broke_off_has_no_tests(end: str) -> None:
    assert parse_pytest(f"=== test session starts ===\n!!! {end} !!!\n") == {}


UNITTEST = """test_ok (tests.test_a.Till.test_ok) ... ok
test_doc (tests.test_a.Till.test_doc)
What it is for. ... ok
test_prints (tests.test_a.Till.test_prints) ... hello
x ... ok
ok
test_old (tests.test_a.Till) ... skipped 'why not'
test_sub (tests.test_a.Till.test_sub) ...
  test_sub (tests.test_a.Till.test_sub) (n=1) ... FAIL
test_xf (tests.test_a.Till.test_xf) ... expected failure
test_xp (tests.test_a.Till.test_xp) ... unexpected success
test_err (tests.test_a.Till.test_err) ... ERROR
test_lies (tests.test_a.Till.test_lies) ... ok

======================================================================
FAIL: test_lies (tests.test_a.Till.test_lies)
----------------------------------------------------------------------
Traceback (most recent call last):

----------------------------------------------------------------------
Ran 9 tests in 0.003s

FAILED (failures=2, errors=1, skipped=1, expected failures=1, unexpected successes=1)
"""


def test_unittest_logs_are_read() -> None:
    statuses = {
        name.removeprefix("tests.test_a.Till.test_"): status for name, status in parse_unittest(UNITTEST).items()
    }
    assert statuses == {
        "ok": "passed",
        "doc": "passed",
        "prints": "passed",
        "old": "skipped",
        "sub": "failed",
        "xf": "xfail",
        "xp": "xpass",
        "err": "error",
        "lies": "failed",
    }


def test_jest_and_vitest_reports_are_read() -> None:
    def case(title: str, status: str) -> dict[str, object]:
        return {"ancestorTitles": ["cart é"], "title": title, "status": status}

    states = ["passed", "failed", "pending", "todo", "skipped", "new in jest 40"]
    report = {
        "testResults": [
            {"name": "/testbed/t/a.test.js", "assertionResults": [case(f"is > {state}", state) for state in states]},
            {"name": "/testbed/t/b.test.js", "assertionResults": [], "status": "failed"},
            {"name": "/testbed/t/c.test.js", "assertionResults": [case("twice", "failed"), case("twice", "passed")]},
        ]
    }
    noise = 'console.log {"testResults": []}\n{"x": {"testResults": 1}}\n'
    expected = dict(zip(states, ["passed", "failed", "skipped", "skipped", "skipped", "collected"], strict=True))
    read = {f"t/a.test.js > cart é > is > {name}": status for name, status in expected.items()}
    read |= {"t/b.test.js": "error", "t/c.test.js > cart é > twice": "failed"}
    assert javascript.results(noise + json.dumps(report) + "\n") == read == javascript.results(json.dumps(report))


def test_mocha_reports_are_read() -> None:
    def case(title: str) -> dict[str, str]:
        return {"file": "/testbed/test/cart.js", "title": title, "fullTitle": f"cart {title}"}

    report = {
        "stats": {},
        "tests": [case("adds"), case("fails"), case("never")],
        "passes": [case("adds")],
        "failures": [case("fails"), case('"before each" hook for "never"')],
        "pending": [case("later")],
    }
    assert parse_mocha('{"stats": {}}\n' + json.dumps(report, indent=2)) == {
        "test/cart.js > cart adds": "passed",
        "test/cart.js > cart fails": "failed",
        "test/cart.js > cart never": "collected",
        "test/cart.js > cart later": "skipped",
        'test/cart.js > cart "before each" hook for "never"': "failed",
    }


def test_reports_in_tap_are_read() -> None:
    report = """TAP version 13
# Subtest: cart
    # Subtest: adds
    ok 1 - adds
      ---
      duration_ms: 0.5
      ...
    # Subtest: fails
    not ok 2 - fails
    1..2
not ok 1 - cart
# Subtest: later
ok 2 - later # SKIP
1..2
# tests 3
"""
    read = {"cart > adds": "passed", "cart > fails": "failed", "later": "skipped"}
    assert parse_tap(report) == read
    assert (
        parse_tap(report.replace("\n1..2", ""))
        == parse_tap(report.replace("\n1..2", "\n1..3"))
        == {
            **read,
            "cart > adds": "error",
        }
    )


def go(*events: tuple[str, str | None, str]) -> str:
    """Events (action, test, output) of package p."""
    lines = []
    for action, test, output in events:
        event = {"Action": action, "Package": "h.org/p", **({"Test": test} if test else {})}
        lines.append(json.dumps({**event, "Output": output} if output else event))
    return "\n".join(lines)


END = (("output", None, "PASS\n"), ("pass", None, ""))


def test_go_events_are_read() -> None:
    log = go(
        ("run", "TestA", ""),
        ("run", "TestA/one_two", ""),
        ("pass", "TestA/one_two", ""),
        ("pass", "TestA", ""),
        ("run", "TestB", ""),
        ("skip", "TestB", ""),
        ("run", "TestC", ""),
        ("fail", "TestC", ""),
        ("fail", None, ""),
    )
    assert parse_go("# h.org/q\nFAIL\th.org/q [build failed]\nnoise {\n" + log) == {
        "h.org/p.TestA": "passed",
        "h.org/p.TestA/one_two": "passed",
        "h.org/p.TestB": "skipped",
        "h.org/p.TestC": "failed",
        "h.org/q": "error",
    }
    assert parse_go('{"ImportPath":"h.org/q [h.org/q.test]","Action":"build-fail"}') == {"h.org/q": "error"}


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([("run", "TestA", ""), ("pass", "TestA", ""), *END], "passed"),
        ([("pass", "TestA", ""), *END], "error"),
        ([("run", "TestA", ""), *END], "error"),
        ([("run", "TestA", ""), ("pass", "TestA", ""), ("pass", None, "")], "error"),
        ([("run", "TestA", ""), ("pass", "TestA", ""), ("fail", "TestA", ""), ("fail", None, "")], "failed"),
        ([("run", "TestA", ""), ("pass", "TestA", "")], "error"),
        ([("run", "TestA", "")], "collected"),
    ],
    ids=["fair", "a pass without a run", "gone while it ran", "no last word", "both", "cut off", "cut off in a test"],
)
def test_a_go_test_passes_only_in_a_package_that_ended_as_packages_do(
    events: list[tuple[str, str | None, str]], status: str
) -> None:
    assert parse_go(go(*events)) == {"h.org/p.TestA": status}


def test_a_go_package_that_fails_by_itself_is_an_error() -> None:
    log = go(("run", "TestA", ""), ("pass", "TestA", ""), ("fail", None, ""))
    assert parse_go(log) == {"h.org/p.TestA": "passed", "h.org/p": "error"}


CARGO = """   Compiling till v0.1.0 (/testbed)
     Running unittests src/lib.rs (target/debug/deps/till-08a90677e73daa2f)

running 3 tests
test tests::adds ... ok
test tests::slow ... ignored, takes hours
test tests::panics - should panic ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.09s

     Running tests/cart.rs (target/debug/deps/cart-fea60d157c36005c)

running 2 tests
test works ... ok
test fails ... FAILED

failures:

---- fails stdout ----
test printed ... ok

failures:
    fails

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.08s

   Doc-tests till

running 1 test
test src/lib.rs - add (line 2) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s

"""


def test_cargo_logs_are_read() -> None:
    assert parse_cargo(CARGO) == {
        "till src/lib.rs tests::adds": "passed",
        "till src/lib.rs tests::slow": "skipped",
        "till src/lib.rs tests::panics": "passed",
        "cart tests/cart.rs works": "passed",
        "cart tests/cart.rs fails": "failed",
        "till doc src/lib.rs - add (line 2)": "passed",
    }


_BINARY = "     Running tests/cart.rs (target/debug/deps/cart-fea60d157c36005c)\n"
_GOOD = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.08s\n"


@pytest.mark.parametrize(
    "body",
    [
        "test works ... ok\n",
        "test works ... ok\ntest forged ... ok\n" + _GOOD,
        "test works ... ok\n" + _GOOD + "test works ... FAILED\n" + _GOOD,
        "test works ... ok\ntest works ... ok\n" + _GOOD.replace("1 passed", "2 passed"),
        "test works ... \n" + _GOOD,
    ],
    ids=["left before the result", "one line more", "a second result", "a test twice", "no end of a test"],
)
def test_a_cargo_binary_whose_lines_contradict_its_counts_passes_nothing(body: str) -> None:
    assert Status.passed not in parse_cargo(_BINARY + body).values()
    assert parse_cargo(_BINARY + body)
    assert parse_cargo(_BINARY + "test works ... ok\n" + _GOOD) == {"cart tests/cart.rs works": "passed"}


def suite(cases: str, counts: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="shop.CartTest" {counts}>{cases}</testsuite>\n'


CASES = """<testcase name="adds" classname="shop.CartTest" time="0.1"/>
<testcase name="param[a &lt; b]" classname="shop.CartTest"><system-out>x</system-out></testcase>
<testcase name="fails" classname="shop.CartTest"><failure type="x">trace</failure></testcase>
<testcase name="breaks" classname="shop.CartTest"><error type="x"/></testcase>
<testcase name="later" classname="shop.CartTest"><skipped/></testcase>"""


def test_surefire_reports_are_read_one_after_the_other() -> None:
    log = suite(CASES, 'tests="5" failures="1" errors="1" skipped="1"')
    log += suite('<testcase name="ok" classname="shop.TaxTest"/>', 'tests="1" failures="0" errors="0" skipped="0"')
    assert parse_surefire(log) == {
        "shop.CartTest#adds": "passed",
        "shop.CartTest#param[a < b]": "passed",
        "shop.CartTest#fails": "failed",
        "shop.CartTest#breaks": "error",
        "shop.CartTest#later": "skipped",
        "shop.TaxTest#ok": "passed",
    }


@pytest.mark.parametrize("counts", ['tests="6" failures="1" errors="1"', 'tests="5" failures="0" errors="1"'])
def test_a_surefire_report_with_wrong_counts_passes_nothing(counts: str) -> None:
    assert set(parse_surefire(suite(CASES, counts)).values()) == {"error", "failed", "skipped"}


def test_entities_and_cut_off_documents_of_xml_say_nothing() -> None:
    assert parse_surefire('<!DOCTYPE a [<!ENTITY b "c">]>' + suite("", "")) == {}
    assert parse_surefire(suite(CASES, 'tests="5"')[:-30]) == {}
