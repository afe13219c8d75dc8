"""Tests that print while their results are printed: a result counts wherever it stands, and what is printed is none."""

from __future__ import annotations

import json
from time import perf_counter

import pytest

from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status

P, F, E, S, X = Status.passed, Status.failed, Status.error, Status.skipped, Status.xfail

HEAD = "     Running tests/a.rs (target/debug/deps/a-0123456789abcdef)\n\n"


def tally(passed: int = 0, failed: int = 0, ignored: int = 0) -> str:
    word = "FAILED" if failed else "ok"
    return (
        f"\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; "
        "finished in 0.00s\n\n"
    )


def failing(*names: str, shown: str = "") -> str:
    blocks = "".join(f"---- {name} stdout ----\n{shown}\n" for name in names)
    return f"\nfailures:\n\n{blocks}\n\nfailures:\n" + "".join(f"    {name}\n" for name in names)


def binary(lines: str, end: str, tests: int = 2) -> str:
    return f"{HEAD}running {tests} test{'' if tests == 1 else 's'}\n{lines}{end}"


ONE_OF_TWO = failing("a") + tally(1, 1)
RUST: dict[str, tuple[str, dict[str, Status]]] = {
    # Honest.
    "before the name": (binary("50%test a ... ok\ntest b ... ok\n", tally(2)), {"a": P, "b": P}),
    "behind the name": (binary("test a ... some outputok\ntest b ... ok\n", tally(2)), {"a": P, "b": P}),
    "lines behind the name": (binary("test a ... one\ntwook\ntest b ... x\nok\n", tally(2)), {"a": P, "b": P}),
    "a failure": (binary("xtest a ... yFAILED\ntest b ... ok\n", ONE_OF_TWO), {"a": F, "b": P}),
    "a panic that is expected": (binary("..test a - should panic ... ok\ntest b ... ok\n", tally(2)), {"a": P, "b": P}),
    "ignored": (binary("test a ... ignored, not ok\n..test b ... ok\n", tally(1, 0, 1)), {"a": S, "b": P}),
    "a word of its own": (binary("test a ... FAILED\nok\ntest b ... okok\n", tally(2)), {"a": P, "b": P}),
    "words of a test": (binary("test data: test a ... ok\ntest b ... ok\n", tally(2)), {"a": P, "b": P}),
    "cases as trybuild prints them": (
        binary("test ui/a.rs ... ok\ntest ui/b.rs ... ok\ntest a ... ok\ntest b ... ok\n", tally(2)),
        {"a": P, "b": P},
    ),
    "a text like the end of a line": (binary("latest run ... ok\ntest a ... ok\n", tally(1), 1), {"a": P}),
    "a heading": (binary("failures:\ntest a ... ok\ntest b ... ok\n", tally(2)), {"a": P, "b": P}),
    "a result of another run among what failed": (
        binary("test a ... FAILED\ntest b ... ok\n", failing("a", shown=tally(7)) + tally(1, 1)),
        {"a": F, "b": P},
    ),
    "behind the result": (binary("test a ... ok\ntest b ... ok\n", tally(2) + "bye"), {"a": P, "b": P}),
    "a word that cannot be told": (binary("test a ... okzz\ntest b ... ok\n", tally(2)), {"a": E, "b": P}),
    "a failure that cannot be told": (binary("test a ... FAILzz\ntest b ... ok\n", ONE_OF_TWO), {"a": F, "b": P}),
    "a test that is not named": (binary("test b ... ok\n", tally(2)), {"b": P}),
    "a name with blanks": (binary("test [ui] a b ... ok\ntest b ... ok\n", tally(2)), {"[ui] a b": P, "b": P}),
    "what passing tests printed": (
        binary(
            "test a ... ok\nxtest b ... ok\n",
            f"\nsuccesses:\n\n---- a stdout ----\ntest z ... FAILED{tally(0, 2)}\nsuccesses:\n    a\n    b\n{tally(2)}",
        ),
        {"a": P, "b": P},
    ),
    "colours": (
        binary("50%test a ... \x1b[32mok\x1b[0m\ntest b ... \x1b[32mok\x1b[0m\n", tally(2)),
        {"a": P, "b": P},
    ),
    "times": (binary("50%test a ... ok <0.003s>\ntest b ... xok <0.1s>\n", tally(2)), {"a": P, "b": P}),
    "a progress bar": (binary("\r10%test a ... ok\ntest b ... \r99%ok\n", tally(2)), {"a": P, "b": P}),
    "words between": (binary("ok\nFAILED\ntest b ... ok\nok\ntest a ... FAILED\nok\n", ONE_OF_TWO), {"a": F, "b": P}),
    # Forged.
    "a whole line of another test": (binary("test a ... FAILED\ntest c ... ok\ntest b ... ok\n", ONE_OF_TWO), {"a": F}),
    "its own line": (binary("test a ... ok\ntest a ... FAILED\ntest b ... ok\n", ONE_OF_TWO), {"a": E, "b": E}),
    "its own line with one thread": (binary("test a ... ok\nFAILED\ntest b ... ok\n", ONE_OF_TWO), {"a": F, "b": P}),
    "the line of another": (binary("test a ... ok\ntest b ... FAILED\ntest b ... ok\n", ONE_OF_TWO), {"a": E, "b": E}),
    "the line of one that is not there": (
        binary("test a ... ok\ntest c ... FAILED\nxtest b ... ok\n", ONE_OF_TWO),
        {"a": E, "c": F},
    ),
    "killed after ok": (binary("test b ... ok\ntest a ... ok\n", ""), {"a": E, "b": E}),
    "killed after ok on its line": (binary("test b ... ok\ntest a ... xok", ""), {"a": E, "b": E}),
    "a result for too few": (binary("test a ... ok\n", tally(1)), {"a": E}),
    "a result before the true one": (
        binary("test a ... ok\ntest b ... ok\n" + tally(2) + "test a ... FAILED\n", ONE_OF_TWO),
        {"a": E, "b": E},
    ),
    "a result behind the true one": (
        binary("test a ... FAILED\ntest b ... ok\n", ONE_OF_TWO + "test a ... ok\n" + tally(2)),
        {"a": F, "b": E},
    ),
    "all, and a heading": (
        binary("test a ... ok\ntest b ... ok\nfailures:\ntest a ... FAILED\ntest b ... ok\n", ONE_OF_TWO),
        {"a": F, "b": P},
    ),
    "all, a heading and a result": (
        binary(f"test a ... ok\ntest b ... ok\nfailures:\n{tally(2)}test a ... FAILED\ntest b ... ok\n", ONE_OF_TWO),
        {"a": F, "b": P},
    ),
    "a result that says ok of failures": (
        binary("test a ... ok\ntest b ... ok\n", tally(2, 1).replace("FAILED", "ok"), 3),
        {"a": E, "b": E},
    ),
    "a result that cannot be told": (binary("test a ... \n", tally(1), 1), {"a": E}),
    "a list of its own": (
        binary("test a ... ok\nFAILED\ntest b ... ok\n", failing("a") + "\nfailures:\n    zz\n" + tally(1, 1)),
        {"a": E, "b": E},
    ),
}


