"""One stage's place to work: sandboxes with its image, trees placed and made ready in them, and test runs on trees.

    workplace = Workplace(provided, trees, backend=BACKENDS["docker"])
    with workplace.sandbox() as sandbox:                  # the agent's
        workplace.place(sandbox, start_tree)
        ...
        left = workplace.extract(sandbox, start_tree=start_tree, rules_from=stage.base).tree
    suite = StageSuite.of(workplace, stage, patches)      # what judges any tree of this stage
    run = suite.run(left)

Tests run in a sandbox of their own, never in the agent's: what an agent left running or wrote outside the tree does not
reach them.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Self

from environments.checkouts.checkout import Extraction, extract_tree, place_repository, place_tree
from environments.checkouts.overlay import Blobs, Overlay, overlay
from environments.images.buildlogs import decisive_lines
from environments.sandboxes.sandbox import LaidFolder, ResourceLimits, Sandbox
from environments.sandboxes.shared_files import forget_names
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, Planting
from environments.suites.chosen_files import chosen_files
from environments.suites.runner import TestCommand
from environments.suites.runners import RUNNERS
from environments.suites.testfiles import LIMIT
from environments.suites.testruns import TestRun, run_tests
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.errors import RefreshFailed, SandboxError, SandboxLimit, SandboxLost
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore

# An exported grader (`trajectories.export.tasks`) holds this module, and has no database and no engine.
if TYPE_CHECKING:
    from environments.backend import Backend
    from environments.briefing import Briefing
    from environments.images.stage_image import StageImage
    from environments.kept_bases import KeptBase
    from environments.stages import Stage, StagePatch

log = logging.getLogger(__name__)

TEST_TIMEOUT = 900.0
"""Seconds for one run of a stage's test files: five times what one test of Python may take
(`environments.suites.testruns`), and all that a hang of another runner's costs."""

REFRESH_TIMEOUT = 900.0
"""Seconds for one script of a recipe's refresh; some compile extensions."""

_FILES_OF_NAMES = 40
_FILES_AT_ONCE = 200
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_TEST_NAME = re.compile(r"\b(?:def|func|fn|void)\s+([Tt]est\w+)")
_GIT = 300.0
MOST_LOSSES = 3
"""After so many sandboxes lost during the same tests, the tests are what ends them."""

_MOST_LISTED = 8 << 20
_LIST_UNTRACKED = "git ls-files --others --exclude-standard --directory --no-empty-directory -z"
_TIDY = "git diff --quiet || git checkout --quiet --force -- ."


