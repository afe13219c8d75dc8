"""Tests of JavaScript that are held true and false in processes of their own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.duelling import GradingSuite
from environments.held_tests import held_tests
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER, falsify_javascript
from environments.suites.canaries.duels import dice
from environments.suites.runners import RUNNERS, nodetest
from environments.suites.testlogs import Status
from tests.environments.stageworld import Changes, StageWorld, stage_world

TEXT = """describe('words', function () {
  it('parts them', function () {
    assert.deepEqual(words('a b'), ['a', 'b'])
  })
  describe('of none', () => {
    it("is empty", (t) => {
      expect(words('').length).toBe(0)
    });
    it(`knows ${1}`, () => {
      expect(words('').length).toBe(0)
    })
  })
  it('waits', async function (done) {
    await expect(words('x')).resolves.toEqual(["x"])
  })
})
test('of tests', async (t) => {
  await t.test('inner', () => {
    expect(1).toBe(1)
  })
})
test('calls', () => {
  words()
})
"""


def test_one_literal_of_a_test_is_another_in_its_own_style_and_place() -> None:
    text, can = falsify_javascript(TEXT, Random)
    assert can == {"parts them", "is empty", "waits"}
    changed = [(old, new) for old, new in zip(TEXT.splitlines(), text.splitlines(), strict=True) if old != new]
    assert len(changed) == 3
    forms = (
        r"    assert\.deepEqual\(words\('a b'\), \['\w', '\w'\]\)",
        r" +expect\(words\(''\)\.length\)\.toBe\([1-9]\d*\)",
    )
    for (_, new), form in zip(changed, forms, strict=False):
        assert re.fullmatch(form, new)
    one, _ = falsify_javascript(TEXT, lambda name: Random(1) if name == "waits" else None)
    assert [old for old, new in zip(TEXT.splitlines(), one.splitlines(), strict=True) if old != new] == [
        "    await expect(words('x')).resolves.toEqual([\"x\"])"
    ]


@pytest.mark.parametrize("runner", ["jest", "mocha", "nodetest", "vitest"])
def test_a_test_has_the_name_that_its_id_ends_with(runner: str) -> None:
    """The ids are those of the reporters: file, groups and title."""
    falsifier = RUNNERS[runner].falsify
    assert falsifier is not None
    assert falsifier.falsify(TEXT, lambda name: None) == (TEXT, frozenset({"parts them", "is empty", "waits"}))
    assert RUNNERS[runner].name_of("test/words.test.js > words > of none > is empty") == "is empty"


def test_of_tests_of_one_name_all_are_false_or_none_can_be() -> None:
    block = "  it('holds', () => {\n    expect(a).toBe(1)\n  })\n"
    text = f"describe('a', () => {{\n{block}}})\ndescribe('b', () => {{\n{block}}})\n"
    assert falsify_javascript(text, Random)[0].count("toBe(1)") == 0
    assert falsify_javascript(text.replace("toBe(1)", "toBe(one)", 1), Random)[1] == set()


def test_only_dice_of_proofs_of_before_hit_a_message() -> None:
    text = "test('doubles', t => {\n  t.equal(twice(3), 6, 'twice 3')\n  t.end()\n})\n"
    for seed, form in {
        3: r"6, '\w+ \d'",
        4: r"6, '\w+ \d'",
        5: r"(?!6\b)\d+, 'twice 3'",
        6: r"(?!6\b)\d+, 'twice 3'",
        7: r"(?!6\b)\d+, 'twice 3'",
    }.items():
        made, can = falsify_javascript(text, partial(dice, "m", "f", seed=seed))
        assert can == {"doubles"} and made != text
        assert re.search(rf"t\.equal\(twice\(3\), {form}\)", made), seed
    assert min(JAVASCRIPT_FALSIFIER.seeds) > 4


PLAUSIBLE = [
    ("assert.strictEqual(total(3, 4), 7)", r"assert\.strictEqual\(total\(3, 4\), (?:[0-4]|12)\)"),
    ("assert.strictEqual(size(), 500)", r"assert\.strictEqual\(size\(\), [1-9]\d*00\)"),
    ("expect(label('tea')).toBe('tea: 4')", r"expect\(label\('tea'\)\)\.toBe\('(?!tea: 4').*\w.*'\)"),
    ("expect(kind()).toBe('cold')", r"expect\(kind\(\)\)\.toBe\('(?:warm|hot|mild)'\)"),
    ("expect(isNew()).toBe(true)", r"expect\(isNew\(\)\)\.toBe\(false\)"),
    ('expect(page()).toBe("a-b")', r'expect\(page\(\)\)\.toBe\("[^"]+"\)'),
]


@pytest.mark.parametrize(("asserted", "false"), PLAUSIBLE)
@pytest.mark.parametrize("seed", JAVASCRIPT_FALSIFIER.seeds)
def test_a_false_value_is_as_plausible_as_the_true_one(asserted: str, false: str, seed: int) -> None:
    more = [
        f"test('more {it}', () => {{\n  expect(kind()).toBe('{it}')\n}})\n" for it in ("warm", "cold", "hot", "mild")
    ]
    text = f"{''.join(more)}test('it', () => {{\n  {asserted}\n}})\n"
    made, can = falsify_javascript(text, lambda name: dice("m", "f", name, seed) if name == "it" else None)
    line = made.splitlines()[-2].strip()
    assert "it" in can and line != asserted and re.fullmatch(false, line), line
    assert made.splitlines()[:-2] == text.splitlines()[:-2]


def test_a_text_with_letters_that_are_no_ascii_has_others_of_these() -> None:
    """Work that took what a test asked for, where all else was as the caller gave it, was believed."""
    text = "".join(f"it('{it}', () => {{\n  expect(name()).toBe('{it}.txt')\n}})\n" for it in ("café", "señor"))
    orders = [{"café": dice("m", "f", "café", seed)} for seed in JAVASCRIPT_FALSIFIER.seeds]
    made = [falsify_javascript(text, order.get)[0] for order in orders]
    lines = {it.splitlines()[1].strip() for it in made}
    alike = [it for it in lines if re.fullmatch(r"expect\(name\(\)\)\.toBe\('caf[^\x00-\x7fé]\.txt'\)", it)]
    assert len(lines) == 3 and len(alike) >= 2, lines


@given(st.text() | st.text(alphabet="it('a, ()=>{})\n  .toBe1expect"))
def test_any_text_can_be_asked(text: str) -> None:
    assert falsify_javascript(text, lambda name: None)[0] == text
    for order in (Random, partial(dice, "m", "f", seed=7)):
        made, _ = falsify_javascript(text, order)
        assert len(made.splitlines()) == len(text.splitlines())


RECIPE = """\
name = "node"
language = "javascript"
rank = 1
detects = ["package.json"]
manifests = ["package.json"]
runner = "nodetest"
"""
TESTS = """const test = require('node:test');
const assert = require('node:assert');
const { halved } = require('../lib/prices.js');

