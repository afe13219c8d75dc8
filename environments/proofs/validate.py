"""Proving a chain: the reference of every stage is replayed in order, and its tests are run before and after.

Every test run is stored when it ends, under a key of everything that decides it; the results of the stages and of the
chain are written together when the chain ends. A command that was killed goes on from the stored runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from environments.backend import Backend
from environments.backends import BACKENDS, DEFAULT
from environments.checkouts.state import next_state
from environments.held_tests import held_tests
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.proofs.foresight import foreseen_end, whole_patches
from environments.proofs.proof import (
    NOT_REACHED,
    NOTHING_COLLECTED,
    REFERENCE_FAILS,
    STATE_DIFFERS,
    TESTS_UNUSABLE,
    UNPROVED,
    EarlierTests,
    Proof,
    prove,
    unusable,
)
from environments.proofs.proof_rows import (
    ChainProof,
    StageProof,
    StoredRuns,
    read_proof,
    read_stages,
    require_chain,
    write_proof,
    write_stage_image,
    write_strength,
)
from environments.proofs.published import published_lists
from environments.proofs.reference_runs import ReferenceRuns
from environments.proofs.stage_images import stage_image
from environments.proofs.strength_runs import StrengthMeter
from environments.sandboxes.engine import engine_failures
from environments.sandboxes.sandbox import ResourceLimits
from environments.stages import ChainStages, Stage, StagePatch, open_git, open_trees, read_chain, stage_patches
from environments.suites.chosen_files import chosen_files
from environments.suites.plaincommands import plain_command, plain_files
from environments.suites.runners import RUNNERS
from environments.workplace import TEST_TIMEOUT, StageSuite, Workplace
from prchain.core.code.inline_tests import InlineTest
from prchain.core.console.terminal import counted
from prchain.core.errors import BuildFailed, IncompleteRepository, NoRecipe, StateError
from prchain.core.git.output import path_text
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.runs import Tell
from prchain.core.settings import Settings
from sql.outcomes import PROVED
from sql.store import Store
from sql.strength import Strength

RUNS = 3
"""Runs of a stage's tests on each side."""

MEASURED = frozenset({PROVED, UNPROVED})
"""Outcomes of chains whose proofs are worth something; of the others nobody uses a stage."""

_OF_THE_IMAGE = frozenset({TESTS_UNUSABLE, NOTHING_COLLECTED, REFERENCE_FAILS})
"""Outcomes of a stage that an image may be at fault for, which lacks what tests need: these are repaired."""

_LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """How chains are proved."""

    backend: str = DEFAULT
    """A name of `environments.backends`."""
    runs: int = RUNS
    test_timeout: float = TEST_TIMEOUT
    """Seconds for one run of a stage's test files."""
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    stage_images: bool = False
    """Commit for each proved stage an image that holds its checkout."""
    strength: bool = False
    """Measure what the proof of each proved stage is worth."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """What all stages of a chain share while it is proved."""

    chain: ChainStages
    git: GitRepository
    trees: TreeStore
    patches: tuple[StagePatch, ...]
    backend: Backend


class ChainProver:
    """Proves chains; safe for threads."""

    def __init__(self, store: Store, provider: Provider, settings: Settings, options: ValidateOptions) -> None:
        self._store = store
        self.provider = provider
        self.options = options
        self.backend = BACKENDS.named(options.backend).of(settings)
        self._settings = settings

    def prove(self, chain_id: str, tell: Tell = lambda words: None, *, anew: bool = False) -> ChainProof:
        """Prove a chain and store what was found. Where the tests are those of the stored proof, it keeps its strength,
        unless that is to be measured `anew`.

        Raises `ChainGone`, and errors that are not the chain's fault, after which only the finished runs are stored:
        `SandboxError` and `ImageError` for the engine, `GitError` for a repository that is not there, `LlmError`
        of a repair, `RecipeError`, `StoreError`.
        """
        start = time.monotonic()
        with self._store.reading() as tx:
            chain = read_chain(tx, chain_id)
        git = open_git(chain, self._settings.mirrors_dir)
        trees = open_trees(chain, git, self._settings.data_dir)
        try:
            patches = whole_patches(git, trees, chain.stages)
        except IncompleteRepository as error:
            stages = tuple(StageProof(stage.position, NOT_REACHED) for stage in chain.stages)
            proof = ChainProof(chain_id, error.name, str(error), stages)
        else:
            with self.backend.connected() as backend:
                proof = self._stages(_Chain(chain, git, trees, patches, backend), tell)
        with self._store.reading() as tx:
            known = {stage.position: stage for stage in read_stages(tx, chain_id)}
        stages = tuple(_with_strength_of(known.get(stage.position), stage) for stage in proof.stages)
        proof = replace(proof, stages=stages, seconds=time.monotonic() - start)
        with self._store.transaction() as tx:
            write_proof(tx, proof, self.options.backend)
            if chain.imported and proof.outcome == PROVED:
                first = proof.stages[0]  # a publisher lists tests for one stage, or the same for all
                proof = replace(proof, published=published_lists(tx, chain_id, first.runner, first.classes))
        if self.options.strength and proof.outcome in MEASURED:
            return self.measure(chain_id, tell, anew=anew)
        return proof

    def foreseen(self, chain_id: str) -> str | None:
        """What is known of a chain's end before anything is built for it, in words; None where an image is needed.

        Raises as `prove` what is not the chain's fault.
        """
        with self._store.reading() as tx:
            chain = read_chain(tx, chain_id)
        git = open_git(chain, self._settings.mirrors_dir)
        trees = open_trees(chain, git, self._settings.data_dir)
        return foreseen_end(chain, git, trees, lambda stage: self.provider.runner(chain.repository, trees, stage))

    def measure(self, chain_id: str, tell: Tell = lambda words: None, *, anew: bool = False) -> ChainProof:
        """Measure what the stored proof of a chain is worth, and store it, stage by stage: of those that are proved,
        and of which nobody knows it, or of all of them `anew`. A stage whose sandbox was lost stays unmeasured.

        Raises as `prove`, and `NoRecipe`, `BuildFailed` and `StateError` where a stage has no environment any more.
        """
        with self._store.reading() as tx:
            chain, proof = read_chain(tx, chain_id), read_proof(tx, chain_id)
        wanted = [it for it in proof.stages if it.outcome == PROVED and (anew or it.strength is None)]
        if not wanted:
            return proof
        git = open_git(chain, self._settings.mirrors_dir)
        trees = open_trees(chain, git, self._settings.data_dir)
        patches = tuple(stage_patches(git, trees, chain.stages))
        with self.backend.connected() as backend:
            work = _Chain(chain, git, trees, patches, backend)
            for found in wanted:
                strength = self._strength(work, found, _at_stage(chain.stages[found.position - 1], tell), anew)
                if strength is None:
                    continue
                with self._store.transaction() as tx:
                    require_chain(tx, chain_id)
                    write_strength(tx, chain_id, found.position, strength)
        with self._store.reading() as tx:
            return read_proof(tx, chain_id)

    def _strength(self, work: _Chain, found: StageProof, tell: Tell, anew: bool) -> Strength | None:
        stage = work.chain.stages[found.position - 1]
        tell("image")
        provided = self.provider.provide(work.chain.repository, work.trees, work.git, stage)
        suite = StageSuite.of(
            self._workplace(work, provided), stage, work.patches, files=found.files, baseline=found.baseline
        )
        stored = StoredRuns(self._store, work.chain.id, stage.position)
        decides = self._decides(work, provided.image)
        patch = work.patches[stage.position - 1]
        return StrengthMeter(stored, suite, stage, patch, found, work.git, decides, renew=anew).measure(tell)

    def _decides(self, work: _Chain, image: str | None) -> tuple[str, ...]:
        """What decides a test run beside the tree and the command."""
        return (_image_id(work, image), self.options.backend, repr(self.options.limits))

    def _stages(self, work: _Chain, tell: Tell) -> ChainProof:
        """Every stage in order, up to the first failure; an unproved stage is no failure."""
        done: list[StageProof] = []
        failed: StageProof | None = None
        for stage in work.chain.stages:
            if failed is not None:
                done.append(StageProof(stage.position, NOT_REACHED))
                continue
            start = time.monotonic()
            proof = self._stage(work, stage, done, _at_stage(stage, tell))
            done.append(replace(proof, seconds=time.monotonic() - start))
            failed = None if proof.outcome in {PROVED, UNPROVED} else proof
        unproved = next((proof for proof in done if proof.outcome == UNPROVED), None)
        decisive = failed or unproved
        if decisive is None:
            return ChainProof(work.chain.id, PROVED, None, tuple(done))
        return ChainProof(work.chain.id, decisive.outcome, f"stage {decisive.position}: {decisive.reason}", tuple(done))

    def _stage(self, work: _Chain, stage: Stage, before: Sequence[StageProof], tell: Tell) -> StageProof:
        """Prove one stage: here the stage's own failures become its outcome."""
        found = StageProof(stage.position, PROVED)
        try:
            if differs := _state_differs(work, stage):
                return replace(found, outcome=STATE_DIFFERS, reason=differs)
            runner = self.provider.runner(work.chain.repository, work.trees, stage)
            if not chosen_files(runner, work.trees, stage, work.patches).files:
                return replace(found, outcome=UNPROVED, runner=runner, reason="there is no test file to run")
            for own in (False, True):
                found = StageProof(stage.position, PROVED)
                tell("image of its own" if own else "image")
                provided = self.provider.provide(work.chain.repository, work.trees, work.git, stage, own=own)
                found, suite = self._in_image(work, stage, found, provided)
                found = self._tested(work, stage, before, suite, found, tell)
                if found.outcome in MEASURED or not provided.neighbour:  # else it may be the image's fault
                    break
            if found.outcome in _OF_THE_IMAGE and self.provider.repairs:
                found, suite = self._repaired(work, stage, before, (found, suite), tell)
            if self.options.stage_images and found.outcome == PROVED and work.backend.needs_image:
                tell("image of its checkout")
                found = replace(found, stage_image=self._checkout(work, stage, suite.workplace))
        except BuildFailed as error:
            image = error.image or found.image
            return replace(found, outcome=error.name, image=image, reason=_reason(error.words))
        except (NoRecipe, IncompleteRepository, StateError) as error:
            return replace(found, outcome=error.name, reason=_reason(str(error)))
        return found

    def _repaired(
        self,
        work: _Chain,
        stage: Stage,
        before: Sequence[StageProof],
        ended: tuple[StageProof, StageSuite],
        tell: Tell,
    ) -> tuple[StageProof, StageSuite]:
        """What a stage's tests say in the image of a recipe that a model has mended; as it ended, where none could."""
        last = ended

        def proves(provided: StageImage) -> None:
            nonlocal last
            found, suite = self._in_image(work, stage, StageProof(stage.position, PROVED), provided)
            found = self._tested(work, stage, before, suite, found, tell)
            last = (found, suite)
            if found.outcome in _OF_THE_IMAGE:
                raise _failure_of_tests(found, suite)

        tell("repair")
        try:
            failure = _failure_of_tests(*ended)
            self.provider.repaired(work.chain.repository, work.trees, work.git, stage, failure, proves)
        except BuildFailed:
            return ended
        return last

    def _in_image(
        self, work: _Chain, stage: Stage, found: StageProof, provided: StageImage
    ) -> tuple[StageProof, StageSuite]:
        """What is known of a stage in an image before its tests run, and these."""
        plan, workplace = provided.plan, self._workplace(work, provided)
        suite = StageSuite.of(workplace, stage, work.patches)
        found = replace(found, image=provided.image, recipe=plan.recipe.name, runner=plan.runner)
        found = replace(found, publisher=provided.publisher, neighbour=provided.neighbour)
        return replace(found, files=suite.files, command=_command(workplace, suite.files)), suite

    def _checkout(self, work: _Chain, stage: Stage, workplace: Workplace) -> str:
        """The image of a stage's checkout, with its row, which outlives the chain's: `prune` needs it."""
        start = time.monotonic()
        name = stage_image(workplace, work.chain, stage)
        recipe = workplace.provided.plan.recipe.name
        with self._store.transaction() as tx:
            write_stage_image(tx, name, work.chain.repository, recipe, time.monotonic() - start)
        return name

    def _workplace(self, work: _Chain, provided: StageImage) -> Workplace:
        options = self.options
        return Workplace(
            provided,
            work.trees,
            backend=work.backend,
            limits=options.limits,
            test_timeout=options.test_timeout,
        )

    def _tested(
        self, work: _Chain, stage: Stage, before: Sequence[StageProof], suite: StageSuite, found: StageProof, tell: Tell
    ) -> StageProof:
        options = self.options
        stored = StoredRuns(self._store, work.chain.id, stage.position)
        runs = ReferenceRuns(stored, suite, stage, options.runs, self._decides(work, found.image))
        after, baseline = runs.after(tell)
        found = replace(found, baseline=baseline)
        if not after[0].usable:
            said = _reason(unusable("after", after[0]))
            return replace(found, outcome=TESTS_UNUSABLE, reason=said, tail=after[0].tail)
        earlier = [
            EarlierTests(proof.classes.f2p, proof.files, _changed(work.trees, early.landed, stage.landed))
            for proof, early in zip(before, work.chain.stages, strict=False)
            if proof.classes.f2p
        ]
        before_runs, baseline = runs.before(baseline, tell)
        found = replace(found, baseline=baseline)
        proof: Proof = prove(
            before_runs,
            after,
            runner=suite.workplace.runner,
            files=suite.files,
            own_files=suite.own_files,
            earlier=earlier,
            inline=frozenset[InlineTest]().union(*(patch.inline_tests for patch in work.patches[: stage.position])),
        )
        if proof.outcome == PROVED and after[0].usable:
            held = held_tests(replace(suite, baseline=baseline), proof.classes.f2p, after[0].statuses, tell)
            found = replace(found, baseline=replace(baseline, held=held))
        reason = _reason(proof.reason) if proof.reason else None
        found = replace(found, tail=after[-1].tail)
        return replace(found, outcome=proof.outcome, reason=reason, classes=proof.classes, removed=proof.removed)


