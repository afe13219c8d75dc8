"""The scaffold of agents that are told a part of a process graph: that of `react`, with the bundle below its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from environments.sandboxes.sandbox import Sandbox
from prchain.core.llm.gateway import Gateway
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder
from trajectories.identity import digest
from trajectories.model import EntryKind
from trajectories.privileged import DISCLOSED
from trajectories.studies.curation.bundles import Bundle


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What the agent of one chain is told: the graph's id, the bundle's name and its text, which may be empty."""

    graph: str
    bundle: Bundle
    text: str


class DisclosedScaffold:
    """The scaffold ``disclosed``; see `trajectories.agents.scaffolds.scaffold.Scaffold`. It is of one chain: `told`
    is."""

    name = DISCLOSED
    version = "1"

    def __init__(self, agent: ReactScaffold, told: Disclosure) -> None:
        self._agent = agent
        self._told = told

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """See `Scaffold.tools`."""
        return self._agent.tools

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `Scaffold.prompts`."""
        return self._agent.prompts

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """See `Scaffold.decided_by`. The bundle counts by name, too: where two hold the same, each has a rollout."""
        told = self._told
        return {"bundle": str(told.bundle), "graph": told.graph, "text": digest([told.text])}

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `Scaffold.opening`: the bundle stands below the query of the first stage."""
        text = self._agent.opening(kind, variables)
        if kind is not EntryKind.QUERY or variables["position"] != 1 or not self._told.text:
            return text
        return f"{text.rstrip()}\n\n{self._told.text}"

    def attempt(
        self,
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> AttemptResult:
        """See `Scaffold.attempt`."""
        return self._agent.attempt(gateway, sandbox, spec, record, observers)