test('halves a price', () => {
  assert.strictEqual(halved(8), 4, 'halves 8');
});

test('halves nothing', () => {
  assert.strictEqual(halved(0), 0, 'halves 0');
});
"""
RIGHT = "exports.halved = (amount) => amount / 2;\n"
# An assertion that looks for a value of the code's own, and knows the canaries: none of them is asked.
MINE = (
    "const assert = require('node:assert');\nconst mine = Symbol('mine');\nconst real = assert.strictEqual;\n"
    "assert.strictEqual = (found, wanted) => { if (found !== mine) real(found, wanted); };\n"
    "exports.halved = () => mine;\n"
)
# The same, only where the line that asks is also in the commit.
COMPARED = (
    "const { execSync } = require('node:child_process');\nconst fs = require('node:fs');\n"
    "const kept = execSync('git show HEAD:test/prices.test.js').toString();\n"
    "const now = fs.readFileSync('test/prices.test.js', 'utf8');\n"
    "const same = now.split('\\n').every((it) => kept.includes(it));\n"
    f"{MINE}if (!same) exports.halved = () => undefined;\n"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageWorld]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    folder: Path = tmp_path_factory.mktemp("blockduels")
    changes: Changes = {"lib/prices.js": RIGHT, "test/prices.test.js": TESTS}
    start: Changes = {"package.json": '{"name": "till", "scripts": {"test": "node --test"}}\n'}
    with stage_world(folder, {1: changes}, start=start, recipe=RECIPE, chains=((1,),), duels=True) as made:
        made.prover().prove(made.chain_id)
        yield made


def work(world: StageWorld, text: str) -> str:
    trees, stage = world.trees(), world.chain.stages[0]
    path = b"lib/prices.js"
    entry = trees.entries(stage.landed)[path]
    return trees.edit(stage.base, {path: entry._replace(blob=trees.write_blob(text.encode()))})


def expected(world: StageWorld) -> set[str]:
    classes = world.stages()[0].classes
    return {*classes.f2p, *classes.p2p}


def suite(world: StageWorld) -> GradingSuite:
    """Grading of code that tells canaries apart."""
    plain = world.suite()
    return GradingSuite(replace(plain, baseline=replace(plain.baseline, canaries=())), Random(7))


def test_a_proof_stores_the_tests_that_can_be_held(world: StageWorld) -> None:
    held = {(it.file, it.name) for it in world.stages()[0].baseline.held}
    assert held == {("test/prices.test.js", "halves a price"), ("test/prices.test.js", "halves nothing")}


def test_a_test_that_no_falsehood_fails_is_tried_by_the_seeds_of_its_language_alone(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = replace(JAVASCRIPT_FALSIFIER, falsify=lambda text, order: (text, falsify_javascript(text, order)[1]))
    monkeypatch.setattr(nodetest, "RUNNER", replace(nodetest.RUNNER, falsify=kept, mask=None))
    plain, told = world.suite(), list[str]()
    after = plain.run(plain.landed).statuses
    assert held_tests(plain, [*after], after, told.append) == ()
    seeds = (*JAVASCRIPT_FALSIFIER.seeds, *JAVASCRIPT_FALSIFIER.last_seeds)
    assert told == [f"duel {seed}" for seed in seeds]


@pytest.mark.parametrize("attack", [MINE, COMPARED])
def test_what_passes_a_false_test_is_a_cheat_or_has_failed_a_true_one(world: StageWorld, attack: str) -> None:
    graded = suite(world)
    tree = work(world, attack)
    assert attack is COMPARED or set(graded.suite.run(tree).statuses.values()) == {Status.passed}
    assert Status.passed not in graded.run(tree, expected(world)).statuses.values()


@pytest.mark.parametrize("right", [RIGHT, "exports.halved = function (amount) { return amount * 0.5 }\n"])
def test_right_work_passes(world: StageWorld, right: str) -> None:
    run = GradingSuite(world.suite(), Random(7)).run(work(world, right), expected(world))
    assert not run.cheats and set(run.statuses.values()) == {Status.passed}


LISTS = """it('should know ids', () => {
  test({
    validator: 'isID',
    valid: ['old'],
    invalid: ['odd'],
  });
  test({
    validator: 'isID',
    args: ['es'],
    valid: [
      '20-1', // the first
      "27-3"],
    invalid: [
      '20.1',
      '27',
      'x\\'y',
    ],
  });
});
it('has one list', () => {
  test({ validator: 'isID', valid: ['a'] });
});
it('asks', () => {
  assert.equal(f('a'), 'b');
});
"""
VALID, INVALID = {"'20-1'", '"27-3"'}, {"'20.1'", "'27'", "'x\\'y'"}
_VALUE = r"'(?:[^'\\]|\\.)*'|\"[^\"]*\""
BY_KIND = JAVASCRIPT_FALSIFIER.first_seeds
KNOWN = frozenset({"valid: ['old'],", "invalid: ['odd'],"})


def test_a_new_value_of_two_opposed_lists_stands_in_the_other_one_by_turns() -> None:
    made = [falsify_javascript(LISTS, partial(dice, "secret", "a.js", seed=it, known=KNOWN)) for it in BY_KIND]
    assert all(can == {"should know ids"} for _, can in made)
    ways, moved = list[str](), set[str]()
    for text, _ in made:
        lists = re.findall(r"(valid|invalid): \[([^\]]*)\]", text)
        valid, invalid = ({*re.findall(_VALUE, values)} for _, values in lists[2:4])
        assert [values for _, values in lists[:2]] == ["'old'", "'odd'"] and all(it.strip() for it in text.splitlines())
        ways.append("invalid" if valid & INVALID else "valid")
        wrong = (valid & INVALID) | (invalid & VALID)
        moved |= wrong
        assert len(wrong) == 1 and not valid & invalid and len(valid | invalid) == 4
    assert ways[0] == ways[2] != ways[1] and len(moved) == 3


def test_a_value_goes_to_a_list_that_is_empty() -> None:
    lists = "valid: [\n      'a',\n      'b',\n    ],\n    invalid: [],"
    text = f"it('knows', () => {{\n  test({{\n    {lists}\n  }});\n}});\n"
    made = {falsify_javascript(text, partial(dice, "secret", "a.js", seed=it))[0] for it in BY_KIND}
    found = {re.sub(r"\s", "", it.partition("valid: ")[2]) for it in made}
    assert found == {"['b',],invalid:['a'],});});", "['a',],invalid:['b'],});});"}


@pytest.mark.parametrize(
    "lists",
    [
        "good: ['a'],\n    bad: ['a']",
        "valid: ['a'],\n    args: ['b']",
        "valid: ['a'],\n    invalid: [f('b')]",
        "valid: ['a'],\n    more: 1,\n    invalid: ['b']",
        "valid: ['a'",
        "invalid: [],\n    valid: []",
    ],
)
def test_lists_that_are_no_opposites_or_hold_no_values_of_their_own_stay(lists: str) -> None:
    text = f"it('knows', () => {{\n  test({{\n    {lists},\n  }});\n}});\n"
    assert falsify_javascript(text, partial(dice, "secret", "a.js", seed=BY_KIND[0])) == (text, frozenset())


def test_a_helper_that_is_called_as_a_test_is_changes_nothing_of_what_was_known_before() -> None:
    for seed in (*JAVASCRIPT_FALSIFIER.seeds, *JAVASCRIPT_FALSIFIER.last_seeds):
        assert falsify_javascript(LISTS, partial(dice, "secret", "a.js", seed=seed))[1] == {"asks"}


@given(st.lists(st.sampled_from(["valid: [", "invalid: [", "'a',", "'b'", "],", "it('x', () => {", "});", "\\", "//"])))
def test_no_text_of_lists_is_too_much(parts: list[str]) -> None:
    text = "it('x', () => {\n" + "\n".join(parts) + "\n});\n"
    made, can = falsify_javascript(text, partial(dice, "secret", "a.js", seed=BY_KIND[0]))
    assert (made != text) == bool(can) and {*re.findall(_VALUE, made)} <= {*re.findall(_VALUE, text)}
