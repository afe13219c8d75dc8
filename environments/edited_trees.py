"""Test runs on trees that differ from a first one in few files, in one sandbox."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy

from environments.checkouts.checkout import move_tree
from environments.sandboxes.sandbox import Sandbox, SharesFiles
from environments.sandboxes.shared_files import forget_names, read_shared
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary
from environments.suites.canaries.jsmasks import snapshot_file
from environments.suites.runners import RUNNERS
from environments.suites.testruns import TestRun, run_tests
from environments.workplace import MOST_LOSSES, Workplace, unusable_run
from prchain.core.errors import (
    PlacementFailed,
    RefreshFailed,
    SandboxError,
    SandboxLimit,
    SandboxLost,
    UsageError,
)
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry

log = logging.getLogger(__name__)

_JAVASCRIPT = (".snap", *(f".{way}{kind}" for way in ("", "c", "m") for kind in ("js", "ts", "jsx", "tsx")))
AT_ONCE = 2
"""Sandboxes that begin, or are used, at the same time beside the first: more take each other the processors."""
_UNCHANGED = "git update-index --assume-unchanged -z --stdin"


def until_newer(ended: float, now: float) -> float:
    """Seconds to wait until a file that is written has a later time than all that a run had made when it `ended`.

    Files of a tree have times of whole seconds (`environments.checkouts.checkout`). Cargo and others build anew only
    what is newer than their last build: without this they would test that of another tree.
    """
    return max(0.0, math.floor(ended) + 1 - now) if now >= ended else 1.0


class EditedTrees:
    """Runs of test files on trees that differ from a first one in few files, in one sandbox. With `curt` nobody reads
    why tests fail.

    A context manager. A run that must see nothing of those before it begins from a snapshot of the first tree; for the
    others only files are changed. A failure counts only where a run of the first kind shows it, too.

    With `secret` no run learns what the `files` hold in another: empty ones are in their place in the repository's
    commit (git does not look whether they are changed) and in the snapshot, so that nothing that makes the first tree
    ready sees them. Where a test file has to be built, each run makes its own tree ready once more.

    So many sandboxes as `beside` says begin from the snapshot, two at once, where the backend can have several. Each is
    a bench of its own (`benches`), which others may use at the same time, or takes the place of the first one where
    that has to begin anew.
    """

    def __init__(
        self,
        workplace: Workplace,
        tree: str,
        files: Sequence[str],
        known: RunnerBaseline,
        *,
        curt: bool = True,
        secret: bool = False,
        beside: int = 0,
    ) -> None:
        self._workplace, self._files, self._known = workplace, tuple(files), known
        self._first = workplace.trees.edit(tree, self._emptied(tree)) if secret else tree
        self._command = RUNNERS[workplace.runner].curtly(workplace.command) if curt else workplace.command
        self._secret, self._beside = secret, beside
        self._sandbox: Sandbox | None = None
        self._snapshot = ""
        self._holds = self._first
        self._changed: Collection[str] = ()
        self._placed = self._ended = 0.0
        self._is_fresh = False
        self._others: list[Future[EditedTrees | None]] = []
        self._lent: list[EditedTrees] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> EditedTrees:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the sandbox, and those beside it. Never fails."""
        self._drop()
        others, self._others = [it.result() for it in self._others], []
        self._lent += [it for it in others if it is not None]
        self.close_lent()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def close_lent(self) -> None:
        """Remove the sandboxes beside this one that others have used (`benches`). Never fails."""
        lent, self._lent = self._lent, []
        for bench in lent:
            bench._pool = self._pool
            bench._drop()

    def _drop(self) -> None:
        """Remove the sandbox alone: those beside it may be in use."""
        sandbox, self._sandbox, self._is_fresh = self._sandbox, None, False
        if sandbox is not None:
            self._let_go(sandbox, has_run=True)

    def _let_go(self, sandbox: Sandbox, *, has_run: bool) -> None:
        """Close a sandbox, where there are threads for that, while others are used."""

        def close() -> None:
            if has_run and self._secret:
                forget_names(sandbox)
            sandbox.close()

        if self._pool is not None:
            self._pool.submit(close)
        else:
            close()

    def begin(self) -> None:
        """Have a sandbox with the first tree made ready, where nothing of an earlier run is left, and in memory all
        files that sandboxes share: either could tell the next run what one has seen. Where the sandbox is lost or ends
        at its limits, the next run begins another one, and says so. Raises as `Workplace.place`."""
        if self._is_fresh:
            return
        try:
            if self._sandbox is not None:
                read_shared(self._ready(fresh=True))
            else:
                with ThreadPoolExecutor(1) as pool:
                    reading = pool.submit(self._read_beside)
                    try:
                        sandbox = self._ready(fresh=True)
                    finally:
                        if reader := reading.result():
                            self._let_go(reader, has_run=False)
                if reader is None:
                    read_shared(sandbox)
        except (RefreshFailed, PlacementFailed):
            self.close()
            raise
        except SandboxError as error:
            log.warning("a sandbox cannot begin anew, and is made anew: %s", error)
            self.close()
        else:
            self._is_fresh = True

    def _read_beside(self) -> Sandbox | None:
        """Have the shared files in memory by a sandbox of their own: nothing of a tree runs there, and the first one is
        made ready meanwhile. None where another one cannot be, or shares nothing before it has begun."""
        sandbox = self._workplace.sandbox()
        if not isinstance(sandbox, SharesFiles) or not sandbox.shared:
            return None
        try:
            sandbox.start()
            read_shared(sandbox)
        except (SandboxError, UsageError) as error:
            log.warning("the files that sandboxes share are read after the tree is made ready: %s", error)
            sandbox.close()
            return None
        return sandbox

    def benches(self) -> Iterator[EditedTrees]:
        """This one, and those that begin beside it, each as soon as it is there; they are closed with this one."""
        yield self
        while (bench := self._other()) is not None:
            self._lent.append(bench)
            yield bench

    def _other(self) -> EditedTrees | None:
        """One that has begun beside this one; None where there is none any more, or cannot be one."""
        return self._others.pop(0).result() if self._others else None

    def run(
        self,
        tree: str,
        paths: Collection[str],
        timeout: float,
        *,
        fresh: bool,
        files: Sequence[str] | None = None,
        canaries: Sequence[Canary] = (),
        named: Sequence[str] = (),
        masked: str = "",
    ) -> TestRun:
        """Run the tests on a tree, for `timeout` seconds at most; `paths` are the files in which it differs. `files`
        are run in place of all, or what is `named` of them; `canaries` stand in them, or masks whose report is
        `masked`. Raises as `Workplace.place`.

        What becomes of a sandbox that ends at its limits, or is lost, is as in `TestBench.run`.
        """
        losses = 0
        while True:
            start = time.monotonic()
            try:
                given = self._files if files is None else files
                return self._run(tree, paths, timeout, given, canaries, named, masked, fresh=fresh)
            except SandboxLimit as error:
                self._drop()
                return unusable_run(error, start)
            except SandboxLost as error:
                self._drop()
                losses += 1
                if losses == MOST_LOSSES:
                    return unusable_run(error, start)
                log.warning("a sandbox was lost while tests ran in it; it is made anew")
            except (RefreshFailed, PlacementFailed):
                self._drop()
                raise

    def _run(
        self,
        tree: str,
        paths: Collection[str],
        timeout: float,
        files: Sequence[str],
        canaries: Sequence[Canary],
        named: Sequence[str] = (),
        masked: str = "",
        *,
        fresh: bool,
    ) -> TestRun:
        sandbox = self._ready(fresh)
        emptied = self._files if self._secret and self._holds == self._first else ()
        as_it_is = self._runs_as_it_is({*self._changed, *paths, *emptied})
        if not as_it_is and tree != self._holds:
            time.sleep(until_newer(self._ended, time.time()))
        move_tree(sandbox, self._workplace.trees, self._holds, tree)
        self._holds = tree
        if not as_it_is:
            self._workplace.refresh(sandbox)
        self._changed = paths
        try:
            return run_tests(
                sandbox,
                self._command,
                files,
                timeout=timeout,
                baseline=self._known,
                canaries=canaries,
                named=named,
                masked=masked,
            )
        finally:
            self._ended = time.time()

    def _ready(self, fresh: bool) -> Sandbox:
        if self._is_fresh:
            self._is_fresh = False
        elif fresh and (other := self._other()) is not None and other._sandbox is not None:
            self._drop()
            self._sandbox, self._snapshot = other._sandbox, other._snapshot
        elif self._sandbox is None:
            self._make()
        elif fresh:
            if self._secret:
                forget_names(self._sandbox)
            self._sandbox.restore(self._snapshot)
        else:
            return self._sandbox
        assert self._sandbox is not None
        # What a run made after the snapshot is gone.
        self._holds, self._changed, self._ended = self._first, (), self._placed
        return self._sandbox

    def _make(self) -> None:
        sandbox = self._sandbox = self._workplace.sandbox()
        sandbox.start()
        self._workplace.place(sandbox, self._first)
        if self._secret:
            self._hide_changes(sandbox)
        self._snapshot, self._placed = sandbox.snapshot(), time.time()
        beside, self._beside = self._beside, 0
        self.ahead(beside)

    def ahead(self, count: int) -> None:
        """Let so many sandboxes more begin beside this one, if it has begun. Call it where no other thread uses it."""
        if not count or self._sandbox is None:
            return
        if self._pool is None:
            # Threads that live as long as the sandboxes: a sandbox of namespaces ends with the one that began it.
            self._pool = ThreadPoolExecutor(AT_ONCE)
        self._others += [self._pool.submit(self._branched, self._sandbox, self._snapshot) for _ in range(count)]

    def _branched(self, sandbox: Sandbox, snapshot: str) -> EditedTrees | None:
        """A bench that holds the first tree, in a sandbox of its own; None where there cannot be a second one."""
        try:
            other = sandbox.branch(snapshot)
        except (SandboxError, UsageError):
            return None
        made = copy(self)
        made._beside, made._others, made._lent, made._pool = 0, [], [], None
        made._sandbox, made._snapshot, made._is_fresh = other, snapshot, True
        made._holds, made._changed, made._ended = self._first, (), self._placed
        return made

    def _emptied(self, tree: str) -> dict[bytes, TreeEntry | None]:
        """The changes that make the test files empty, and their files of snapshots."""
        trees, files = self._workplace.trees, {*self._files, *map(snapshot_file, self._files)}
        empty = trees.write_blob(b"")
        return {
            path: entry._replace(blob=empty)
            for path, entry in trees.entries(tree).items()
            if path_text(path) in files and entry.mode in (FILE, EXECUTABLE)
        }

    def _hide_changes(self, sandbox: Sandbox) -> None:
        names = b"".join(b"%s\0" % path for path in self._emptied(self._first))
        told = sandbox.exec(_UNCHANGED, cwd=sandbox.config.workdir, stdin=names)
        if told.exit_code != 0:
            raise PlacementFailed(f"git does not take the test files for unchanged: {told.text.strip()[:300]}")

    def _runs_as_it_is(self, paths: Collection[str]) -> bool:
        """Whether a change of these files needs no refresh and no newer time: source of Python that is installed as it
        lies there, and of JavaScript where nothing is built."""
        scripts = self._workplace.backend.refreshes(self._workplace.provided.plan)
        as_they_lie = (".py",) if scripts else (".py", *_JAVASCRIPT)
        return all("--editable" in it for it in scripts) and all(path.endswith(as_they_lie) for path in paths)