class Workplace:
    """Where trees of one stage are worked on and tested; safe for threads.

    `provided` is what `environments.images.provide.Provider` gives for the stage. `limits` hold for every sandbox, and
    `labels` stand on every container besides our own. `test_timeout` is in seconds, for one run. With `base`, a commit
    of the repository, a backend that can keeps that tree placed and made ready, and places others from there.
    """

    def __init__(
        self,
        provided: StageImage,
        trees: TreeStore,
        *,
        backend: Backend,
        limits: ResourceLimits | None = None,
        test_timeout: float = TEST_TIMEOUT,
        labels: Mapping[str, str] | None = None,
        base: str = "",
    ) -> None:
        self.provided = provided
        self.trees = trees
        self.backend = backend
        self.limits = limits or ResourceLimits()
        self.test_timeout = test_timeout
        self._labels = dict(labels or {})
        self._base = base
        self._lock = threading.Lock()
        self._refresh_outputs: set[bytes] = set()

    @property
    def command(self) -> TestCommand:
        """How tests are run here."""
        return self.backend.command(self.provided.plan)

    @property
    def runner(self) -> str:
        """The runner of the tests, a name of `environments.suites.runners`."""
        return self.provided.plan.runner

    def sandbox(self, laid: Sequence[LaidFolder] = (), *, from_base: bool = True) -> Sandbox:
        """A new sandbox of the stage's image, not started, which sees these folders; the caller closes it. It may hold
        the stage's base when it starts, but for `from_base`."""
        plan, image = self.provided.plan, self.provided.image
        backend = replace(self.backend, laid=tuple(laid)) if laid else self.backend
        if self._kept_base is not None and from_base:
            backend = replace(backend, place=self._kept_base.key())
        return backend.sandbox(plan, image, limits=self.limits, labels=self._labels)

    def briefing(self, sandbox: Sandbox) -> Briefing:
        """What an agent is told of the environment; `sandbox` is one of the stage's, started. Raises `SandboxError`."""
        from environments.briefing import briefing  # noqa: PLC0415  for who briefs an agent alone

        return briefing(self.provided, sandbox)

    def place(self, sandbox: Sandbox, tree: str, *, history: Sequence[str] = (), begun_from: str | None = None) -> None:
        """Make the sandbox hold exactly `tree`, ready to run, as the work tree of a new repository.

        `history` are commits before it, newest first (`environments.checkouts.checkout.place_tree`). Then the recipe's
        refresh runs. What it makes is hidden from git and left out by `extract`; its changes to the tree are undone:
        the work tree is clean. With `begun_from` the repository's commit holds that tree instead, and the work tree
        shows the changes of an agent that went from there to `tree`. Raises `RefreshFailed`, `PlacementFailed`,
        `IncompleteRepository`, `SandboxError`.
        """
        if self._kept_base is None or not self._kept_base.place(sandbox, tree, history):
            place_tree(sandbox, self.trees, tree, history=history)
            self.make_ready(sandbox)
        if begun_from is not None:
            place_repository(sandbox, self.trees, begun_from, history=history)

    @cached_property
    def _kept_base(self) -> KeptBase | None:
        if not self._base:
            return None
        from environments.kept_bases import KeptBase  # noqa: PLC0415  not for an exported grader

        return KeptBase(self, self._base)

    def make_ready(self, sandbox: Sandbox) -> bool:
        """Refresh, and hide from git what that makes; whether the repository then names all of that. Raises as
        `refresh`."""
        return not self.refresh(sandbox) or self._hide_refresh_outputs(sandbox)

    def remember_outputs(self, paths: Collection[bytes]) -> None:
        """Take these paths for what a refresh made."""
        with self._lock:
            self._refresh_outputs |= set(paths)

    def refresh(self, sandbox: Sandbox) -> bool:
        """Make what lies in the sandbox ready to run, as `place` does, and leave what that makes where it is; whether
        there was anything to do. Raises `RefreshFailed`, `SandboxError`."""
        plan = self.provided.plan
        scripts = self.backend.refreshes(plan)
        # Tools that know no variable for the version read it from the tag; agents and tests see none.
        tagged = f"git tag -- {plan.tag}\ntrap 'git tag --delete -- {plan.tag} > /dev/null' EXIT\n" if plan.tag else ""
        for script in scripts:
            result = sandbox.exec(f"set -euo pipefail\n{tagged}{script}", timeout=REFRESH_TIMEOUT)
            if result.exit_code != 0:
                lines = decisive_lines(result.text)
                cause = "took too long" if result.timed_out else lines[-1] if lines else f"exit code {result.exit_code}"
                raise RefreshFailed(f"the refresh fails on the tree: {cause}", lines)
        return bool(scripts)

    def _hide_refresh_outputs(self, sandbox: Sandbox) -> bool:
        """Whether all of it can be hidden."""
        sandbox.exec(_TIDY, timeout=_GIT)
        listed = sandbox.exec(_LIST_UNTRACKED, timeout=_GIT, output_limit=_MOST_LISTED)
        if listed.exit_code != 0 or listed.omitted:
            raise RefreshFailed("git cannot say what the refresh made", decisive_lines(listed.text))
        outputs = {path for path in listed.output.split(b"\0") if path}
        if outputs:
            lines = b"".join(b"/%b\n" % _pattern(path) for path in sorted(outputs) if b"\n" not in path)
            sandbox.write(f"{sandbox.config.workdir}/.git/info/exclude", lines)
            self.remember_outputs(outputs)
        return not any(b"\n" in path for path in outputs)

    def extract(self, sandbox: Sandbox, *, start_tree: str, rules_from: str) -> Extraction:
        """A_t: the tree of what lies in the sandbox, which began as `start_tree` (S_t); see `extract_tree`.

        `rules_from` is B_t, whose ignore rules say what is junk. What the refresh made is none of the agent's work.
        Raises `ExtractionFailed`, `SandboxError`, `GitError`.
        """
        found = extract_tree(sandbox, self.trees, start_tree=start_tree, ignore_rules_from=rules_from)
        return replace(found, tree=self.without_refresh_outputs(found.tree, start_tree))

    def without_refresh_outputs(self, tree: str, start_tree: str) -> str:
        """A tree that was read from a sandbox, without what the refresh made there and `start_tree` does not hold."""
        if not self._refresh_outputs:
            return tree
        new = (change.path for change in self.trees.diff(start_tree, tree) if change.old is None)
        outputs: dict[bytes, TreeEntry | None] = dict.fromkeys(path for path in new if self._is_refresh_output(path))
        return self.trees.edit(tree, outputs) if outputs else tree

    def _is_refresh_output(self, path: bytes) -> bool:
        parts = path.split(b"/")
        folders = (b"/".join(parts[:depth]) + b"/" for depth in range(1, len(parts)))
        return path in self._refresh_outputs or any(folder in self._refresh_outputs for folder in folders)

    def tests(
        self,
        tree: str,
        files: Sequence[str],
        *,
        baseline: RunnerBaseline | None = None,
        canaries: Sequence[Canary] = (),
        masked: str = "",
    ) -> TestRun:
        """Run the tests of these files once on a tree, in a fresh sandbox. The tree is taken as it is: lay over it
        first, or use `StageSuite`. `masked` is the report of masks in it. Raises as `place`; a sandbox that ends at its
        limits is an unusable run."""
        with TestBench(self, tree, files, canaries, masked, repeats=False) as bench:
            return bench.run(baseline)

    def bench(self, tree: str, files: Sequence[str], canaries: Sequence[Canary] = ()) -> TestBench:
        """For repeated runs of these files on a tree; see `tests`."""
        return TestBench(self, tree, files, canaries)


