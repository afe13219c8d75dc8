"""One fault table over the six kinds of work, units that are run in another process, and two runs at once."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import (
    BudgetExceeded,
    CloneFailed,
    EndpointUnreachable,
    EngineUnavailable,
    NetworkUnreachable,
    ScriptUnknown,
    StoreUnavailable,
)
from prchain.core.runs import DEFECT, MAX_FAILURES_IN_A_ROW
from tests.works import KINDS, UNITS, Case, Kind, run, units

pytestmark = pytest.mark.drawn(12, "faults of six kinds of work")
"""All of them are one table."""


ROOT = Path(__file__).parents[1]

EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

INFRASTRUCTURE = {
    "mine": NetworkUnreachable("no way to GitHub"),
    "tasks": EndpointUnreachable("down"),
    "proofs": EngineUnavailable("no daemon"),
    "calibration": EndpointUnreachable("down"),
    "rollouts": EndpointUnreachable("down"),
    "graphs": EndpointUnreachable("down"),
}
"""A failure of the infrastructure that each kind needs; for rollouts, a test below has also the engine."""

OWN = {
    "mine": CloneFailed("gone"),
    "tasks": ScriptUnknown("no such line"),
    "proofs": CloneFailed("gone"),
    "calibration": ScriptUnknown("no such line"),
    "rollouts": ScriptUnknown("no such line"),
    "graphs": ScriptUnknown("no such line"),
}
"""A failure of one unit that is not infrastructure."""


class Killed(BaseException):
    """Ends a run in the middle, like kill -9: nothing catches it."""


@pytest.fixture(autouse=True)
def sandboxes(request: pytest.FixtureRequest) -> None:
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else None
    if kind is not None and kind.name in {"proofs", "rollouts", "graphs"}:
        request.getfixturevalue("bubblewrap")


@contextmanager
def world(kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    folder.mkdir(exist_ok=True)
    with kind.make_case(folder) as case:
        for name, value in case.environment.items():
            monkeypatch.setenv(name, value)
        yield case


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Any]:
    """The rows that a kind's work leaves where nothing fails."""
    found: dict[str, Any] = {}

    def facts(kind: Kind) -> Any:
        if kind.name not in found:
            with pytest.MonkeyPatch.context() as patch, world(kind, tmp_path_factory.mktemp(kind.name), patch) as case:
                with kind.open(case) as work:
                    assert run(work, case).left == 0
                found[kind.name] = case.facts()
        return found[kind.name]

    return facts


def fails(at: int, error: BaseException, *, on: bool = False) -> Callable[[str], None]:
    """Raises in the work on the unit that begins as number `at`, from 0; with `on` also in all later ones."""
    keys: list[str] = []

    def act(key: str) -> None:
        if key not in keys:
            keys.append(key)
        index = keys.index(key)
        if index == at or (on and index > at):
            raise error

    return act


def finish(kind: Kind, case: Case) -> None:
    """Run once more, without faults."""
    with kind.open(case) as work:
        report = run(work, case)
        assert report.left == 0 and report.stopped is None


