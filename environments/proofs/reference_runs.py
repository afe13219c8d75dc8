"""The runs of one stage's tests on B_t and on M_t: stored ones are read, the others are made and stored."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources

from environments.proofs.proof_rows import StoredRuns
from environments.stages import Stage
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind, is_renamed
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import RUNNER_MISSING, TestRun
from environments.workplace import StageSuite, Workplace
from prchain.core.console.terminal import shortened
from prchain.core.errors import RunnerMissing
from prchain.core.runs import Tell

BEFORE, AFTER = "before", "after"

_RULES = ("environments.suites.reporters", "environments.suites.canaries")
"""Packages that decide what a run shows: where a file of theirs is another one, stored runs are made anew."""

_ENDED = frozenset({Status.passed, Status.skipped, Status.xfail, Status.xpass})

_COMPILED = re.compile(r"\.(?:[cm]?tsx?|rs|go|java|kt)$")
"""Of a file's name: one part that does not compile is enough for none of it to run."""
_MOST_PARTS = 8
"""Runs that look for slots with which tests run."""

Run = Callable[[int, RunnerBaseline, Tell], TestRun]
"""From a run's number, and what is known of M_t's runner, to the run."""


class ReferenceRuns:
    """`runs` runs a side, each stored under a key of everything that decides it: the tree with its overlay, the
    command, the files, what is known of the runner, and `decides` (image and limits).

    A stored run that was out of time is made anew where there is more time now. A side whose first run is unusable gets
    no more.
    """

    def __init__(self, stored: StoredRuns, suite: StageSuite, stage: Stage, runs: int, decides: Sequence[str]) -> None:
        self._stored = stored
        self._suite = suite
        self._stage = stage
        self._runs = runs
        self._decides = list(decides)

    def after(self, tell: Tell) -> tuple[list[TestRun], RunnerBaseline]:
        """The runs on M_t, and what they show of the runner.

        The first one loads what it finds, with canaries in all slots. It is used for nothing else where it finds
        replaced functions, or canaries that are in the way of other tests: the other runs know of these. Where no
        canary ran and tests fail that pass without, as where one of them does not compile, the slots are parted.
        """
        return self._after(None, tell)

    def _after(self, slots: Collection[str] | None, tell: Tell) -> tuple[list[TestRun], RunnerBaseline]:
        with self._side(AFTER, self._stage.landed, slots) as (run, planted):
            first = run(1, RunnerBaseline(), tell)
            if not first.usable:
                return [first], RunnerBaseline()
            disturbed = self._disturbed(first, tell)
            if slots is None and planted and disturbed and not first.observed.canaries:
                return self._after(self._that_run(tell), tell)
            fit = set(first.observed.canaries or ())
            # A test that does not pass by another name has its own, and the file its canaries.
            renamed = {(it.file, it.donor) for it in planted if it.kind is CanaryKind.TRUE}
            if others_disturbed := [test for test in disturbed if self._known_as(test) not in renamed]:
                fit -= {slot for slot in fit if is_renamed(slot)} | self._slots_of(others_disturbed, first)
            known = first.observed.with_canaries(fit)
            is_plain = not first.observed.replaced and not disturbed and fit == set(first.observed.canaries or ())
            numbers = range(2, self._runs + 1 if is_plain else self._runs + 2)
            others = [run(number, known, tell) for number in numbers] if fit == {it.slot for it in planted} else None
        if others is None:
            with self._side(AFTER, self._stage.landed, known.canaries) as (run, _):
                others = [run(number, known, tell) for number in numbers]
        # Names are drawn anew for each run, and some runners order tests by them.
        passed = {test for test, status in first.statuses.items() if status in _ENDED} | {*disturbed}
        failing = [{it for it, status in run.statuses.items() if status not in _ENDED} for run in others if run.usable]
        shaken = passed & set[str]().union(*failing)
        if shaken & {*disturbed} and known.canaries:
            known = known.with_canaries(())
            with self._side(AFTER, self._stage.landed, ()) as (run, _):
                others = [run(number, known, tell) for number in numbers]
        # A test that fails now and then may be flaky by itself; its file gets no canaries that could be why.
        fit = set(known.canaries or ()) - self._slots_of(shaken, first)
        fit = fit.intersection(*(run.observed.canaries or () for run in others if run.usable))
        return [*([first] if is_plain else []), *others], known.with_canaries(fit)

    def _that_run(self, tell: Tell) -> list[str]:
        """Slots with which tests run as they do without, and canaries as they have to; found by halves."""
        every = self._suite.planted(self._suite.with_overlay(self._stage.landed), None).canaries
        parts = deque(_halves([it.slot for it in every if it.kind is not CanaryKind.TRUE]))
        fit: list[str] = []
        for ordinal in range(self._runs + 3, self._runs + 3 + _MOST_PARTS):
            if not parts:
                break
            part = parts.popleft()
            with self._side(AFTER, self._stage.landed, part) as (run, _):
                ran = run(ordinal, RunnerBaseline(), tell)
            if ran.observed.canaries:
                fit += part
            else:
                parts += _halves(part)
        return sorted([*fit, *(it.slot for it in every if it.kind is CanaryKind.TRUE)]) if fit else []

    def _disturbed(self, first: TestRun, tell: Tell) -> list[str]:
        """The tests that fail in a run with canaries, and without one they pass."""
        failed = {test for test, status in first.statuses.items() if status not in _ENDED}
        if not failed:
            return []
        with self._side(AFTER, self._stage.landed, ()) as (run, _):
            plain = run(self._runs + 2, first.observed.with_canaries(()), tell)
        return [test for test in failed if plain.statuses.get(test, Status.passed) in _ENDED]

    def _known_as(self, test: str) -> tuple[str | None, str]:
        runner = RUNNERS[self._suite.workplace.runner]
        return runner.file_of(test, self._suite.files), runner.name_of(test)

    def _slots_of(self, tests: Collection[str], run: TestRun) -> set[str]:
        """The slots in the files of these tests; in all files where an id does not tell its own."""
        runner = RUNNERS[self._suite.workplace.runner]
        files = {runner.file_of(test, self._suite.files) for test in tests}
        return {slot for slot in run.observed.canaries or () if None in files or slot.rpartition(":")[0] in files}

    def before(self, known: RunnerBaseline, tell: Tell) -> tuple[list[TestRun], RunnerBaseline]:
        """The runs on B_t with the overlay, and what is known of the runner then: a canary that passes here, where
        nobody cheats, would call honest work a cheat, and the stage has none; nor where no canary ran, and tests pass
        without them, for then one of them does not compile here."""
        with self._side(BEFORE, self._stage.base, known.canaries) as (run, _):
            first = run(1, known, tell)
            is_fine = not first.cheats and (first.observed.canaries or not self._passes_without(first, known, tell))
            if is_fine or not known.canaries:
                numbers = range(2, self._runs + 1) if first.usable else ()
                return [first, *(run(number, known, tell) for number in numbers)], known
        return self.before(known.with_canaries(()), tell)

    def _passes_without(self, first: TestRun, known: RunnerBaseline, tell: Tell) -> bool:
        """Whether a test passes on B_t without canaries that does not pass in this run with some; asked of languages
        that are compiled."""
        if not (known.canaries and first.usable and any(map(_COMPILED.search, self._suite.files))):
            return False
        with self._side(BEFORE, self._stage.base, ()) as (run, _):
            plain = run(self._runs + 1, known.with_canaries(()), tell)
        return any(it is Status.passed and first.statuses.get(test) is not it for test, it in plain.statuses.items())

    @contextmanager
    def _side(self, side: str, commit: str, slots: Collection[str] | None) -> Iterator[tuple[Run, tuple[Canary, ...]]]:
        """What runs a side with canaries in these slots, or in all; and which these are."""
        tree = self._suite.with_overlay(commit)
        planted = self._suite.planted(tree, slots)
        with self._suite.workplace.bench(planted.tree, self._suite.files, planted.canaries) as bench:

            def run(ordinal: int, known: RunnerBaseline, tell: Tell) -> TestRun:
                key = self._key(tree, slots, known)
                test_run = self._stored.find(side, ordinal, key)
                if (
                    test_run is None
                    or (test_run.timed_out and test_run.seconds < 0.99 * self._suite.workplace.test_timeout)
                    or self._lacks_runner(test_run)
                ):
                    tell(f"{side}, run {ordinal}")
                    test_run = bench.run(known)
                    if self._lacks_runner(test_run):
                        raise self._runner_missing(test_run)
                    self._stored.keep(side, ordinal, key, test_run)
                return test_run

            yield run, planted.canaries

    def _lacks_runner(self, run: TestRun) -> bool:
        """Whether this machine lacks the runner, which says nothing of the chain; an image that does is the recipe's
        fault."""
        return run.infra == RUNNER_MISSING and not self._suite.workplace.backend.needs_image

    def _runner_missing(self, run: TestRun) -> RunnerMissing:
        name = self._suite.workplace.runner
        lines = [line for line in run.tail.splitlines() if line.strip()]
        last = f" ({shortened(lines[-1], 200)})" if lines else ""
        return RunnerMissing(
            f"{name} is missing on this machine{last}: --backend {self._suite.workplace.backend.name} runs tests with "
            f"its programs; install {name} for all users, or take --backend docker"
        )

    def _key(self, tree: str, slots: Collection[str] | None, known: RunnerBaseline) -> str:
        return run_key(self._suite.workplace, tree, self._suite.files, slots, known, self._decides)


def _halves(slots: Sequence[str]) -> list[Sequence[str]]:
    return [slots[::2], slots[1::2]] if len(slots) > 1 else []


def run_key(
    workplace: Workplace,
    tree: str,
    files: Sequence[str],
    slots: Collection[str] | None,
    known: RunnerBaseline,
    decides: Sequence[str],
) -> str:
    """Hash of everything that decides a run of some test files on a tree, with canaries in these slots, or in all."""
    plan, command = workplace.provided.plan, workplace.command
    inputs = [
        tree,
        files,
        _rules(),
        None if slots is None else sorted(slots),
        known.replaced,
        json.dumps({name: value for name, value in known.row().items() if name != "held"}),
        command.template,
        command.arguments,
        dict(command.environment),
        dict(plan.environment),
        plan.refresh,
        decides,
    ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@cache
def _rules() -> str:
    folders = [resources.files(name) for name in _RULES]
    files = [it for folder in folders for it in folder.iterdir() if it.is_file()]
    digests = sorted(f"{it.name} {hashlib.sha256(it.read_bytes()).hexdigest()}" for it in files)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
