"""Many rollouts: which samples of which chains, with how many workers, and their outcomes.

The work on one is `trajectories.rollouts.rollout.roll`. Several runs may share one database: one of them works on
a trajectory, and the others skip it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select

from environments.backends import BACKENDS
from environments.images.provide import Provider
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import RolloutError, TaskError, UsageError
from prchain.core.llm.gateway import CostEstimate
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import Settings
from sql.chosen import ChainChoice, find_chain, selected_ids
from sql.ledger import open_gateway
from sql.proof_filter import ProofFilter
from sql.store import Store
from sql.tables import Chain
from sql.taken_proofs import doubts, meeting, require_proof
from trajectories.agents.observers.setup import make_observers
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.identity import Parent
from trajectories.options import RolloutOptions
from trajectories.outcomes import FINAL, INFRASTRUCTURE, KEPT, MEASURED
from trajectories.programs.choice import make_scaffold
from trajectories.rollouts.forecast import Forecast, forecast
from trajectories.rollouts.rollout import RunContext, roll
from trajectories.rollouts.standing import StandingTrajectories, find, read_rows
from trajectories.rows import stored_trajectory
from trajectories.task import read_texts


@dataclass(frozen=True)
class RolloutChoice(ChainChoice):
    """Which rollouts a run makes; the limit counts chains that have a task."""

    samples: int = 1
    parent: Parent | None = None
    """Where to branch off; of one chain."""
    reuse: bool = False
    """Accept finished samples under other prompts or texts, and do not roll them out anew."""
    units: tuple[RolloutUnit, ...] | None = None
    """These rollouts and no others, whatever the other fields say; None: by the other fields."""
    proof: ProofFilter = ProofFilter.ANY
    """What proofs have to be worth; it chooses chains, and is no part of what a rollout is."""


@dataclass(frozen=True, slots=True)
class RolloutUnit:
    """One sample of one chain (`prchain.core.runs.Unit`)."""

    chain_id: str
    sample: int
    parent: Parent | None = None
    shared: int = 0
    """So many stages are over before it begins, as far as known: a forecast leaves them out."""

    @property
    def key(self) -> str:
        """Chain, sample and parent."""
        begun = f" from {self.parent[0]}:{self.parent[1]}" if self.parent else ""
        return f"{self.chain_id} sample {self.sample}{begun}"

    @property
    def group(self) -> str:
        """The chain: all its samples can fail for the same reason, such as a missing image."""
        return self.chain_id


@dataclass(frozen=True, slots=True)
class OutdatedSamples:
    """Stored samples whose prompts, tools, texts or code have changed, so that they are rolled out anew."""

    samples: int = 0
    half_done: int = 0
    """How many of these are not over: they cannot be reused, and are given up."""
    fields: tuple[str, ...] = ()
    """The fields that changed (`trajectories.identity.INPUTS`)."""
    estimate: CostEstimate = field(default_factory=CostEstimate)
    """The estimated cost of rolling them out anew."""


@dataclass(frozen=True, slots=True)
class PendingRollouts:
    """What a run would do."""

    units: tuple[RolloutUnit, ...]
    """The samples of the best chain come first."""
    standing: int
    """Samples that are over."""
    without_task: int
    """Number of chosen chains without a ready task."""
    outdated: tuple[RolloutUnit, ...] = ()
    """The units that are stored under other texts."""
    half_done: int = 0
    """How many of the outdated ones are not over."""
    fields: tuple[str, ...] = ()
    """The fields in which these differ."""
    reused: int = 0
    """How many of those that are over are reused though they have other texts."""
    kept: int = 0
    """How many of those that are over are kept."""
    measured: int = 0
    """How many of those that are over say how the agent did."""
    without_proof: tuple[RolloutUnit, ...] = ()
    """The units that end before anything is asked: the gate needs tests, and those of their chains are not proved."""
    weak: int = 0
    """Number of chains whose proofs are worth less than was asked for."""
    doubts: tuple[str, ...] = ()
    """What is to know of the proofs of the chains that were taken (`sql.taken_proofs.doubts`)."""


@dataclass(frozen=True, slots=True)
class RolloutReport(RunResult[RolloutUnit]):
    """The result of a run; `detail` of each unit is the trajectory's id, None where none began."""

    standing: int = 0
    without_task: int = 0
    reused: int = 0
    """How many of those that were over before have other prompts or texts."""
    kept_before: int = 0
    """How many of those that were over before are kept."""

    @property
    def good(self) -> int:
        """Rollouts that are kept, of this run or of an earlier one."""
        return self.kept_before + sum(self.counts.get(name, 0) for name in KEPT)

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome to number of trajectories of this run; without failures of machines."""
        return {name: count for name, count in self.counts.items() if name not in INFRASTRUCTURE}

    @property
    def infrastructure(self) -> dict[str, int]:
        """Name of the failure of a machine to number of trajectories; the next run resumes them."""
        return {name: count for name, count in self.counts.items() if name in INFRASTRUCTURE}

    @property
    def failed(self) -> tuple[UnitResult[RolloutUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome not in FINAL)

    @property
    def done(self) -> bool:
        """Whether every sample has a final outcome."""
        return not self.left and not self.failed


@contextmanager
def open_run(
    settings: Settings,
    options: RolloutOptions,
    choice: RolloutChoice,
    *,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
) -> Iterator[RolloutRun]:
    """Open a run, or a worker of a run. Workers with the same `ledger_run` share its budget.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        gateway = resources.enter_context(open_gateway(settings, store, budget_usd=budget_usd, run=ledger_run))
        backend = BACKENDS.named(options.backend).of(settings)
        provider = resources.enter_context(closing(Provider(settings, images=backend.needs_image, store=store)))
        context = RunContext(
            store,
            gateway,
            provider,
            backend,
            make_scaffold(options, settings, backend),
            options,
            settings.mirrors_dir,
            settings.data_dir,
            observers=make_observers(options.observers),
            secrets=settings.secrets,
        )
        gateway.check(*context.purposes)
        if options.limits_cost:
            gateway.require_price(AGENT, "a limit in USD")
        yield RolloutRun(context, choice, progress)


