"""Whose tests show a stage's work, on values."""

from __future__ import annotations

import pytest

from environments.proofs.own_tests import OwnTests, own_tests
from environments.suites.outcomes import ClassifiedTests
from environments.suites.testlogs import Status
from environments.suites.testtexts import ChangedTests, test_text

P, F, E, S = Status.passed, Status.failed, Status.error, Status.skipped
TEST = "t"


def part(
    before: Status | None, own: Status | None, *, changed: bool | None = False, f2p: bool = True, data: bool = False
) -> OwnTests:
    runs = [{} if before is None else {TEST: before}] * 2
    classes = ClassifiedTests(f2p=(TEST,)) if f2p else ClassifiedTests(failing=(TEST,))
    after = [{TEST: P if f2p else F}] * 2
    own_run = {} if own is None else {TEST: own}
    return own_tests(classes, runs, after, own_run, lambda _: changed, new_data=data)


@pytest.mark.parametrize("before", [None, E, S, F, Status.collected])
def test_an_old_test_that_passes_by_itself_was_only_hidden(before: Status | None) -> None:
    assert part(before, P) == OwnTests(hidden=(TEST,))
    unknown = part(before, P, changed=None)
    assert unknown == (OwnTests(own_f2p=(TEST,)) if before is F else OwnTests(hidden=(TEST,))), "its text is not found"


@pytest.mark.parametrize("before", [F, Status.xfail, Status.xpass])
def test_an_old_test_that_was_judged_by_new_data_sees_the_work(before: Status) -> None:
    assert part(before, P, data=True) == OwnTests(own_f2p=(TEST,))
    assert part(None, P, data=True) == part(before, P) == OwnTests(hidden=(TEST,)), "by an import, and by a helper"


def test_a_test_that_the_pull_request_changes_is_its_own_though_it_passed_before() -> None:
    assert part(None, P, changed=True) == OwnTests(own_f2p=(TEST,), changed=(TEST,))
    assert part(None, None, changed=None) == OwnTests(own_f2p=(TEST,), changed=(TEST,)), "B_t does not know it"
    assert part(None, None, changed=True) == OwnTests(own_f2p=(TEST,), changed=(TEST,))


@pytest.mark.parametrize("own", [F, E, S, Status.timed_out])
def test_an_old_test_that_does_not_pass_by_itself_shows_the_work_too(own: Status) -> None:
    assert part(None, own) == OwnTests(own_f2p=(TEST,))


def test_own_tests_that_fail_with_the_reference_are_named() -> None:
    assert part(None, None, changed=True, f2p=False) == OwnTests(failing=(TEST,))
    assert part(None, None, changed=None, f2p=False) == OwnTests(failing=(TEST,))
    assert part(F, F, changed=False, f2p=False) == OwnTests(), "it is old, and fails before"


PYTEST = """
import pytest
from pkg import new

MORE = {more}

def test_it(it):
    '''{words}'''
    assert it   #  {words}

class TestMore:
    def test_it(self):
        assert {value}

def test_it_too(): pass
"""
RUST = """use small::{use};

#[test]
fn it() {{
    // {words}
    assert_eq!(small::one(), {value});
}}

#[test]
fn it_too() {{
    assert!(true);
}}
"""
JS = """const {{ {use} }} = require('..')
describe('all', () => {{
  it('does it', () => {{
    expect({use}).toBe({value})
  }})
  test.each([1])('all of it', async () => {{
    await {use}
  }})
}})
"""
GO = """package a
func TestIt(t *testing.T) {{
\tif {value} {{
\t\tt.Fail()
\t}}
}}
func (s *Suite) TestMore() {{ {use}() }}
"""
TEXTS = {
    "pytest": ("t.py", PYTEST, "t.py::TestMore::test_it", "t.py::test_it[1]"),
    "unittest": ("t.py", PYTEST, "t.TestMore.test_it", "t.test_it_too"),
    "cargo": ("tests/a.rs", RUST, "small tests/a.rs it", "small tests/a.rs it_too"),
    "jest": ("a.test.js", JS, "a.test.js > all > does it", "a.test.js > no such title"),
    "vitest": ("a.test.js", JS, "a.test.js > all > does it", "a.test.js > no such title"),
    "mocha": ("a.test.js", JS, "a.test.js > all > does it", "a.test.js > no such title"),
    "go": ("a_test.go", GO, "a.TestIt", "a.TestNone"),
}


@pytest.mark.parametrize("runner", TEXTS)
def test_a_changed_test_is_told_from_one_beside_it(runner: str) -> None:
    path, template, changed, same = TEXTS[runner]
    old = template.format(value=1, words="old", use="one", more=2)
    new = template.format(value=2, words="new", use="two", more=3)
    noise = template.format(value=1, words="new", use="one", more=3)
    assert test_text(runner, path, old, changed) is not None
    assert test_text(runner, path, old, changed) != test_text(runner, path, new, changed)
    assert test_text(runner, path, old, changed) == test_text(runner, path, noise, changed)
    assert test_text(runner, path, old, same) == test_text(runner, path, new, same)


@pytest.mark.parametrize(
    "template",
    [
        "@pytest.mark.parametrize('it, want', [(1, 1), (2, {0})])\ndef test_it(it, want):\n    assert it == want\n",
        "WANT = {{1: {0}}}\n\ndef test_it():\n    assert new(1) == WANT\n",
        "ONE: int = {0}\nWANT = {{1: ONE}}\n\n@mark(WANT)\ndef test_it():\n    assert new(1)\n",
        "def test_it():\n    assert " + " + ".join(["a"] * 900) + " == {0}\n",
    ],
)
def test_what_a_test_expects_may_stand_beside_it(template: str) -> None:
    one, other = (test_text("pytest", "t.py", template.format(value), "t.py::test_it[2]") for value in (2, 3))
    assert one is not None and one != other
    assert one == test_text("pytest", "t.py", "OTHER = 3\n" + template.format(2), "t.py::test_it[2]")


GO_IDS = ("a.com/m/a.TestIt", "a.com/m/a.TestIt/v1.2")
RUST_IDS = ("small tests/it/main.rs math::it",)


@pytest.mark.parametrize("test", GO_IDS + RUST_IDS)
def test_a_changed_test_whose_id_names_no_file_of_its_own_is_found(test: str) -> None:
    if test in GO_IDS:
        runner, path, template, files = "go", "a/a_test.go", GO, ("a/a_test.go", "b/b_test.go")
    else:
        runner, path, template, files = "cargo", "tests/it/math.rs", RUST, ("tests/it/main.rs", "tests/it/math.rs")
    other = next(it for it in files if it != path)
    old, new, same = (template.format(value=it, words="", use="") for it in (1, 2, 1))
    rest = "mod math;\n"

    def told(now: str, elsewhere: str = rest, *, touched: tuple[str, ...] = files) -> bool | None:
        before, after = {path: old, other: rest}, {path: now, other: elsewhere}
        return ChangedTests(runner, files, {it: it for it in touched}, before.get, after.get)(test)

    assert told(new) is True and told(same) is False
    assert told(same, elsewhere=new) is (runner == "cargo"), "of Go's packages each has its own"
    assert told(new, touched=(other,)) is None