@pytest.mark.parametrize("name", RUST)
def test_a_binary_of_rust_is_read_by_its_counts_whatever_its_tests_print(name: str) -> None:
    log, expected = RUST[name]
    statuses = {test.removeprefix("a tests/a.rs "): status for test, status in RUNNERS["cargo"].parse(log).items()}
    passed = {test for test, status in statuses.items() if status is P}
    assert expected.items() <= statuses.items(), statuses
    assert passed == {test for test, status in expected.items() if status is P}


def test_what_a_binary_leaves_before_the_next_one_hides_neither() -> None:
    log = binary("test a ... ok\n", tally(1) + "bye     Running tests/b.rs (target/debug/deps/b-0123456789abcdef)\n", 1)
    log += (
        "running 1 test\ntest c ... ok\n"
        + tally(1)
        + "bye   Doc-tests till\nrunning 1 test\ntest src/lib.rs - f (line 2) ... ok\n"
    )
    assert RUNNERS["cargo"].parse(log + tally(1)) == {
        "a tests/a.rs a": P,
        "b tests/b.rs c": P,
        "till doc src/lib.rs - f (line 2)": P,
    }


def events(*rows: str | tuple[str, str], start: bool = False) -> str:
    """Go's events: ``action test`` or ``action``, or output with its test."""
    lines: list[dict[str, str]] = [{"Action": "start", "Package": "m"}] if start else []
    for row in rows:
        if isinstance(row, tuple):
            lines.append({"Package": "m", "Action": "output", "Output": row[1], **({"Test": row[0]} if row[0] else {})})
        else:
            action, _, test = row.partition(" ")
            lines.append({"Package": "m", "Action": action, **({"Test": test} if test else {})})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


