"""Canaries: planted text that compiles, places that depend on the text alone, and what a run says of them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.canary import Canary, CanaryKind, CanaryResults, Planting
from environments.suites.canaries.python import plant_python
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from tests.growth import assert_linear

PLAIN = '''"""Tests."""

import unittest

from till import total


def test_nothing():
    """A docstring."""
    assert total([]) == 0


def test_label(tmp_path):
    found = total([1], where=tmp_path)
    text = f"{found} and " \
        "more"
    assert text.startswith("1"), "why"


class TotalTest(unittest.TestCase):
    def test_sum(self):
        value = total([1, 2])
        self.assertEqual(value, 3)

    def test_raises(self):
        with self.assertRaises(ValueError):
            total(None)
'''


FILE = "tests/test_till.py"
NAME_OF = RUNNERS["pytest"].name_of


def plant(
    text: str, seed: int = 0, slots: Collection[str] | None = None, places: str = "here"
) -> tuple[str, tuple[Canary, ...]]:
    planted = plant_python(FILE, text, Planting(places, Random(seed), slots, set()))
    return planted.text, planted.canaries


def test_canaries_assert_what_is_false_behind_the_beginning_of_a_test() -> None:
    text, canaries = plant(PLAIN)
    kinds = [it.kind for it in canaries]
    assert kinds == [CanaryKind.FAIL] * 3 + [CanaryKind.SKIP]
    functions = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    for canary in canaries:
        last = ast.unparse(functions[canary.name].body[-1])
        assert last.startswith(
            ("assert total([]) == ", "assert text.startswith('1') == ", "assert (text", "self.assertEq")
        )
    assert all(name in functions for name in ("test_nothing", "test_label", "test_sum", "test_raises"))


@given(st.integers(min_value=0))
def test_places_and_numbers_of_lines_are_the_same_in_every_run_and_names_are_not(seed: int) -> None:
    (one, first), (other, second) = plant(PLAIN, seed), plant(PLAIN, seed + 1)
    assert [it.slot for it in first] == [it.slot for it in second]
    assert len(one.splitlines()) == len(other.splitlines())
    names = {it.name for it in first}
    assert len(names) == len(first) and not names & {"test_nothing", "test_label", "test_sum", "total", "tmp_path"}


def test_another_stage_has_other_places() -> None:
    shapes = {
        tuple(
            line.partition("def ")[0] + "def" * ("def test" in line)
            for line in plant(PLAIN, places=str(n))[0].splitlines()
        )
        for n in range(12)
    }
    assert len(shapes) > 3


def test_only_given_slots_are_used_and_without_any_the_file_stays() -> None:
    slots = {f"{FILE}:2"}
    assert {it.slot for it in plant(PLAIN, 1, slots)[1]} == slots
    assert plant(PLAIN, 1, ()) == (PLAIN, ())


def test_no_name_is_in_two_files() -> None:
    planting = Planting("here", Random(3), None, set())
    found = [plant_python(f"tests/test_{n}.py", PLAIN, planting) for n in range(20)]
    names = [it.name for planted in found for it in planted.canaries]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("runner", "test", "name"),
    [
        ("pytest", "tests/test_a.py::test_b", "test_b"),
        ("pytest", "tests/test_a.py::TestIt::test_b[1::x]", "test_b"),
        ("unittest", "tests.test_a.Case.test_b", "test_b"),
        ("go", "example.com/till.TestTotal/of_many", "TestTotal"),
        ("cargo", "till src/lib.rs tests::total", "total"),
        ("cargo", "cart tests/cart.rs total", "total"),
        ("surefire", "shop.CartTest#total[1]", "total"),
        ("jest", "web/cart.test.ts > cart > adds up", "adds up"),
    ],
)
def test_the_name_in_an_id(runner: str, test: str, name: str) -> None:
    assert RUNNERS[runner].name_of(test) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no python at all (",
        "\0",
        "def helper():\n    assert 1\n",
        "class TestIt:\n    x = 1\n",
    ],
)
def test_a_text_without_a_place_stays_as_it_is(text: str) -> None:
    assert plant(text) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        "import a\n\n@a.mark\ndef test_marked(x):\n    assert a == 1\n",
        "import a\r\n\r\ndef test_ends():\r\n    assert a == 1\r\n",
        "import a\nclass TestTabs:\n\tdef test_tabs(self):\n\t\tassert a == 'x'",
        "import a\nasync def test_wait():\n    found = await a()\n    assert found is None\n",
        "import a\ndef test_text():\n    text = '''\nassert 0\n'''\n    assert a == text\n",
        "import a\nif True:\n    def test_nested():\n        assert a == 1\n",
        "import a\ndef test_semicolons():\n    x = 1; y = 2\n    assert x == y; assert a\n",
        "import a\ndef test_é():\n    assert a('é') == 'ü'  # ñ\n",
        "from __future__ import annotations\nimport a\ndef test_x(b: int) -> None:\n    assert a == b\n",
        "import a\ndef test_return():\n    return\n    assert a == 1\n",
    ],
)
def test_planted_text_compiles_and_holds_what_was_there(text: str) -> None:
    planted, canaries = plant(text)
    compile(planted, "test.py", "exec")
    assert canaries
    before = [
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    after = [
        node.name for node in ast.walk(ast.parse(planted)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(after) == len(before) + len(canaries) and set(before) <= set(after)


@given(st.text(alphabet="ab:()=\n \t'\"#@\\\r\x0c", max_size=60))
def test_planting_never_raises_and_never_breaks_a_file(body: str) -> None:
    text = f"import a\ndef test_one():\n    {body}\n    assert a == 1\n"
    planted, canaries = plant(text)
    if canaries:
        compile(planted, "test.py", "exec")
    else:
        assert planted == text


def test_planting_takes_linear_time() -> None:
    def text(size: int) -> str:
        return "import a\n" + "".join(f"def test_{n}():\n    x = a({n})\n    assert x == {n}\n\n" for n in range(size))

    assert_linear(text, plant, 400)


def test_what_a_run_says_of_its_canaries() -> None:
    fail, skip = Canary("f:1", CanaryKind.FAIL, "f", "test_a"), Canary("f:2", CanaryKind.SKIP, "f", "test_b")

    def results(**statuses: Status) -> CanaryResults:
        return CanaryResults([fail, skip], {f"f::{name}": status for name, status in statuses.items()}, NAME_OF)

    honest = results(test_a=Status.failed, test_b=Status.skipped, test=Status.passed)
    assert honest.fit() == ["f:1", "f:2"] and not [*honest.passed()] and not [*honest.gone(lambda test: "f")]
    assert honest.others == {"f::test": Status.passed}
    for status in (Status.error, Status.timed_out, Status.skipped, Status.xfail, Status.collected):
        assert not [*results(test_a=status, test_b=status).passed()]
    assert [*results(test_a=Status.passed, test_b=Status.xpass).passed()] == ["f:1", "f:2"]
    assert results().fit() == []


def test_a_canary_is_all_tests_of_its_function() -> None:
    fail = Canary("f:1", CanaryKind.FAIL, "f", "test_a")
    both = {"f::test_a[1]": Status.failed, "g::Other::test_a[1]": Status.failed}
    assert CanaryResults([fail], both, NAME_OF).fit() == ["f:1"] and CanaryResults([fail], both, NAME_OF).others == {}
    assert [*CanaryResults([fail], both | {"f::test_a[2]": Status.passed}, NAME_OF).passed()] == ["f:1"]


@pytest.mark.parametrize(
    ("statuses", "gone"),
    [
        ({"f::test": Status.passed}, True),
        ({"f::test": Status.passed, "f::test_a": Status.collected}, True),
        ({"f::test": Status.passed, "f::test_a": Status.error}, False),
        ({"f::test": Status.passed, "f::other": Status.collected}, False),
        ({"f::test": Status.failed}, False),
        ({"g::test": Status.passed}, False),
        ({}, False),
    ],
)
def test_a_canary_that_did_not_run_among_tests_that_did_was_taken_out(statuses: dict[str, Status], gone: bool) -> None:
    results = CanaryResults([Canary("f:1", CanaryKind.FAIL, "f", "test_a")], statuses, NAME_OF)
    assert [*results.gone(lambda test: test.partition("::")[0])] == ["f:1"] * gone


JAVASCRIPT = """import { total } from './cart'
describe('cart', () => {
  // Of nothing.
  it('adds up nothing', () => {
    expect(total([])).toBe(0)
  })

  it(`adds up ${'many'}`, () => { expect(total([1, 2])).toBe(3) })
})
"""
GO = """package till

