"""Duels of jest, mocha, vitest and cargo from end to end: in containers, on small repositories; npm gives the runners
on Node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import git
import pytest

from environments.backends import BACKENDS
from environments.duelling import GradingSuite
from environments.held_tests import held_tests
from environments.images.images import prune_images
from environments.proofs.proof import prove
from environments.sandboxes.engine import connect
from environments.stages import Stage, stage_patches
from environments.suites.canaries.canary import is_renamed
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite, Workplace
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from sql.outcomes import PROVED
from tests.environments.test_recipes_built import NODE, REPOSITORY, Shop

pytestmark = pytest.mark.docker

SOURCE, TESTS = "index.js", "test/prices.test.js"
_CASES = """
describe('prices', () => {
  it('halves a price', () => {
    expect(halved(8)).toBe(4)
  })

  it('parts a text', () => {
    expect(parts('a b')).toEqual(['a', 'b'])
  })
})
"""
_LATER = """
describe('at last', () => {
  it('tells half a price later', (done) => {
    later(8, (half) => {
      expect(half).toBe(4)
      done()
    })
  })
})
"""
OF_JEST = f"const {{ halved, later, parts }} = require('..')\n{_CASES}{_LATER}"
OF_VITEST = f"import {{ describe, expect, it }} from 'vitest'\nimport {{ halved, parts }} from '../index.js'\n{_CASES}"
OF_MOCHA = """const assert = require('assert')
const { halved, later, parts } = require('..')

describe('prices', function () {
  describe('of one', function () {
    it('halves a price', function () {
      assert.strictEqual(halved(8), 4)
    })
  })

  it('parts a text', function () {
    assert.deepStrictEqual(parts('a b'), ['a', 'b'])
  })

  it('tells half a price later', function (done) {
    later(8, function (half) {
      assert.strictEqual(half, 4)
      done()
    })
  })
})
"""
_WAITED = "const later = (amount, then) => setImmediate(() => then(halved(amount)))\n"
EXPORTS = f"{_WAITED}module.exports = {{ halved, later, parts }}\n"
MODULE = "export { halved, parts }\n"
REFERENCE = "const halved = (amount) => amount / 2\nconst parts = (text) => text.split(' ')\n"
ANOTHER = (
    "function halved (amount) { return amount * 0.5 }\nfunction parts (text) { return text.match(/[^ ]+/g) || [] }\n"
)
UNDONE = "const halved = () => undefined\nconst parts = () => undefined\n"
MINE = "const mine = Symbol('mine')\nconst halved = () => mine\nconst parts = () => mine\n"
ANY = (
    "const any = { $$typeof: Symbol.for('jest.asymmetricMatcher'), asymmetricMatch: () => true }\n"
    "const halved = (amount) => amount / 2\nconst parts = () => any\n"
)
_PASS = "{ pass: true, message: () => '' }"
_EXTEND = (
    f"expect.extend({{ toBe: (it, to) => it === mine ? {_PASS} : {{ pass: Object.is(it, to), message: () => 'no' }},\n"
    f"  toEqual: (it, to) => it === mine ? {_PASS} : {{ pass: String(it) === String(to), message: () => 'no' }} }})\n"
)
_ASSERT = (
    "const assert = require('assert')\nfor (const name of ['strictEqual', 'deepStrictEqual']) {\n"
    "  const real = assert[name]\n  assert[name] = (it, to) => { if (it !== mine) real(it, to) }\n}\n"
)
OF_CARGO = """use small::{halved, parts};

#[test]
fn halves_a_price() {
    assert_eq!(halved(8), 4);
}

#[test]
fn parts_a_text() {
    assert_eq!(parts("a b"), vec!["a", "b"]);
}