GOOD = (("", "PASS\n"), "pass")
BAD = (("", "FAIL\n"), "fail")
DONE = "--- PASS: A (0.00s)\n"
FAILED = "--- FAIL: A (0.00s)\n"
GO: dict[str, tuple[str, dict[str, Status]]] = {
    # Honest.
    "behind what it prints": (events("run A", ("A", "dots" + DONE), *GOOD), {"A": P}),
    "in the output of another": (events("run A", "run B", ("B", "x" + DONE), "pass B", *GOOD), {"A": P, "B": P}),
    "in pieces": (events("run A", ("A", "." * 40 + "--- PA"), ("A", "SS: A (0.00s)\n"), *GOOD), {"A": P}),
    "skipped": (events("run A", ("A", "x--- SKIP: A (0.00s)\n"), *GOOD), {"A": S}),
    "a failure": (events("run A", ("A", "x" + FAILED), *BAD), {"A": F}),
    "beside a failure": (events("run A", ("A", "x" + DONE), "run B", "fail B", *BAD), {"A": P, "B": F}),
    "subtests": (
        events(
            "run A",
            ("A", "pre=== RUN   A/one\n"),
            ("A", "in" + DONE),
            ("A", "    --- PASS: A/one (0.00s)\n"),
            *GOOD,
        ),
        {"A": P, "A/one": P},
    ),
    "of Windows": (events("run A", ("A", "x--- PASS: A (0.00s)\r\n"), ("", "PASS\r\n"), "pass"), {"A": P}),
    "seeds of a fuzz test": (
        events(
            "run F",
            "run F/seed#0",
            ("F/seed#0", "x--- PASS: F (0.0s)\n"),
            ("F", "  --- PASS: F/seed#0 (0.0s)\n"),
            *GOOD,
        ),
        {"F": P, "F/seed#0": P},
    ),
    "before the last word": (events("run A", "pass A", ("A", "tickPASS\n"), ("", "ok  \tm\t0.1s\n"), "pass"), {"A": P}),
    # Forged.
    "one that fails later": (
        events("run A", ("A", "x--- PASS: B (0.00s)\n"), "pass A", "run B", ("B", "y--- FAIL: B (0.00s)\n"), *BAD),
        {"A": P, "B": F},
    ),
    "and panics": (
        events("run A", ("A", "x" + DONE), ("A", "panic: boom\n"), ("", "FAIL\tm\t0.1s\n"), "fail"),
        {"A": E},
    ),
    "and then fails": (events("run A", ("A", "x" + DONE), "fail A", *BAD), {"A": F}),
    "and then fails on its line": (events("run A", ("A", "x" + DONE), ("A", "y" + FAILED), *BAD), {"A": F}),
    "an event, and then fails on its line": (events("run A", "pass A", ("A", "y" + FAILED), *BAD), {"A": F}),
    "and is killed": (events("run A", ("A", "x" + DONE), "fail"), {"A": E}),
    "and leaves with code 0": (events("run A", ("A", "x" + DONE), "pass"), {"A": E}),
    "and leaves with a last word": (events("run A", ("A", "x" + DONE), *BAD), {"A": E}),
    "one that did not run": (events("run B", ("B", "x" + DONE), "pass B", *GOOD), {"B": P}),
    "where go marks its lines": (events("run A", ("A", "x" + DONE), *GOOD, start=True), {"A": E}),
    "a beginning where go marks its lines": (
        events("run B", ("B", "=== RUN   A\n"), ("B", DONE), "pass B", *GOOD, start=True),
        {"B": P},
    ),
    "a verdict against the package": (events("run A", ("A", "x" + DONE), ("", "PASS\n"), "fail"), {"A": E}),
}


@pytest.mark.parametrize("name", GO)
def test_a_test_of_go_ends_wherever_its_line_does_and_its_package_has_to_agree(name: str) -> None:
    log, expected = GO[name]
    statuses = {test.removeprefix("m."): status for test, status in RUNNERS["go"].parse(log).items()}
    assert {test: status for test, status in statuses.items() if test != "m"} == expected


def unittests(lines: str, ran: int, failed: str = "") -> str:
    head = f"{'=' * 70}\nFAIL: {failed} (m.C.{failed})\n{'-' * 70}\nTraceback\n\n" if failed else ""
    end = f"FAILED (failures={1})" if failed else "OK"
    return f"{lines}\n{head}{'-' * 70}\nRan {ran} test{'s' * (ran != 1)} in 0.001s\n\n{end}\n"


