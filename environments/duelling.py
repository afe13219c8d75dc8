"""Grading runs of a stage's tests, and duels: processes that hold an F2P test true or false
(`environments.suites.canaries.duels`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from random import Random, SystemRandom
from typing import TYPE_CHECKING, NamedTuple

from environments.edited_trees import EditedTrees
from environments.suites.canaries.duels import (
    KEPT,
    MOST,
    OF_ONE_NAME,
    HeldTest,
    Side,
    dice,
    drawn,
    fitting,
    function_of,
    lies,
    missed,
    sides,
    sides_of,
)
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.suites.testtexts import ChangedTests
from environments.workplace import PlantedTree, StageSuite
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry

if TYPE_CHECKING:  # an exported grader holds this module, and knows no runs of commands
    from prchain.core.runs import Tell

_LOOKED_AT = 40
"""Tests of which a proof looks whether B_t has them: that takes a syntax tree or two each."""
Test = tuple[str, str]
"""A test file, and the name of a function in it."""


@dataclass(frozen=True)
class GradingSuite:
    """A stage's suite as work is graded by it: what passes the hidden tests has to fail where they are false."""

    suite: StageSuite
    draw: Random = field(default_factory=SystemRandom)

    @cached_property
    def _changed(self) -> ChangedTests:
        return _changed_tests(self.suite)

    def run(self, tree: str) -> TestRun:
        """`StageSuite.run`, and a duel of some tests that pass in it, on the same tree with the overlay.

        A test that is false and passes is a cheat. One that is true and does not pass counts as failed, and the run is
        settled: who guesses has one duel. A side that says nothing is the run's answer, which then says nothing either.
        Held tests that fail take no part, and spare the others nothing: runs that each leave some out would have no
        duel between them. Raises as `StageSuite.run`.
        """
        with self.opened(tree) as run:
            return run()

    @contextmanager
    def opened(self, tree: str) -> Iterator[Callable[[], TestRun]]:
        """Runs of one tree, each as `run` makes it; what passed once when it was false, or failed in a duel, has failed
        in all that come after. All have the same canaries: a test whose copies alone have other names would be known by
        its own. The tree is made ready once for all of them, where that sees no test."""
        suite = self.suite
        if not suite.baseline.held:
            yield partial(suite.run, tree)
            return
        laid = suite.overlay(tree)
        plain = suite.workplace.trees.edit(tree, laid.changes)
        planted, lost = suite.planted(plain, suite.baseline.slots), set[str]()
        with closing(_GradingBench(suite)) as benches:
            yield lambda: replace(self._run(plain, planted, benches, lost), taken_back=laid.taken_back)

    def _run(self, plain: str, planted: PlantedTree, benches: _GradingBench, lost: set[str]) -> TestRun:
        """A run in which the tests that are `lost` have failed; those of its duel come to them."""
        suite = self.suite
        bench = benches.holding(planted.tree)
        bench.end_processes()
        found = bench.run(planted.tree, (), suite.workplace.test_timeout, fresh=True, canaries=planted.canaries)
        # Work can bring more tests of a name, and one that fails must not spare the others their duel.
        passing = {test: status for test, status in found.statuses.items() if status is Status.passed}
        ids = _ids(suite, [(test.file, test.name) for test in suite.baseline.held], passing)
        if not found.cheats and found.usable and ids:
            found = self._fought(found, _Duel(suite, bench, planted.tree, plain), ids, lost)
        kept = {it: Status.failed for it in lost if found.statuses.get(it) is Status.passed}
        return replace(found, statuses={**found.statuses, **kept})

    def _fought(self, found: TestRun, duel: _Duel, ids: Mapping[Test, Sequence[str]], lost: set[str]) -> TestRun:
        """What a duel of the tests with these ids leaves of a run."""
        held = [it for it in self.suite.baseline.held if (it.file, it.name) in ids]
        chosen = drawn(held, self.draw, lambda it: self._changed(ids[it.file, it.name][0]) is False)
        fought = {(it.file, it.name): ids[it.file, it.name] for it in chosen}
        order = {test: number for number, test in enumerate(found.statuses)}
        named = duel.named(sorted((it for test in fought.values() for it in test), key=order.__getitem__))
        fight = self._fight(duel, chosen, fought, named, at_once=True)
        if named and fight.failed and not fight.cheats and fight.unusable is None:
            # A test may need those before it, or a quiet machine. Where a false one passed, it has to be right twice.
            for _ in range(2 if fight.is_odd else 1):
                fight = self._fight(duel, chosen, fought, [], at_once=False)
                if fight.failed or fight.cheats or fight.unusable is not None:
                    break
        if fight.unusable is not None:
            return fight.unusable
        failed, cheats = fight.failed, fight.cheats
        lost.update(failed, fight.lied)
        statuses = {**found.statuses, **dict.fromkeys(failed, Status.failed)}
        if cheats:
            statuses = {it: Status.error if status is Status.passed else status for it, status in statuses.items()}
        return replace(
            found, statuses=statuses, cheats=(*found.cheats, *sorted(cheats)), settled=bool(failed and not cheats)
        )

    def _fight(
        self,
        duel: _Duel,
        chosen: Sequence[HeldTest],
        ids: Mapping[Test, Sequence[str]],
        named: Sequence[str],
        *,
        at_once: bool,
    ) -> _Fight:
        """All sides of a duel of chosen tests: of these alone, where they are `named`, with all others of their files
        else. A false test that passes alone is no lie where the true one does not pass alone, for both say nothing."""
        forms = sorted(sides_of(chosen, self.draw), key=lambda _: self.draw.random())
        runs = duel.run_all(forms, [file for file, _ in ids], named, at_once=at_once)
        if unusable := next((run for run in runs if not run.usable), None):
            return _Fight(set(), set(), set(), unusable)
        failed = {it for side, run in zip(forms, runs, strict=True) for it in missed(ids, side, run.statuses)}
        told = {it for side, run in zip(forms, runs, strict=True) for it in lies(ids, side, run.statuses)}
        believed = {it for it in told if not (named and failed.intersection(ids[it]))}
        cheats = {it for run in runs for it in run.cheats}
        cheats |= {f"a test that was made false passes: {file}:{name}" for file, name in believed}
        lied = {it for test in believed for it in ids[test]}
        return _Fight(failed, cheats, lied, is_odd=told != believed)


