"""The runs of a stage's tests by which work is graded: a second one where the first does not settle it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol

from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import RefreshFailed

GRADING = "8"
"""The version of how work is graded: raised where the same proof may give the same tree another grade."""


class Suite(Protocol):
    """The part of `environments.duelling.GradingSuite` that is used here."""

    def run(self, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
        """Run the stage's tests on a tree, S_t if `is_start`; tests that are `expected` to pass (ids) may be looked at
        more closely."""

    def opened(
        self, tree: str, expected: Collection[str], *, is_start: bool = False
    ) -> AbstractContextManager[Callable[[], TestRun]]:
        """Runs of one tree, each as `run`."""
        return nullcontext(partial(self.run, tree, expected, is_start=is_start))


def graded_run(suite: Suite, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
    """What the tests say of a tree; nothing where the tree cannot be made ready to run. `is_start`: it is S_t.

    There is a second run where the first is not usable (out of time or memory, lost), or where an `expected` test
    does not pass; a test that passes in one of them counts as passed, but not where its canary passes in the other:
    work could let the one pass first and then the other. Some tests that always passed in validation are flaky
    (measured: a test of click's pager failed once in ten runs of the reference). There are two more also where the
    first shows a cheat, which stands if one of these does: by chance a value may be the one that a canary asks for.
    There is no second one where a duel, or what masks told, has settled that a test fails (`environments.duelling`).
    """
    try:
        with suite.opened(tree, expected, is_start=is_start) as run:
            first = run()
            passes = all(first.statuses.get(it) is Status.passed for it in expected)
            if not first.cheats and first.usable and (first.settled or passes):
                return first
            second = run()
            if first.cheats:
                return second if second.cheats else run()
    except RefreshFailed:
        return TestRun({}, "", 0.0, None)
    return replace(second, statuses=united(first, second)) if first.usable else second


def united(first: TestRun, second: TestRun) -> dict[str, Status]:
    """The statuses of two runs of the same tree: passed where one of them passes and its canary fails in the other."""
    statuses = {**second.statuses, **first.statuses}
    for run, other in ((first, second), (second, first)):
        for test, status in run.statuses.items():
            if status is Status.passed:
                statuses[test] = other.statuses.get(test, Status.missing) if test in other.copied else status
    return statuses
