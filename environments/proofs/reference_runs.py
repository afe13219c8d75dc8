"""The runs of one stage's tests on B_t and on M_t: stored ones are read, the others are made and stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from environments.proofs.proof_rows import StoredRuns
from environments.stages import Stage
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite
from prchain.runs import Tell

BEFORE, AFTER = "before", "after"

Run = Callable[[int, Collection[str], Tell], TestRun]
"""From a run's number, and the runner's functions that M_t replaces, to the run."""


class ReferenceRuns:
    """`runs` runs a side, each stored under a key of everything that decides it: the tree with its overlay, the
    command, the files, and `decides` (image and limits).

    A stored run that was out of time is made anew where there is more time now. A side whose first run is unusable gets
    no more.
    """

    def __init__(self, stored: StoredRuns, suite: StageSuite, stage: Stage, runs: int, decides: Sequence[str]) -> None:
        self._stored = stored
        self._suite = suite
        self._stage = stage
        self._runs = runs
        self._decides = list(decides)

    def after(self, tell: Tell) -> tuple[list[TestRun], tuple[str, ...]]:
        """The runs on M_t, and the functions of the runner that M_t itself replaces.

        If the first run finds any, it is used for nothing else, and the other runs accept these replacements.
        """
        with self._side(AFTER, self._stage.landed) as run:
            first = run(1, (), tell)
            if not first.usable:
                return [first], ()
            if first.tampered:
                return [run(n, first.tampered, tell) for n in range(2, self._runs + 2)], first.tampered
            return [first, *(run(n, (), tell) for n in range(2, self._runs + 1))], ()

    def before(self, replaced: Collection[str], tell: Tell) -> list[TestRun]:
        """The runs on B_t with the overlay."""
        with self._side(BEFORE, self._stage.base) as run:
            first = run(1, replaced, tell)
            return [first, *(run(n, replaced, tell) for n in range(2, self._runs + 1) if first.usable)]

    @contextmanager
    def _side(self, side: str, commit: str) -> Iterator[Run]:
        tree = self._suite.with_overlay(commit)
        with self._suite.workplace.bench(tree, self._suite.files) as bench:

            def run(ordinal: int, replaced: Collection[str], tell: Tell) -> TestRun:
                key = self._key(tree, replaced)
                test_run = self._stored.find(side, ordinal, key)
                if test_run is None or (
                    test_run.timed_out and test_run.seconds < 0.99 * self._suite.workplace.test_timeout
                ):
                    tell(f"{side}, run {ordinal}")
                    test_run = bench.run(replaced)
                    self._stored.keep(side, ordinal, key, test_run)
                return test_run

            yield run

    def _key(self, tree: str, replaced: Collection[str]) -> str:
        workplace = self._suite.workplace
        plan, command = workplace.provided.plan, workplace.command
        inputs = [
            tree,
            self._suite.files,
            sorted(replaced),
            command.template,
            command.arguments,
            dict(command.environment),
            dict(plan.environment),
            plan.refresh,
            self._decides,
        ]
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