class RolloutRun:
    """Rolls out the samples of the chosen chains (`prchain.core.runs.Work`)."""

    title = "rollouts"

    def __init__(
        self,
        context: RunContext,
        choice: RolloutChoice,
        progress: Progress = SILENT,
    ) -> None:
        self.context = context
        self.choice = choice
        self.progress = progress

    def pending(self) -> PendingRollouts:
        """What a run would do. Raises `UsageError`."""
        choice, context = self.choice, self.context
        with context.store.reading() as tx:
            if choice.units is not None:
                chain_ids = list(dict.fromkeys(unit.chain_id for unit in choice.units))
            elif choice.chain is not None:
                chain_ids = [find_chain(tx, choice.chain)]
            else:
                chain_ids = selected_ids(tx, choice.strategy, choice.repository)
            if choice.parent is not None and len(chain_ids) != 1:
                raise UsageError("a branch is of one chain; name it with --chain")
            texts = read_texts(tx, context.options.interface)
            ready = [chain_id for chain_id in chain_ids if chain_id in texts]
            if choice.chain is not None and ready:
                require_proof(tx, ready[0], choice.proof)
            strong = meeting(tx, ready, choice.proof)
            chains = strong[: choice.limit]
            rows = read_rows(tx, {chain: texts[chain] for chain in chains})
            proof_doubts = doubts(tx, chains, choice.proof)
        wanted = choice.units or (
            RolloutUnit(chain_id, sample, choice.parent) for chain_id in chains for sample in range(choice.samples)
        )
        units: list[RolloutUnit] = []
        outdated: list[RolloutUnit] = []
        fields: set[str] = set()
        standing = half_done = reused = 0
        over: list[str] = []
        for unit in wanted:
            if unit.chain_id not in texts:
                continue
            identity = context.identity(texts[unit.chain_id], unit.chain_id, unit.sample, unit.parent)
            existing: StandingTrajectories = find(identity, rows.get(unit.chain_id, ()))
            if existing.stored is not None and existing.stored.final:
                standing += 1
                over.append(existing.stored.outcome)
                continue
            if existing.standing is not None and choice.reuse:
                standing, reused = standing + 1, reused + 1
                over.append(existing.standing.stored.outcome)
                continue
            units.append(unit)
            if existing.with_messages and not existing.has_messages:
                outdated.append(unit)
                half_done += existing.standing is None
                fields |= {*existing.with_messages[0].fields}
        without_task = sum(chain_id not in texts for chain_id in chain_ids)
        changed_fields = tuple(sorted(fields))
        return PendingRollouts(
            tuple(units),
            standing,
            without_task,
            tuple(outdated),
            half_done,
            changed_fields,
            reused,
            kept=sum(outcome in KEPT for outcome in over),
            measured=sum(outcome in MEASURED for outcome in over),
            without_proof=tuple(
                unit for unit in units if context.options.needs_tests and texts[unit.chain_id].proof is None
            ),
            weak=len(ready) - len(strong),
            doubts=proof_doubts,
        )

    def forecast(self, units: tuple[RolloutUnit, ...] | None = None) -> Forecast:
        """The estimate for all pending units, or for these. Makes no call."""
        todo = self.pending().units if units is None else units
        context = self.context
        with context.store.reading() as tx:
            lengths = {row[0]: row[1] for row in tx.connection.execute(select(Chain.id, Chain.length))}
            model = context.gateway.model_name(AGENT)
            sizes = [lengths[unit.chain_id] for unit in todo]
            shared = [unit.shared for unit in todo]
            return forecast(tx, context.gateway, context.options, sizes, model, context.observers, shared=shared)

    def anew(self, pending: PendingRollouts) -> OutdatedSamples:
        """The samples that are rolled out anew because prompts, tools, texts or code have changed."""
        if not pending.outdated:
            return OutdatedSamples()
        estimate = self.forecast(pending.outdated).estimate
        return OutdatedSamples(len(pending.outdated), pending.half_done, pending.fields, estimate)

    def run(self, workers: int = 2, pending: PendingRollouts | None = None) -> RolloutReport:
        """Roll out what is missing. Raises as `prchain.core.runs.run_units`."""
        todo = pending or self.pending()
        secrets = self.context.secrets
        result = run_units(self, todo.units, workers=workers, progress=self.progress, secrets=secrets)
        before = (todo.standing, todo.without_task, todo.reused, todo.kept)
        return RolloutReport(result.results, result.left, result.stopped, *before)

    # ---- the work on one sample

    def holding(self, unit: RolloutUnit) -> AbstractContextManager[Any]:
        """See `Work`: `roll` itself locks the trajectory."""
        return nullcontext()

    def work_on(self, unit: RolloutUnit, tell: Tell) -> UnitResult[RolloutUnit]:
        """See `Work`."""
        context = replace(self.context, tell=tell)
        try:
            name = roll(context, unit.chain_id, unit.sample, parent=unit.parent)
        except (TaskError, RolloutError) as error:
            return UnitResult(unit, error.name, str(error))
        with context.store.reading() as tx:
            row = stored_trajectory(tx, name)
        return UnitResult(unit, row.outcome, row.reason, name)

    def failed(self, unit: RolloutUnit, outcome: str, reason: str) -> UnitResult[RolloutUnit]:
        """See `Work`: `roll` has already stored what it could."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.context.gateway.spending()