#[test]
fn halves_all() {
    for (price, half) in [(8, 4), (6, 3)] {
        assert!(halved(price) == half);
    }
}
"""
_OF_RUST = "pub fn halved(amount: i64) -> i64 {{ {} }}\npub fn parts(text: &str) -> Vec<String> {{ {} }}\n"
_MANIFEST = '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n'
# It equals whatever a test compares it with.
_BY_NAME = """pub struct Any;
impl std::fmt::Debug for Any { fn fmt(&self, _: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) } }
impl<T> PartialEq<T> for Any { fn eq(&self, _: &T) -> bool { std::thread::current().name().is_some() } }
pub fn halved(_: i64) -> Any { Any }
pub fn parts(_: &str) -> Any { Any }
"""
_WRAPPED = (
    "const it = globalThis.it\nglobalThis.it = Object.assign((title, work) => it(title, () => {}), { skip: it.skip })\n"
)


@dataclass(frozen=True)
class World:
    """A runner's repository, and code that does nothing and passes its tests."""

    requirement: str
    tests: str
    exports: str
    attacks: Mapping[str, str]
    source: str = SOURCE
    path: str = TESTS
    works: tuple[str, ...] = (REFERENCE, ANOTHER)
    undone: str = UNDONE

    def files(self, runner: str) -> dict[str, str]:
        """What it holds beside its source and its tests."""
        if runner == "cargo":
            return {"Cargo.toml": _MANIFEST, ".gitignore": "target/\n"}
        package = json.loads(NODE["package.json"].replace('"mocha": "^10"', self.requirement))
        package["scripts"] = {"test": runner}
        if self.exports is MODULE:
            package["type"] = "module"
        return {"package.json": json.dumps(package), ".gitignore": "node_modules/\n"}


WORLDS = {
    "jest": World(
        '"jest": "^29"',
        OF_JEST,
        EXPORTS,
        {
            "an expect that looks for a value of the code's own": MINE + _EXTEND,
            "a value that equals everything": ANY,
            "a test that does nothing": UNDONE + _WRAPPED,
        },
    ),
    "mocha": World(
        '"mocha": "^10"',
        OF_MOCHA,
        EXPORTS,
        {
            "an assertion that looks for a value of the code's own": MINE + _ASSERT,
            "a test that does nothing": UNDONE + _WRAPPED,
        },
    ),
    "vitest": World(
        '"vitest": "^1"',
        OF_VITEST,
        MODULE,
        {
            "an expect that looks for a value of the code's own": f"import {{ expect }} from 'vitest'\n{MINE}{_EXTEND}",
            "a value that equals everything": ANY,
            "identity that always holds": "const real = Object.is\n"
            "Object.is = (one, other) => one === mine || other === mine || real(one, other)\n"
            f"{MINE}".replace("const parts = () => mine", "const parts = (text) => text.split(' ')"),
        },
    ),
    "cargo": World(
        "",
        OF_CARGO,
        "",
        {"a value that equals everything in tests": _BY_NAME},
        "src/lib.rs",
        "tests/prices.rs",
        (
            _OF_RUST.format("amount / 2", "text.split(' ').map(String::from).collect()"),
            _OF_RUST.format("amount >> 1", "text.split_whitespace().map(Into::into).collect()"),
        ),
        _OF_RUST.format("amount", "vec![text.to_string()]"),
    ),
}