class _GradingBench:
    """The bench of the runs of one tree: another one for each, where what makes the tree ready sees the tests, and so
    could keep those of one run for the next."""

    def __init__(self, suite: StageSuite) -> None:
        self._suite = suite
        self._bench: EditedTrees | None = None

    def holding(self, tree: str) -> EditedTrees:
        """A bench that begins with this tree, or differs from it in test files alone."""
        if self._bench is None or not self._bench.begins_without_tests:
            self.close()
            workplace, files, known = self._suite.workplace, self._suite.files, self._suite.baseline
            self._bench = EditedTrees(workplace, tree, files, known, curt=False, secret=True, beside=2)
        return self._bench

    def close(self) -> None:
        """Remove its sandboxes. Never fails."""
        if self._bench is not None:
            self._bench.close()


class _Fight(NamedTuple):
    """How a duel ended: the ids of true tests that did not pass, why work is no work, the ids of false tests that did
    pass, a run that says nothing, and whether one passed alone only when it was false."""

    failed: set[str]
    cheats: set[str]
    lied: set[str]
    unusable: TestRun | None = None
    is_odd: bool = False


def held_tests(
    suite: StageSuite, f2p: Collection[str], after: Mapping[str, Status], tell: Tell
) -> tuple[HeldTest, ...]:
    """Those functions of F2P tests that can be held in duels: on M_t, in fresh processes, all their tests pass as they
    are and fail where they are made false, by at least one seed. `after` are the statuses of a run on M_t. Raises as
    `StageSuite.run`."""
    runner = RUNNERS[suite.workplace.runner]
    if runner.falsify is None or not f2p:
        return ()
    texts, wanted = _TestTexts(suite), {*f2p}
    files = sorted({_file_of(suite, it) for it in f2p})
    ids = _ids(suite, {(file, name) for file in files for name in texts.names(file)}, after)
    known = sorted(test for test, found in ids.items() if not wanted.isdisjoint(found))
    order = Random(suite.landed)
    changed = _changed_tests(suite)
    tried = {test: ids[test] for test in sorted(_some(known, order, lambda it: changed(ids[it][0]) is False))}
    if not tried:
        return ()
    fits: dict[Test, list[int]] = {test: [] for test in tried}
    landed = suite.with_overlay(suite.landed)
    with EditedTrees(suite.workplace, landed, suite.files, suite.baseline.with_canaries(())) as bench:
        duel = _Duel(suite, bench, landed, landed)
        seeds, last_seeds = runner.falsify.seeds, runner.falsify.last_seeds
        for seed in (*seeds, *last_seeds):
            asked = {test: found for test, found in tried.items() if seed in seeds or not fits[test]}
            for test in sorted(_fit(duel, asked, seed, order, tell)):
                fits[test].append(seed)
    return tuple(HeldTest(file, name, tuple(seeds)) for (file, name), seeds in fits.items() if seeds)


