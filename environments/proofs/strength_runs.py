"""Measuring what a stage's proof is worth: one run of B_t with its own tests, and runs with parts of the work undone.

Every run is stored when it ends, under a key of everything that decides it: a command that was killed goes on from the
stored runs. The rules are in docs/grading.md, "What a proof is worth".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from environments.edited_trees import EditedTrees
from environments.proofs.edits import LineChange, SourceFile, Undoing
from environments.proofs.name_stub import name_stub
from environments.proofs.own_tests import OwnTests, own_tests
from environments.proofs.proof import file_of
from environments.proofs.proof_rows import StageProof, StoredRuns
from environments.proofs.reference_runs import AFTER, BEFORE, run_key
from environments.proofs.undoings import undoings
from environments.stages import Stage, StagePatch
from environments.suites.baseline import RunnerBaseline
from environments.suites.testfiles import named_for
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.suites.testtexts import ChangedTests
from environments.workplace import StageSuite
from prchain.core.code.kinds import language_of
from prchain.core.code.reference import split
from prchain.core.errors import PlacementFailed, RefreshFailed, SandboxLost
from prchain.core.git import FilePatch
from prchain.core.git.output import path_text
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore
from prchain.core.runs import Tell
from sql.strength import EMPTY, ENOUGH, PARTS, Strength, UndoingKind, UndoingOutcome, Undone, WhyNone

OWN, UNDONE = "own", "undone"

BUDGET = 4.0
"""What test runs of a stage's undoings may take once `ENOUGH` are valid, in measured runs: means of the proof's own.
With less a share says nothing. Stored runs count as they did when they were made, so that a run that was cut off ends
as another would."""
ADDED = 2.0
"""What all runs of a measuring may take, in test time of the proof. What is not tried by then is counted apart."""

_LEAST_TIMEOUT = 20.0
"""Seconds for a run with something undone, however fast the proof's were; one that hangs is no test's word."""

_SHORTEST_TIMEOUT = 1.0
"""Seconds; less than a process takes to start says nothing."""

_FAILS = {Status.failed, Status.error, Status.timed_out, Status.xfail, Status.xpass}
_GONE = {Status.missing, Status.collected, Status.skipped}
_ENDS = _FAILS - {Status.error} | {Status.passed, Status.skipped}
"""The test came to an end of its own."""
_TAIL = 500
_LOST = SandboxLost("").name

NOTHING_TO_RUN = TestRun({}, "", 0.0, 0)
"""B_t has no file of the tests."""


class _Side(NamedTuple):
    """What the runs of one side have in common; `timeout` in seconds."""

    name: str
    files: Sequence[str]
    known: RunnerBaseline
    timeout: float


@dataclass
class _TimeLeft:
    """Seconds of test runs: `measured`, one of the proof on average; `left` of those that measuring may add."""

    measured: float
    left: float
    spent: float = 0.0

    def spend(self, run: TestRun) -> None:
        """One more run was made."""
        self.left -= run.seconds
        self.spent += run.seconds


@dataclass
class _Tried:
    """What became of a stage's undoings; `untried` were left when time was up."""

    undone: list[Undone]
    untried: int
    lost: bool = False
    """The run without any told of the machine alone."""
    cause: str | None = None
    """As `Strength.cause`."""


