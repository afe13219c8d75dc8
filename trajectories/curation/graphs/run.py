"""Many process graphs: which stages have one, with how many workers, and their outcomes.

Each round is one transaction, and each step of an agent another. A run can be killed at any moment; the next one goes
on in the round, and repeats no call whose reply was stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic

from environments.backend import Backend
from environments.backends import BACKENDS
from environments.checkouts.carry import Carry
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.workplace import Workplace
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import CurationError, MergeUnsupported, NoNextStage, NotValidated, TestsUnproved, UsageError
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.ledger import Spending
from prchain.core.runs import LONGEST_REASON, RunResult, Tell, UnitResult, run_units
from prchain.core.secrets.scrub import redact, redact_mined, scrub_mined
from prchain.core.settings import Settings
from sql.chosen import ChainChoice, find_chain, selected_ids
from sql.ledger import open_gateway
from sql.lock import exclusive_lock
from sql.outcomes import PROVED, READY
from sql.proof_filter import ProofFilter
from sql.store import Store, Transaction
from sql.tables import ChainStage, GraphRow, StageTests, Task, TaskStage
from sql.taken_proofs import doubts, meeting, require_proof
from trajectories.curation.graphs.bench import Bench
from trajectories.curation.graphs.curators import TOOLS_HASH, LlmCurators, PrivilegedTexts, prompts
from trajectories.curation.graphs.distill import Distiller
from trajectories.curation.graphs.forecast import GraphForecast, forecast
from trajectories.curation.graphs.identity import GraphIdentity
from trajectories.curation.graphs.options import CRITIC, PROPOSER, SAMPLING, GraphOptions
from trajectories.curation.graphs.outcomes import BUILT, FINAL
from trajectories.curation.graphs.reference import target_patch
from trajectories.curation.graphs.rounds import with_notes
from trajectories.curation.graphs.rows import begin_graph, end_graph, read_outcome, read_state, write_graph, write_round
from trajectories.identity import digest
from trajectories.outcomes import ACCEPTED
from trajectories.rollouts.chain_context import ChainContext, ImageProvider, MakeWorkplace
from trajectories.rows import read_stages, stored_trajectory
from trajectories.task import RolloutTask, StageTask, read_task

COMMAND = "prchain curate graphs"


@dataclass(frozen=True)
class GraphChoice(ChainChoice):
    """Which graphs a run makes; the limit counts chains."""

    trajectory: str | None = None
    """The trajectory whose next stage has a graph, by its whole id."""
    stage: int | None = None
    """The only stage of each chain."""
    proof: ProofFilter = ProofFilter.ANY
    """What proofs have to be worth, of chains that are not named."""


@dataclass(frozen=True, slots=True)
class GraphUnit:
    """One stage on one tree (`prchain.core.runs.Unit`); `id` is the graph's."""

    chain_id: str
    position: int
    start: str
    id: str
    trajectory: str | None = None

    @property
    def key(self) -> str:
        """Chain and stage."""
        return f"{self.chain_id} stage {self.position}"

    @property
    def group(self) -> str:
        """The chain."""
        return self.chain_id


@dataclass(frozen=True, slots=True)
class PendingGraphs:
    """What a run would do."""

    units: tuple[GraphUnit, ...]
    standing: int = 0
    """Graphs that are over."""
    unproved: int = 0
    """Stages whose tests are not proved, or that have no task."""
    built: int = 0
    """How many of the graphs that are over can be used."""
    weak: int = 0
    """Chains whose proofs are worth less than was asked for."""
    doubts: tuple[str, ...] = ()
    """What is to know of the proofs of the chains that were taken (`sql.taken_proofs.doubts`)."""