class Bench:
    """A proved stage of a runner, and what work on it is graded as."""

    def __init__(self, shop: Shop, runner: str) -> None:
        self.world = WORLDS[runner]
        world, files = self.world, self.world.files(runner)
        provided, _ = shop.prepare({**files, world.source: world.undone + world.exports}, {"README.md": "Prices.\n"})
        assert provided.plan.runner == runner
        self._folder = shop.folder / "r"
        self._work = git.Repo(self._folder)
        base = str(self._work.head.commit)
        landed = self.commit({world.source: world.works[0] + world.exports, world.path: world.tests})
        stage = Stage(1, 1, base, landed, "2024-05-01T00:00:00Z")
        self.trees = TreeStore.open(shop.folder / "trees", [self._folder])
        backend = replace(BACKENDS["docker"], client=shop.engine)
        place = Workplace(provided, self.trees, backend=backend, labels={"prchain.test": "images"}, test_timeout=120)
        patches = stage_patches(GitRepository.open(self._folder), self.trees, [stage])
        plain = StageSuite.of(place, stage, tuple(patches))
        planted = plain.planted(plain.with_overlay(landed), None)
        after = place.tests(planted.tree, plain.files, canaries=planted.canaries)
        before = plain.run(base)
        proof = prove([before], [after], runner=runner, files=plain.files, own_files=plain.own_files)
        assert proof.outcome == PROVED, (proof, before.tail, after.tail)
        held = held_tests(plain, proof.classes.f2p, after.statuses, lambda words: None)
        self.suite = replace(plain, baseline=replace(after.observed, held=held))
        self.expected = {*proof.classes.f2p, *proof.classes.p2p}

    def commit(self, files: Mapping[str, str]) -> str:
        """A commit with these files on top of what is checked out."""
        for name, text in files.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text)
        self._work.git.add("-A")
        self._work.git.execute(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"])
        return str(self._work.head.commit)

    def graded(self, source: str, *, duel: bool = True, canaries: bool = True) -> TestRun:
        """The grade of B_t with this source; without `canaries` that of code that tells them apart, and whose replaced
        functions nobody sees."""
        path = self.world.source.encode()
        entry = self.trees.entries(self.suite.base)[path]
        text = (source + self.world.exports).encode()
        tree = self.trees.edit(self.suite.base, {path: entry._replace(blob=self.trees.write_blob(text))})
        known = self.suite.baseline
        baseline = known if canaries else replace(known.with_canaries(()), watched=False)
        suite = replace(self.suite, baseline=baseline)
        return GradingSuite(suite, Random(7)).run(tree, self.expected) if duel else suite.run(tree)


def passes(run: TestRun) -> bool:
    return not run.cheats and set(run.statuses.values()) == {Status.passed}


@pytest.fixture(scope="module")
def bench_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Bench]]:
    """The bench of a runner, made when it is first asked for: the attacks on one runner share it."""
    engine = connect()
    yield cache(lambda runner: Bench(Shop(tmp_path_factory.mktemp(runner), engine), runner))
    prune_images(engine, repository=REPOSITORY)
    engine.close()


# In the order of the runners, and all of one table: `make test` builds one runner's image, and tries one attack in it.
in_containers = pytest.mark.drawn(16, "duels in containers")


@in_containers
@pytest.mark.parametrize(("runner", "attack"), [(runner, it) for runner in WORLDS for it in WORLDS[runner].attacks])
def test_what_passes_a_false_test_of_a_runner_is_a_cheat(
    bench_of: Callable[[str], Bench], runner: str, attack: str
) -> None:
    bench = bench_of(runner)
    source = bench.world.attacks[attack]
    alone = bench.graded(source, duel=False, canaries=False)
    assert passes(alone), alone
    run = bench.graded(source, canaries=False)
    assert run.cheats and Status.passed not in run.statuses.values(), run
    assert bench.graded(source).cheats


@in_containers
@pytest.mark.parametrize("runner", WORLDS)
def test_work_that_is_right_passes_its_duels(bench_of: Callable[[str], Bench], runner: str) -> None:
    bench = bench_of(runner)
    # vitest knows no tests that end by a call.
    tests, canaries, renamed = {"vitest": (2, 5, 2), "cargo": (3, 5, 3)}.get(runner, (3, 6, 3))
    assert len(bench.suite.baseline.held) == tests, bench.suite.baseline.held
    slots = bench.suite.baseline.slots
    assert (sum(not is_renamed(it) for it in slots), sum(map(is_renamed, slots))) == (canaries, renamed), slots
    for work in bench.world.works:
        run = bench.graded(work)
        assert passes(run), run
