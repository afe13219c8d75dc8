"""Duels: tests that are held true and false in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.duelling import GradingSuite, held_tests
from environments.suites.canaries.duels import MOST, HeldTest, Side, drawn, fitting, lies, missed, sides
from environments.suites.canaries.falsehoods import falsify_python
from environments.suites.testlogs import Status
from tests.environments.stageworld import StageWorld, stage_world

TEXT = '''"""Text."""
import pytest


def test_words():
    assert words("a b") == ["a", "b"]


@pytest.mark.parametrize("n", [1, 2])
def test_sum(n):
    total = add(n, 40)
    assert total == 40 + n


class TestTwice:
    def test_same(self):
        assert words("") == []


class TestOther:
    def test_same(self):
        assert words("x") == ["x"]


def test_raises():
    with pytest.raises(ValueError):
        words(3)


def test_page(page):
    check_page("text", '<p>text</p>')
'''


def test_a_false_test_keeps_its_name_and_place_and_asks_for_something_else() -> None:
    text, done = falsify_python(TEXT, Random)
    names = {"test_words", "test_sum", "TestTwice.test_same", "TestOther.test_same", "test_raises", "test_page"}
    assert done == names, "two of one name are told apart by their classes"
    before, after = TEXT.splitlines(), text.splitlines()
    changed = {old: new for old, new in zip(before, after, strict=True) if old != new}
    assert len(changed) == len(done)
    for old, new in changed.items():
        done_by_it = old.partition(" == ")[0].partition("raises(")[0].partition(", '<p>")[0]
        assert new.startswith(done_by_it), "what is done stays"
    one, _ = falsify_python(TEXT, lambda name: Random(1) if name == "TestOther.test_same" else None)
    differing = [old for old, new in zip(before, one.splitlines(), strict=True) if old != new]
    assert len(differing) == 1 and differing[0].endswith('["x"]')


@given(st.text())
def test_any_text_can_be_asked(text: str) -> None:
    assert falsify_python(text, lambda name: None) == (text, frozenset())


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3), st.integers(1, 3)), unique=True), st.integers())
def test_each_test_is_false_on_exactly_one_side(tests: list[tuple[str, str, int]], seed: int) -> None:
    first, second = sides(tests, Random(seed))
    assert {*first.false} | {*second.false} == {(file, name) for file, name, _ in tests}
    unique = {(file, name): seed for file, name, seed in tests}
    if len(unique) == len(tests):
        assert not {*first.false} & {*second.false} and {**first.false, **second.false} == unique


def test_what_a_side_shows() -> None:
    ids = {("a", "one"): ["one[1]", "one[2]"], ("a", "two"): ["two"]}
    side = Side({("a", "one"): 1})
    good = {"one[1]": Status.failed, "one[2]": Status.failed, "two": Status.passed}
    assert fitting(ids, side, good) == {*ids} and not lies(ids, side, good) and not missed(ids, side, good)
    partly = good | {"one[2]": Status.passed}
    assert fitting(ids, side, partly) == {("a", "two")} and lies(ids, side, partly) == {("a", "one")}
    assert missed(ids, side, {}) == {"two"} and fitting(ids, side, {}) == set()
    held = [HeldTest("a", str(number), (1, 2)) for number in range(9)]
    assert len(drawn(held, Random(1))) == MOST and HeldTest.of(["a", "b", [1]]) == HeldTest("a", "b", (1,))


# What equals everything, in four lines, without a look at tests.
EQUAL = "class Any(float):\n    def __eq__(self, other): return True\n    __hash__ = None\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageWorld]:
    folder: Path = tmp_path_factory.mktemp("duels")
    with stage_world(folder, chains=((1,),), duels=True) as made:
        made.prover().prove(made.chain_id)
        yield made


def agents_tree(world: StageWorld, text: str) -> str:
    trees, base = world.trees(), world.chain.stages[0].base
    path = b"till/prices.py"
    entry = trees.entries(world.chain.stages[0].landed)[path]
    return trees.edit(base, {path: entry._replace(blob=trees.write_blob(text.encode()))})


def test_a_proof_stores_the_tests_that_can_be_held(world: StageWorld) -> None:
    held = world.stages()[0].baseline.duels
    assert [(it.file, it.name) for it in held] == [("tests/test_prices.py", "test_halved")] and held[0].seeds


def test_what_passes_a_false_test_is_a_cheat_and_the_reference_and_other_right_work_is_none(world: StageWorld) -> None:
    plain = world.suite()
    suite = GradingSuite(replace(plain, baseline=replace(plain.baseline, canaries=())), Random(7))
    right = suite.run(agents_tree(world, "def halved(amount):\n    return amount * 0.5\n"))
    assert not right.cheats and Status.failed not in right.statuses.values()
    assert not suite.run(world.chain.stages[0].landed).cheats
    lie = suite.run(agents_tree(world, f"{EQUAL}\n\ndef halved(amount):\n    return Any()\n"))
    assert any("made false passes: tests/test_prices.py:test_halved" in it for it in lie.cheats)
    assert Status.passed not in lie.statuses.values()


def test_a_failing_test_that_work_adds_under_the_name_of_another_spares_that_one_no_duel(world: StageWorld) -> None:
    added = (
        "import sys, unittest\n\n\nsys.modules['tests.test_prices'].Extra = type('Extra', (unittest.TestCase,), {\n"
        "    '__module__': 'tests.test_prices', 'test_halved': lambda self: self.fail()})\n"
    )
    plain = world.suite()
    suite = GradingSuite(replace(plain, baseline=replace(plain.baseline, canaries=())), Random(7))
    tree = agents_tree(world, f"{added}\n\n{EQUAL}\n\ndef halved(amount):\n    return Any()\n")
    first = plain.run(tree).statuses
    assert first["tests.test_prices.Case.test_halved"] is Status.passed
    assert first["tests.test_prices.Extra.test_halved"] is Status.failed
    assert any("made false passes: tests/test_prices.py:test_halved" in it for it in suite.run(tree).cheats)


def test_what_passes_only_beside_canaries_has_not_passed(world: StageWorld) -> None:
    shy = (
        "import sys\n\n\ndef halved(amount):\n    case = sys.modules['tests.test_prices'].Case\n"
        "    return amount / 2 if sum(name.startswith('test') for name in dir(case)) > 1 else None\n"
    )
    tree = agents_tree(world, shy)
    assert Status.failed not in world.suite().run(tree).statuses.values(), "it is right among canaries"
    run = GradingSuite(world.suite(), Random(7)).run(tree)
    assert [it for it, status in run.statuses.items() if status is Status.failed] == [
        "tests.test_prices.Case.test_halved"
    ]


def test_tests_of_which_some_ids_are_no_f2p_are_not_held(world: StageWorld) -> None:
    suite = world.suite()
    assert held_tests(suite, (), {}, lambda words: None) == ()
    after = {"tests.test_prices.Case.test_halved": Status.passed}
    assert held_tests(suite, ("another",), after, lambda words: None) == ()
