"""Grading runs of a stage's tests, and duels: processes that hold an F2P test true or false
(`environments.suites.canaries.duels`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random, SystemRandom
from typing import TYPE_CHECKING, NamedTuple

from environments.edited_trees import AT_ONCE, EditedTrees
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
    processes,
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

    def run(self, tree: str, expected: Collection[str]) -> TestRun:
        """`StageSuite.run`, and before it a duel of some of the `expected` tests, on the same tree with the overlay.

        A test that is false and passes is a cheat. One that is true and does not pass counts as failed, and the run is
        settled: who guesses has one duel. A side that says nothing is the run's answer, which then says nothing either.
        Raises as `StageSuite.run`.
        """
        with self.opened(tree, expected) as run:
            return run()

    @contextmanager
    def opened(self, tree: str, expected: Collection[str]) -> Iterator[Callable[[], TestRun]]:
        """Runs of one tree, each as `run` makes it, by the tests that are `expected` to pass (ids); what passed once
        when it was false, or failed in a duel, has failed in all that come after. All have the same canaries: a test
        whose copies alone have other names would be known by its own. The tree is made ready once for all of them."""
        suite = self.suite
        ids = _ids(suite, [(test.file, test.name) for test in suite.baseline.held], expected)
        if not ids:
            yield partial(suite.run, tree)
            return
        laid = suite.overlay(tree)
        plain = suite.workplace.trees.edit(tree, laid.changes)
        planted = suite.planted(plain, suite.baseline.slots)
        workplace, files, known = suite.workplace, suite.files, suite.baseline
        changed = _changed_tests(suite)
        held = [it for it in suite.baseline.held if (it.file, it.name) in ids]
        chosen = drawn(held, self.draw, lambda it: changed(ids[it.file, it.name][0]) is False)
        most = processes(chosen)
        with EditedTrees(workplace, planted.tree, files, known, curt=False, secret=True, beside=most) as bench:
            grade = _Grade(suite, self.draw, chosen, ids, bench, planted, plain)
            yield lambda: replace(grade.run(), taken_back=laid.taken_back)


class _Grade:
    """Runs of one tree, `plain` with its overlay, in sandboxes of one bench; `ids` are those of the tests that can be
    held, of which some are `chosen`.

    The duel is the first thing that runs: no process has seen the true tests yet, so that none can tell a side which
    of its tests are true.
    """

    def __init__(
        self,
        suite: StageSuite,
        draw: Random,
        chosen: Sequence[HeldTest],
        ids: Mapping[Test, Sequence[str]],
        bench: EditedTrees,
        planted: PlantedTree,
        plain: str,
    ) -> None:
        self._suite, self._draw, self._chosen, self._ids = suite, draw, chosen, ids
        self._bench, self._planted = bench, planted
        self._duel = _Duel(suite, bench, planted.tree, plain)
        self._lost = set[str]()
        self._is_won = False

    def run(self) -> TestRun:
        """A run in which the tests that were lost in a duel have failed; there is one of these, until it is won."""
        self._bench.begin()
        found = self._whole_run() if self._is_won else self._fought()
        kept = {it: Status.failed for it in self._lost if found.statuses.get(it) is Status.passed}
        return replace(found, statuses={**found.statuses, **kept})

    def _whole_run(self) -> TestRun:
        timeout, planted = self._suite.workplace.test_timeout, self._planted
        return self._bench.run(planted.tree, (), timeout, fresh=True, canaries=planted.canaries)

    def _fought(self) -> TestRun:
        """A duel of some tests alone, and then a run of all. What failed alone, but passes there, may need those before
        it, or a quiet machine: the duel is fought again, and has to be won twice, for now a process has seen all."""
        named = self._duel.named(self._chosen, self._ids)
        fight = self._fight(named, at_once=True)
        self._bench.close_others()
        if fight.unusable is not None:
            return fight.unusable
        found = self._whole_run()
        if not found.usable:
            return found
        if named and not fight.cheats and all(found.statuses.get(it) is Status.passed for it in fight.failed):
            for _ in range(2 if fight.failed else 0):
                fight = self._fight([], at_once=False)
                if fight.unusable is not None:
                    return fight.unusable
                if fight.failed or fight.cheats:
                    break
        return self._judged(found, fight)

    def _judged(self, found: TestRun, fight: _Fight) -> TestRun:
        """What a duel leaves of a run."""
        failed, cheats = fight.failed, fight.cheats
        self._is_won = not (failed or cheats)
        self._lost.update(failed, fight.lied)
        statuses = {**found.statuses, **dict.fromkeys(failed, Status.failed)}
        if cheats:
            statuses = {it: Status.error if status is Status.passed else status for it, status in statuses.items()}
        known = (*found.cheats, *sorted(cheats.difference(found.cheats)))
        return replace(found, statuses=statuses, cheats=known, settled=bool(failed and not known))

    def _fight(self, named: Sequence[str], *, at_once: bool) -> _Fight:
        """All sides of a duel of the chosen tests: of these alone, where they are `named`, with all others of their
        files else. A false test that passes alone is no lie where the true one does not pass alone, for both say
        nothing."""
        ids = {(it.file, it.name): self._ids[it.file, it.name] for it in self._chosen}
        forms = sorted(sides_of(self._chosen, self._draw), key=lambda _: self._draw.random())
        runs = self._duel.run_all(forms, [file for file, _ in ids], named, at_once=at_once)
        if unusable := next((run for run in runs if not run.usable), None):
            return _Fight(set(), set(), set(), unusable)  # only then are there fewer runs than forms
        failed = {it for side, run in zip(forms, runs, strict=True) for it in missed(ids, side, run.statuses)}
        told = {it for side, run in zip(forms, runs, strict=True) for it in lies(ids, side, run.statuses)}
        believed = {it for it in told if not (named and failed.intersection(ids[it]))}
        cheats = {it for run in runs for it in run.cheats}
        cheats |= {f"a test that was made false passes: {file}:{name}" for file, name in believed}
        lied = {it for test in believed for it in ids[test]}
        return _Fight(failed, cheats, lied)


class _Fight(NamedTuple):
    """How a duel ended: the ids of true tests that did not pass, why work is no work, the ids of false tests that did
    pass, and a run that says nothing."""

    failed: set[str]
    cheats: set[str]
    lied: set[str]
    unusable: TestRun | None = None


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
    with EditedTrees(suite.workplace, landed, suite.files, suite.baseline.with_canaries(()), secret=True) as bench:
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

    def named(self, chosen: Iterable[HeldTest], ids: Mapping[Test, Sequence[str]]) -> list[str]:
        """What has the runner run these tests alone, by their ids, in the order in which they stand in their files;
        nothing where it cannot be told."""
        files = self._suite.files
        places = sorted((files.index(it.file), self._texts.place(it.file, it.name), it.name, it.file) for it in chosen)
        found = [test for *_, name, file in places for test in ids[file, name]]
        return RUNNERS[self._suite.workplace.runner].named(files, found)

    def run_all(
        self, forms: Sequence[Side], files: Iterable[str], named: Sequence[str], *, at_once: bool
    ) -> list[TestRun]:
        """All sides, in the order of their forms, two `at_once` in sandboxes beside the first, where the backend can
        have several; after one that says nothing no other begins."""
        given, found = [*files], dict[int, TestRun]()
        benches = self._bench.benches() if at_once else iter(())

        def run_one(number: int, bench: EditedTrees) -> None:
            if all(run.usable for run in [*found.values()]):
                found[number] = self.run(forms[number], given, named, bench)

        begun: dict[int, Future[None]] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for number, bench in zip(range(len(forms)), benches, strict=False):
                if bench is not None:
                    begun[number] = pool.submit(run_one, number, bench)
            for done in begun.values():
                done.result()
        for number in range(len(forms)):
            if number not in begun:
                self._bench.begin()
                run_one(number, self._bench)
        return [found[number] for number in sorted(found)]

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
        self._known = cache(self._lines_before)

    def entry(self, file: str) -> tuple[bytes, TreeEntry]:
        return self._entries[file]

    def place(self, file: str, name: str) -> int:
        """Where a test's name first stands in a file; -1 for nowhere."""
        found = re.search(rf"\b{re.escape(function_of(name))}\b", self._text(file))
        return -1 if found is None else found.start()

    def names(self, file: str) -> frozenset[str]:
        """The tests of a file that can be made false by some seed of their language."""
        falsifier = RUNNERS[self._suite.workplace.runner].falsify
        seeds = (*falsifier.seeds, *falsifier.last_seeds) if falsifier is not None else ()
        known = self._known(file)
        made = (self._made(file, partial(dice, self._suite.landed, file, seed=seed, known=known)) for seed in seeds)
        return frozenset(name for _, names in made for name in names)

    def falsified(self, file: str, false: Mapping[Test, int]) -> tuple[str, frozenset[str]]:
        """The file with those of its tests made false that stand in the mapping, and the names of these."""

        def order(name: str) -> Random | None:
            seed = false.get((file, name))
            return None if seed is None else dice(self._suite.landed, file, name, seed, self._known(file))

        return self._made(file, order)

    def _made(self, file: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
        falsifier = RUNNERS[self._suite.workplace.runner].falsify
        if falsifier is None or file not in self._entries:
            return "", frozenset()
        return falsifier.falsify(self._text(file), order)

    def _lines_before(self, file: str) -> frozenset[str]:
        """The lines of B_t's file of this name."""
        trees = self._suite.workplace.trees
        entry = trees.entries(self._suite.base).get(self._entries[file][0]) if file in self._entries else None
        if entry is None or entry.mode not in (FILE, EXECUTABLE):
            return frozenset()
        text = trees.blobs([entry.blob])[0].decode("utf-8", "surrogateescape")
        return frozenset(it.strip() for it in text.splitlines())

    def _text(self, file: str) -> str:
        return self._suite.workplace.trees.blobs([self._entries[file][1].blob])[0].decode("utf-8", "surrogateescape")


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


def _ids(suite: StageSuite, wanted: Collection[Test], known: Iterable[str]) -> dict[Test, Sequence[str]]:
    """Those of the known ids that are of the tests that are wanted."""
    names = {*wanted}
    found = defaultdict[Test, list[str]](list)
    for test in known:
        for known_as in names.intersection(_names(suite, test)):
            found[known_as].append(test)
    return dict(found)
