"""What repeated test runs say of a stage's tests, and what runs on an agent's state say of its work.

Pure. Only `Status.passed` is a pass: a test that is skipped or expected to fail proves nothing of a change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from environments.suites.testlogs import Status, did_run

Statuses = Mapping[str, Status]


@dataclass(frozen=True, slots=True)
class ClassifiedTests:
    """The tests of a stage; every id that any run names stands in exactly one class. Each is sorted."""

    f2p: tuple[str, ...] = ()
    """Never passed before and always after."""
    p2p: tuple[str, ...] = ()
    """Always passed."""
    flaky: tuple[str, ...] = ()
    """Passed in some runs on the same tree and not in others."""
    timed_out: tuple[str, ...] = ()
    """Ran into the limit in any run: a slow machine decides on it."""
    collected: tuple[str, ...] = ()
    """Found after, and never run to an end there."""
    missing: tuple[str, ...] = ()
    """Passed before; no run after knows it: removed or renamed by the reference."""
    broken: tuple[str, ...] = ()
    """Passed before; fails, is skipped or expected to fail after."""
    skipped: tuple[str, ...] = ()
    """Not passed in any run, and skipped after."""
    failing: tuple[str, ...] = ()
    """Not passed in any run, for any other reason."""
    inline: tuple[str, ...] = ()
    """Stands inside a source file, and is the reference's own or a doc test: an agent's tree need not have it, so it is
    not asked for."""

    def sizes(self) -> dict[str, int]:
        """How many tests each class has."""
        return {name: len(getattr(self, name)) for name in self.__slots__}


def classify(before: Sequence[Statuses], after: Sequence[Statuses], inside: Collection[str] = ()) -> ClassifiedTests:
    """Sort tests by runs of the same tests on B_t plus overlay (`before`) and on M_t (`after`). `inside` are those that
    stand inside source files and are not the same on each tree.

    A test file that cannot be imported before has no tests there, and the file's own id is an error: its tests are
    missing before, which is a failure, and F2P. So runs that broke off for the infrastructure's reasons must not be
    given here (`environments.suites.testruns.TestRun.usable`). Raises `ValueError` without a run on either side.
    """
    if not before or not after:
        raise ValueError("tests are classified by at least one run before and one after")
    classes: dict[str, list[str]] = {}
    for test in sorted({test for run in (*before, *after) for test in run}):
        was = [run.get(test, Status.missing) for run in before]
        now = [run.get(test, Status.missing) for run in after]
        name = "inline" if test in inside else _class_of(was, now)
        classes.setdefault(name, []).append(test)
    return ClassifiedTests(**{name: tuple(tests) for name, tests in classes.items()})


def _class_of(was: Sequence[Status], now: Sequence[Status]) -> str:
    if Status.timed_out in was or Status.timed_out in now:
        return "timed_out"
    passed_before, passed_after = ({status is Status.passed for status in runs} for runs in (was, now))
    if len(passed_before) > 1 or len(passed_after) > 1:
        return "flaky"
    match True in passed_before, True in passed_after:
        case False, True:
            return "f2p"
        case True, True:
            return "p2p"
        case True, False:
            return "missing" if set(now) == {Status.missing} else "broken"
    if Status.collected in now and set(now) <= {Status.collected, Status.missing}:
        return "collected"
    return "skipped" if set(now) == {Status.skipped} else "failing"


@dataclass(frozen=True, slots=True)
class StateCheck:
    """What the run on S_t says, before the agent starts."""

    done_early: tuple[str, ...] = ()
    """F2P tests that pass already."""
    carried_failure: tuple[str, ...] = ()
    """P2P tests (earlier stages' F2P among them) that pass on B_t and fail here: the earlier stages broke them."""
    state_broken: bool = False
    """Of the tests that run on B_t, none runs here: the tree does not import or build. Not this stage's fault."""


def check_state(classes: ClassifiedTests, on_base: Sequence[Statuses], on_state: Statuses) -> StateCheck:
    """Compare S_t with B_t; both ran with the stage's overlay.

    `on_base` are the before runs that `classes` was made from. A state is broken only when a test did run in every run
    on B_t and none of those runs here; where B_t itself runs nothing (each file needs what the stage adds), nothing can
    be said. Flaky tests are not searched for carried failures.
    """
    ran_on_base = {test for test in classes.p2p + classes.failing + classes.f2p if _always_ran(test, on_base)}
    return StateCheck(
        done_early=tuple(test for test in classes.f2p if _passes(test, on_state)),
        carried_failure=tuple(test for test in classes.p2p if not _passes(test, on_state)),
        state_broken=bool(ran_on_base) and not any(did_run(_status(test, on_state)) for test in ran_on_base),
    )


def asks_nothing(classes: ClassifiedTests, check: StateCheck) -> bool:
    """Whether every F2P test passes on S_t: earlier stages did the work, or made all tests pass, and nothing that is
    done on S_t can show more."""
    return bool(classes.f2p) and set(classes.f2p) <= set(check.done_early)


PASSED = "passed"
TAMPERED = "tampered"
STATE_BROKEN = "state_broken"
F2P_FAILED = "f2p_failed"
P2P_BROKEN = "p2p_broken"
EARLIER_BROKEN = "earlier_broken"
CARRIED_FAILURE = "carried_failure"


@dataclass(frozen=True, slots=True)
class Grade:
    """What the tests say of one attempt at a stage. `f2p_*` and `p2p_*` together hold every F2P and P2P test once."""

    outcome: str
    """The first that holds: tampered, state_broken, f2p_failed, earlier_broken, p2p_broken, carried_failure, passed."""
    f2p_passed: tuple[str, ...] = ()
    f2p_failed: tuple[str, ...] = ()
    p2p_kept: tuple[str, ...] = ()
    p2p_broken: tuple[str, ...] = ()
    """Passed on S_t and fail now: this attempt broke them; without earlier stages' F2P."""
    earlier_broken: tuple[str, ...] = ()
    """F2P of earlier stages that passed on S_t and fail now."""
    carried_failure: tuple[str, ...] = ()
    """Failed on S_t already and still do: blamed on the earlier stages. It gates all the same."""
    carried_fixed: tuple[str, ...] = ()
    """Failed on S_t and pass now."""
    done_early: tuple[str, ...] = ()
    """F2P that passed on S_t: no merit of this attempt."""
    cheats: tuple[str, ...] = ()
    """Why the run is not believed (`environments.suites.testruns.TestRun.cheats`): then it is ``tampered``."""
    taken_back: tuple[str, ...] = ()
    """What the graded copy has from the reference instead (`environments.checkouts.overlay.Overlay.taken_back`)."""
    still_failing: tuple[str, ...] = field(default=(), repr=False)
    """Not in the way of passing: tests that fail on B_t and on M_t."""
    safeguard: str | None = None
    """What guarded it (`prchain.core.safeguards.Safeguard`); None where that was not kept."""
    reused: bool = field(default=False, compare=False)
    """Whether it was made for an equal tree before, by the same proof."""

    @property
    def asks_nothing(self) -> bool:
        """Whether every F2P test passed before the attempt, as `asks_nothing` of the classes."""
        f2p = {*self.f2p_passed, *self.f2p_failed}
        return bool(f2p) and f2p <= set(self.done_early)

    @property
    def own_fault(self) -> bool:
        """Whether this attempt itself, not an earlier stage, is why it did not pass."""
        return self.outcome in {TAMPERED, F2P_FAILED, P2P_BROKEN, EARLIER_BROKEN}


def grade(
    classes: ClassifiedTests,
    check: StateCheck,
    on_agent: Statuses,
    *,
    earlier_f2p: Collection[str] = (),
    cheats: Sequence[str] = (),
    taken_back: Sequence[str] = (),
) -> Grade:
    """Judge A_t by one run on it, with the stage's overlay.

    `check` is that of S_t. Of the earlier stages' F2P tests only those that pass on B_t and on M_t count (they are P2P
    here): upstream may have removed or changed the others. `outcome` is ``passed`` only when every F2P and every P2P
    test passes.
    """
    earlier, carried = set(earlier_f2p), set(check.carried_failure)
    f2p = _split(classes.f2p, on_agent)
    p2p = _split(classes.p2p, on_agent)
    fresh = [test for test in p2p[1] if test not in carried]
    pieces = {
        F2P_FAILED: f2p[1],
        EARLIER_BROKEN: tuple(test for test in fresh if test in earlier),
        P2P_BROKEN: tuple(test for test in fresh if test not in earlier),
        CARRIED_FAILURE: tuple(test for test in p2p[1] if test in carried),
    }
    outcome = STATE_BROKEN if check.state_broken else next((name for name, tests in pieces.items() if tests), PASSED)
    if cheats:
        outcome = TAMPERED
    return Grade(
        outcome,
        f2p_passed=f2p[0],
        p2p_kept=p2p[0],
        carried_fixed=tuple(test for test in p2p[0] if test in carried),
        done_early=check.done_early,
        cheats=tuple(cheats),
        taken_back=tuple(taken_back),
        still_failing=_split(classes.failing, on_agent)[1],
        f2p_failed=pieces[F2P_FAILED],
        earlier_broken=pieces[EARLIER_BROKEN],
        p2p_broken=pieces[P2P_BROKEN],
        carried_failure=pieces[CARRIED_FAILURE],
    )


def removed_upstream(earlier_f2p: Collection[str], classes: ClassifiedTests) -> tuple[str, ...]:
    """F2P tests of earlier stages that this stage's runs hold no longer as P2P, sorted: git tells why."""
    return tuple(sorted(set(earlier_f2p) - set(classes.p2p)))


def _split(tests: Sequence[str], run: Statuses) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that pass in the run, and the others."""
    return tuple(t for t in tests if _passes(t, run)), tuple(t for t in tests if not _passes(t, run))


def _status(test: str, run: Statuses) -> Status:
    return run.get(test, Status.missing)


def _passes(test: str, run: Statuses) -> bool:
    return _status(test, run) is Status.passed


def _always_ran(test: str, runs: Sequence[Statuses]) -> bool:
    return all(did_run(_status(test, run)) for run in runs)
