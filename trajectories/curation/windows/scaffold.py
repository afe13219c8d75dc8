"""The scaffold of curated runs: the agent of `react`, whose attempt at a stage is made of windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import GraphUnusable
from prchain.core.llm.gateway import Gateway
from sql.store import Store
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, StageAccess
from trajectories.curation.windows.establishing import verifier_prompt
from trajectories.curation.windows.judging import judge_prompt
from trajectories.curation.windows.options import WindowOptions
from trajectories.curation.windows.rewriting import curator_prompts
from trajectories.curation.windows.stage import CuratedStage, StageGraph
from trajectories.model import NOTHING_USED, Ending, EntryKind
from trajectories.outcomes import NO_GRAPH
from trajectories.privileged import CURATED

GraphOf = Callable[[StageAccess, int, str], StageGraph]
"""The graph of a stage: of what is known of it, its position, and the trajectory's id. Raises `GraphUnusable`."""


class CuratedScaffold:
    """The scaffold ``curated``; see `trajectories.agents.scaffolds.scaffold.Scaffold`. `agent` is the blinded agent;
    `decided` gives, of a chain, what its conversations depend on besides (`Scaffold.decided_by`)."""

    name = CURATED
    version = "1"

    def __init__(
        self,
        store: Store,
        agent: ReactScaffold,
        options: WindowOptions,
        graph_of: GraphOf,
        decided: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._store = store
        self._agent = agent
        self._options = options
        self._graph_of = graph_of
        self._decided = decided

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `Scaffold.tools`."""
        return self._agent.tools

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `Scaffold.prompts`."""
        readers = [*curator_prompts().values(), verifier_prompt(self._options.est), judge_prompt()]
        return {**self._agent.prompts, **{prompt.name: prompt.hash for prompt in readers}}

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """See `Scaffold.decided_by`."""
        return self._decided(chain_id)

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `Scaffold.opening`."""
        return self._agent.opening(kind, variables)

    def attempt(
        self,
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> AttemptResult:
        """See `Scaffold.attempt`. Raises also what making a graph raises."""
        assert spec.stage is not None, "windows need the trees of steps"
        try:
            process = self._graph_of(spec.stage, spec.position, spec.subject.partition("/")[0])
        except GraphUnusable as error:
            return AttemptResult(Ending.STOPPED, NOTHING_USED, str(error), NO_GRAPH)
        stage = CuratedStage(
            self._store, gateway, self._agent, self._options, process, sandbox, spec, record, observers
        )
        return stage.run()
