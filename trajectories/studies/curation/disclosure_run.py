"""The rollouts of the study `disclosure`: one for each chain and bundle, of the chain's first stage alone.

Each is an ordinary trajectory (`trajectories.rollouts.rollout.roll`) of the scaffold `disclosed`, that tests alone
accept and that is never sent back. `RunContext.stages` ends it after the first stage: later ones begin on the agent's
own tree and have no graph yet, and a rollout of the whole chain would pay for stages that the study does not look at.
A longer chain then ends as too short, and not as an accepted prefix, for which a model would write an overview.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from environments.backends import BACKENDS
from environments.images.provide import Provider
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import RolloutError, TaskError
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.settings import PurposeSettings, Settings
from sql.chosen import ChainChoice, find_chain, selected_ids
from sql.ledger import open_gateway
from sql.store import Store
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.nodes import Node
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.rows import read_graph
from trajectories.curation.graphs.run import GraphContext
from trajectories.curation.windows.graphs import GraphShelf
from trajectories.options import MAX_TOKENS, Gate, RolloutOptions
from trajectories.outcomes import FINAL
from trajectories.privileged import DISCLOSED
from trajectories.rollouts.forecast import Forecast, forecast
from trajectories.rollouts.rollout import RunContext, roll
from trajectories.rows import stored_trajectory
from trajectories.studies.curation.bundles import Bundle, bundle_text
from trajectories.studies.curation.disclosed import DisclosedScaffold, Disclosure
from trajectories.studies.curation.disclosure import DisclosedRollout, disclosed_rollout
from trajectories.task import read_texts


@dataclass(frozen=True)
class DisclosureChoice(ChainChoice):
    """Which rollouts a run makes; the limit counts chains that can be studied."""

    bundles: tuple[Bundle, ...] = tuple(Bundle)
    validation: bool = False
    """Whether B4 holds the validations, too."""


@dataclass(frozen=True, slots=True)
class DisclosureUnit:
    """One bundle of one chain (`prchain.core.runs.Unit`); `id` is the trajectory's."""

    chain_id: str
    told: Disclosure
    id: str

    @property
    def key(self) -> str:
        """Chain and bundle."""
        return f"{self.chain_id} {self.told.bundle}"

    @property
    def group(self) -> str:
        """The chain."""
        return self.chain_id


@dataclass(frozen=True, slots=True)
class PendingDisclosure:
    """What a run would do."""

    units: tuple[DisclosureUnit, ...] = ()
    """What is to be rolled out."""
    standing: tuple[DisclosureUnit, ...] = ()
    """What is over."""
    without_graph: int = 0
    """Chains whose first stage has no process graph that can be used."""
    unproved: int = 0
    """Chains without proved tests of all stages, or without a task."""


@dataclass(frozen=True, slots=True)
class DisclosureReport(RunResult[DisclosureUnit]):
    """What a run did."""

    @property
    def failed(self) -> tuple[UnitResult[DisclosureUnit], ...]:
        """The results that the next run has to try again."""
        return tuple(result for result in self.results if result.outcome not in FINAL)

    @property
    def done(self) -> bool:
        """Whether every rollout has a final outcome."""
        return not self.left and not self.failed


def disclosure_options(agent: PurposeSettings | None = None, **chosen: Any) -> RolloutOptions:
    """The options of the rollouts: tests accept, nothing is sent back. `agent` are the settings of the agent's purpose;
    `chosen` are other options."""
    own = agent or PurposeSettings()
    return RolloutOptions(
        scaffold=DISCLOSED,
        gate=Gate.TESTS,
        refinements=0,
        temperature=own.temperature,
        max_tokens=own.max_tokens or MAX_TOKENS,
        **chosen,
    )


