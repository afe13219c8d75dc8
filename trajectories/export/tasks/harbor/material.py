"""What the folders of a chain are made of: its task, repository, proofs, and the image of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from environments.backend import Backend
from environments.images.provide import Provider
from environments.stages import Stage, StagePatch, open_git, open_trees, stage_patches
from environments.suites.outcomes import ClassifiedTests
from environments.workplace import TEST_TIMEOUT, StageSuite, Workplace
from prchain.core.errors import ProofOutdated, TestsUnproved, UsageError
from trajectories.export.tasks.harbor.chain_image import ChainImage, chain_image
from trajectories.export.tasks.harbor.drift import OLDEST_GIT, SCRIPT, setup_script
from trajectories.export.tasks.harbor.folder import FolderStep
from trajectories.export.tasks.harbor.image import ImageFacts, TaskImage, task_image
from trajectories.export.tasks.harbor.inside.said import OBJECTS, STAGE, StageSaid, texts_of
from trajectories.export.tasks.harbor.objects import graders_pack
from trajectories.export.tasks.harbor.reference import reference_files, solve_script
from trajectories.task import ProvedTests, RolloutTask, StageTask

_OWN_TESTS = "harbor"
"""The runner of stages that were imported from Harbor's folders."""


@dataclass
class ChainMaterial:
    """A chain to be written. `backend` is Docker's, connected."""

    task: RolloutTask
    mirrors: Path
    data_dir: Path
    provider: Provider
    backend: Backend
    as_root: bool = False
    """Whether images of tasks have root as their user (`folder.AgentUser`)."""
    _workplaces: dict[int, Workplace] = field(default_factory=dict)
    _images: dict[int, TaskImage] = field(default_factory=dict)

    @cached_property
    def git(self) -> Any:
        """The chain's repository. Raises `GitError`."""
        return open_git(self.task.chain, self.mirrors)

    @cached_property
    def trees(self) -> Any:
        """The store of its trees. Raises `GitError`."""
        return open_trees(self.task.chain, self.git, self.data_dir)

    @cached_property
    def patches(self) -> Sequence[StagePatch]:
        """What each stage's reference patch touches."""
        return list(stage_patches(self.git, self.trees, self.task.chain.stages))

    def proved(self, stage: StageTask) -> ProvedTests:
        """A stage's tests. Raises `TestsUnproved`, and `ProofOutdated` where its image is another now."""
        if stage.tests is None:
            raise TestsUnproved(f"its tests are {stage.validated or 'not validated'}")
        image = self.workplace(stage).provided.image
        if stage.tests.image != image:
            raise ProofOutdated(f"its tests were proved in {stage.tests.image}, and its image is {image} now")
        return stage.tests

    def workplace(self, stage: StageTask) -> Workplace:
        """Where the stage is worked on. Raises `ImageError`, `EngineUnavailable`."""
        if stage.position not in self._workplaces:
            provided = self.provider.provide(self.task.chain.repository, self.trees, self.git, stage.stage)
            self._workplaces[stage.position] = Workplace(provided, self.trees, backend=self.backend)
        return self._workplaces[stage.position]

    def image(self, stage: StageTask) -> TaskImage:
        """The image of tasks that begin with the stage; raises as `task_image`."""
        if stage.position not in self._images:
            self._images[stage.position] = task_image(
                self.workplace(stage), self.task.chain, stage.stage, as_root=self.as_root
            )
        return self._images[stage.position]

    @cached_property
    def shared_image(self) -> ChainImage:
        """The image in which all stages of the chain are worked on: that of the first where they have one environment.
        Raises `UsageError` where it cannot hold them all or cannot bring the steps about, and as `image`."""
        stages = self.task.stages
        if len(stages) < 2:
            raise UsageError("the chain has one stage; its folder is among those of stages")
        first = self.image(stages[0])
        if first.facts.git < OLDEST_GIT:
            found, wanted = (".".join(map(str, version)) for version in (first.facts.git, OLDEST_GIT))
            raise UsageError(f"git of its image is {found}, and a merge between steps needs {wanted} or newer")
        workplaces = [self.workplace(stage) for stage in stages]
        if len({it.provided.image for it in workplaces}) == 1:
            return ChainImage.of_one(first, len(stages))
        for stage in stages:
            self.proved(stage)  # before an image is made of what is not
        images = [self.image(stage) for stage in stages]
        chain = self.task.chain
        return chain_image(self.backend.client, chain.repository, chain.id, workplaces, images)

    def with_setup(self, step: FolderStep, stage: StageTask, canary: str) -> FolderStep:
        """The step with what brings upstream's work into the agent's tree before it; the first step needs none."""
        if stage.position == 1:
            return step
        before = self.task.stages[stage.position - 2]
        said = self._said(stage, self.task.stages[0].stage, self.proved(stage))
        patches = list(self.patches[: stage.position - 1])
        script = setup_script(self.trees, before.stage, stage.stage, patches, said, canary)
        return replace(step, workdir={SCRIPT: script})

    def step(self, stage: StageTask, first: StageTask, *, name: str, instruction: str, canary: str) -> FolderStep:
        """The step of a stage in a task that begins with stage `first`. Raises `UsageError` where it cannot be one,
        and as `proved` and `image`."""
        if self.workplace(stage).runner == _OWN_TESTS:
            raise UsageError("it is a task of Harbor's already, whose tests a grader of ours cannot hold")
        tests = self.proved(stage)
        if self.trees.object_format != "sha1":
            raise UsageError("its repository names objects by SHA-256, which Harbor's tasks of ours do not know")
        said = self._said(stage, first.stage, tests)
        switches = self.shared_image.switches() if name else ("",) * len(self.task.stages)
        return FolderStep(
            name=name,
            instruction=instruction,
            tests={STAGE: said.text().encode(), OBJECTS: self._pack(stage.stage, first.stage, said)},
            solution={
                **reference_files(self.trees, stage.stage.base, stage.stage.landed),
                "solve.sh": solve_script(said.workdir, canary).encode(),
            },
            switches_to=switches[stage.position - 1],
        )

    def _facts(self, stage: StageTask, first: Stage) -> tuple[ImageFacts, str]:
        """What is to be known of the stage's environment, and where the task's image has it; empty: it is its own."""
        if stage.stage == first:
            return self.image(stage).facts, ""
        place = stage.position - 1
        return self.shared_image.stages[place], self.shared_image.archives[place]

    def _said(self, stage: StageTask, first: Stage, tests: ProvedTests) -> StageSaid:
        workplace = self.workplace(stage)
        plan, (facts, archive) = workplace.provided.plan, self._facts(stage, first)
        suite = StageSuite.of(workplace, stage.stage, self.patches, files=tests.files, baseline=tests.baseline)
        classes = ClassifiedTests(f2p=tests.classes.f2p, p2p=tests.classes.p2p, failing=tests.classes.failing)
        return StageSaid(
            base=stage.stage.base,
            landed=stage.stage.landed,
            image_tree=self.trees.tree_of(first.base),
            test_paths=texts_of(suite.test_paths),
            earlier_test_paths=texts_of(suite.earlier_test_paths),
            files=tests.files,
            classes=classes,
            earlier_f2p=tuple(sorted(self.task.earlier_f2p(stage.position) & {*classes.p2p})),
            baseline=tests.baseline,
            runner=workplace.runner,
            command=workplace.command,
            refresh=tuple(self.backend.refreshes(plan)),
            tag=plan.tag,
            workdir=plan.workdir,
            user=facts.user,
            environment={**facts.environment, **plan.environment},
            outputs=facts.outputs,
            watched=facts.watched,
            fingerprint=facts.fingerprint,
            seconds=TEST_TIMEOUT,
            switched_to=archive,
        )

    def _pack(self, stage: Stage, first: Stage, said: StageSaid) -> bytes:
        files = {*said.files, *said.test_paths, *said.earlier_test_paths}
        paths = {path for path in self.trees.entries(stage.landed) if _text(path) in files}
        commits = [stage.base, stage.landed]
        return graders_pack(self.trees, commits, [self.trees.tree_of(first.base)], paths)


def _text(path: bytes) -> str:
    return texts_of([path])[0]