class TestFaults:
    @EVERY
    def test_a_unit_that_fails_is_named_and_ends_no_other(
        self, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
    ) -> None:
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                kind.hook(work, fails(1, OWN[kind.name]))
                report = run(work, case)
            assert_one_failed(report, case, OWN[kind.name].name)
            finish(kind, case)
            assert case.facts() == calm(kind)

    @EVERY
    def test_a_defect_on_one_unit_is_named_and_ends_no_other(
        self, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
    ) -> None:
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                kind.hook(work, fails(1, ValueError("ours")))
                report = run(work, case)
            assert_one_failed(report, case, DEFECT)
            finish(kind, case)
            assert case.facts() == calm(kind)

    @EVERY
    def test_a_defect_on_every_unit_ends_no_run_early(
        self, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with world(kind, tmp_path, monkeypatch) as case, kind.open(case) as work:
            kind.hook(work, fails(0, ValueError("ours"), on=True))
            report = run(work, case)
            assert (report.left, report.stopped, case.running()) == (0, None, 0)

    @EVERY
    @pytest.mark.parametrize("end", [Killed(), KeyboardInterrupt()], ids=["killed", "interrupted"])
    def test_a_run_that_is_cut_off_is_gone_on_with(
        self,
        kind: Kind,
        end: BaseException,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        calm: Callable[[Kind], Any],
    ) -> None:
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                kind.hook(work, fails(1, end))
                with pytest.raises(type(end)):
                    run(work, case)
            finish(kind, case)
            assert case.facts() == calm(kind) and case.running() == 0

    @EVERY
    def test_when_what_every_unit_needs_is_gone_the_run_ends_after_three(
        self, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
    ) -> None:
        self.ends_after_three(kind, INFRASTRUCTURE[kind.name], tmp_path, monkeypatch, calm)

    @pytest.mark.usefixtures("bubblewrap")
    def test_rollouts_end_so_too_when_the_engine_is_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
    ) -> None:
        self.ends_after_three(KINDS["rollouts"], EngineUnavailable("no daemon"), tmp_path, monkeypatch, calm)

    @staticmethod
    def ends_after_three(
        kind: Kind,
        error: Exception,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        calm: Callable[[Kind], Any],
    ) -> None:
        monkeypatch.setattr("trajectories.rollouts.rollout.sleep", lambda seconds: None)
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                kind.hook(work, fails(1, error, on=True))
                report = run(work, case)
            assert report.left == UNITS - 1 - MAX_FAILURES_IN_A_ROW and "in a row" in str(report.stopped)
            assert case.running() == 0
            finish(kind, case)
            assert case.facts() == calm(kind)

    @EVERY
    def test_a_database_that_dies_ends_the_run_as_an_error_and_the_next_goes_on(
        self, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
    ) -> None:
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                store = work.context.store if kind.name in {"rollouts", "graphs"} else work._store
                dead: list[bool] = []

                def die(key: str) -> None:
                    failed = fail(key)
                    if failed:
                        dead.append(True)
                        monkeypatch.setattr(store, "transaction", broken)

                fail = reaches(1)
                kind.hook(work, die)
                with pytest.raises(StoreUnavailable):
                    run(work, case)
                assert dead
            monkeypatch.undo()
            for name, value in case.environment.items():
                monkeypatch.setenv(name, value)
            finish(kind, case)
            assert case.facts() == calm(kind) and case.running() == 0

    @pytest.mark.parametrize("name", ["tasks", "calibration", "rollouts", "graphs"])
    def test_a_budget_that_ends_ends_the_run_with_its_first_unit(
        self,
        name: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        calm: Callable[[Kind], Any],
        request: pytest.FixtureRequest,
    ) -> None:
        kind = KINDS[name]
        if name in {"rollouts", "graphs"}:
            request.getfixturevalue("bubblewrap")
        with world(kind, tmp_path, monkeypatch) as case:
            with kind.open(case) as work:
                kind.hook(work, fails(1, BudgetExceeded("the budget is spent"), on=True))
                report = run(work, case)
            assert report.stopped is not None and "the budget is spent" in report.stopped
            # A calibration counts the stage that it could not end among those that are left.
            assert report.left == UNITS - (1 if name == "calibration" else 2)
            finish(kind, case)
            assert case.facts() == calm(kind)


def reaches(at: int) -> Callable[[str], bool]:
    """Whether a key is that of the unit that began as number `at`, or of a later one."""
    keys: list[str] = []

    def is_it(key: str) -> bool:
        if key not in keys:
            keys.append(key)
        return keys.index(key) >= at

    return is_it


def broken() -> Any:
    raise StoreUnavailable("the disk is gone")


def assert_one_failed(report: Any, case: Case, outcome: str) -> None:
    """One unit ended with this outcome, and no unit is left or marked as running."""
    assert (report.left, report.stopped, case.running()) == (0, None, 0)
    if hasattr(report, "counts"):
        assert report.counts[outcome] == 1 and sum(report.counts.values()) == UNITS
    else:
        assert report.stages == UNITS - 1 and [stage.reason.partition(":")[0] for stage in report.unread] == [outcome]


NO_DUELS = """
from dataclasses import replace
from environments.suites.runners import unittest
unittest.RUNNER = replace(unittest.RUNNER, falsify=None)
"""
"""Begins another process over the worlds of `stage_world`: in ours it sees to that itself (`try_no_duels`)."""

COMMAND = "import prchain.cli; prchain.cli.main()"

ELSEWHERE = """
import importlib, pickle, sys
from prchain.core.settings import Settings
module, opening, units = pickle.load(open(sys.argv[1], "rb"))
with importlib.import_module(module).open_run(Settings.load(), *opening) as work:
    for unit in units:
        with work.holding(unit):
            print(work.work_on(unit, lambda words: None).outcome)
"""


@EVERY
def test_units_described_here_and_run_in_another_process_leave_the_same_rows(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
) -> None:
    with world(kind, tmp_path, monkeypatch) as case:
        with kind.open(case) as work:
            described = units(work, case)
        assert len(described) == UNITS
        (tmp_path / "units").write_bytes(pickle.dumps((kind.module, case.opening, described)))
        process = python(tmp_path, case, begun(kind, ELSEWHERE), str(tmp_path / "units"))
        output, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert len(output.split()) == UNITS
        assert case.facts() == calm(kind)


@EVERY
def test_two_runs_at_once_share_the_work_or_say_who_has_it(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calm: Callable[[Kind], Any]
) -> None:
    with world(kind, tmp_path, monkeypatch) as case:
        both = [python(tmp_path, case, begun(kind, COMMAND), *kind.command, "--json") for _ in range(2)]
        for process in both:
            output, err = process.communicate(timeout=120)
            assert process.returncode in {0, 1} and "Traceback" not in err, err
            assert process.returncode == 0 or "another run" in err or "taken" in output + err
            json.loads(output)
        finish(kind, case)
        assert case.facts() == calm(kind)


def begun(kind: Kind, script: str) -> str:
    """A script for another process over a world of this kind."""
    return NO_DUELS + script if kind.name == "proofs" else script


def python(folder: Path, case: Case, script: str, *arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), **case.environment}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