class DisclosureRun:
    """Rolls out what the study needs (`prchain.core.runs.Work`)."""

    title = "rollouts"

    def __init__(
        self, context: RunContext, graphs: GraphContext, choice: DisclosureChoice, progress: Progress = SILENT
    ) -> None:
        """`context` is one of plain rollouts, with `disclosure_options`."""
        self.context = replace(context, stages=1)
        self.choice = choice
        self._shelf = GraphShelf(graphs)
        self._agent = ReactScaffold(context.options.tools, LoopSettings.of(context.options))
        self._progress = progress

    def pending(self) -> PendingDisclosure:
        """What a run would do. Raises `UsageError`, and what reading the trees of a chain raises."""
        choice, context = self.choice, self.context
        with context.store.reading() as tx:
            if choice.chain is not None:
                chain_ids = [find_chain(tx, choice.chain)]
            else:
                chain_ids = selected_ids(tx, choice.strategy, choice.repository)
            texts = read_texts(tx, context.options.interface)
        proved = [chain_id for chain_id in chain_ids if chain_id in texts and texts[chain_id].proof is not None]
        graphs = {chain_id: graph for chain_id in proved if (graph := self._shelf.first(chain_id)) is not None}
        units: list[DisclosureUnit] = []
        standing: list[DisclosureUnit] = []
        with context.store.reading() as tx:
            for chain_id, graph in list(graphs.items())[: choice.limit]:
                nodes = read_graph(tx, graph).nodes
                for bundle in choice.bundles:
                    told = Disclosure(graph, bundle, self._text(nodes, bundle))
                    _, existing = self._context(told).find(tx, chain_id, 0)
                    over = existing.stored is not None and existing.stored.final
                    (standing if over else units).append(DisclosureUnit(chain_id, told, existing.id))
        without = len(proved) - len(graphs)
        return PendingDisclosure(tuple(units), tuple(standing), without, len(chain_ids) - len(proved))

    def _text(self, nodes: Sequence[Node], bundle: Bundle) -> str:
        return bundle_text(nodes, bundle, validation=self.choice.validation)

    def _context(self, told: Disclosure) -> RunContext:
        return replace(self.context, scaffold=DisclosedScaffold(self._agent, told))

    def forecast(self, pending: PendingDisclosure) -> Forecast:
        """The estimate of what a run would do: as of plain rollouts of one stage. Makes no call."""
        context = self.context
        with context.store.reading() as tx:
            model = context.gateway.model_name(AGENT)
            return forecast(tx, context.gateway, context.options, [1] * len(pending.units), model)

    def run(self, workers: int = 2, pending: PendingDisclosure | None = None) -> DisclosureReport:
        """Roll out what is missing. Raises as `prchain.core.runs.run_units`."""
        todo = pending or self.pending()
        secrets = self.context.secrets
        result = run_units(self, todo.units, workers=workers, progress=self._progress, secrets=secrets)
        return DisclosureReport(result.results, result.left, result.stopped)

    def rollouts(self, pending: PendingDisclosure) -> list[DisclosedRollout]:
        """What is stored of the rollouts of a run, those that were over before it, too."""
        with self.context.store.reading() as tx:
            found = [
                disclosed_rollout(tx, unit.chain_id, unit.told.bundle, unit.told.graph, unit.id)
                for unit in (*pending.standing, *pending.units)
            ]
        return [rollout for rollout in found if rollout is not None]

    # ---- the work on one

    def holding(self, unit: DisclosureUnit) -> AbstractContextManager[Any]:
        """See `Work`: `roll` itself locks the trajectory."""
        return nullcontext()

    def work_on(self, unit: DisclosureUnit, tell: Tell) -> UnitResult[DisclosureUnit]:
        """See `Work`; `detail` is the trajectory's id."""
        context = replace(self._context(unit.told), tell=tell)
        try:
            name = roll(context, unit.chain_id, 0)
        except (TaskError, RolloutError) as error:
            return UnitResult(unit, error.name, str(error))
        with context.store.reading() as tx:
            row = stored_trajectory(tx, name)
        return UnitResult(unit, row.outcome, row.reason, name)

    def failed(self, unit: DisclosureUnit, outcome: str, reason: str) -> UnitResult[DisclosureUnit]:
        """See `Work`: `roll` has already stored what it could."""
        return UnitResult(unit, outcome, reason)

    def spent(self) -> Spending | None:
        """See `Work`."""
        return self.context.gateway.spending()


@contextmanager
def open_disclosure(
    settings: Settings,
    choice: DisclosureChoice,
    *,
    backend: str,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
    **chosen: Any,
) -> Iterator[DisclosureRun]:
    """Open a run. `chosen` goes to `disclosure_options`. Raises `UsageError`, `SettingsError`, `StoreError`,
    `PromptError`."""
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        gateway = resources.enter_context(
            open_gateway(settings, store, (AGENT,), budget_usd=budget_usd, run=ledger_run)
        )
        engine = BACKENDS.named(backend).of(settings)
        provider = resources.enter_context(closing(Provider(settings, images=engine.needs_image, store=store)))
        options = disclosure_options(settings.purposes.get(AGENT), backend=backend, **chosen)
        places = (settings.mirrors_dir, settings.data_dir)
        context = RunContext(
            store,
            gateway,
            provider,
            engine,
            ReactScaffold(options.tools),
            options,
            *places,
            secrets=settings.secrets,
        )
        graphs = GraphContext(
            store, gateway, provider, engine, GraphOptions(backend=backend), *places, settings.secrets
        )
        yield DisclosureRun(context, graphs, choice, progress)
