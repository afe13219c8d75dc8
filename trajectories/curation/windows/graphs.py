"""The process graphs that a curated run grows its trajectories along: those that are stored, and those of later stages,
which are made on the way, since their tree follows from the curated stage before."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prchain.core.errors import GraphUnusable, UsageError
from sql.lock import exclusive_lock
from sql.store import Transaction
from sql.tables import GraphRow
from trajectories.agents.scaffolds.scaffold import StageAccess
from trajectories.curation.graphs.curators import TOOLS_HASH, prompts
from trajectories.curation.graphs.identity import VERSION
from trajectories.curation.graphs.options import CRITIC, PROPOSER, SAMPLING
from trajectories.curation.graphs.outcomes import BUILT
from trajectories.curation.graphs.rows import read_graph
from trajectories.curation.graphs.run import COMMAND, GraphContext, GraphUnit, make_graph
from trajectories.curation.windows.stage import StageGraph
from trajectories.identity import digest
from trajectories.task import read_task


@dataclass
class GraphShelf:
    """Finds or makes the graphs of a run; used by several threads. `chosen` is the id of the one graph that a user
    named, of a first stage."""

    context: GraphContext
    chosen: str | None = None
    _first: dict[str, str | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def first(self, chain_id: str) -> str | None:
        """The id of the graph of a chain's first stage; None where there is none that can be used.

        Of several it is the one under today's settings, else the one that was finished last. Raises `UsageError` where
        the chosen graph is of another tree than the stage starts on, or cannot be used.
        """
        with self._lock:
            if chain_id not in self._first:
                self._first[chain_id] = self._find_first(chain_id)
            return self._first[chain_id]

    def _find_first(self, chain_id: str) -> str | None:
        context = self.context
        with context.store.reading() as tx:
            task = read_task(tx, chain_id)
            stage = task.stages[0]
            start = context.chain(task).trees.tree_of(stage.stage.base)
            if self.chosen is not None:
                return self._checked(tx, chain_id, start)
            rows = sorted(
                (finished or "", name)
                for name, finished, outcome in tx.rows(
                    GraphRow, "id", "finished_at", "outcome", chain_id=chain_id, position=1, start_tree=start
                )
                if outcome in BUILT
            )
        names = [name for _, name in rows]
        current = context.identity(stage, chain_id, start).id if stage.tests is not None else None
        return current if current in names else next(reversed(names), None)

    def _checked(self, tx: Transaction, chain_id: str, start: str) -> str:
        [row] = tx.rows(GraphRow, "chain_id", "position", "start_tree", "outcome", id=self.chosen)
        chain, position, tree, outcome = row
        if (chain, position, tree) != (chain_id, 1, start):
            raise UsageError(
                f"graph {self.chosen} is of stage {position} of chain {chain}, on tree {tree[:12]}; stage 1 of chain "
                f"{chain_id} starts on {start[:12]}"
            )
        if outcome not in BUILT:
            raise UsageError(f"graph {self.chosen} cannot be used: it is {outcome}")
        return str(self.chosen)

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """What the graphs of a chain depend on: that of the first stage is one that exists, those of later stages are
        made from the same inputs each time."""
        context = self.context
        models = {purpose: dict(context.gateway.resolved(purpose, usual=SAMPLING)) for purpose in (PROPOSER, CRITIC)}
        hashes = {purpose: prompt.hash for purpose, prompt in prompts().items()}
        later = digest([models, hashes, TOOLS_HASH, context.options.chosen, VERSION])
        return {"graph": self.first(chain_id), "graphs": later}

    def graph_of(self, stage: StageAccess, position: int, trajectory: str) -> StageGraph:
        """See `GraphOf`. Raises also what `make_graph` raises, and `StoreInUse`."""
        name = self.first(stage.chain_id) if position == 1 else self._made(stage, position, trajectory)
        if name is None:
            raise GraphUnusable(f"stage {position} has no process graph; `prchain curate graphs` makes one")
        with self.context.store.reading() as tx:
            graph = read_graph(tx, name)
        if not graph.nodes:
            raise GraphUnusable(f"graph {name} has no node")
        return StageGraph(name, graph)

    def _made(self, stage: StageAccess, position: int, trajectory: str) -> str:
        """The id of the graph of a later stage, which is made where it is missing. Raises `GraphUnusable`."""
        context = self.context
        with context.store.reading() as tx:
            task = read_task(tx, stage.chain_id)
        identity = context.identity(task.stages[position - 1], stage.chain_id, stage.start)
        unit = GraphUnit(stage.chain_id, position, stage.start, identity.id, trajectory)
        with exclusive_lock(context.store, f"graph-{unit.id}", COMMAND):
            result = make_graph(context, unit, lambda words: stage.tell(f"graph, {words}"))
        if result.outcome not in BUILT:
            raise GraphUnusable(f"graph {unit.id} of stage {position} is {result.outcome}: {result.reason}")
        return unit.id