def _failure_of_tests(found: StageProof, suite: StageSuite) -> BuildFailed:
    """A stage's tests that fail in an image, as a build that failed; with what was noted when that was built."""
    reason = found.reason or found.outcome
    notes = [f"noted when the image was built: {note}" for note in suite.workplace.provided.notes]
    return BuildFailed(f"the tests: {reason}", step="tests", lines=(*notes, reason), log=found.tail)


def _with_strength_of(known: StageProof | None, stage: StageProof) -> StageProof:
    """A stage with the strength that is stored of it, where it was proved by the same tests."""
    same = known is not None and (known.classes, known.files) == (stage.classes, stage.files)
    return replace(stage, strength=known.strength) if known is not None and same else stage


def _state_differs(work: _Chain, stage: Stage) -> str | None:
    """Where S_t with the reference carried on differs from B_t; None where it does not."""
    if stage.position == 1:
        return None
    previous = work.chain.stages[stage.position - 2]
    tests = {path for patch in work.patches[: stage.position - 1] for path in patch.test_paths}
    state = next_state(
        work.trees, landed_before=previous.landed, agent_tree=previous.landed, base=stage.base, test_paths=tests
    )
    changes = work.trees.diff(stage.base, state.tree)
    return f"{counted(len(changes), 'path')}, e.g. {path_text(changes[0].path)}" if changes else None


def _at_stage(stage: Stage, tell: Tell) -> Tell:
    return lambda words: tell(f"stage {stage.position}: {words}")


def _command(workplace: Workplace, files: Sequence[str]) -> str:
    """One line that runs the files and prints how each test ended: the recipe's own command where it has one."""
    plan = workplace.provided.plan
    runner = RUNNERS[plan.runner]
    # Of a command that starts our reporter, what it says beside that.
    test = plan.test.replace(runner.template.partition(" ")[2], runner.plain.partition(" ")[2])
    if test and "{tools}" not in test and "\n" not in test:
        return test.replace("{files}", plain_files(plan.runner, files))
    return plain_command(plan.runner, files)


def _image_id(work: _Chain, image: str | None) -> str:
    if image is None:
        return ""
    with engine_failures():
        return str(work.backend.client.images.get(image).id)


def _changed(trees: TreeStore, old: str, new: str) -> frozenset[str]:
    return frozenset(path_text(change.path) for change in trees.diff(old, new))


def _reason(*lines: str) -> str:
    return " | ".join(dict.fromkeys(lines))[:_LONGEST_REASON]