@dataclass(frozen=True, slots=True)
class GraphReport(RunResult[GraphUnit]):
    """What a run did."""

    standing: int = 0
    unproved: int = 0
    built_before: int = 0

    @property
    def good(self) -> int:
        """Graphs that can be used, made by this run or an earlier one."""
        return self.built_before + sum(self.counts.get(name, 0) for name in BUILT)

    @property
    def failed(self) -> tuple[UnitResult[GraphUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome not in FINAL)

    @property
    def done(self) -> bool:
        """Whether every graph has a final outcome."""
        return not self.left and not self.failed


@dataclass(frozen=True)
class GraphContext:
    """What graphs of one run share; used by several threads. `make_workplace` is a seam for tests."""

    store: Store
    gateway: Gateway
    provider: ImageProvider
    backend: Backend
    options: GraphOptions
    mirrors: Path
    data_dir: Path
    secrets: tuple[str, ...] = ()
    make_workplace: MakeWorkplace | None = None

    def reason(self, text: str | None) -> str | None:
        """A reason as it is stored: without secrets and people's addresses, and not long."""
        return None if text is None else scrub_mined(redact(text, self.secrets))[:LONGEST_REASON]

    def chain(self, task: RolloutTask) -> ChainContext:
        """What the stages of a chain share. Raises `GitError`."""

        def make(provided: StageImage, trees: TreeStore) -> Workplace:
            labels = {"prchain.chain": task.chain.id}
            return Workplace(provided, trees, backend=self.backend, labels=labels, base=provided.base)

        return ChainContext(
            task,
            mirrors=self.mirrors,
            data_dir=self.data_dir,
            provider=self.provider,
            make_workplace=self.make_workplace or make,
        )

    def identity(self, stage: StageTask, chain_id: str, start: str) -> GraphIdentity:
        """The identity of a stage's graph on a tree."""
        assert stage.tests is not None
        return GraphIdentity(
            chain_id,
            stage.position,
            start,
            stage.stage.landed,
            digest([stage.query]),
            digest(sorted(stage.tests.classes.f2p)),
            {purpose: dict(self.gateway.resolved(purpose, usual=SAMPLING)) for purpose in (PROPOSER, CRITIC)},
            {purpose: prompt.hash for purpose, prompt in prompts().items()},
            TOOLS_HASH,
            self.options.chosen,
        )


@contextmanager
def open_run(
    settings: Settings,
    options: GraphOptions,
    choice: GraphChoice,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[GraphRun]:
    """Open a run, or a worker of one. Workers with the same `ledger_run` share its budget.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        purposes = (PROPOSER, CRITIC)
        gateway = resources.enter_context(
            open_gateway(settings, store, purposes, budget_usd=budget_usd, run=ledger_run)
        )
        backend = BACKENDS.named(options.backend).of(settings)
        provider = resources.enter_context(closing(Provider(settings, images=backend.needs_image, store=store)))
        context = GraphContext(
            store, gateway, provider, backend, options, settings.mirrors_dir, settings.data_dir, settings.secrets
        )
        yield GraphRun(context, choice, progress)


class GraphRun:
    """Makes the graphs of the chosen stages (`prchain.core.runs.Work`)."""

    title = "graphs"

    def __init__(self, context: GraphContext, choice: GraphChoice, progress: Progress = SILENT) -> None:
        self.context = context
        self.choice = choice
        self.progress = progress

    # ---- which

    def pending(self) -> PendingGraphs:
        """What a run would do. Raises `UsageError`, `CurationError`, `TaskError`, `RolloutError`, `GitError`."""
        choice = self.choice
        with self.context.store.reading() as tx:
            if choice.trajectory is not None:
                return self._found([self._next_stage(tx, choice.trajectory)], 0, tx)
            if choice.chain is not None:
                chain_ids = [find_chain(tx, choice.chain)]
                require_proof(tx, chain_ids[0], choice.proof)
                return self._found(self._stages(tx, chain_ids[0]), 0, tx)
            every = selected_ids(tx, choice.strategy, choice.repository)
            chain_ids = meeting(tx, every, choice.proof)
            units: list[GraphUnit] = []
            unproved = chains = 0
            for chain_id in chain_ids:
                if chains == choice.limit:
                    break
                if choice.stage is not None and not tx.count(ChainStage, chain_id=chain_id, position=choice.stage):
                    continue
                if not _is_ready(tx, chain_id, 1 if self.context.options.carry is Carry.AGENT else choice.stage):
                    unproved += 1
                    continue
                units += self._stages(tx, chain_id)
                chains += 1
            found = self._found(units, unproved, tx)
            told = doubts(tx, {unit.chain_id for unit in units}, choice.proof)
            return replace(found, weak=len(every) - len(chain_ids), doubts=told)

    def _found(self, units: Sequence[GraphUnit], unproved: int, tx: Transaction) -> PendingGraphs:
        outcomes = {unit: read_outcome(tx, unit.id) for unit in units}
        todo = tuple(unit for unit in units if outcomes[unit] not in FINAL)
        built = sum(outcomes[unit] in BUILT for unit in units)
        return PendingGraphs(todo, len(units) - len(todo), unproved, built)

    def _stages(self, tx: Transaction, chain_id: str) -> list[GraphUnit]:
        """The stages of a chain that need no trajectory. Raises `NotValidated`, `TestsUnproved`, `NoTask`."""
        context = self.context
        task = read_task(tx, chain_id)
        stages = self._wanted(task, chain_id)
        for stage in stages:
            _require_tests(stage, chain_id)
        trees = context.chain(task).trees
        starts = trees.trees_of([stage.stage.base for stage in stages])
        return [
            GraphUnit(chain_id, stage.position, start, context.identity(stage, chain_id, start).id)
            for stage, start in zip(stages, starts, strict=True)
        ]

    def _wanted(self, task: RolloutTask, chain_id: str) -> Sequence[StageTask]:
        """The stages of a chain that are asked for. Raises `UsageError` where there is no such stage."""
        wanted = self.choice.stage
        if self.context.options.carry is Carry.AGENT:
            if wanted not in {None, 1}:
                raise UsageError(f"the tree of stage {wanted} needs --from a trajectory, or --carry reference")
            return task.stages[:1]
        if wanted is None:
            return task.stages
        if wanted > len(task.stages):
            raise UsageError(f"chain {chain_id} has {len(task.stages)} stages, and no stage {wanted}")
        return task.stages[wanted - 1 : wanted]

    def _next_stage(self, tx: Transaction, trajectory: str) -> GraphUnit:
        """The stage after the last one that a trajectory had accepted. Raises `NoNextStage`, and as `_stages`."""
        context = self.context
        began = stored_trajectory(tx, trajectory)
        chain_id = began.chain_id
        if chain_id is None:
            raise NoNextStage(f"trajectory {trajectory} was imported: it has no chain")
        if self.choice.chain is not None and find_chain(tx, self.choice.chain) != chain_id:
            raise UsageError(f"trajectory {trajectory} is not of chain {self.choice.chain}, but of {chain_id}")
        accepted = 0
        agent_tree = None
        for row in read_stages(tx, trajectory):
            if row.outcome != ACCEPTED:
                break
            accepted, agent_tree = row.position, row.end_tree
        task = read_task(tx, chain_id)
        if not accepted:
            raise NoNextStage(
                f"trajectory {trajectory} accepted no stage; `prchain curate graphs {chain_id}` needs none"
            )
        if accepted == len(task.stages):
            raise NoNextStage(f"trajectory {trajectory} accepted every stage of its chain; there is no next one")
        stage = task.stages[accepted]
        _require_tests(stage, str(chain_id))
        carry = Carry(began.options.get("carry", Carry.AGENT))
        start = context.chain(task).state(stage.position, agent_tree, carry).tree
        unit_id = context.identity(stage, str(chain_id), start).id
        return GraphUnit(str(chain_id), stage.position, start, unit_id, trajectory)

    def forecast(self, pending: PendingGraphs) -> GraphForecast:
        """The estimate of what a run would do. Makes no call."""
        with self.context.store.reading() as tx:
            return forecast(tx, self.context.gateway, self.context.options, len(pending.units))

    # ---- the work on one

    def run(self, workers: int = 2, pending: PendingGraphs | None = None) -> GraphReport:
        """Make what is missing. Raises as `prchain.core.runs.run_units`."""
        todo = pending or self.pending()
        secrets = self.context.secrets
        result = run_units(self, todo.units, workers=workers, progress=self.progress, secrets=secrets)
        return GraphReport(result.results, result.left, result.stopped, todo.standing, todo.unproved, todo.built)

    def holding(self, unit: GraphUnit) -> AbstractContextManager[None]:
        """See `Work`."""
        return exclusive_lock(self.context.store, f"graph-{unit.id}", COMMAND)

    def work_on(self, unit: GraphUnit, tell: Tell) -> UnitResult[GraphUnit]:
        """See `Work`; `detail` is the graph's id."""
        return make_graph(self.context, unit, tell)

    def failed(self, unit: GraphUnit, outcome: str, reason: str) -> UnitResult[GraphUnit]:
        """See `Work`."""
        with self.context.store.transaction() as tx:
            end_graph(tx, unit.id, outcome, reason)
        return UnitResult(unit, outcome, reason, unit.id)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.context.gateway.spending()


def make_graph(context: GraphContext, unit: GraphUnit, tell: Tell) -> UnitResult[GraphUnit]:
    """Make one graph, or go on with it, until it has a final outcome.

    Raises `LlmError`, `SandboxError`, `ImageError`, `StateError`, `GitError`, `StoreError`.
    """
    store, options = context.store, context.options
    with store.reading() as tx:
        for outcome, reason in tx.rows(GraphRow, "outcome", "reason", id=unit.id):
            if outcome in FINAL:  # another run has ended it since this one chose it
                return UnitResult(unit, outcome, reason, unit.id)
        task = read_task(tx, unit.chain_id)
    stage = task.stages[unit.position - 1]
    _require_tests(stage, unit.chain_id)
    chain = context.chain(task)
    identity = context.identity(stage, unit.chain_id, unit.start)
    row = {
        "id": unit.id,
        "chain_id": unit.chain_id,
        "position": unit.position,
        "trajectory_id": unit.trajectory,
        "start_tree": unit.start,
        "target_tree": "",
        "models": identity.models,
        "options": asdict(options),
        "decided_by": identity.row(),
    }
    try:
        target = target_patch(chain.git, chain.trees, stage.stage, unit.start, stage.interface)
    except (CurationError, MergeUnsupported) as error:
        with store.transaction() as tx:
            begin_graph(tx, row)
            end_graph(tx, unit.id, error.name, context.reason(str(error)))
        return UnitResult(unit, error.name, context.reason(str(error)), unit.id)
    with store.transaction() as tx:
        begin_graph(tx, {**row, "target_tree": target.target})
        state = read_state(tx, unit.id).state
    workplace = chain.workplace(stage)
    secrets = context.secrets
    notes: list[str] = []

    with Bench(workplace, unit.start, stage.query, options) as bench:
        workdir = bench.replayer.sandbox.config.workdir
        texts = PrivilegedTexts(
            task.chain.repository,
            stage.query,
            target.source_text.decode("utf-8", "replace"),
            "\n".join(stage.tests.classes.f2p if stage.tests else ()),
            target.test_text.decode("utf-8", "replace"),
        )
        distiller = Distiller(chain.trees, target, stage.query, bench, options, (workdir,), tell)
        curators = LlmCurators(
            context.gateway, store, unit.id, texts, bench, options, workdir=workdir, note=notes.append
        )
        while True:
            start_time = monotonic()
            state = with_notes(distiller.round(state, curators), notes, lambda words: redact_mined(words, secrets))
            notes.clear()
            if state.ending is not None:
                break
            with store.transaction() as tx:
                write_round(tx, unit.id, state, monotonic() - start_time)
        graph = distiller.graph(state)
        outcome, reason = distiller.outcome(state, graph)
    reason = context.reason("; ".join(filter(None, (reason, *state.notes)))) or None
    # How the rounds ended is not stored with them: after a kill between the two there would be one more.
    with store.transaction() as tx:
        write_round(tx, unit.id, state, monotonic() - start_time)
        write_graph(tx, unit.id, state, graph)
        end_graph(tx, unit.id, outcome, reason)
    return UnitResult(unit, outcome, reason, unit.id)


def _require_tests(stage: StageTask, chain_id: str) -> None:
    """Check that a stage's tests were proved. Raises `NotValidated`, `TestsUnproved`."""
    if stage.validated is None:
        raise NotValidated(
            f"a process graph needs a proved stage, and chain {chain_id} was not validated; run "
            f"`prchain environments validate --chain {chain_id}` first"
        )
    if stage.tests is None:
        raise TestsUnproved(
            f"a process graph needs a proved stage, and the tests of stage {stage.position} of chain {chain_id} are "
            f"{stage.validated}"
        )


def _is_ready(tx: Transaction, chain_id: str, position: int | None) -> bool:
    """Whether a chain has a task and proved tests, of one stage or of all."""
    if not any(outcome == READY for (outcome,) in tx.rows(Task, "outcome", chain_id=chain_id)):
        return False
    place = {} if position is None else {"position": position}
    proofs = [outcome for (outcome,) in tx.rows(StageTests, "outcome", chain_id=chain_id, **place)]
    stages = tx.count(TaskStage, chain_id=chain_id, **place)
    return len(proofs) == stages and all(outcome == PROVED for outcome in proofs)