@dataclass(frozen=True)
class StrengthMeter:
    """Measures one stage. `decides` is as in `ReferenceRuns`; the suite is that of the stored proof."""

    stored: StoredRuns
    suite: StageSuite
    stage: Stage
    patch: StagePatch
    proof: StageProof
    git: GitRepository
    decides: Sequence[str]
    renew: bool = False
    """Make stored runs anew that say nothing."""

    def measure(self, tell: Tell) -> Strength | None:
        """What the proof is worth; None where the sandbox was lost of a run that all depends on, so that the next
        measuring has to say it. Raises as `ReferenceRuns.after`."""
        start = time.monotonic()
        [files] = self.git.patches([(self.stage.base, self.stage.landed)])
        runs = {side: [run for run in self.stored.all(side) if run.usable] for side in (BEFORE, AFTER)}
        before, after = ([run.statuses for run in runs[side]] for side in (BEFORE, AFTER))
        seconds = [run.seconds for side in runs.values() for run in side]
        time_left = _TimeLeft(sum(seconds) / len(seconds) if seconds else 0.0, ADDED * sum(seconds))
        own_run, moved = self._own_run(files, time_left, tell)
        if _is_lost(own_run):
            return None
        if not says_all(own_run):
            return Strength(None, seconds=time.monotonic() - start, cause=_cause(own_run))
        own = {_renamed(test, moved): status for test, status in own_run.statuses.items()}
        # Files of tests that are no program text: snapshots, and data that tests compare with.
        new_data = any(language_of(path) is None for path in self.patch.test)
        found = own_tests(self.proof.classes, before, after, own, self._changed(files), new_data=new_data)
        tried = _Tried([], 0)
        if found.own_f2p:
            tried = self._undone(found, files, time_left, tell)
            if tried.lost:
                return None
        return Strength(
            len(found.own_f2p),
            len(found.changed),
            found.hidden,
            found.failing,
            self._guards(found),
            tuple(tried.undone),
            time.monotonic() - start,
            tried.untried,
            tried.cause,
        )

    @property
    def _trees(self) -> TreeStore:
        return self.suite.workplace.trees

    def _own_run(
        self, files: Sequence[FilePatch], time_left: _TimeLeft, tell: Tell
    ) -> tuple[TestRun, Mapping[str, str]]:
        """B_t's own tests on B_t, and the paths on M_t of those of their files that are moved."""
        base = {path_text(path) for path in self._trees.entries(self.stage.base)}
        old_names = {it.path: it.old_path for it in files if it.status == "R" and it.old_path}
        names = {old_names.get(path, path): path for path in self.suite.files}
        given = [old for old in names if old in base]
        moved = {old: new for old, new in names.items() if old != new}
        if not given:
            return NOTHING_TO_RUN, moved
        known = RunnerBaseline(self.proof.baseline.replaced)
        tree = self._trees.tree_of(self.stage.base)
        workplace = self.suite.workplace
        side = _Side(OWN, given, known, min(workplace.test_timeout, time_left.left))
        with EditedTrees(workplace, tree, given, known) as bench:
            run = self._stored(side, 1, tree, lambda: bench.run(tree, (), side.timeout, fresh=True), tell)
        time_left.spend(run)
        return run, moved

    def _stored(self, side: _Side, ordinal: int, tree: str, make: Callable[[], TestRun], tell: Tell) -> TestRun:
        """The stored run, or one that is made. One that tells of the machine alone is not stored, nor is one taken for
        an answer that had less time than there is now."""
        key = run_key(self.suite.workplace, tree, side.files, (), side.known, self.decides)
        run = self.stored.find(side.name, ordinal, key)
        if run is not None and (
            _is_lost(run) or (run.timed_out and run.seconds < 0.99 * side.timeout) or (self.renew and not run.usable)
        ):
            run = None
        if run is None:
            tell(f"{side.name}, run {ordinal}")
            try:
                run = make()
            except (RefreshFailed, PlacementFailed) as error:
                run = TestRun({}, str(error), 0.0, None, complete=False, infra=error.name)
            run = replace(run, tail=run.tail[-_TAIL:])
            if not _is_lost(run):
                self.stored.keep(side.name, ordinal, key, run)
        return run

    def _changed(self, files: Sequence[FilePatch]) -> ChangedTests:
        """Whether the pull request changes a test. Of its files those count that are tests."""
        tests = {*self.suite.files, *self.patch.test}
        touched = {file.path: file.old_path or file.path for file in files if file.path in tests}
        old, new = (_Texts(self._trees, commit).read for commit in (self.stage.base, self.stage.landed))
        return ChangedTests(self.suite.workplace.runner, self.suite.files, touched, old, new)

    def _guards(self, found: OwnTests) -> int:
        """See `Strength.guards`; where an id does not tell its file, all files that are run are near."""
        near = {*self.suite.own_files, *named_for(self.suite.files, self.patch.source)}
        files = (
            file_of(self.suite.workplace.runner, test, self.suite.files)
            for test in (*self.proof.classes.p2p, *found.hidden)
        )
        return sum(file is None or file in near for file in files)

    def _undone(self, found: OwnTests, files: Sequence[FilePatch], time_left: _TimeLeft, tell: Tell) -> _Tried:
        """Try the undoings in their order, until there are enough of them or their time is up."""
        workplace, measured = self.suite.workplace, time_left.measured
        homes = {file_of(workplace.runner, test, self.suite.files) for test in found.own_f2p}
        given = [path for path in self.suite.files if path in homes or None in homes]
        known = replace(self.proof.baseline.with_canaries(()), replaced=self.proof.baseline.replaced)
        side = _Side(UNDONE, given, known, min(workplace.test_timeout, max(_LEAST_TIMEOUT, 3 * measured)))
        landed = self._trees.tree_of(self.stage.landed)
        with EditedTrees(workplace, landed, given, known) as bench:

            def run(ordinal: int, tree: str, paths: Collection[str], *, fresh: bool = False) -> TestRun:
                within = side._replace(timeout=min(side.timeout, max(time_left.left, _SHORTEST_TIMEOUT)))
                made = self._stored(
                    within, ordinal, tree, lambda: bench.run(tree, paths, within.timeout, fresh=fresh), tell
                )
                time_left.spend(made)
                return made

            control = run(0, landed, ())
            stable = {test for test in found.own_f2p if control.statuses.get(test) is Status.passed}
            tried = _Tried([], 0, _is_lost(control))
            if not stable or not _is_told(control):
                return replace(tried, cause=_cause(control) or WhyNone.NOT_ALONE)
            time_left.spent = 0.0
            known_outcomes: dict[str, UndoingOutcome] = {}
            for number, undoing in enumerate(self._undoings(files, given)):
                tree, valid = self._tree(undoing), Strength(1, undone=tuple(tried.undone)).valid
                if undoing.kind in PARTS and valid >= ENOUGH:
                    break
                if tree == landed:
                    continue
                if undoing.kind is UndoingKind.RAISES and _is_answered(undoing.place, tried.undone):
                    continue
                if tree not in known_outcomes:
                    # Time for two runs, which a failure takes.
                    enough = valid >= ENOUGH and time_left.spent > BUDGET * measured
                    if enough or tried.untried or time_left.left < 2 * control.seconds:
                        tried.untried += 1
                        continue
                    runs = [run(2 * number + 1, tree, undoing.texts)]
                    # Of names with nothing behind them it matters alone whether they pass.
                    if undoing.kind not in EMPTY and _is_told(runs[0]) and _failed(runs[0], stable):
                        runs.append(run(2 * number + 2, tree, undoing.texts, fresh=True))
                    if any(it.timed_out and it.seconds < 0.99 * side.timeout for it in runs):
                        tried.untried += 1
                        continue
                    known_outcomes[tree] = undoing_outcome(runs, stable, language_of(undoing.path))
                tried.undone.append(Undone(undoing.kind, undoing.place, known_outcomes[tree]))
        if not tried.untried and all(it.kind in EMPTY for it in tried.undone):
            tried.cause = WhyNone.NOTHING_TO_UNDO
        return tried

    def _undoings(self, files: Sequence[FilePatch], given: Sequence[str]) -> Iterator[Undoing]:
        """The stub first: it is the cheapest work that anybody could hand in."""
        base, landed = (_Texts(self._trees, commit) for commit in (self.stage.base, self.stage.landed))
        tests = {*given, *self.patch.test, *(path for path in landed.entries if path.endswith("conftest.py"))}
        texts = [landed.read(path) or "" for path in sorted(tests) if path.endswith(".py")]
        if stub := name_stub(texts, base.entries.keys(), lambda path: base.read(path) or ""):
            yield stub
        source = []
        for file in split(files).code:
            old = base.read(file.old_path or file.path) if file.status != "A" else None
            new = landed.read(file.path) if file.status != "D" else None
            if (old is None) != (file.status == "A") or (new is None) != (file.status == "D") or file.binary:
                continue  # a link, or no text
            changes = [
                LineChange(old_first, old_first + it.old_count, new_first, new_first + it.new_count)
                for it in file.hunks
                for old_first in [it.old_start - 1 if it.old_count else it.old_start]
                for new_first in [it.new_start - 1 if it.new_count else it.new_start]
            ]
            source.append(SourceFile(file.path, old, new, tuple(changes)))
        yield from undoings(source, self.stage.landed)

    def _tree(self, undoing: Undoing) -> str:
        """The tree of an undoing, as a stage's trees are tested: what steers the runner is M_t's."""
        begin = self.stage.base if undoing.kind is UndoingKind.STUB else self.stage.landed
        entries = {path_text(path): (path, entry) for path, entry in self._trees.entries(begin).items()}
        changes: dict[bytes, TreeEntry | None] = {}
        for name, text in undoing.texts.items():
            path, entry = entries.get(name, (name.encode("utf-8", "surrogateescape"), TreeEntry(FILE, "")))
            changes[path] = None if text is None else entry._replace(blob=self._trees.write_blob(text.encode()))
        return self.suite.with_overlay(self._trees.edit(self._trees.tree_of(begin), changes))