A, B = "test_a (m.C.test_a) ... ", "test_b (m.C.test_b) ... "
UNITTEST: dict[str, tuple[str, dict[str, Status]]] = {
    "behind": (unittests(f"{A}dotsok\n{B}ok\n", 2), {"a": P, "b": P}),
    "before": (unittests(f"{A}ok\nbye{B}ok\n", 2), {"a": P, "b": P}),
    "lines": (unittests(f"{A}value (fast)\nthreeok\n{B}ok\n", 2), {"a": P, "b": P}),
    "a word that is no result": (unittests(f"{A}FAIL\nok\n{B}xskipped 'why ok'\n", 2), {"a": P, "b": S}),
    "an expected failure": (unittests(f"{A}okexpected failure\n", 1), {"a": X}),
    "before fails": (unittests(f"{A}ok\nx{B}FAIL\n", 2, "test_b"), {"a": P, "b": F}),
    "colours": (
        unittests(f"{A}\x1b[32mok\x1b[0m\n{B}\x1b[36mx\x1b[0mok\n", 2).replace("OK", "\x1b[32mOK\x1b[0m"),
        {"a": P, "b": P},
    ),
    "a test without a word": (unittests(f"{A}okzz\n{B}ok\n", 2), {"a": E, "b": P}),
    "forged, and fails": (unittests(f"{A}ok\nFAIL\n{B}ok\n", 2, "test_a"), {"a": F, "b": P}),
    "forged, and killed": (f"{B}ok\n{A}ok\n", {"a": E, "b": E}),
    "forged, of another": (unittests(f"{A}{B}ok\nok\n", 1), {"a": E, "b": E}),
}


@pytest.mark.parametrize("name", UNITTEST)
def test_unittest_is_read_by_its_count(name: str) -> None:
    log, expected = UNITTEST[name]
    assert {test.removeprefix("m.C.test_"): it for test, it in RUNNERS["unittest"].parse(log).items()} == expected


def session(lines: str, counts: str, summary: str = "") -> str:
    heading = f"{'=' * 10} short test summary info {'=' * 10}\n{summary}" if summary else ""
    return f"{lines}\n{heading}{'=' * 20} {counts} in 0.12s {'=' * 20}\n"


PYTEST: dict[str, tuple[str, dict[str, Status]]] = {
    "behind": (session("t.py::a dotsPASSED\nt.py::b PASSED\n", "2 passed"), {"a": P, "b": P}),
    "behind, with a blank": (session("t.py::a some text PASSED  [ 50%]\n", "1 passed"), {"a": P}),
    "lines": (session("t.py::a[x - y] one\ntwoPASSED\n", "1 passed"), {"a[x - y]": P}),
    "after the word": (session("t.py::a PASSEDbye\n", "1 passed"), {"a": P}),
    "as live logs are shown": (session("t.py::a \n-- live log call --\nINFO x\nPASSED [100%]\n", "1 passed"), {"a": P}),
    "a test that is inherited": (session("t.py::a <- u.py dotsPASSED\n", "1 passed"), {"a": P}),
    "of a worker, behind": (
        session("[gw0] [ 50%] PASSED t.py::a \ndots[gw1] [100%] PASSED t.py::b \n", "2 passed"),
        {"a": P, "b": P},
    ),
    "a rerun": (session("t.py::a xRERUN   [ 50%]\nt.py::a yPASSED [100%]\n", "1 passed, 1 rerun"), {"a": P}),
    "subtests": (
        session(
            "t.py::a xSUBPASSED(i=0)y\nt.py::a SUBSKIPPED(i=1) (no)\nt.py::a zPASSED\nt.py::b SUBPASSED[one]\n"
            "t.py::b SUBFAILED[two] (i=1)\nt.py::b PASSED\nt.py::c PASSED\n",
            "1 failed, 2 passed, 1 skipped, 2 subtests passed",
            "SUBFAILED[two] (i=1) t.py::b - assert 0\n",
        ),
        {"a": P, "b": F, "c": P},
    ),
    "subtests of a plugin": (
        session("t.py::a SUBFAIL\nt.py::a PASSED\n", "1 failed, 1 passed", "SUBFAIL t.py::a - assert 0\n"),
        {"a": F},
    ),
    "a subtest alone": (
        session("t.py::a SUBPASSED\nt.py::b PASSED\n", "1 passed, 1 subtests passed"),
        {"a": E, "b": P},
    ),
    "a name of C++": (session("t.py::a \nstd::vector x\nPASSED\n", "1 passed"), {"a": P}),
    "before the result": ("t.py::a PASSED\nbye" + session("", "1 passed").strip(), {"a": P}),
    "no word": (session("t.py::a \nt.py::b PASSED\n", "1 passed"), {"a": E, "b": P}),
    "forged, and fails": (
        session("t.py::a PASSED [ 9%]\nFAILED\nt.py::b PASSED\n", "1 failed, 1 passed", "FAILED t.py::a - x\n"),
        {"a": F, "b": P},
    ),
    "forged at the end, and fails": (
        session("t.py::a FAILED\nPASSED\n", "1 failed", "FAILED t.py::a - x\n"),
        {"a": F},
    ),
    "forged, without a summary": (session("t.py::a FAILED\nPASSED\n", "1 failed"), {"a": E}),
    "forged, and killed": ("t.py::b PASSED\nt.py::a PASSED  [100%]\n", {"a": E, "b": E}),
    "forged, of another": (session("t.py::a \nt.py::b PASSED [ 9%]\nPASSED\n", "1 passed"), {"a": E, "b": P}),
}