class TestBench:
    """Repeated runs of the same test files on the same tree, of which none sees what another left.

    The tree is placed and made ready once, before the first run; each run starts from a snapshot of that. Nothing is
    started before the first run. A context manager.
    """

    __test__ = False

    def __init__(
        self,
        workplace: Workplace,
        tree: str,
        files: Sequence[str],
        canaries: Sequence[Canary] = (),
        masked: str = "",
        *,
        repeats: bool = True,
    ) -> None:
        self._workplace = workplace
        self._masked = masked
        self._tree = tree
        self._files = tuple(files)
        self._canaries = tuple(canaries)
        self._repeats = repeats
        self._sandbox: Sandbox | None = None
        self._snapshot: str | None = None
        self._used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the sandbox. Never fails."""
        if self._sandbox is not None:
            if not self._repeats:
                # What the run saw may stand in a grade of the same tree.
                forget_names(self._sandbox)
            self._sandbox.close()
        self._sandbox, self._snapshot, self._used = None, None, False

    def run(self, baseline: RunnerBaseline | None = None) -> TestRun:
        """Run the tests once; `baseline` is that of M_t. Raises as `Workplace.place`.

        A sandbox that ends at its limits is an unusable run. So is one that is lost during the tests again and
        again, although it was made ready: code under test can end it.
        """
        if not self._files:
            return TestRun({}, "", 0.0, 0)
        losses = 0
        while True:
            sandbox = self._ready()
            start = time.monotonic()
            try:
                return run_tests(
                    sandbox,
                    self._workplace.command,
                    self._files,
                    timeout=self._workplace.test_timeout,
                    baseline=baseline,
                    canaries=self._canaries,
                    masked=self._masked,
                )
            except SandboxLimit as limit:
                return unusable_run(limit, start)
            except SandboxLost as lost:
                losses += 1
                if losses == MOST_LOSSES:
                    return unusable_run(lost, start)
                log.warning("a sandbox was lost while tests ran in it; it is made anew")
                self.close()

    def _ready(self) -> Sandbox:
        sandbox = self._sandbox
        if sandbox is None:
            sandbox = self._sandbox = self._workplace.sandbox()
            sandbox.start()
            self._workplace.place(sandbox, self._tree)
            if self._repeats:
                self._snapshot = sandbox.snapshot()
        elif self._used:
            if self._snapshot is None:
                raise ValueError("this bench is for one run")
            sandbox.restore(self._snapshot)
        self._used = True
        return sandbox


@dataclass(frozen=True, slots=True)
class PlantedTree:
    """A tree with canaries in its test files."""

    tree: str
    canaries: tuple[Canary, ...]


@dataclass(frozen=True)
class StageSuite:
    """Everything that tests a tree of one stage, B_t, M_t, S_t and A_t alike.

    `base` and `landed` are the commits B_t and M_t. `test_paths` and `earlier_test_paths` are the paths of the test
    patches of the stage and of those before it; `files` the test files that are run; `baseline` what M_t's own runs
    show of the runner.
    """

    workplace: Workplace
    base: str
    landed: str
    test_paths: frozenset[bytes]
    earlier_test_paths: frozenset[bytes]
    files: tuple[str, ...]
    own_files: tuple[str, ...] = ()
    """Those of `files` that the stage's own test patch touches; without one the stage has no tests."""
    baseline: RunnerBaseline = field(default_factory=RunnerBaseline)

    @classmethod
    def of(
        cls,
        workplace: Workplace,
        stage: Stage,
        patches: Sequence[StagePatch],
        *,
        files: Sequence[str] | None = None,
        baseline: RunnerBaseline | None = None,
        limit: int = LIMIT,
    ) -> StageSuite:
        """The suite of a stage; `patches` are those of the chain's stages from the first one on, at least up to it.

        `files` are those that a validation has chosen (`sql.tables.StageTests.files`); without them they are chosen by
        `environments.suites.testfiles.choose`. Raises `IncompleteRepository`.
        """
        if baseline is not None and baseline.canaries and not baseline.slots:
            log.warning("#%d was proved with other canaries; `prchain environments validate --renew`", stage.number)
        own, earlier = patches[stage.position - 1], patches[: stage.position - 1]
        chosen = chosen_files(workplace.runner, workplace.trees, stage, patches, limit=limit)
        return cls(
            workplace,
            stage.base,
            stage.landed,
            frozenset(own.test_paths),
            frozenset(path for patch in earlier for path in patch.test_paths),
            chosen.files if files is None else tuple(files),
            chosen.own,
            baseline or RunnerBaseline(),
        )

    @cached_property
    def _base_entries(self) -> dict[bytes, TreeEntry]:
        return self.workplace.trees.entries(self.base)

    @cached_property
    def _landed_entries(self) -> dict[bytes, TreeEntry]:
        return self.workplace.trees.entries(self.landed)

    def overlay(self, tree: str) -> Overlay:
        """What is laid over a tree of the stage before its tests run: M_t's blobs for every path of the test patches
        and for every file that is run, its other tests, and what steers a runner. On M_t that is nothing."""
        trees = self.workplace.trees
        files = set(self.files)
        run = {path for path in self._landed_entries if path_text(path) in files}
        return overlay(
            trees.entries(tree),
            self._landed_entries,
            self.test_paths | run,
            self.earlier_test_paths,
            base=self._base_entries,
            blobs=Blobs(trees.blobs, trees.write_blob),
        )

    def with_overlay(self, tree: str) -> str:
        """The id of the tree with the overlay on it."""
        return self.workplace.trees.edit(tree, self.overlay(tree).changes)

    def planted(self, tree: str, slots: Collection[str] | None) -> PlantedTree:
        """A tree with canaries in its test files, M_t's: in these slots, or in all that there are. Tests proper have
        other names there, too.

        Their names are drawn anew each time, so that nobody can know them. Where they are and what is false in them
        follows from M_t's name, which no sandbox holds: what a canary showed on M_t holds for later runs.
        """
        runner = RUNNERS[self.workplace.runner]
        plant = runner.plant
        if plant is None or (slots is not None and not slots):
            return PlantedTree(tree, ())
        trees = self.workplace.trees
        files = set(self.files)
        entries = {
            path: entry
            for path, entry in self._landed_entries.items()
            if path_text(path) in files and entry.mode in (FILE, EXECUTABLE)
        }
        blobs = trees.blobs([entry.blob for entry in entries.values()])
        texts = [blob.decode("utf-8", "surrogateescape") for blob in blobs]
        # A file that cannot be imported is an error under its module's name.
        taken = {name for text in (*texts, *map(path_text, entries)) for name in _IDENTIFIER.findall(text)}
        lone = runner.lone(self._landed_texts()) if runner.lone is not None and slots is None else ()
        planting = Planting(self.landed, SystemRandom(), slots, taken, self._test_names, lone)
        changes: dict[bytes, TreeEntry | None] = {}
        canaries: list[Canary] = []
        for (path, entry), text in zip(entries.items(), texts, strict=True):
            found = plant(path_text(path), text, planting)
            if found.canaries:
                changes[path] = entry._replace(blob=trees.write_blob(found.text.encode("utf-8", "surrogateescape")))
                canaries += found.canaries
        if slots and not canaries:
            log.warning("%s was proved with other canaries; `prchain environments validate --renew`", self.landed[:12])
        return PlantedTree(trees.edit(tree, changes), tuple(canaries)) if canaries else PlantedTree(tree, ())

    @cached_property
    def _test_names(self) -> tuple[str, ...]:
        """Names of tests in some of M_t's test files in the language of those that are run, each as often as it stands
        there."""
        suffixes = tuple({path.rpartition(".")[2] for path in self.files})
        paths = [path for path in self._landed_entries if path_text(path).endswith(suffixes)]
        entries = [self._landed_entries[path] for path in paths if kind_of(path_text(path)) is FileKind.TEST]
        blobs = self.workplace.trees.blobs(
            [it.blob for it in entries if it.mode in (FILE, EXECUTABLE)][:_FILES_OF_NAMES]
        )
        return tuple(name for blob in blobs for name in _TEST_NAME.findall(blob.decode("utf-8", "replace")))

    def _landed_texts(self) -> Iterator[tuple[bytes, bytes]]:
        """The files of M_t, each with its path."""
        files = [(path, it.blob) for path, it in self._landed_entries.items() if it.mode in (FILE, EXECUTABLE)]
        for begin in range(0, len(files), _FILES_AT_ONCE):
            some = files[begin : begin + _FILES_AT_ONCE]
            texts = self.workplace.trees.blobs([blob for _, blob in some])
            yield from zip((path for path, _ in some), texts, strict=True)

    def run(self, tree: str) -> TestRun:
        """Run the stage's tests once on a tree or commit of the stage, with the overlay, in a sandbox of their own.

        Raises `RefreshFailed`, `PlacementFailed`, `IncompleteRepository`, and `SandboxError` for what is the engine's
        fault. `TestRun.usable` says whether the run says anything of the tree.
        """
        laid = self.overlay(tree)
        planted = self.planted(self.workplace.trees.edit(tree, laid.changes), self.baseline.slots)
        run = self.workplace.tests(planted.tree, self.files, baseline=self.baseline, canaries=planted.canaries)
        return replace(run, taken_back=laid.taken_back)


def unusable_run(error: SandboxError, start: float) -> TestRun:
    """The run of a sandbox that ended with this error; `start` is of `time.monotonic`."""
    return TestRun({}, str(error), time.monotonic() - start, None, complete=False, infra=error.name)


def _pattern(path: bytes) -> bytes:
    """A path as a pattern of gitignore(5) that means it alone."""
    return re.sub(rb"([\\*?\[ ])", rb"\\\1", path)
