"""Grading runs of a stage's tests, after duels of some of them (`environments.suites.canaries.duels`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random, SystemRandom
from typing import NamedTuple

from environments.duel_runs import DuelRuns, Test, Told, changed_tests, ids_of
from environments.edited_trees import EditedTrees
from environments.masked_suites import MaskedSuite
from environments.suites.canaries.duels import HeldTest, drawn, lies, missed, processes, sides_of
from environments.suites.canaries.masks import agrees
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite


@dataclass(frozen=True)
class GradingSuite:
    """A stage's suite as work is graded by it: what passes the hidden tests has to fail where they are false."""

    suite: StageSuite
    draw: Random = field(default_factory=SystemRandom)

    def run(self, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
        """`StageSuite.run`, and before it a duel of some of the `expected` tests, where masks do not tell enough, on
        the same tree with the overlay.

        A test that is false and passes is a cheat. One that is true and does not pass counts as failed, and the run is
        settled: who guesses has one duel. A side that says nothing is the run's answer, which then says nothing either.
        `is_start`: the tree is S_t, and nobody's work on it is graded. Raises as `StageSuite.run`.
        """
        with self.opened(tree, expected, is_start=is_start) as run:
            return run()

    @contextmanager
    def opened(
        self, tree: str, expected: Collection[str], *, is_start: bool = False
    ) -> Iterator[Callable[[], TestRun]]:
        """Runs of one tree, each as `run` makes it, by the tests that are `expected` to pass (ids); what passed once
        when it was false, failed in a duel or told what is wrong has failed in all that come after. All have the same
        canaries: a test whose copies alone have other names would be known by its own. Where a duel is fought the tree
        is made ready once for all of them."""
        suite = self.suite
        workplace, files, known = suite.workplace, suite.files, suite.baseline
        ids = {} if is_start else ids_of(suite, [(test.file, test.name) for test in known.held], expected)
        laid = suite.overlay(tree)
        plain = workplace.trees.edit(tree, laid.changes)
        chosen, masked = self._drawn(ids) if ids else ([], [*known.held])
        whole = MaskedSuite.of(suite, plain, masked)
        if not chosen:
            grade = _MaskedGrade(suite, whole, masked, ids, expected)
            yield lambda: replace(grade.run(), taken_back=laid.taken_back)
            return
        most = processes(chosen, masked)
        with EditedTrees(workplace, whole.planted.tree, files, known, curt=False, secret=True, beside=most) as bench:
            duelled = _Grade(suite, self.draw, chosen, masked, ids, bench, whole, plain)
            yield lambda: replace(duelled.run(), taken_back=laid.taken_back)

    def _drawn(self, ids: Mapping[Test, Sequence[str]]) -> tuple[list[HeldTest], list[HeldTest]]:
        """Those of these tests that are false in a duel, and those that are masked."""
        changed = changed_tests(self.suite)
        held = [it for it in self.suite.baseline.held if (it.file, it.name) in ids]
        return drawn(held, self.draw, lambda it: changed(ids[it.file, it.name][0]) is False)


class _MaskedGrade:
    """Runs of all tests of one tree, with masks in all that can be held: no process holds what these ask for, and so
    one is enough. `ids` are those of the tests that are `expected` to pass; without any the tree is not graded."""

    def __init__(
        self,
        suite: StageSuite,
        whole: MaskedSuite,
        masked: Sequence[HeldTest],
        ids: Mapping[Test, Sequence[str]],
        expected: Collection[str],
    ) -> None:
        self._suite, self._whole, self._ids, self._expected = suite, whole, ids, expected
        self._masked = [it for it in masked if it.masks]
        self._lost: set[str] = set()

    def run(self) -> TestRun:
        """A run in which the tests have failed whose masks did not tell what they have to, also where it says nothing
        else: work can end it. Once they have told what is wrong that is settled: who guesses would guess again."""
        suite, whole = self._suite, self._whole
        run = whole.run(suite)
        if not self._masked:
            return run
        if not self._ids:
            return whole.judged(suite, run, self._masked, self._expected)
        ran = whole.read(run)
        untold = {it for test in _untold(ran.told, self._masked) for it in self._ids[test]}
        wrong = [it for it in self._masked if _told_wrong(ran.told, [it])]
        self._lost.update(it for test in wrong for it in self._ids[test.file, test.name])
        failed = dict.fromkeys((untold | self._lost) & ran.run.statuses.keys(), Status.failed)
        return replace(ran.run, statuses={**ran.run.statuses, **failed}, settled=bool(self._lost and not run.cheats))


class _Grade:
    """Runs of one tree, `plain` with its overlay, in sandboxes of one bench; `ids` are those of the tests that can be
    held, of which some are `chosen` to be false, and some `masked`.

    The duel is the first thing that runs, and there is one: no process has seen the true tests yet, so that none can
    tell a side which of its tests are true.
    """

    def __init__(
        self,
        suite: StageSuite,
        draw: Random,
        chosen: Sequence[HeldTest],
        masked: Sequence[HeldTest],
        ids: Mapping[Test, Sequence[str]],
        bench: EditedTrees,
        whole: MaskedSuite,
        plain: str,
    ) -> None:
        self._suite, self._draw, self._chosen, self._masked = suite, draw, chosen, masked
        self._telling = [it for it in masked if it.masks]
        self._held = [*chosen, *self._telling]
        self._ids = {(it.file, it.name): ids[it.file, it.name] for it in self._held}
        self._told = {test for it in self._telling for test in ids[it.file, it.name]}
        self._bench, self._whole = bench, whole
        self._duel = DuelRuns(suite, bench, whole.planted.tree, plain)
        self._fight_before: _Fight | None = None

    def _whole_run(self) -> TestRun:
        timeout, whole = self._suite.workplace.test_timeout, self._whole
        tree, canaries = whole.planted.tree, whole.planted.canaries
        return whole.read(self._bench.run(tree, (), timeout, fresh=True, canaries=canaries, masked=whole.report)).run

    def run(self) -> TestRun:
        """A run of all tests, in which those that were lost in the duel have failed; before the first one the duel. No
        process of it begins after one that has seen all tests, whatever became of that: what is not in its sandbox,
        such as which names the kernel has looked for in the image's folders, could tell a later one what is true."""
        self._bench.begin()
        fight = self._fight_before or self._fights()
        if fight.unusable is not None:
            return replace(fight.unusable, statuses={})  # of a side they are not those of the tests
        self._fight_before = fight
        self._bench.close_lent()
        return self._judged(self._whole_run(), fight)

    def _fights(self) -> _Fight:
        """A duel of some tests alone. A masked test that failed, and told nothing that is wrong, is asked once more:
        the machine may have been busy. Who tells what is wrong would guess again. Of the others, what failed alone may
        need those before it: the duel is fought again, and has to be won twice. A cheat stands if one of two more
        duels shows one, too; else the false test that passed is a true one that failed. What was lost stays so where
        another duel says nothing: work can end one, and knows more in the next."""
        named = self._duel.named(self._held, self._ids)
        fight = self._fight(self._chosen, named, at_once=True)
        if fight.unusable is not None or not (fight.failed or fight.cheats):
            return fight
        lost = fight._replace(failed=fight.failed | fight.lied, cheats=set())
        silent, is_alone = fight.failed & self._told, bool(named and fight.failed - self._told)
        if not fight.cheats and (fight.wrong or not (silent or is_alone)):
            return fight
        if not fight.cheats and not is_alone:
            again = self._fight((), self._duel.named(self._telling, self._ids), at_once=False)
            return again._replace(failed=(fight.failed - silent) | again.failed) if again.unusable is None else lost
        for _ in range(2):
            again = self._fight(self._chosen, named if fight.cheats else [], at_once=False)
            if again.unusable is not None:
                return lost
            if again.cheats or (again.failed and not fight.cheats):
                return again._replace(lied=fight.lied | again.lied)
        return lost if fight.cheats else again

    def _judged(self, found: TestRun, fight: _Fight) -> TestRun:
        """What the duel leaves of a run, also of one that says nothing else: work can end it."""
        cheats = fight.cheats
        lost = (fight.failed | fight.lied) & found.statuses.keys() if not found.usable else fight.failed | fight.lied
        statuses = {**found.statuses, **dict.fromkeys(lost, Status.failed)}
        if cheats:
            statuses = {it: Status.error if status is Status.passed else status for it, status in statuses.items()}
        known = (*found.cheats, *sorted(cheats.difference(found.cheats)))
        return replace(found, statuses=statuses, cheats=known, settled=bool(fight.failed and not known))

    def _fight(self, chosen: Sequence[HeldTest], named: Sequence[str], *, at_once: bool) -> _Fight:
        """All sides of a duel of the masked tests and those that are `chosen`: of these alone, where they are `named`,
        with all others of their files else. A false test that passes alone is no lie where the true one does not pass
        alone, for both say nothing."""
        left_out = {(it.file, it.name) for it in self._chosen} - {(it.file, it.name) for it in chosen}
        ids = {test: found for test, found in self._ids.items() if test not in left_out}
        forms = sorted(sides_of(chosen, self._masked, self._draw), key=lambda _: self._draw.random())
        ran = self._duel.run_all(forms, [file for file, _ in ids], named, at_once=at_once)
        runs = [it.run for it in ran]
        if unusable := next((run for run in runs if not run.usable), None):
            return _Fight(set(), set(), set(), unusable)  # only then are there fewer runs than forms
        no_pass = {it for side, run in zip(forms, runs, strict=True) for it in missed(ids, side, run.statuses)}
        masks = [(it.told, side.masked) for side, it in zip(forms, ran, strict=True)]
        silent = {test for told, masked in masks for test in _untold(told, masked)}
        failed = no_pass | {it for test in silent for it in ids[test]}
        is_wrong = any(_told_wrong(told, masked) for told, masked in masks)
        told = {it for side, run in zip(forms, runs, strict=True) for it in lies(ids, side, run.statuses)}
        believed = {it for it in told if not (named and no_pass.intersection(ids[it]))}
        cheats = {it for run in runs for it in run.cheats}
        cheats |= {f"a test that was made false passes: {file}:{name}" for file, name in believed}
        lied = {it for test in believed for it in ids[test]}
        return _Fight(failed, cheats, lied, wrong=is_wrong)


def _told_wrong(told: Told, held: Iterable[HeldTest]) -> bool:
    """Whether masks told what they must not."""
    return any(
        not agrees(wanted, said)
        for it in held
        for place, wanted in it.masks or ()
        if (said := told.get((it.file, it.name), {}).get(place))
    )


def _untold(told: Told, held: Iterable[HeldTest]) -> set[Test]:
    """The tests whose masks did not tell what they have to."""
    return {
        (it.file, it.name)
        for it in held
        for place, wanted in it.masks or ()
        if not agrees(wanted, told.get((it.file, it.name), {}).get(place, ()))
    }


class _Fight(NamedTuple):
    """How a duel ended: the ids of true tests that did not pass, why work is no work, the ids of false tests that did
    pass, a run that says nothing, and whether masks told what is wrong."""

    failed: set[str]
    cheats: set[str]
    lied: set[str]
    unusable: TestRun | None = None
    wrong: bool = False
