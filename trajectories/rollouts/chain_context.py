"""What the rollouts of one chain share: its repository, states, workplaces, and the content that must stay hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from environments.briefing import Briefing
from environments.checkouts.carry import Carry
from environments.checkouts.checkout import Extraction
from environments.checkouts.state import StageState, first_state, next_state
from environments.duelling import GradingSuite
from environments.graded_runs import Suite
from environments.images.stage_image import StageBase, StageImage
from environments.sandboxes.sandbox import LaidFolder, Sandbox
from environments.stages import Stage, StagePatch, open_git, open_trees, stage_patches
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import ProofOutdated
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.waiting import waiting_for
from trajectories.task import RolloutTask, StageTask
from trajectories.verdicts.hidden import HiddenContent, read_hidden
from trajectories.verdicts.judged_patch import judged_patch


class ImageProvider(Protocol):
    """The part of `environments.images.provide.Provider` that is used here."""

    def provide(
        self, repository: str, trees: TreeStore, git: GitRepository, stage: StageBase, *, rebuild: bool = False
    ) -> StageImage:
        """See there."""


class StageWorkplace(Protocol):
    """The part of `environments.workplace.Workplace` that is used here."""

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        """A new sandbox, not started, which sees these folders."""

    def briefing(self, sandbox: Sandbox) -> Briefing:
        """What an agent is told of the environment."""

    def place(self, sandbox: Sandbox, tree: str, *, history: Sequence[str] = (), begun_from: str | None = None) -> None:
        """Put a tree into the sandbox."""

    def extract(self, sandbox: Sandbox, *, start_tree: str, rules_from: str) -> Extraction:
        """Take the tree out of the sandbox."""

    def without_refresh_outputs(self, tree: str, start_tree: str) -> str:
        """A tree without what the refresh made."""


MakeWorkplace = Callable[[StageImage, TreeStore], StageWorkplace]
MakeSuite = Callable[[Any, StageTask, Sequence[StagePatch]], Suite]


def stage_suite(workplace: Any, stage: StageTask, patches: Sequence[StagePatch]) -> Suite:
    """The suite of a stage, with the test files that its validation chose."""
    assert isinstance(workplace, Workplace) and stage.tests is not None
    tests = stage.tests
    return GradingSuite(StageSuite.of(workplace, stage.stage, patches, files=tests.files, baseline=tests.baseline))


class ChainContext:
    """What the rollouts of one chain share. Costly values are computed at their first use, and cached."""

    def __init__(
        self,
        task: RolloutTask,
        *,
        mirrors: Path,
        data_dir: Path,
        provider: ImageProvider,
        make_workplace: MakeWorkplace,
        make_suite: MakeSuite = stage_suite,
    ) -> None:
        self.task = task
        self.git = open_git(task.chain, mirrors)
        self.trees = open_trees(task.chain, self.git, data_dir)
        self._provider = provider
        self._make_workplace = make_workplace
        self._make_suite = make_suite
        self._workplaces: dict[int, StageWorkplace] = {}
        self._images: dict[int, str | None] = {}

    @cached_property
    def patches(self) -> list[StagePatch]:
        """What each stage's reference patch touches."""
        return list(stage_patches(self.git, self.trees, self.task.chain.stages))

    @cached_property
    def hidden(self) -> HiddenContent:
        """The content of the references that must stay hidden; interface names are not hidden."""
        return read_hidden(
            self.git, self.task.chain.stages, {stage.position: stage.interface for stage in self.task.stages}
        )

    def workplace(self, stage: StageTask) -> StageWorkplace:
        """Where a stage is worked on; a missing image is built. Raises `ImageError`, `EngineUnavailable`."""
        if stage.position not in self._workplaces:
            chain = self.task.chain
            with waiting_for("the image"):
                provided = self._provider.provide(chain.repository, self.trees, self.git, stage.stage)
            self._images[stage.position] = provided.image
            provided = replace(provided, base=stage.stage.base)
            self._workplaces[stage.position] = self._make_workplace(provided, self.trees)
        return self._workplaces[stage.position]

    def require_proof(self, stage: StageTask) -> None:
        """Check that a stage's tests were proved in its current image. Raises `ProofOutdated`, and as `workplace`."""
        self.workplace(stage)
        proved, current = stage.tests.image if stage.tests else None, self._images[stage.position]
        if proved is not None and current is not None and proved != current:
            raise ProofOutdated(
                f"the tests of stage {stage.position} were proved in {proved}, and its image is {current} now; run "
                f"`prchain environments validate --renew --chain {self.task.chain.id}`"
            )

    def briefing(self, stage: StageTask, sandbox: Sandbox) -> Briefing:
        """What an agent is told of a stage's environment; `sandbox` is started. A command that names a file of the
        chain's hidden tests is not told. Raises `SandboxError`, and as `workplace`."""
        found = self.workplace(stage).briefing(sandbox)
        hidden = (path for patch in self.patches for path in patch.test)
        tests = found.tests
        return replace(found, tests=None) if tests and any(path in tests for path in hidden) else found

    def suite(self, stage: StageTask) -> Suite:
        """The suite of a stage that has proved tests."""
        return self._make_suite(self.workplace(stage), stage, self.patches)

    def state(self, position: int, agent_tree: str | None, carry: Carry) -> StageState:
        """S_t; `agent_tree` is A_{t-1}, not needed for stage 1 and for carried references. Raises `StateError`."""
        stages = self.task.chain.stages
        stage = stages[position - 1]
        if position == 1:
            return first_state(self.trees, stage.base)
        before = stages[: position - 1]
        return next_state(
            self.trees,
            landed_before=before[-1].landed,
            agent_tree=agent_tree or before[-1].landed,
            base=stage.base,
            test_paths=[path for patch in self.patches[: position - 1] for path in patch.test_paths],
            carry=carry,
            earlier=[(stage.base, stage.landed) for stage in before],
        )

    def history(self, stage: Stage, count: int) -> list[str]:
        """The newest `count` commits of the base's first-parent history, the base itself first; none where a fault was
        brought in, for each of them would show what is asked for."""
        if count == 0 or self.task.chain.breaks:
            return []
        output = self.git.run("rev-list", "--first-parent", f"--max-count={count}", stage.base)
        return output.split()

    def reference_patch(self, stage: Stage) -> bytes:
        """The diff B_t..M_t with whole functions, as the judge reads it."""
        return judged_patch(self.trees, stage.base, stage.landed)