def undoing_outcome(
    runs: Sequence[TestRun], stable: Collection[str], language: str | None = "python"
) -> UndoingOutcome:
    """How an undoing ended, by one run, or by two where the first one fails. `stable` are the tests that pass without
    it. One that fails in both runs catches it; where none does, all have to pass in the last run. The text of Python is
    known to be one; of another `language` it may not even build, where no test came to its end."""
    told = [run for run in runs if _is_told(run)]
    if len(told) < len(runs) or (language != "python" and not all(map(_has_ended, runs))):
        return UndoingOutcome.INVALID
    if set.intersection(*(_failed(run, stable) for run in told)):
        return UndoingOutcome.CAUGHT
    last = told[-1].statuses
    return (
        UndoingOutcome.INVALID if any(last.get(it, Status.missing) in _GONE for it in stable) else UndoingOutcome.PASSED
    )


def says_all(run: TestRun) -> bool:
    """Whether the run of B_t's own tests came to its end, and to that of some test."""
    return run is NOTHING_TO_RUN or (_is_told(run) and run.complete and _has_ended(run))


def _cause(run: TestRun) -> str | None:
    """Why a run says nothing of what it was made for; None where it came to its end, and to that of some test."""
    if run.infra:
        return run.infra
    if run.timed_out:
        return WhyNone.TIMED_OUT
    if run.cheats:
        return WhyNone.DISTRUSTED
    if not run.complete:
        return WhyNone.BROKE_OFF
    return None if _has_ended(run) else WhyNone.NO_TEST_ENDED


