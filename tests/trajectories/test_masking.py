"""What two runs of a command have in common, and whether a claimed excerpt stands in real output."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.growth import assert_linear
from trajectories.curation.graphs.masking import masked, shown_lines, shows

SAME = [
    # dates and times
    ("2024-05-01", "2025-12-31"),
    ("at 2024-05-01T10:20:30Z.", "at 2024-05-02T11:21:31Z."),
    ("at 2024-05-01T10:20:30.123456+02:00", "at 2024-05-01T08:20:30.5+00:00"),
    ("2024-05-01 10:20:30,123 INFO ready", "2024-05-01 10:20:31,007 INFO ready"),
    ("Modify: 2024-05-01 10:20:30.123456789 +0000", "Modify: 2024-05-02 00:00:00.000000001 +0000"),
    ("[10:20:30] ready", "[23:59:59] ready"),
    ("10:20:30.123 ready", "10:20:31.5 ready"),
    ("took 0:00:01.234567", "took 0:00:00.000012"),
    ("Wed May  1 10:20:30 2024", "Thu May  2 11:00:00 2024"),
    ("Date:   Wed May 01 10:20:30 2024 +0200", "Date:   Thu May 02 11:00:00 2024 +0200"),
    ("Wed, 01 May 2024 10:20:30 GMT", "Thu, 02 May 2024 10:20:31 GMT"),
    ('1.2.3.4 - - [01/May/2024:10:20:30 +0000] "GET /"', '1.2.3.4 - - [02/May/2024:11:20:30 +0000] "GET /"'),
    ("-rw-r--r-- 1 root root 120 May  1 10:20 a.py", "-rw-r--r-- 1 root root 120 Dec 31  2023 a.py"),
    # spans of time
    ("done in 0.12s", "done in 11.3s"),
    ("0.034 seconds", "1 second"),
    ("built in 12ms", "built in 1,204ms"),
    ("took 1.5e-05 s", "took 2 s"),
    ("took 12 \u00b5s, 3us and 1 ns", "took 1 \u03bcs, 40us and 9 ns"),
    ("real\t0m0.123s", "real\t1m10.001s"),
    ("BUILD SUCCESSFUL in 1m 3s", "BUILD SUCCESSFUL in 59s"),
    ("took 1 minute, 3 seconds", "took 2 minutes"),
    ("BenchmarkSum-8   1000   1234 ns/op", "BenchmarkSum-8   1000   99 ns/op"),
    # runners
    ("====== 3 passed in 0.12s ======", "===== 3 passed in 10.12s ======"),
    ("= 3 failed, 12 passed, 2 skipped in 0.12s =", "== 3 failed, 12 passed, 2 skipped in 0.1s =="),
    ("=== 3 passed in 59.90s ===", "== 3 passed in 60.10s (0:01:00) =="),
    ("____ test_a ____\n", "______ test_a _______\n"),
    ("-----\nRan 3 tests in 0.001s", "--------\nRan 3 tests in 0.1s"),
    ("test result: ok. 3 passed; finished in 0.00s", "test result: ok. 3 passed; finished in 1.20s"),
    ("ok  \texample.org/sums\t0.003s", "ok  \texample.org/sums\t(cached)"),
    ("--- PASS: TestX (0.00s)", "--- PASS: TestX (0.01s)"),
    ("FAIL\texample.org/sums\t0.003s", "FAIL\texample.org/sums\t0.3s"),
    ("Time:        1.2 s", "Time:        0.9 s, estimated 1 s"),
    ("  ✓ adds (1 ms)", "  ✓ adds"),
    ("PASS src/a.test.js (5.123 s)", "PASS src/a.test.js"),
    ("  3 passing (5ms)", "  3 passing (1s)"),
    ("✓ adds (1 ms)   (2 ms)", "✓ adds"),
    (" ✓ src/a.test.ts (3 tests) 5ms", " ✓ src/a.test.ts (3 tests) 12ms"),
    ("# duration_ms 12.345", "# duration_ms 7"),
    ("Tests run: 1, Time elapsed: 0.012 s -- in a.B", "Tests run: 1, Time elapsed: 1 s -- in a.B"),
    ("Total time:  59.120 s", "Total time:  01:02 min"),
    ("1/1 Test #1: sums ....   Passed    0.01 sec", "1/1 Test #1: sums ....   Passed   10.01 sec"),
    # addresses, paths, processes
    ("<Foo object at 0x7f3a1c2b4d50>", "<Foo object at 0x7f00deadbeef>"),
    ("<Foo object at 0x104a5b>", "<Foo object at 0x104a5c00>"),
    ("main.f(0xc0000b6000)", "main.f(0xc0000b8010)"),
    ("/tmp/xyz", "/tmp/tmpab12cd_x"),
    ("open('/tmp/a/out.txt')", "open('/private/tmp/b/out.txt')"),
    ("/var/tmp/a.b-c/x", "/tmp/d/x"),
    ("/tmp/pytest-of-ann/pytest-0/test_a0/x", "/tmp/pytest-of-root/pytest-12/popen-gw1/test_a0/x"),
    ("/var/folders/zz/ab_12c/T/tmpab12cd_x/out", "/var/folders/q1/xy/T/tmpzzzzzzzz/out"),
    ("/tmp/build/tmpab12cd_x.txt", "/tmp/build/tmp00000000.txt"),
    ("/tmp/build/tmp.AbCdEf1234/x", "/tmp/build/tmp.0123456789/x"),
    ("file:///tmp/a/index.html", "file:///tmp/b/index.html"),
    ("TMPDIR=/tmp/a:/usr/bin", "TMPDIR=/tmp/b:/usr/bin"),
    ("server with pid 1234 ended", "server with pid 7 ended"),
    # a terminal
    ("\x1b[32m3 passed\x1b[0m in \x1b[1m0.12s\x1b[0m", "3 passed in 1.00s"),
    ("\x1b]0;title\x07ready", "ready"),
]

DIFFERENT = [
    # counts, values, versions
    ("3 passed in 0.12s", "4 passed in 0.12s"),
    ("Ran 3 tests in 0.001s", "Ran 2 tests in 0.001s"),
    ("assert x == 0.12", "assert x == 0.13"),
    ("1.5", "1.6"),
    ("-1.5", "1.5"),
    ("widget 1.2.3", "widget 1.2.4"),
    ("widget-1.2.3s", "widget-1.2.4s"),
    ("a.py:12: error", "a.py:13: error"),
    ("a.c:12:34:56", "a.c:12:34:57"),
    ("line 12, in f", "line 13, in f"),
    ("80%", "81%"),
    ("1714550400", "1714550401"),
    ("1714550400.123", "1714550401.123"),
    ("12 KB", "13 KB"),
    ("5 m", "6 m"),
    ("5 days", "6 days"),
    ("5 items", "6 items"),
    ("n=5 min=0.1", "n=6 min=0.1"),
    ("10:20", "10:21"),
    ("25:61:61", "25:61:62"),
    ("00:11:22:33:44:55", "00:11:22:33:44:56"),
    ("2024-13-01", "2024-14-01"),
    ("report-2024-05-01", "report-2024-05-02"),
    ("x[1:10:20]", "x[1:10:21]"),
    # code and names
    ("'%5s %-10s'", "'%6s %-10s'"),
    ("'%5s %-10s'", "'%5s %-11s'"),
    ("f'{x:5s}'", "f'{x:6s}'"),
    ("test_5s", "test_6s"),
    ("run-5s", "run-6s"),
    ("5s.log", "6s.log"),
    ("sites/5s", "sites/6s"),
    ("0xff", "0xfe"),
    ("0xdeadbeef", "0xdeadbeee"),
    ("0xcbf29ce484222325", "0xcbf29ce484222326"),
    # paths
    ("/tmp/a/out.txt", "/tmp/a/err.txt"),
    ("/tmp/a.py:12:", "/tmp/a.py:13:"),
    ("/tmp/pytest-of-ann/pytest-0/test_a0", "/tmp/pytest-of-ann/pytest-0/test_b0"),
    ("/testbed/tmp/a", "/testbed/tmp/b"),
    ("/var/log/a", "/var/log/b"),
    ("/tmp", "/var"),
    ("/tmp/../a", "/tmp/../b"),
    ("template tmpab12cd_x", "template tmpab12cd_y"),
    # results and rules
    ("--- PASS: TestX (0.00s)", "--- FAIL: TestX (0.00s)"),
    ("✓ adds (1 ms)", "✗ adds (1 ms)"),
    ("✓ adds (1 ms)", "✓ subtracts (1 ms)"),
    ("ok  \ta\t(cached)", "FAIL\ta\t0.1s"),
    ("=== 3 passed in 0.12s ===", "--- 3 passed in 0.12s ---"),
    ("a == b", "a === b"),
    ("a -- b", "a --- b"),
    ("== a ==", "= a ="),
    ("[1234] ready", "[1235] ready"),
    ("in 0.12s", "in 0.12 kg"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_a_run_decides_is_masked(one: str, other: str) -> None:
    assert masked(one) == masked(other)
    assert shows(one, other) and shows(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_the_tree_decides_is_not_masked(one: str, other: str) -> None:
    assert masked(one) != masked(other)
    assert not shows(one, other) and not shows(other, one)


def test_a_mask_says_what_it_covers() -> None:
    text = "10:20:30 <A object at 0x7f3a1c2b4d50> of pid 12 wrote /tmp/tmpab12cd_x/out.txt in 0.12s."
    assert masked(text) == "<time> <A object at <address>> of pid <pid> wrote <temp>/out.txt in <time>."
    assert masked("===== 3 passed in 0.12s =====") == "=== 3 passed in <time> ==="
    assert masked("--- PASS: TestX (0.00s)") == "--- PASS: TestX (<time>)"
    assert masked("see /tmp/a, /tmp/b.\r\n") == "see <temp>, <temp>.\r\n"


@pytest.mark.parametrize(
    ("claimed", "lines"),
    [
        ("alpha", [0]),
        ("alpha\nbeta", [0, 1]),
        ("beta  \t\r\n\ngamma\n", [1, 2, 3]),
        ("\n \n\x1b[1mgamma\x1b[0m\n\n", [3]),
        ("gamma\n\nbeta\ndelta in 0.30s", [3, 4, 5]),
        ("alpha\n\ndelta in 0.30s", [0, 5]),
        ("alpha\n[...]\ngamma\n  [...]\ndelta in <time>", [0, 3, 5]),
        ("[...]\nbeta\n\n[...]\n\nbeta\n[...]", [1, 4]),
        ("alpha\n[...]\nbeta", [0, 1]),
        ("  indented", [6]),
        ("", []),
        (" \n\n", []),
        ("[...]", []),
        ("alph", []),
        ("alpha\ngamma", [0, 3]),
        ("beta\n  indented", [1, 6]),
        ("gamma\nalpha", []),
        ("gamma\n\nalpha", []),
        ("alpha\n[...]\nalpha", []),
        ("indented", []),
        ("alpha\n...\ngamma", []),
        ("alpha\n\nzeta", []),
    ],
)
def test_a_claim_is_runs_of_lines_in_order(claimed: str, lines: list[int]) -> None:
    real = "alpha\nbeta\n\ngamma\r\nbeta\ndelta in 0.12s  \n  indented\n"
    assert shown_lines(real, claimed) == lines
    assert shows(real, claimed) is bool(lines)


def test_a_place_whose_blank_lines_are_real_is_taken_before_an_earlier_one() -> None:
    assert shown_lines("a\nx\na\n\nb", "a\n\nb") == [2, 3, 4]


def view(form: str, lines: list[str], first: int = 9) -> str:
    return "\n".join(form % (number, line) for number, line in enumerate(lines, first))


CODE = ["def f(x):", "    if x:", "        return 12", "", "    return {1: x, 22: '5s'}"]
FORMS = ["%6d\t%s", "%d:%s", "%4d  %s"]


@pytest.mark.parametrize("real", [view(form, CODE) for form in FORMS])
@pytest.mark.parametrize("claimed", [*(view(form, CODE) for form in FORMS), "\n".join(CODE)])
def test_the_numbers_of_a_view_are_written_in_any_way_or_left_out(real: str, claimed: str) -> None:
    assert shown_lines(f"a.py\n{real}\n", claimed, numbered=True) == [1, 2, 3, 4, 5]
    assert shown_lines(f"a.py\n{real}\n", f"{claimed[: claimed.index('2')]}3", numbered=True) == []
    assert shows(real, claimed) is (real == claimed)


@pytest.mark.parametrize("real", FORMS)
@pytest.mark.parametrize("claimed", FORMS)
def test_a_claim_with_other_numbers_than_the_real_ones_is_false(real: str, claimed: str) -> None:
    for first in (1, 8, 10, 90):
        assert not shows(view(real, CODE), view(claimed, CODE, first), numbered=True)


@pytest.mark.parametrize("claimed", FORMS)
def test_numbers_are_ignored_where_the_real_lines_have_none(claimed: str) -> None:
    assert shown_lines("\n".join(CODE), view(claimed, CODE[1:3]), numbered=True) == [1, 2]


def test_a_view_may_be_claimed_in_pieces() -> None:
    real = view("%6d\t%s", CODE)
    assert shown_lines(real, "9:def f(x):\n[...]\n11:        return 12", numbered=True) == [0, 2]
    assert shown_lines(real, "9  def f(x):\n\n11          return 12", numbered=True) == [0, 2]
    assert shown_lines(real, "def f(x):\n\n        return 12", numbered=True) == [0, 2]
    assert not shows(real, "9:def f(x):\n[...]\n12:        return 12", numbered=True)
    assert not shows(real, "9:def f(x):\n[...]\n11:return 12", numbered=True)


def test_code_that_begins_with_a_number_is_found_with_and_without_the_number_of_its_line() -> None:
    real = "     1\tports:\n     2\t80:8080\n     3\t42"
    for claimed in ("80:8080\n42", "2:80:8080", "     2\t80:8080\n     3\t42"):
        assert shows(real, claimed, numbered=True)
    for claimed in ("81:8080", "2:81:8080", "     3\t80:8080", "43"):
        assert not shows(real, claimed, numbered=True)


# fmt: off
PIECES = st.sampled_from([
    "2024-05-01", "T", "10:20:30", ".5", "Z", "+02:00", " ", "  ", "\t", "\n", "\r", "12", "0.12", "s", "ms",
    "seconds", "1m", "h", "min", ",", "in ", "(0:01:05)", "(", ")", ", estimated ", "/tmp/", "/var/tmp", "/private",
    "/", "tmpab12cd_x", "/var/folders/a/b/T", "file://", "pytest-of-a/pytest-0", "0x7f3a1c2b4d50", "at ", "0x104a5b",
    "pid ", "===", "=", "---", "-", "_", "✓ ", "PASS ", "ok  a ", "(cached)", "duration_ms ", "May  1 ", "Wed ",
    "01/May/2024:", "<time>", "<temp>", "<", ">", "\x1b[", "\x1b", "0m", "word", "é", ":", ".", "%", "'", "}",
    "[...]", "٣", "min ", "/TestX", "#", "60.1s", "12:20 min", "GMT", "1 day",
])
# fmt: on
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40)


@given(TEXTS)
def test_masking_is_done_after_one_pass(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@given(TEXTS)
def test_each_line_is_masked_for_itself(text: str) -> None:
    assert masked(text) == "\n".join(map(masked, text.split("\n")))


@given(st.lists(TEXTS, min_size=1, max_size=8).map("\n".join), st.data())
def test_any_run_of_lines_is_shown(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    first = data.draw(st.integers(0, len(lines) - 1))
    claimed = "\n".join(lines[first : data.draw(st.integers(first, len(lines))) + 1])
    assume(any(line.strip() not in {"", "[...]"} for line in masked(claimed).split("\n")))
    assert shows(text, claimed)
    assert shows(text, claimed, numbered=True)
    assert shows(text, masked(claimed))


WORDS = st.text("abcdefgh", min_size=1, max_size=8)
MASKED = st.sampled_from(
    ["10:20:30", "0.12s", "2024-05-01", "/tmp/pytest-of-ann/pytest-0/x", "0x7f3a1c2b4d50", "pid 12", "(5 ms)"]
)


@given(st.lists(st.tuples(WORDS, MASKED, WORDS), min_size=1, max_size=6), st.data())
def test_a_changed_letter_outside_of_a_mask_makes_a_claim_false(
    parts: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    real = "\n".join(map(" ".join, parts))
    number = data.draw(st.integers(0, len(parts) - 1))
    before, mask, after = parts[number]
    place = data.draw(st.integers(0, len(before) - 1))
    changed = f"{before[:place]}{data.draw(st.sampled_from('xyz'))}{before[place + 1 :]}"
    assert shows(real, f"{before} {mask} {after}")
    assert not shows(real, f"{changed} {mask} {after}")
    assert not shows(real, f"{before} {mask} {after}{changed}")
    for numbered in (False, True):
        lines = real.split("\n")
        lines[number] = f"{changed} {mask} {after}"
        assert not shows(real, "\n".join(lines), numbered=numbered)


@given(MASKED, WORDS)
def test_a_changed_letter_within_a_mask_does_not(mask: str, word: str) -> None:
    assert shows(f"{word} 10:20:30 /tmp/{word}/x {mask}", f"{word} 10:20:31 /tmp/{word}z/x {mask}")


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "text",
    [
        lambda n: "1" * 4 * n,
        lambda n: "1,111" * n,
        lambda n: "1,111 " * n,
        lambda n: "1h" * 2 * n,
        lambda n: "1 h 1 m " * n,
        lambda n: "1e" * 2 * n,
        lambda n: "12:" * 2 * n,
        lambda n: "2024-05-01" * n,
        lambda n: "/tmp/" * n + "." * 2 * n,
        lambda n: "/tmp/" + "." * 4 * n,
        lambda n: "/var/folders" * n,
        lambda n: "/tmp/pytest-of-" * n,
        lambda n: "/tmp/a" + "/tmp" * n,
        lambda n: "0x" + "0" * 4 * n,
        lambda n: "0x7" * 2 * n,
        lambda n: "=" * 4 * n + "x",
        lambda n: "=== " * n + "x",
        lambda n: "= in <time> " + "= " * 2 * n + "x",
        lambda n: "= " + "in <time> =" * n + "x",
        lambda n: " " * 4 * n + "x",
        lambda n: "✓ " + " <time>" * n + "x",
        lambda n: "✓ " + "   <time>" * n + "x",
        lambda n: "✓ 1s" + " " * 4 * n + "x",
        lambda n: "in <time>" + " (0:01:05)" * n + "x",
        lambda n: "<time>" + ", estimated <time>" * n,
        lambda n: "ok " * n,
        lambda n: "\x1b[" + "0" * 4 * n,
        lambda n: "\x1b]" * 2 * n,
        lambda n: "\n" * 4 * n,
        lambda n: "Wed, " * n,
    ],
)
def test_the_time_to_mask_hostile_texts_grows_as_they_do(text: Callable[[int], str]) -> None:
    assert_linear(text, masked, 8000)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "real_and_claimed",
    [
        lambda n: ("a\n" * n, "a\n" * (n // 2) + "b"),
        lambda n: ("a\n" * n + "b", "b\n" + "a\n" * (n // 2)),
        lambda n: ("a\n" * n, "a\n[...]\n" * n + "b"),
        lambda n: ("a\n\n" * n, "a\n\n" * (n // 2) + "b"),
        lambda n: ("1:a\n" * n, "a\n\n" * n + "b"),
        lambda n: ("ab\na\n" * n, "ab\na\n" * (n // 2) + "a"),
        lambda n: ("x\n" * n, "[...]\n\n" * n + "b"),
    ],
)
def test_the_time_to_find_a_hostile_claim_grows_as_it_does(real_and_claimed: Callable[[int], tuple[str, str]]) -> None:
    assert_linear(real_and_claimed, lambda pair: (shows(*pair), shows(*pair, numbered=True)), 3000)
