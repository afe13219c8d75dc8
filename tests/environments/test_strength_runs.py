"""What is said of a proof by runs with something undone, and which of the runs are kept, on values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from environments.edited_trees import EditedTrees, until_newer
from environments.proofs import strength_runs
from environments.proofs.edits import Undoing
from environments.proofs.own_tests import OwnTests
from environments.proofs.strength_runs import (
    ADDED,
    NOTHING_TO_RUN,
    UNDONE,
    StrengthMeter,
    _renamed,
    _Side,
    _TimeLeft,
    says_all,
    undoing_outcome,
)
from environments.suites.baseline import RunnerBaseline
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import PlacementFailed, SandboxLost
from sql.strength import UndoingKind, UndoingOutcome, WhyNone, Worth
from tests.environments.strengthworld import Kept

P, F, E = Status.passed, Status.failed, Status.error
GOOD = TestRun({"t": P}, "", 1.0, 0)
LOST = TestRun({}, "", 1.0, None, complete=False, infra=SandboxLost("").name)
LATE = TestRun({}, "", 20.0, None, timed_out=True, complete=False)
NO_ROOM = TestRun({}, "", 1.0, None, complete=False, infra="disk_limit")
SIDE = _Side(UNDONE, ("a.py",), RunnerBaseline(), 20.0)


def meter(kept: Kept, *, renew: bool = False) -> StrengthMeter:
    suite: Any = SimpleNamespace(workplace=None)
    nothing: Any = None
    stored: Any = kept
    return StrengthMeter(stored, suite, nothing, nothing, nothing, nothing, (), renew)


@pytest.mark.parametrize(
    ("first", "timeout", "renew", "made"),
    [
        (GOOD, 20.0, True, 1),
        (LOST, 20.0, False, 2),
        (LATE, 20.0, False, 1),
        (LATE, 60.0, False, 2),
        (LATE, 20.0, True, 2),
        (NO_ROOM, 20.0, False, 1),
        (NO_ROOM, 20.0, True, 2),
    ],
)
def test_a_run_that_tells_of_the_machine_is_made_again(
    monkeypatch: pytest.MonkeyPatch, first: TestRun, timeout: float, renew: bool, made: int
) -> None:
    monkeypatch.setattr("environments.proofs.strength_runs.run_key", lambda *a: "key")
    kept, given = Kept(), iter([first, GOOD])
    for again in (False, True):
        side = SIDE._replace(timeout=timeout if again else 20.0)
        meter(kept, renew=again and renew)._stored(side, 0, "t", lambda: next(given), lambda words: None)
    assert len(list(given)) == 2 - made


@pytest.mark.parametrize(("run", "measured"), [(LOST, False), (LATE, True)])
def test_a_stage_stays_unmeasured_where_a_sandbox_was_lost(
    monkeypatch: pytest.MonkeyPatch, run: TestRun, measured: bool
) -> None:
    monkeypatch.setattr(StrengthMeter, "_own_run", lambda *a: (run, {}))
    stage: Any = SimpleNamespace(base="b", landed="m")
    repository: Any = SimpleNamespace(patches=lambda pairs: [[]])
    found = replace(meter(Kept()), stage=stage, git=repository).measure(lambda words: None)
    assert (found is not None and (found.worth, found.why_none) == (Worth.UNKNOWN, WhyNone.TIMED_OUT)) is measured


def test_an_undoing_that_cannot_be_placed_is_invalid_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("environments.proofs.strength_runs.run_key", lambda *a: "key")

    def make() -> TestRun:
        raise PlacementFailed("no such name")

    run = meter(Kept())._stored(SIDE, 0, "t", make, lambda words: None)
    assert undoing_outcome([run], {"t"}) is UndoingOutcome.INVALID


def test_a_sandbox_that_is_lost_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: Iterator[Any] = iter([SandboxLost("gone"), SandboxLost("gone"), GOOD, *[SandboxLost("gone")] * 3])

    def run(*a: Any, **k: Any) -> TestRun:
        found = next(outcomes)
        if isinstance(found, SandboxLost):
            raise found
        return GOOD

    workplace: Any = SimpleNamespace(runner="pytest", command=RUNNERS["pytest"].command)
    bench = EditedTrees(workplace, "t", (), RunnerBaseline())
    monkeypatch.setattr(bench, "_run", run)
    assert bench.run("t", (), 1.0, fresh=False) is GOOD
    assert bench.run("t", (), 1.0, fresh=False).infra == LOST.infra


def test_a_build_sees_a_later_time_than_that_of_the_build_before() -> None:
    for ended, now in ((10.2, 10.9), (10.0, 10.0), (10.2, 11.0), (10.9, 42.0)):
        assert int(now + until_newer(ended, now)) > ended
    assert until_newer(10.2, 11.0) == 0 and until_newer(10.2, 9.0) == 1.0, "the clock was set back"


def test_a_tree_is_changed_later_than_the_last_build_that_the_sandbox_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.5], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    def runs(*a: Any, **k: Any) -> TestRun:
        now[0] += 2.25
        return GOOD

    sandbox = SimpleNamespace(start=lambda: None, close=lambda: None, snapshot=lambda: "x", restore=lambda name: None)
    workplace: Any = SimpleNamespace(
        runner="cargo",
        command=RUNNERS["cargo"].command,
        backend=SimpleNamespace(refreshes=lambda plan: ("cargo build",)),
        provided=SimpleNamespace(plan=None),
        trees=None,
        sandbox=lambda: sandbox,
        place=lambda *a: None,
        refresh=lambda box: None,
    )
    monkeypatch.setattr("environments.edited_trees.time", SimpleNamespace(sleep=sleep, time=lambda: now[0]))
    monkeypatch.setattr("environments.edited_trees.move_tree", lambda *a: None)
    monkeypatch.setattr("environments.edited_trees.run_tests", runs)
    with EditedTrees(workplace, "t", (), RunnerBaseline()) as bench:
        bench._run("t", (), 1.0, (), (), fresh=True)
        assert slept == [], "nothing was written"
        bench._run("u", ("a.rs",), 1.0, (), (), fresh=True)
        assert sum(slept) == 0, "the snapshot is older than that"
        bench._run("v", ("a.rs",), 1.0, (), (), fresh=False)
        assert slept.pop() == 1.0, "the run before has just ended"
    with EditedTrees(workplace, "t", (), RunnerBaseline()) as bench:
        bench._run("u", ("a.rs",), 1.0, (), (), fresh=True)
        assert slept.pop() == 0.75, "what was made ready is as new as the change"


@pytest.mark.parametrize(
    ("status", "language", "outcome"),
    [
        (F, "javascript", UndoingOutcome.CAUGHT),
        (E, "javascript", UndoingOutcome.INVALID),
        (E, "python", UndoingOutcome.CAUGHT),
        (P, "go", UndoingOutcome.PASSED),
    ],
)
def test_where_no_test_ends_it_may_not_even_build(status: Status, language: str, outcome: UndoingOutcome) -> None:
    run = replace(GOOD, statuses={"t": status})
    assert undoing_outcome([run, run], {"t"}, language) is outcome


def test_a_run_of_the_old_tests_that_broke_off_says_nothing() -> None:
    assert says_all(GOOD) and says_all(NOTHING_TO_RUN)
    broken = replace(GOOD, complete=False), replace(GOOD, statuses={}), replace(GOOD, statuses={"a.py": E}), LATE, LOST
    assert not any(map(says_all, broken))


def test_tests_of_a_moved_file_are_told_as_new_ones() -> None:
    moved = {"tests/test_a.py": "tests/unit/test_a.py", "a.test.ts": "b.test.ts"}
    assert _renamed("tests/test_a.py::test_x", moved) == "tests/unit/test_a.py::test_x"
    assert _renamed("tests.test_a.T.test_x", moved) == "tests.unit.test_a.T.test_x"
    assert _renamed("tests.test_ab.T.test_x", moved) == "tests.test_ab.T.test_x"
    assert _renamed("a.test.tsx > one", moved) == "a.test.tsx > one"


@pytest.mark.parametrize(
    ("seconds", "tried", "untried"),
    [
        (1.0, 3, 7),
        (0.1, 10, 0),
        (2.5, 1, 9),
        (6.0, 0, 10),
    ],
)
def test_measuring_adds_twice_the_proof_s_test_time_at_most(
    monkeypatch: pytest.MonkeyPatch, seconds: float, tried: int, untried: int
) -> None:
    every = [Undoing(UndoingKind.HUNK, "a.py", line, {}) for line in range(10)]
    asked = []

    def run(self: Any, tree: str, paths: Any, timeout: float, *, fresh: bool) -> TestRun:
        asked.append(timeout)
        return replace(GOOD, statuses={"t": P if tree == "M" else F}, seconds=min(seconds, timeout))

    kept: Any = Kept()
    proof_runs = [1.0] * 6
    found = undone(monkeypatch, every, run, kept, ADDED * sum(proof_runs))
    added = sum(it.seconds for _, it in kept.runs.values())
    assert (len(found.undone), found.untried) == (tried, untried) and added <= ADDED * sum(proof_runs)
    assert max(asked) <= ADDED * sum(proof_runs)


@pytest.mark.parametrize(
    ("control", "kinds", "cause"),
    [
        (NO_ROOM, [UndoingKind.HUNK], "disk_limit"),
        (LATE, [UndoingKind.HUNK], WhyNone.TIMED_OUT),
        (replace(GOOD, cheats=("replaced",)), [UndoingKind.HUNK], WhyNone.DISTRUSTED),
        (replace(GOOD, statuses={}, complete=False), [UndoingKind.HUNK], WhyNone.BROKE_OFF),
        (replace(GOOD, statuses={"t": E}), [UndoingKind.HUNK], WhyNone.NO_TEST_ENDED),
        (replace(GOOD, statuses={"t": F}), [UndoingKind.HUNK], WhyNone.NOT_ALONE),
        (GOOD, [], WhyNone.NOTHING_TO_UNDO),
        (GOOD, [UndoingKind.STUB], WhyNone.NOTHING_TO_UNDO),
        (GOOD, [UndoingKind.HUNK], None),
    ],
)
def test_it_is_known_why_nothing_was_undone(
    monkeypatch: pytest.MonkeyPatch, control: TestRun, kinds: list[UndoingKind], cause: str | None
) -> None:
    every = [Undoing(kind, "a.py", 1, {}) for kind in kinds]
    assert undone(monkeypatch, every, lambda *a, **k: control, Kept(), 10.0).cause == cause


def undone(
    monkeypatch: pytest.MonkeyPatch, every: list[Undoing], run: Any, kept: Any, left: float
) -> strength_runs._Tried:
    """What becomes of some undoings, by runs that are made up."""
    monkeypatch.setattr("environments.proofs.strength_runs.run_key", lambda *a: str(a[1]))
    monkeypatch.setattr(StrengthMeter, "_undoings", lambda *a: iter(every))
    monkeypatch.setattr(StrengthMeter, "_tree", lambda self, it: it.place)
    monkeypatch.setattr(EditedTrees, "run", run)
    trees = SimpleNamespace(tree_of=lambda commit: "M")
    workplace = SimpleNamespace(runner="go", command=RUNNERS["go"].command, trees=trees, test_timeout=900.0)
    anything: Any = SimpleNamespace(
        workplace=workplace, files=("a_test.go",), baseline=RunnerBaseline(), landed="M", base="B"
    )
    return StrengthMeter(kept, anything, anything, anything, anything, anything, ())._undone(
        OwnTests(("t",)), [], _TimeLeft(1.0, left), lambda words: None
    )