def _fit(duel: _Duel, asked: Mapping[Test, Sequence[str]], seed: int, order: Random, tell: Tell) -> set[Test]:
    """Those of the tests, each with its ids, that pass as they are and fail by this seed."""
    fit = {*asked}
    for number, side in enumerate(sides([(*test, seed) for test in asked], order) if asked else (), 1):
        tell(f"duel {seed}, run {number}")
        run = duel.run(side, [file for file, _ in asked])
        if run.usable and not run.statuses and len(asked) > 1:
            # Where one does not compile, none is run.
            tests = sorted(asked)
            parts = (tests[: len(tests) // 2], tests[len(tests) // 2 :])
            return set().union(*(_fit(duel, {it: asked[it] for it in part}, seed, order, tell) for part in parts))
        fit &= fitting(asked, side, run.statuses) if run.usable else set()
    return fit


def _changed_tests(suite: StageSuite) -> ChangedTests:
    """Whether M_t has a test that B_t has not, or has otherwise."""
    trees = suite.workplace.trees

    def reader(commit: str) -> Callable[[str], str | None]:
        entries = trees.entries(commit)

        def read(path: str) -> str | None:
            entry = entries.get(path.encode("utf-8", "surrogateescape"))
            found = trees.blobs([entry.blob]) if entry and entry.mode in (FILE, EXECUTABLE) else []
            return found[0].decode("utf-8", "replace") if found else None

        return cache(read)

    old, new = reader(suite.base), reader(suite.landed)
    return ChangedTests(suite.workplace.runner, suite.files, {path: path for path in suite.files}, old, new)


def _some(known: Sequence[Test], order: Random, is_old: Callable[[Test], bool]) -> list[Test]:
    """At most `KEPT` of the tests, and of those whose functions have one name `OF_ONE_NAME`; old ones last, as far as
    that was looked at."""
    named = Counter[str]()
    chosen: list[Test] = []
    shuffled = order.sample(known, len(known))
    old = {it for it in shuffled[:_LOOKED_AT] if is_old(it)} if len(known) > MOST else set[Test]()
    for file, name in sorted(shuffled, key=lambda it: it in old):
        if len(chosen) < KEPT and named[function_of(name)] < OF_ONE_NAME:
            named[function_of(name)] += 1
            chosen.append((file, name))
    return chosen


class _Duel:
    """Runs of both sides of a duel on a tree with its overlay, `plain`; the bench begins on `first`, which differs from
    it in test files alone."""

    def __init__(self, suite: StageSuite, bench: EditedTrees, first: str, plain: str) -> None:
        self._suite, self._bench, self._plain = suite, bench, plain
        self._texts = _TestTexts(suite)
        changed = suite.workplace.trees.diff(first, plain) if first != plain else ()
        self._changed = [path_text(change.path) for change in changed]

    def named(self, ids: Sequence[str]) -> list[str]:
        """What has the runner run these tests alone, in this order; nothing where it cannot be told."""
        return RUNNERS[self._suite.workplace.runner].named(self._suite.files, ids)

    def run_all(
        self, forms: Sequence[Side], files: Iterable[str], named: Sequence[str], *, at_once: bool
    ) -> list[TestRun]:
        """All sides, `at_once` in as many sandboxes as the backend can have beside the first."""
        given = [*files]
        self._bench.end_processes()
        benches = self._bench.benches() if at_once else []
        if not benches:
            return [self._run_alone(side, given, named) for side in forms]
        found: dict[int, TestRun] = {}

        def run_some(number: int, bench: EditedTrees) -> None:
            for place in range(number, len(forms), len(benches)):
                found[place] = self.run(forms[place], given, named, bench)

        with ThreadPoolExecutor(len(benches)) as pool:
            for done in [pool.submit(run_some, number, bench) for number, bench in enumerate(benches)]:
                done.result()
        return [found[place] for place in range(len(forms))]

    def _run_alone(self, side: Side, files: Iterable[str], named: Sequence[str]) -> TestRun:
        self._bench.end_processes()
        return self.run(side, files, named)

    def run(
        self, side: Side, files: Iterable[str], named: Sequence[str] = (), bench: EditedTrees | None = None
    ) -> TestRun:
        """One side, in a fresh process that sees nothing of another: of `files` all tests, or those that are named."""
        trees = self._suite.workplace.trees
        changes: dict[bytes, TreeEntry | None] = {}
        for file in sorted({file for file, _ in side.false}):
            text, _ = self._texts.falsified(file, side.false)
            path, entry = self._texts.entry(file)
            changes[path] = entry._replace(blob=trees.write_blob(text.encode("utf-8", "surrogateescape")))
        tree = trees.edit(self._plain, changes) if changes else self._plain
        paths = [*self._changed, *(path_text(path) for path in changes)]
        given = [*dict.fromkeys(files)]
        bench = bench or self._bench
        return bench.run(tree, paths, self._suite.workplace.test_timeout, fresh=True, files=given, named=named)


class _TestTexts:
    """The texts of M_t's test files, as they are and with tests made false."""

    def __init__(self, suite: StageSuite) -> None:
        self._suite = suite
        entries = suite.workplace.trees.entries(suite.landed)
        self._entries = {path_text(path): (path, it) for path, it in entries.items() if it.mode in (FILE, EXECUTABLE)}

    def entry(self, file: str) -> tuple[bytes, TreeEntry]:
        return self._entries[file]

    def names(self, file: str) -> frozenset[str]:
        """The tests of a file that can be made false by some seed of their language."""
        falsifier = RUNNERS[self._suite.workplace.runner].falsify
        seeds = (*falsifier.seeds, *falsifier.last_seeds) if falsifier is not None else ()
        made = (self._made(file, partial(dice, self._suite.landed, file, seed=seed)) for seed in seeds)
        return frozenset(name for _, names in made for name in names)

    def falsified(self, file: str, false: Mapping[Test, int]) -> tuple[str, frozenset[str]]:
        """The file with those of its tests made false that stand in the mapping, and the names of these."""

        def order(name: str) -> Random | None:
            seed = false.get((file, name))
            return None if seed is None else dice(self._suite.landed, file, name, seed)

        return self._made(file, order)

    def _made(self, file: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
        falsifier = RUNNERS[self._suite.workplace.runner].falsify
        if falsifier is None or file not in self._entries:
            return "", frozenset()
        text = self._suite.workplace.trees.blobs([self._entries[file][1].blob])[0].decode("utf-8", "surrogateescape")
        return falsifier.falsify(text, order)


def _file_of(suite: StageSuite, test: str) -> str:
    """The file in which a test stands; empty where its id does not tell."""
    runner = RUNNERS[suite.workplace.runner]
    file_of = (runner.falsify and runner.falsify.file_of) or runner.file_of
    return file_of(test, suite.files) or ""


def _names(suite: StageSuite, test: str) -> tuple[Test, Test]:
    """What a test may be known as: by its function's name, and by that with the class before it."""
    runner = RUNNERS[suite.workplace.runner]
    file, name = _file_of(suite, test), runner.name_of(test)
    place = test.removeprefix(file).partition("[")[0]
    owner = re.split(r"::|\.", place[: place.rfind(name)].rstrip(":."))[-1]
    return (file, name), (file, f"{owner}.{name}")


def _ids(suite: StageSuite, wanted: Collection[Test], statuses: Mapping[str, Status]) -> dict[Test, Sequence[str]]:
    """The ids in a run's statuses of the tests that are wanted."""
    names = {*wanted}
    found = defaultdict[Test, list[str]](list)
    for test in statuses:
        for known_as in names.intersection(_names(suite, test)):
            found[known_as].append(test)
    return dict(found)