def _is_answered(place: str, undone: Sequence[Undone]) -> bool:
    """Whether it is known what tests say of a function that returns None: that it raises says no more then."""
    kind, invalid = UndoingKind.RETURNS_NONE, UndoingOutcome.INVALID
    return any(it.place == place and it.kind is kind and it.outcome is not invalid for it in undone)


def _failed(run: TestRun, stable: Collection[str]) -> set[str]:
    return {test for test in stable if run.statuses.get(test) in _FAILS}


def _is_told(run: TestRun) -> bool:
    return run.usable and not run.cheats


def _is_lost(run: TestRun) -> bool:
    return run.infra == _LOST


def _has_ended(run: TestRun) -> bool:
    return not _ENDS.isdisjoint(run.statuses.values())


def _renamed(test: str, moved: Mapping[str, str]) -> str:
    """The id on M_t of a test whose file is moved; ids begin with the path, or with its module in dots."""
    for old, new in moved.items():
        for before, after in ((old, new), (_dotted(old), _dotted(new))):
            if test == before or (test.startswith(before) and not test[len(before)].isalnum()):
                return after + test[len(before) :]
    return test


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


class _Texts:
    """The texts of one commit's files, by path; None for what is no text in UTF-8."""

    def __init__(self, trees: TreeStore, commit: str) -> None:
        self._trees = trees
        self.entries = {path_text(path): entry for path, entry in trees.entries(commit).items()}

    def read(self, path: str) -> str | None:
        """The text of a file."""
        entry = self.entries.get(path)
        if entry is None or entry.mode not in (FILE, EXECUTABLE):
            return None
        try:
            return self._trees.blobs([entry.blob])[0].decode()
        except UnicodeDecodeError:
            return None
