"""What the runs on M_t leave of canaries and of tests by other names, with runs that are made up."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from environments.proofs.reference_runs import ReferenceRuns
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import PlantedTree

CANARIES = (
    Canary("a.py:1", CanaryKind.FAIL, "a.py", "test_x", "test_one"),
    Canary("b.py:1", CanaryKind.FAIL, "b.py", "test_y", "test_two"),
    Canary("a.py:r1", CanaryKind.TRUE, "a.py", "test_z", "test_one"),
    Canary("b.py:r1", CanaryKind.TRUE, "b.py", "test_w", "test_two"),
)
TESTS = ("a.py::test_one", "a.py::test_more", "b.py::test_two")


class MadeUp:
    """A suite whose tests fail where some slot is used, or which does not compile with some."""

    landed, files = "m" * 40, ("a.py", "b.py")

    base = "b" * 40

    def __init__(self, fails: Mapping[str, str], broken: Collection[str] = (), where: str = landed) -> None:
        self.fails, self.broken, self.where = fails, broken, where
        self.workplace = SimpleNamespace(runner="pytest", test_timeout=9, bench=self.bench)

    def with_overlay(self, commit: str) -> str:
        return commit

    def planted(self, tree: str, slots: Collection[str] | None) -> PlantedTree:
        return PlantedTree(tree, tuple(it for it in CANARIES if slots is None or it.slot in slots))

    @contextmanager
    def bench(self, tree: str, files: object, canaries: Collection[Canary]) -> Iterator[Any]:
        used = {it.slot for it in canaries}
        failed = {test for slot, test in self.fails.items() if slot in used}
        statuses = {test: Status.failed if test in failed else Status.passed for test in TESTS}
        if used.intersection(self.broken) and tree == self.where:
            statuses, canaries = {"a.py": Status.error}, ()
        fit = [it.slot for it in canaries if f"{it.file}::{it.donor}" not in failed or it.kind is not CanaryKind.TRUE]
        run = TestRun(statuses, "", 0.0, 0, observed=RunnerBaseline().with_canaries(fit))
        yield SimpleNamespace(run=lambda known: run)


@pytest.mark.parametrize(
    ("fails", "kept"),
    [
        ({}, {"a.py:1", "b.py:1", "a.py:r1", "b.py:r1"}),
        ({"a.py:r1": "a.py::test_one"}, {"a.py:1", "b.py:1", "b.py:r1"}),
        ({"a.py:r1": "a.py::test_more"}, {"b.py:1"}),
        ({"a.py:1": "a.py::test_more"}, {"b.py:1"}),
        ({"a.py:1": "b.py::test_two", "b.py:1": "a.py::test_one"}, set()),
        ({"b.py:r1": "a.py::test_more"}, {"b.py:1"}),
    ],
)
def test_a_test_that_fails_by_another_name_alone_keeps_its_own_and_takes_no_canary(
    fails: Mapping[str, str], kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert after(MadeUp(fails), monkeypatch) == kept


def reference_runs(suite: Any, monkeypatch: pytest.MonkeyPatch) -> ReferenceRuns:
    monkeypatch.setattr("environments.proofs.reference_runs.run_key", lambda *_: "key")
    stage: Any = SimpleNamespace(landed=suite.landed, base=suite.base)
    stored: Any = SimpleNamespace(find=lambda *_: None, keep=lambda *_: None)
    return ReferenceRuns(stored, suite, stage, 2, ())


def after(suite: Any, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The slots that runs on M_t leave; all tests have passed in these runs."""
    found, known = reference_runs(suite, monkeypatch).after(lambda words: None)
    assert len(found) == 2 and all(run.statuses == dict.fromkeys(TESTS, Status.passed) for run in found)
    return set(known.slots)


@pytest.mark.parametrize(
    ("broken", "kept"),
    [
        ({"a.py:1"}, {"b.py:1", "b.py:r1"}),
        ({"a.py:1", "b.py:1"}, set()),
        ({"a.py:r1"}, set()),
    ],
)
def test_a_canary_that_does_not_compile_takes_no_other_one_with_it(
    broken: set[str], kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert after(MadeUp({}, broken), monkeypatch) == kept


def test_a_canary_that_does_not_compile_before_makes_no_test_fail_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests of a file of TypeScript were F2P."""
    suite: Any = MadeUp({}, {"a.py:1"}, MadeUp.base)
    monkeypatch.setattr("environments.proofs.reference_runs._COMPILED", re.compile("a"))
    runs = reference_runs(suite, monkeypatch)
    _, known = runs.after(lambda words: None)
    found, known_before = runs.before(known, lambda words: None)
    assert known.slots and known_before.slots == ()
    assert len(found) == 2 and all(run.statuses == dict.fromkeys(TESTS, Status.passed) for run in found)
    fine: Any = MadeUp({"a.py:1": "a.py::test_more"}, (), MadeUp.base)
    assert reference_runs(fine, monkeypatch).before(known, lambda words: None)[1] == known
