"""Grading patches that came from elsewhere by the hidden tests of our stages.

As SWE-bench's harness does, a patch is applied to B_t. The tree that this makes is graded as an agent's is: the tests,
and all that steers a runner, are the reference's. What was graded is stored, so that a run that was killed goes on
where it was, and no tree is graded twice by the same tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from environments.backend import Backend
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.suites.outcomes import StateCheck
from environments.suites.testruns import RUNNER_MISSING
from environments.workplace import Workplace
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import GitError, IncompleteRepository
from prchain.core.git.binary_patches import require_room
from prchain.core.git.trees import TreeStore
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.outcomes import INFRASTRUCTURE, OF_THE_AGENT, TESTS_UNPROVED
from trajectories.rollouts.chain_context import ChainContext, MakeSuite, stage_suite
from trajectories.rollouts.hidden_tests import graded
from trajectories.rollouts.kept_grades import KeptGrades
from trajectories.task import ProvedTests, StageTask, read_task

PATCH_EMPTY = "patch_empty"
"""The patch changes nothing; no test was run."""
PATCH_FAILED = "patch_failed"
"""git does not apply it to B_t, or it is larger than a patch can be; no test was run."""


@dataclass(frozen=True, slots=True)
class PatchUnit:
    """A patch for one stage."""

    chain_id: str
    position: int
    patch: str

    @property
    def key(self) -> str:
        """Chain, stage and the patch's hash."""
        name = hashlib.sha256(self.patch.encode()).hexdigest()[:12]
        return f"{self.chain_id}/{self.position} {name}"

    @property
    def group(self) -> str:
        """The chain's id: its stages share images."""
        return self.chain_id


class PatchGrading:
    """Grades patches (`prchain.core.runs.Work`). An outcome is a grade's, `PATCH_EMPTY` or `PATCH_FAILED`; else the
    stage cannot be graded, or a machine failed. The detail of a result is whether tests of earlier stages broke; None
    where none ran. `make_suite` is a seam for tests."""

    title = "patches"

    def __init__(
        self,
        store: Store,
        settings: Settings,
        backend: Backend,
        provider: Provider,
        *,
        make_suite: MakeSuite = stage_suite,
    ) -> None:
        self._store = store
        self._settings = settings
        self._backend = backend
        self._provider = provider
        self._make_suite = make_suite

    def run(self, units: Sequence[PatchUnit], workers: int = 2, progress: Progress = SILENT) -> RunResult[PatchUnit]:
        """Grade them all, each patch of a stage once. Raises as `prchain.core.runs.run_units`."""
        unique = tuple(dict.fromkeys(units))
        return run_units(self, unique, workers=workers, progress=progress, secrets=self._settings.secrets)

    def holding(self, unit: PatchUnit) -> AbstractContextManager[None]:
        """See `Work`. Two runs with the same patch write the same row."""
        return nullcontext()

    def work_on(self, unit: PatchUnit, tell: Tell) -> UnitResult[PatchUnit]:
        """See `Work`. Raises `TaskError`, `RolloutError`, `GitError`, `ImageError`, `SandboxError`."""
        with self._store.reading() as tx:
            task = read_task(tx, unit.chain_id)
        stage = task.stages[unit.position - 1]
        if stage.tests is None:
            reason = f"its tests are {stage.validated}" if stage.validated else "`prchain environments validate` first"
            return UnitResult(unit, TESTS_UNPROVED, reason)
        chain = ChainContext(
            task,
            mirrors=self._settings.mirrors_dir,
            data_dir=self._settings.data_dir,
            provider=self._provider,
            make_workplace=self._workplace,
            make_suite=self._make_suite,
        )
        try:
            tree = _applied(chain.trees, stage.stage.base, unit.patch)
        except IncompleteRepository:
            raise
        except (GitError, ValueError) as error:
            if isinstance(error, GitError) and error.infrastructure is not None:
                raise  # a full disk, no git: not the patch's fault
            return UnitResult(unit, PATCH_FAILED, str(error).removeprefix("git apply: ").removeprefix("error: "))
        if tree == chain.trees.tree_of(stage.stage.base):
            return UnitResult(unit, PATCH_EMPTY)
        outcome, earlier_broken = self._graded(chain, stage, stage.tests, tree, tell)
        return UnitResult(unit, outcome, detail=earlier_broken)

    def failed(self, unit: PatchUnit, outcome: str, reason: str) -> UnitResult[PatchUnit]:
        """See `Work`: there is no row of it."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return None

    def _graded(
        self, chain: ChainContext, stage: StageTask, tests: ProvedTests, tree: str, tell: Tell
    ) -> tuple[str, bool]:
        # S_t is B_t, so there is nothing that earlier stages could have broken.
        grades = KeptGrades(self._store, chain.task.chain.id, stage, tests)
        if known := grades.find(tree):
            return known.outcome, bool(known.earlier_broken)
        tell("image")
        chain.require_proof(stage)
        tell("tests")
        found, run = graded(chain, stage, tests, tree, StateCheck())
        if not run.usable:
            # The next run grades it anew. A runner that the reference starts in this image, and this tree does not, is
            # the patch's doing; so is a run without end.
            own = run.infra == RUNNER_MISSING and self._backend.needs_image
            named = run.infra in INFRASTRUCTURE | OF_THE_AGENT and not own
            return str(run.infra) if named else found.outcome, bool(found.earlier_broken)
        grades.keep(tree, found)
        return found.outcome, bool(found.earlier_broken)

    def _workplace(self, provided: StageImage, trees: TreeStore) -> Workplace:
        return Workplace(provided, trees, backend=self._backend, base=provided.base)


def _applied(trees: TreeStore, base: str, patch: str) -> str:
    """The tree of B_t with the patch. Raises `GitError` where git does not take it, `ValueError` for one too large."""
    content = patch.encode()
    require_room(content)
    return trees.apply(base, content)
