"""Canaries: planted text that compiles, places that depend on the text alone, and what a run says of them."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind, CanaryResults, Planting
from environments.suites.canaries.python import plant_python
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from prchain.core.safeguards import PLANTING
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


def test_canaries_are_copies_that_are_false_in_one_place() -> None:
    for places in map(str, range(20)):
        text, canaries = plant(PLAIN, places=places)
        assert [it.kind is CanaryKind.SKIP for it in canaries] == [False] * 3 + [True, False, False], "two of errors"
        functions = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        assert all(name in functions for name in ("test_nothing", "test_label", "test_sum", "test_raises"))
        for canary in canaries[:-2]:
            made, true = (ast.unparse(functions[name]).splitlines()[1:] for name in (canary.name, canary.donor))
            if canary.kind is CanaryKind.SKIP:
                assert [line for line in made if "skip" not in line and "import" not in line] == true
            else:
                assert len(made) == len(true) and sum(a != b for a, b in zip(made, true, strict=True)) == 1


def test_canaries_stand_before_and_behind_the_test_that_they_copy() -> None:
    behind = set()
    for places in map(str, range(20)):
        text, canaries = plant(PLAIN, places=places)
        behind |= {text.index(f"def {it.name}(") > text.index(f"def {it.donor}(") for it in canaries}
    assert behind == {True, False}


def test_what_decorators_name_is_there_before_the_copy() -> None:
    text = (
        "import a\n\n\ndef test_one():\n    assert a(1)\n\n\nmark = a.mark\n\n\n@mark\ndef test_it():\n    assert a(2)"
    )
    for places in map(str, range(20)):
        planted, _ = plant(text, places=places)
        assert planted.index("mark = ") < planted.index("@mark")


def test_what_is_false_is_the_same_in_every_run() -> None:
    one, other = (plant(PLAIN, seed)[0].splitlines() for seed in (1, 2))
    drawn = ("def test", "pytest.skip(")
    assert [line for line in one if not any(it in line for it in drawn)] == [
        line for line in other if not any(it in line for it in drawn)
    ]


@pytest.mark.parametrize(
    ("test", "made"),
    [
        ("assert a(1) != 2", {"assert a(1) == 2"}),
        ("assert a(1) is None", {"assert a(1) is not None"}),
        ("assert (a(1)) not in (b)", {"assert a(1) in b"}),
        ("assert not a(1)", {"assert a(1)"}),
        ("assert a(1) < b < 3", {"assert not a(1) < b < 3"}),
        ("assert a(1)", {"assert not a(1)"}),
        ("assert a(b) == 0", {"assert a(b) != 0"}),
        ("self.assertTrue(a(1))", {"self.assertFalse(a(1))"}),
        ("self.assertIn(a(1), b)", {"self.assertNotIn(a(1), b)"}),
        ("assert a(\n        1\n    ) == [\n        b,\n    ]", {"assert not a(1) == [b]"}),
    ],
)
def test_assertions_are_turned_round(test: str, made: set[str]) -> None:
    both = "".join(f"    def test_{name}(self, b):\n        {test}\n\n" for name in ("one", "other"))
    found = set()
    for places in map(str, range(60)):
        planted, canaries = plant(f"import a\n\n\nclass TestIt:\n{both}", places=places)
        functions = {node.name: node for node in ast.walk(ast.parse(planted)) if isinstance(node, ast.FunctionDef)}
        failing = [it for it in canaries if it.kind is not CanaryKind.SKIP]
        found |= {ast.unparse(functions[it.name].body[0]) for it in failing}
    assert made <= found and ast.unparse(ast.parse(test)) not in found


def test_values_are_near_those_of_the_file() -> None:
    text = 'import a\n\n\ndef test_it():\n    found = a("tea", 12)\n    assert found == "tea: 12"\n\n\nB = "milk"\n'
    changed: set[str] = set()
    for places in map(str, range(200)):
        planted, canaries = plant(text, places=places, slots={f"{FILE}:1"})
        made = planted[planted.index(f"def {canaries[0].name}") :].splitlines()[1:3]
        changed.update(
            line.strip()
            for line, true in zip(made, text.splitlines()[4:6], strict=True)
            if line != f"    {true.strip()}"
        )
    assert 'assert found == "milk"' in changed and 'assert found == "tea"' in changed
    assert any(re.fullmatch(r'found = a\("t[a-z]a", 12\)', line) for line in changed)
    assert all(re.fullmatch(r'found = a\("tea", \d\d?\)', line) for line in changed if '"tea", ' in line)
    assert not any("'" in line for line in changed)


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


def read(canaries: list[Canary], statuses: dict[str, Status]) -> CanaryResults:
    return CanaryResults(canaries, statuses, NAME_OF, lambda test: test.partition("::")[0])


def test_what_a_run_says_of_its_canaries() -> None:
    fail, skip = Canary("f:1", CanaryKind.FAIL, "f", "test_a"), Canary("f:2", CanaryKind.SKIP, "f", "test_b")

    def results(**statuses: Status) -> CanaryResults:
        return read([fail, skip], {f"f::{name}": status for name, status in statuses.items()})

    honest = results(test_a=Status.failed, test_b=Status.skipped, test=Status.passed)
    assert honest.fit() == ["f:1", "f:2"] and not [*honest.passed()] and not [*honest.gone(ended=True)]
    assert honest.others == {"f::test": Status.passed}
    for status in (Status.error, Status.timed_out, Status.skipped, Status.xfail, Status.collected):
        assert not [*results(test_a=status, test_b=status).passed()]
    assert [*results(test_a=Status.passed, test_b=Status.xpass).passed()] == ["f:1", "f:2"]
    assert results().fit() == []


def test_a_canary_is_all_tests_of_its_function() -> None:
    fail = Canary("f:1", CanaryKind.FAIL, "f", "test_a")
    both = {"f::test_a[1]": Status.failed, "g::Other::test_a[1]": Status.failed}
    assert read([fail], both).fit() == ["f:1"] and read([fail], both).others == {}
    assert [*read([fail], both | {"f::test_a[2]": Status.passed}).passed()] == ["f:1"]


@pytest.mark.parametrize(
    ("donor", "cheats"),
    [
        ({"f::It::test_true[1]": Status.passed}, True),
        ({"f::It::test_true[1]": Status.failed}, False),
        ({"f::It::test_true[2]": Status.passed}, False),
        ({}, False),
    ],
)
def test_a_copy_that_passes_is_a_lie_where_its_test_passes_too(donor: dict[str, Status], cheats: bool) -> None:
    copy = Canary("f:1", CanaryKind.FAIL, "f", "test_a", "test_true")
    assert [*read([copy], {"f::It::test_a[1]": Status.passed, **donor}).passed()] == ["f:1"] * cheats


def test_a_copy_with_another_argument_says_nothing_where_other_tests_fail() -> None:
    canaries = [
        Canary("f:1", CanaryKind.ARGUMENT, "f", "test_a", "test_true"),
        Canary("f:2", CanaryKind.FAIL, "f", "test_b", "test_other"),
    ]
    both = {"f::test_a": Status.passed, "f::test_true": Status.passed, "f::test_b": Status.failed}
    assert [*read(canaries, {**both, "f::test_other": Status.failed}).passed()] == []
    assert [*read(canaries, {**both, "f::test_other": Status.passed}).passed()] == ["f:1"]


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
    results = read([Canary("f:1", CanaryKind.FAIL, "f", "test_a")], statuses)
    assert [*results.gone(ended=False)] == ["f:1"] * gone
    is_hidden = Status.collected in statuses.values() and "f::other" in statuses
    assert [*results.gone(ended=True)] == ["f:1"] * (gone or is_hidden)


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
    "go": 'func TestAdds(t *testing.T) {\n\tt.Run("one", func(t *testing.T) { Total(nil) })\n}\n',
    "cargo": "#[test]\nfn adds() {\n    if total(&[]) == 0 { return; }\n}\n",
    "surefire": "    @Test\n    void adds() {\n        assumeTrue(total() == 0);\n    }\n",
}


@pytest.mark.parametrize("runner", LEAVING)
def test_of_a_test_that_may_end_before_its_last_line_no_canary_is_made(runner: str) -> None:
    plant = RUNNERS[runner].plant
    assert plant is not None
    text = LEAVING[runner]
    planted = plant("a/test", text, Planting("here", Random(1), None, set()))
    unnamed = re.sub("|".join(re.escape(it.name) for it in planted.canaries), "", planted.text)
    assert planted.canaries and unnamed.lower().count("total") == text.lower().count("total")


@pytest.mark.parametrize(
    ("runner", "text", "kinds"),
    [
        ("jest", JAVASCRIPT, 4),
        ("vitest", JAVASCRIPT, 4),
        ("mocha", JAVASCRIPT, 4),
        ("nodetest", JAVASCRIPT, 4),
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
        heads = [rf"(?:[\"']|\b(?:fn|func|void) ){re.escape(it.name)}(?:[\"']|\()" for it in planted.canaries]
        assert all(len(re.findall(head, planted.text)) == 1 for head in heads)
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


def test_other_rules_of_planting_have_another_number() -> None:
    """Raise `PLANTING` where this fails: proofs of before were made with other canaries. Not so where what stands in a
    slot does the same in other words, slots came to those of before, or others took their place."""
    texts = [("pytest", PLAIN), ("jest", JAVASCRIPT), ("go", GO), ("cargo", RUST), ("surefire", JAVA)]
    found = hashlib.sha256()
    for places in map(str, range(20)):
        for runner, text in texts:
            plant_text = RUNNERS[runner].plant
            assert plant_text is not None
            found.update(plant_text("a/test", text, Planting(places, Random(1), None, set())).text.encode())
    assert (PLANTING, found.hexdigest()[:16]) == (1, "722d221e1cf89ddf")


def test_canaries_of_other_rules_are_none() -> None:
    known = RunnerBaseline().with_canaries(["f:1"])
    assert known.slots == ("f:1",) and RunnerBaseline.from_row((), known.row()) == known
    old = {"plugins": None, "hooks": None, "canaries": ["f:1"]}
    assert RunnerBaseline.from_row((), old).slots == ()
