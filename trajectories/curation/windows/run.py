"""Many curated trajectories: which chains have one, with how many workers, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select

from environments.backends import BACKENDS
from environments.images.provide import Provider
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import GraphUnusable, UsageError
from prchain.core.llm.gateway import Gateway
from prchain.core.settings import Settings
from sql.chosen import find_chain
from sql.ledger import open_gateway
from sql.store import Store
from sql.tables import Chain
from trajectories.agents.observers.setup import make_observers
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.curation.graphs.options import CRITIC, PROPOSER, GraphOptions
from trajectories.curation.graphs.rows import find_graph
from trajectories.curation.graphs.run import GraphContext
from trajectories.curation.windows.forecast import CurationForecast, forecast
from trajectories.curation.windows.graphs import GraphShelf
from trajectories.curation.windows.options import AGENT_SAMPLING, READER_SAMPLING, READERS, WindowOptions
from trajectories.curation.windows.scaffold import CuratedScaffold
from trajectories.options import Gate, RolloutOptions
from trajectories.privileged import CURATED
from trajectories.rollouts.rollout import RunContext
from trajectories.rollouts.run import PendingRollouts, RolloutChoice, RolloutRun, RolloutUnit
from trajectories.task import read_task


@dataclass(frozen=True)
class CurationChoice(RolloutChoice):
    """Which curated trajectories a run makes."""

    graph: str | None = None
    """The graph of the first stage, by the beginning of its id; None: found by chain and tree."""


@dataclass(frozen=True, slots=True)
class PendingCuration:
    """What a run would do."""

    rollouts: PendingRollouts
    without_graph: int = 0
    """Chains whose first stage has no process graph that can be used."""


def rollout_options(gateway: Gateway, **chosen: Any) -> RolloutOptions:
    """The options of a curated rollout: the blinded agent as the paper samples it, unless the settings say otherwise;
    stages are admitted by tests alone and never sent back (P2T, appendix H). `chosen` are other options."""
    sampling = gateway.resolved(AGENT, usual=AGENT_SAMPLING)
    return RolloutOptions(
        scaffold=CURATED,
        gate=Gate.TESTS,
        refinements=0,
        temperature=sampling.get("temperature"),
        max_tokens=sampling["max_tokens"],
        **chosen,
    )


def make_context(context: RunContext, shelf: GraphShelf, options: WindowOptions) -> RunContext:
    """The context of curated rollouts, from one of plain rollouts with `rollout_options`."""
    sampling = context.gateway.resolved(AGENT, usual=AGENT_SAMPLING)
    settings = replace(LoopSettings.of(context.options), top_p=sampling.get("top_p"))

    def decided(chain_id: str) -> Mapping[str, Any]:
        top_p = {} if settings.top_p is None else {"top_p": settings.top_p}
        return {"options": options.chosen, **top_p, **shelf.decided_by(chain_id)}

    agent = ReactScaffold(context.options.tools, settings)
    scaffold = CuratedScaffold(context.store, agent, options, shelf.graph_of, decided)
    readers = {purpose: {name: float(value) for name, value in READER_SAMPLING.items()} for purpose in READERS}
    return replace(context, scaffold=scaffold, readers=readers)


class CuratedRun(RolloutRun):
    """Makes the curated trajectories of the chosen chains (`prchain.core.runs.Work`)."""

    title = "curated trajectories"

    def __init__(
        self,
        context: RunContext,
        choice: CurationChoice,
        graphs: GraphContext,
        options: WindowOptions,
        progress: Progress = SILENT,
    ) -> None:
        graph = None
        if choice.graph is not None:
            with context.store.reading() as tx:
                graph = find_graph(tx, choice.graph)
        self.graphs = graphs
        self.options = options
        self._shelf = GraphShelf(graphs, graph)
        self._graph = choice.graph
        super().__init__(make_context(context, self._shelf, options), choice, progress)

    def curation(self) -> PendingCuration:
        """What a run would do. Raises `UsageError`, `GraphUnusable` and `RolloutError` where one chain was named and
        cannot be curated."""
        named = self.choice.chain
        with self.context.store.reading() as tx:
            if named is not None:
                chain_id = find_chain(tx, named)
                read_task(tx, chain_id).require_tests()
            elif self._graph is not None:
                raise UsageError("a graph is of one chain; name the chain, too")
        if named is not None and self._shelf.first(chain_id) is None:
            raise GraphUnusable(
                f"stage 1 of chain {chain_id} has no process graph that can be used; run `prchain curate graphs "
                f"{chain_id}` first"
            )
        pending = self.pending()
        units = tuple(unit for unit in pending.units if self._shelf.first(unit.chain_id) is not None)
        without = {unit.chain_id for unit in pending.units} - {unit.chain_id for unit in units}
        outdated = tuple(unit for unit in pending.outdated if unit in units)
        return PendingCuration(replace(pending, units=units, outdated=outdated), len(without))

    def curation_forecast(self, units: tuple[RolloutUnit, ...]) -> CurationForecast:
        """The estimate for these units. Makes no call."""
        context = self.context
        with context.store.reading() as tx:
            lengths = {row[0]: row[1] for row in tx.connection.execute(select(Chain.id, Chain.length))}
            sizes = [lengths[unit.chain_id] for unit in units]
            return forecast(
                tx,
                context.gateway,
                self.options,
                self.graphs.options,
                sizes,
                steps=context.options.stage_limits.steps,
                observers=context.observers,
            )


@contextmanager
def open_run(
    settings: Settings,
    options: WindowOptions,
    choice: CurationChoice,
    *,
    backend: str,
    graph_options: GraphOptions | None = None,
    budget_usd: float | None = None,
    progress: Progress = SILENT,
    ledger_run: str | None = None,
    **chosen: Any,
) -> Iterator[CuratedRun]:
    """Open a run, or a worker of one. Workers with the same `ledger_run` share its budget. `chosen` goes to
    `rollout_options`.

    Raises `UsageError`, `SettingsError`, `StoreError`, `PromptError`.
    """
    if BACKENDS.named(backend).unsafe:
        raise UsageError("plain processes take no snapshots, and windows need them; choose --backend docker or local")
    observers = make_observers(chosen.get("observers", ()))
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        observing = (purpose for observer in observers for purpose in observer.purposes)
        purposes = tuple(dict.fromkeys((AGENT, *READERS, PROPOSER, CRITIC, *observing)))
        gateway = resources.enter_context(
            open_gateway(settings, store, purposes, budget_usd=budget_usd, run=ledger_run)
        )
        engine = BACKENDS.named(backend).of(settings)
        provider = resources.enter_context(closing(Provider(settings, images=engine.needs_image, store=store)))
        rollout = rollout_options(gateway, backend=backend, **chosen)
        context = RunContext(
            store,
            gateway,
            provider,
            engine,
            ReactScaffold(rollout.tools),
            rollout,
            settings.mirrors_dir,
            settings.data_dir,
            observers=observers,
            secrets=settings.secrets,
        )
        graphs = GraphContext(
            store,
            gateway,
            provider,
            engine,
            graph_options or GraphOptions(backend=backend),
            settings.mirrors_dir,
            settings.data_dir,
            settings.secrets,
        )
        yield CuratedRun(context, choice, graphs, options, progress)
