"""Test runs on trees that are M_t but for a few source files."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence

from environments.checkouts.checkout import move_tree
from environments.sandboxes.sandbox import Sandbox
from environments.suites.baseline import RunnerBaseline
from environments.suites.testruns import TestRun, run_tests
from environments.workplace import Workplace
from prchain.core.errors import RefreshFailed, SandboxLimit, SandboxLost

log = logging.getLogger(__name__)


class EditedTrees:
    """Runs of the same test files on trees that differ from a first one in few files, in one sandbox.

    A context manager. A run that must see nothing of those before it begins from a snapshot of the first tree; for the
    others only files are changed. A failure counts only where a run of the first kind shows it, too.
    """

    def __init__(
        self, workplace: Workplace, tree: str, files: Sequence[str], known: RunnerBaseline, timeout: float
    ) -> None:
        self._workplace, self._first, self._files, self._known = workplace, tree, tuple(files), known
        self._timeout = timeout
        self._sandbox: Sandbox | None = None
        self._snapshot = ""
        self._holds = tree
        self._changed: Collection[str] = ()

    def __enter__(self) -> EditedTrees:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the sandbox. Never fails."""
        if self._sandbox is not None:
            self._sandbox.close()
        self._sandbox = None

    def run(self, tree: str, paths: Collection[str], *, fresh: bool) -> TestRun:
        """Run the tests on a tree; `paths` are the source files in which it differs. Raises as `Workplace.place`."""
        start = time.monotonic()
        try:
            sandbox = self._ready(fresh)
            move_tree(sandbox, self._workplace.trees, self._holds, tree)
            self._holds = tree
            if not self._runs_as_it_is({*self._changed, *paths}):
                self._workplace.refresh(sandbox)
            self._changed = paths
            return run_tests(sandbox, self._workplace.command, self._files, timeout=self._timeout, baseline=self._known)
        except (SandboxLimit, SandboxLost) as error:
            log.warning("a sandbox was lost while tests ran in it: %s", error.name)
            self.close()
            return TestRun({}, str(error), time.monotonic() - start, None, complete=False, infra=error.name)
        except RefreshFailed:
            self.close()
            raise

    def _ready(self, fresh: bool) -> Sandbox:
        sandbox = self._sandbox
        if sandbox is None:
            sandbox = self._sandbox = self._workplace.sandbox()
            sandbox.start()
            self._workplace.place(sandbox, self._first)
            self._snapshot = sandbox.snapshot()
        elif fresh:
            sandbox.restore(self._snapshot)
        else:
            return sandbox
        self._holds, self._changed = self._first, ()
        return sandbox

    def _runs_as_it_is(self, paths: Collection[str]) -> bool:
        """Whether a change of these files needs no refresh: source of Python that is installed as it lies there."""
        scripts = self._workplace.backend.refreshes(self._workplace.provided.plan)
        return all("--editable" in it for it in scripts) and all(path.endswith(".py") for path in paths)
