"""What runs of the reference say of a stage: whether its tests show its work, and whether earlier work still stands.

Pure: from runs on B_t (with the overlay) and on M_t to one outcome with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from environments.proofs.services import wanted_service
from environments.suites.outcomes import ClassifiedTests, classify, removed_upstream
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import RUNNER_MISSING, TestRun
from prchain.core.code.inline_tests import InlineTest
from prchain.core.console.terminal import counted, listed, shortened, tally
from sql.outcomes import PROVED

UNPROVED = "unproved"
"""The test patch holds no file that the runner takes for tests."""
NOT_REACHED = "not_reached"
TESTS_UNUSABLE = "tests_unusable"
"""No runner, or out of time or memory, on either side; or a runner that broke off before the first test."""
NOTHING_COLLECTED = "nothing_collected"
"""The runner found no test in the files that it was given, on M_t."""
NO_F2P = "no_f2p"
"""There are tests, and none goes from failing to passing."""
REFERENCE_FAILS = "reference_fails"
"""Tests of the test patch fail on M_t, and none goes from failing to passing."""
EARLIER_BROKEN = "earlier_broken"
"""An F2P test of an earlier stage fails on M_t, or is gone though nobody touched its file."""
NEEDS_SERVICE = "needs_service"
"""Tests cannot run, or fail on M_t, and say that a service cannot be reached, a database say."""
STATE_DIFFERS = "state_differs"
"""S_t with the reference carried on is not B_t."""

_SHOWN = 3

_NONE_FOUND = (0, 5)
"""Exit codes of runners that came to their end without a test (pytest's reference, "Exit codes")."""
_ERROR = re.compile(r"(?:E  +)?(?:\w+\.)*\w*(?:Error|Exception|ERROR|error)\b.*:|ERROR\b|error:")
_LONGEST = 300
"""Characters of such a line."""
_BAD: set[Status | None] = {Status.failed, Status.error, Status.timed_out}


@dataclass(frozen=True, slots=True)
class EarlierTests:
    """The F2P tests of an earlier stage, and the files that were run there. `changed` are the paths that differ between
    its M_k and this stage's M_t."""

    f2p: tuple[str, ...]
    files: tuple[str, ...]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Proof:
    """How a stage ended. `removed` are F2P tests of earlier stages that upstream removed or rewrote before M_t."""

    outcome: str
    reason: str | None = None
    classes: ClassifiedTests = field(default_factory=ClassifiedTests)
    removed: tuple[str, ...] = ()


def unusable(side: str, run: TestRun) -> str:
    """Why a run says nothing, for people; of a runner that did not start also what was said then."""
    said = last_words(run.tail) if run.infra == RUNNER_MISSING else ""
    words = run.infra or f"timed out after {run.seconds:.0f} s"
    return f"{side}: {words}{f' ({said})' if said else ''}"


def last_words(tail: str) -> str:
    """The last line of an output that tells of an error, or else its last one; without lines that only frame it."""
    lines = [line.strip("= \t") for line in tail.splitlines()]
    lines = [line for line in lines if line]
    errors = [line for line in lines if _ERROR.match(line)]
    return shortened((errors or lines)[-1], _LONGEST) if lines else ""


def prove(
    before: Sequence[TestRun],
    after: Sequence[TestRun],
    *,
    runner: str,
    files: Sequence[str],
    own_files: Collection[str],
    earlier: Sequence[EarlierTests] = (),
    inline: Collection[InlineTest] = (),
) -> Proof:
    """The proof of a stage by runs of `files` on both sides; runs that are not usable are left out.

    `own_files` are those of its own test patch. Without any the stage cannot be proved, but earlier stages' tests and
    P2P tests are still classified. `inline` are the tests inside source files that the reference of this stage or an
    earlier one changes (`environments.stages.StagePatch`): they do not count (`environments.suites.runner.Runner`).
    """
    usable = [[run for run in runs if run.usable] for runs in (before, after)]
    for side, runs, kept in zip(("before", "after"), (before, after), usable, strict=True):
        if not kept:
            why = unusable(side, runs[0]) if runs else f"{side}: no run"
            return Proof(TESTS_UNUSABLE, why)
    was, now = ([run.statuses for run in runs] for runs in usable)
    known_runner = RUNNERS.get(runner)
    tests = {test for run in (*was, *now) for test in run}
    classes = classify(was, now, known_runner.inside(tests, inline, files) if known_runner else ())
    removed, broken = _earlier(classes, usable[1], runner, files, earlier)
    left_out = dict.fromkeys(it for run in usable[1] for it in run.left_out)
    without = f"; left out: {listed(list(left_out), _SHOWN)}" if left_out else ""
    if not any(now) and (own_files or broken):
        code = usable[1][0].exit_code
        last = last_words(usable[1][0].tail)
        if last and code not in _NONE_FOUND:
            if service := wanted_service(usable[1][0].tail):
                return Proof(NEEDS_SERVICE, f"{service}: {last}{without}", classes, removed)
            return Proof(TESTS_UNUSABLE, f"the run broke off: {last}{without}", classes, removed)
        why = f"no test was found in {counted(len(files), 'file')}" + (f" (exit code {code})" if code else "")
        return Proof(NOTHING_COLLECTED, why + (f"; {last}" if last else "") + without, classes, removed)
    if broken:
        return Proof(
            EARLIER_BROKEN, f"{len(broken)} of earlier stages' F2P: {listed(broken, _SHOWN)}", classes, removed
        )
    if not own_files:
        return Proof(UNPROVED, "the test patch holds no test file", classes, removed)
    if classes.f2p:
        return Proof(PROVED, None, classes, removed)
    sizes = tally(classes.sizes()) or "no test was found"
    wrong = [test for test in (*classes.failing, *classes.broken) if _may_be_of(test, runner, files, own_files)]
    if wrong:
        said = f"{len(wrong)} fail on M_t: {listed(wrong, _SHOWN)}"
        if service := wanted_service(usable[1][0].tail):
            return Proof(NEEDS_SERVICE, f"{service}: {said}", classes, removed)
        return Proof(REFERENCE_FAILS, said, classes, removed)
    return Proof(NO_F2P, sizes + without, classes, removed)


def _earlier(
    classes: ClassifiedTests,
    after: Sequence[TestRun],
    runner: str,
    files: Sequence[str],
    earlier: Sequence[EarlierTests],
) -> tuple[tuple[str, ...], list[str]]:
    """F2P tests of earlier stages that are gone for a reason, and those that are broken.

    A test that is F2P again, flaky or timed out says nothing against the reference; not being P2P, it does not gate.
    Nothing is known of a test whose file is not run here.
    """
    spared = {*classes.f2p, *classes.flaky, *classes.timed_out}
    removed: set[str] = set()
    broken: set[str] = set()
    for stage in earlier:
        for test in set(removed_upstream(stage.f2p, classes)) - spared:
            file = file_of(runner, test, stage.files)
            touched = file in stage.changed if file is not None else bool(stage.changed & set(stage.files))
            # A file that cannot be imported has no tests, and its own name is an error.
            statuses = {run.statuses.get(name) for run in after for name in (test, file or test)}
            if _BAD & statuses:
                broken.add(test)
            elif touched:
                removed.add(test)
            elif file is None or file in files:
                broken.add(test)
    return tuple(sorted(removed)), sorted(broken)


def file_of(runner: str, test: str, files: Collection[str]) -> str | None:
    """The file of `files` that a test is in, as far as its id tells."""
    known_runner = RUNNERS.get(runner)
    return known_runner.file_of(test, files) if known_runner else None


def _may_be_of(test: str, runner: str, files: Sequence[str], own: Collection[str]) -> bool:
    file = file_of(runner, test, files)
    return file is None or file in own
