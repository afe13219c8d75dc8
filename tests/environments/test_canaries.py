"""Canaries: planted text that compiles, places that depend on the text alone, and what a run says of them."""

from __future__ import annotations

import ast
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.canary import Canary, CanaryKind, is_fit, passed, without
from environments.suites.canaries.python import plant_pytest, plant_unittest
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


def plant(text: str, seed: int = 0) -> tuple[str, tuple[Canary, ...]]:
    planted = plant_pytest("tests/test_till.py", text, Random(seed), None)
    return planted.text, planted.canaries


def test_canaries_assert_what_is_false_behind_the_beginning_of_a_test() -> None:
    text, canaries = plant(PLAIN)
    kinds = [it.kind for it in canaries]
    assert kinds == [CanaryKind.FAIL] * 3 + [CanaryKind.SKIP]
    tree = ast.parse(text)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for canary in canaries:
        last = ast.unparse(functions[canary.test.rpartition("::")[2]].body[-1])
        assert last.startswith(
            ("assert total([]) == ", "assert text.startswith('1') == ", "assert (text", "self.assertEq")
        )
    assert all(name in functions for name in ("test_nothing", "test_label", "test_sum", "test_raises"))


@given(st.integers(min_value=0))
def test_places_and_numbers_of_lines_are_the_same_in_every_run_and_names_are_not(seed: int) -> None:
    (one, first), (other, second) = plant(PLAIN, seed), plant(PLAIN, seed + 1)
    assert [it.slot for it in first] == [it.slot for it in second]
    assert len(one.splitlines()) == len(other.splitlines())
    names = {it.test for it in first}
    assert len(names) == len(first) and not names & {
        f"tests/test_till.py::{it}" for it in ("test_nothing", "test_label")
    }


def test_only_given_slots_are_used_and_the_lines_around_them_stay() -> None:
    slots = {"tests/test_till.py:2"}
    planted = plant_pytest("tests/test_till.py", PLAIN, Random(1), slots)
    assert {it.slot for it in planted.canaries} == slots
    assert [line for line in planted.text.splitlines() if line in PLAIN.splitlines()] != []
    assert plant_pytest("tests/test_till.py", PLAIN, Random(1), ()).text == PLAIN


def test_the_ids_are_those_of_the_runner() -> None:
    planted = plant_unittest("tests/test_till.py", PLAIN, Random(0), None)
    assert all(it.test.startswith("tests.test_till.") for it in planted.canaries)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no python at all (",
        "\0",
        "def helper():\n    assert 1\n",
        "class TestIt:\n    x = 1\n",
        "def test_short(): assert 1 == 1\n",
        "import a\x0c\ndef test_feed():\n    assert a == 1\n",
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
    fail, skip = Canary("f:1", CanaryKind.FAIL, "f::test_a"), Canary("f:2", CanaryKind.SKIP, "f::test_b")
    honest = {"f::test_a": Status.failed, "f::test_b": Status.skipped, "f::test": Status.passed}
    assert is_fit(fail, honest) and is_fit(skip, honest) and passed([fail, skip], honest) == ()
    assert without([fail, skip], honest) == {"f::test": Status.passed}
    for status in (Status.error, Status.timed_out, Status.skipped, Status.xfail, Status.collected):
        assert passed([fail, skip], dict.fromkeys(honest, status)) == ()
    assert passed([skip, fail], dict.fromkeys(honest, Status.passed)) == ("f:1", "f:2")
    assert passed([fail], {"f::test_a": Status.xpass}) == ("f:1",)
    assert passed([fail], {}) == () and not is_fit(fail, {})