@pytest.mark.parametrize("name", PYTEST)
def test_what_pytest_prints_is_read_by_its_counts(name: str) -> None:
    log, expected = PYTEST[name]
    assert {test.removeprefix("t.py::"): it for test, it in RUNNERS["pytest"].parse(log).items()} == expected


REPORT = json.dumps(
    {"testResults": [{"name": "a.js", "assertionResults": [{"ancestorTitles": [], "title": "t", "status": "failed"}]}]}
)


@pytest.mark.parametrize(
    "log",
    [
        "dots" + REPORT,
        "dots" + REPORT + "bye",
        REPORT.replace("failed", "passed") + "\n" + REPORT,
        REPORT.replace("failed", "passed") + "\nx" + REPORT,
        "x" + REPORT.replace("failed", "passed") + "y" + REPORT,
        '{"a": 1}\n' * 20 + "{" + REPORT,
        "{ a: 1\n" * 3000 + REPORT,
        f'{{"testResults": {"1" * 5000}}}\n{"[" * 9}{REPORT}',
    ],
)
def test_a_report_in_json_may_share_its_line_and_the_last_one_counts(log: str) -> None:
    assert RUNNERS["jest"].parse(log) == {"a.js > t": F}


@pytest.mark.parametrize("runner", ["jest", "vitest", "mocha", "go"])
@pytest.mark.parametrize(
    "value",
    ["1" * 5000, "1", "null", "{}", "[null, 1, []]", '[{"assertionResults": [{"title": {}, "status": []}]}]',
     '[{"file": 1}]', '[{"name": null, "assertionResults": 1, "status": "failed"}]'],
)  # fmt: skip
def test_what_a_test_prints_in_the_shape_of_a_report_can_be_anything(runner: str, value: str) -> None:
    printed = f'{{"testResults": {value}, "stats": 1, "passes": {value}, "Action": {value}, "Package": {value}}}\n'
    assert RUNNERS[runner].parse(printed) == {}


def test_what_looks_like_many_objects_is_read_in_time() -> None:
    began = perf_counter()
    assert RUNNERS["jest"].parse('x{"a": [' * 3000) == {}
    assert perf_counter() - began < 1


def suite(*cases: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="C">{"".join(cases)}</testsuite>\n'


def case(name: str, printed: str = "", inner: str = "") -> str:
    return f'<testcase name="{name}" classname="C">{inner}<system-out><![CDATA[{printed}]]></system-out></testcase>'


FORGED = (
    '<?xml version="1.0"?><testsuite name="C"><testcase name="f" classname="C"/></testsuite>\n<?xml version="1.0"?>'
)


@pytest.mark.parametrize(
    "printed", ["dots", '<?xml version="1.0"?><x/>', FORGED, "<!DOCTYPE html>", "<!ENTITY a 'b'>", "]]"]
)
def test_xml_that_a_test_of_java_prints_is_text(printed: str) -> None:
    log = suite(case("a", printed), case("b", printed, "<failure/>")) + suite(case("c"))
    assert RUNNERS["surefire"].parse(log) == {"C#a": P, "C#b": F, "C#c": P}


@pytest.mark.parametrize("cut", [2, 20, 45, 60])
def test_a_report_that_was_cut_off_passes_nothing_that_was_printed_in_it(cut: int) -> None:
    assert RUNNERS["surefire"].parse(suite(case("a", FORGED))[:-cut]) == {}