import "testing"

// TestTotal is one.
func TestTotal(t *testing.T) {
\tif Total(nil) != 0 {
\t\tt.Fail()
\t}
}
"""
RUST = """#[cfg(test)]
mod tests {
    /// Of nothing.
    #[should_panic]
    #[test]
    fn total_of_nothing() {
        super::total(&[]);
    }
}
"""
JAVA = """class CartTest {
    /** Of nothing. */
    @DisplayName("nothing")
    @Test
    void totalOfNothing() {
        assertEquals(0, total());
    }

    @Test
    void totalOfOne() {
        assertEquals(1, total(1));
    }
}
"""
LEAVING = {
    "jest": "it('adds', () => {\n  if (!total) return\n  expect(total([])).toBe(0)\n})\n",
    "go": 'func TestTotal(t *testing.T) {\n\tt.Run("one", func(t *testing.T) { Total(nil) })\n}\n',
    "cargo": "#[test]\nfn adds() {\n    if total(&[]) == 0 { return; }\n}\n",
    "surefire": "    @Test\n    void adds() {\n        assumeTrue(total() == 0);\n    }\n",
}


@pytest.mark.parametrize("runner", LEAVING)
def test_of_a_test_that_may_end_before_its_last_line_no_canary_is_made(runner: str) -> None:
    plant = RUNNERS[runner].plant
    assert plant is not None
    text = LEAVING[runner]
    planted = plant("a/test", text, Planting("here", Random(1), None, set()))
    assert planted.canaries and planted.text.lower().count("total") == text.lower().count("total")


@pytest.mark.parametrize(
    ("runner", "text", "kinds"),
    [
        ("jest", JAVASCRIPT, 3),
        ("vitest", JAVASCRIPT, 3),
        ("mocha", JAVASCRIPT, 3),
        ("go", GO, 3),
        ("cargo", RUST, 3),
        ("surefire", JAVA, 2),
    ],
)
def test_other_languages_have_canaries_in_front_of_what_belongs_to_a_test(runner: str, text: str, kinds: int) -> None:
    plant = RUNNERS[runner].plant
    assert plant is not None
    shapes = set()
    for seed in range(5):
        planted = plant("a/test", text, Planting("here", Random(seed), None, set()))
        assert len(planted.canaries) == kinds == len({it.name for it in planted.canaries})
        assert all(planted.text.count(it.name) == 1 for it in planted.canaries)
        shapes.add(len(planted.text.splitlines()))
        for attached in (
            "    #[should_panic]\n    #[test]\n    fn total",
            '@DisplayName("nothing")\n    @Test\n    void t',
        ):
            assert (attached in text) is (attached in planted.text)
    assert len(shapes) == 1
    assert planted.text.count("otal") > text.count("otal") or "should_panic" in text  # they call the code under test
    assert plant("a/test", text, Planting("here", Random(1), (), set())).text == text
    assert plant("a/test", "nothing\n", Planting("here", Random(1), None, set())).canaries == ()
