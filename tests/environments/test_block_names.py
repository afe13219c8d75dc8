"""Tests proper of JavaScript and Rust by other names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from random import Random

import pytest

from environments.suites.canaries.blocknames import lone_functions, lone_titles
from environments.suites.canaries.canary import CanaryKind, CanaryResults, PlantedFile, Planting
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status

JAVASCRIPT = """const assert = require('assert')
const { total } = require('..')

describe('prices', () => {
  it('sums up none', () => {
    assert.strictEqual(total([]), 0)
  })

  it("sums up two, or (perhaps) more", () => {
    assert.strictEqual(total([3, 4]), 7)
  })

  it('knows #1', () => {
    assert.strictEqual(total([1]), 1)
  })

  it(`knows ${1}`, () => {
    assert.strictEqual(total([1]), 1)
  })
})
"""
RUST = """use till::total;

#[test]
fn sums_up_none() {
    assert_eq!(total(&[]), 0);
}

#[test]
fn sums_up_many() {
    assert_eq!(total(&[3, 4]), 7);
}
"""
TITLES = frozenset({"sums up none", "sums up two, or (perhaps) more"})
FUNCTIONS = frozenset({"sums_up_none", "sums_up_many"})
OF_LANGUAGE = [("mocha", JAVASCRIPT, TITLES), ("cargo", RUST, FUNCTIONS)]


def plant(
    runner: str, text: str, lone: Collection[str], slots: Collection[str] | None = None, seed: int = 0
) -> PlantedFile:
    planter = RUNNERS[runner].plant
    assert planter is not None
    return planter("tests/till", text, Planting("here", Random(seed), slots, set(), lone=lone))


def renamed(planted: PlantedFile) -> dict[str, str]:
    return {it.donor: it.name for it in planted.canaries if it.kind is CanaryKind.TRUE}


@pytest.mark.parametrize(("runner", "text", "lone"), OF_LANGUAGE)
def test_a_test_proper_is_called_as_a_copy_might_be(runner: str, text: str, lone: frozenset[str]) -> None:
    """By its first word, and the last words of others; again otherwise in another run, where its slot may be used."""
    planted = plant(runner, text, lone)
    assert renamed(planted).keys() == lone
    for donor, name in renamed(planted).items():
        assert donor not in planted.text and planted.text.count(name) == 1
        assert re.split(r"[ _]", name)[0] == "sums"
    slots = [it.slot for it in planted.canaries]
    again = plant(runner, text, (), slots, seed=1)
    assert renamed(again).keys() == lone and renamed(again) != renamed(planted)
    assert renamed(plant(runner, text, lone, slots[:1])) == {}
    copies = [it for it in planted.canaries if it.donor and it.kind is CanaryKind.FAIL]
    assert copies and all(it.name.split(" ")[0].split("_")[0] == re.split(r"[ _]", it.donor)[0] for it in copies)


@pytest.mark.parametrize(
    ("runner", "text", "lone", "asks"),
    [
        (*OF_LANGUAGE[0], "\nafterEach(function () { console.log(this.currentTest.title) })\n"),
        (*OF_LANGUAGE[1], "\nfn name() { std::thread::current(); }\n"),
    ],
)
def test_where_a_file_asks_for_names_all_stay(runner: str, text: str, lone: frozenset[str], asks: str) -> None:
    planted = plant(runner, text + asks, lone)
    assert planted.canaries and renamed(planted) == {}


@pytest.mark.parametrize(
    ("runner", "text", "lone", "place"),
    [(*OF_LANGUAGE[0], "test/till.js > prices > {}"), (*OF_LANGUAGE[1], "till tests/till.rs prices::{}")],
)
def test_results_have_the_names_that_the_tests_have(runner: str, text: str, lone: frozenset[str], place: str) -> None:
    planted = plant(runner, text, lone)
    statuses = {place.format(name): Status.passed for name in renamed(planted).values()}
    results = CanaryResults(planted.canaries, statuses, RUNNERS[runner].name_of, lambda test: None)
    assert results.others == {place.format(name): Status.passed for name in lone}
    assert len(results.fit()) == len(lone)


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ([], TITLES),
        ([(b"test/other.js", b"it('sums up none', () => {\n})\n")], TITLES - {"sums up none"}),
        ([(b"docs/a.js", b"run('sums up none')")], TITLES - {"sums up none"}),
        ([(b"node_modules/a/a.js", b"run('sums up none')")], TITLES),
        ([(b"test/__snapshots__/a.snap", b"exports[`prices sums up none 1`] = `0`")], TITLES - {"sums up none"}),
        ([(b"package.json", b'{"scripts": {"test": "mocha --grep sums"}}')], frozenset()),
        ([(b"package.json", b'{"scripts": {"test": "mocha -t 5000 && jest"}}')], TITLES),
        ([(b"test/helper.js", b"exports.title = (it) => it.currentTest.title\n")], frozenset()),
    ],
)
def test_a_title_that_stands_elsewhere_stays(more: Sequence[tuple[bytes, bytes]], left: frozenset[str]) -> None:
    assert lone_titles([(b"test/till.test.js", JAVASCRIPT.encode()), *more]) == left


@pytest.mark.parametrize(
    ("path", "text", "left"),
    [
        (b"src/lib.rs", b"fn total() {}\n", FUNCTIONS),
        (b".config/nextest.toml", b"filter = 'test(sums_up_none)'", FUNCTIONS - {"sums_up_none"}),
        (b"tests/snapshots/till__sums_up_none.snap", b"0", FUNCTIONS - {"sums_up_none"}),
        (b"tests/more.rs", b"#[test]\nfn sums_up_none() {\n}\n", FUNCTIONS - {"sums_up_none"}),
    ],
)
def test_a_function_that_stands_elsewhere_keeps_its_name(path: bytes, text: bytes, left: frozenset[str]) -> None:
    assert lone_functions([(b"tests/till.rs", RUST.encode()), (path, text)]) == left
