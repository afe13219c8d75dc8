"""Proposer and critic of one graph: their prompts, their questions, and their conversations, which outlast a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from prchain.core.errors import ContextTooLong, SandboxLimit, SandboxLost
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.prompts import Fence, Prompt, load_prompt
from sql.store import Store
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.tools.observations import cut
from trajectories.curation.graphs.agents import SCHEMAS, CuratorAgent, CuratorLimits, replay_calls
from trajectories.curation.graphs.bench import Bench
from trajectories.curation.graphs.candidates import kept_nodes
from trajectories.curation.graphs.nodes import Node
from trajectories.curation.graphs.options import CRITIC, PROPOSER, SAMPLING, GraphOptions
from trajectories.curation.graphs.rounds import GraphState
from trajectories.curation.graphs.rows import MessageRecorder, read_messages
from trajectories.curation.graphs.shapes import CriticReply, ProposerReply, check_proposal, check_verdicts
from trajectories.identity import digest
from trajectories.model import Ending

Shape = TypeVar("Shape", bound=BaseModel)

_PACKAGE = "trajectories.curation"
_MOST_LOSSES = 3
"""After so many sandboxes lost in a row in one round, the agent is what ends them, and its round is dropped."""

_SHOWN = 2_000
"""Characters of a node's observation that the agents are shown."""

TOOLS_HASH = digest([dict(schema) for schema in SCHEMAS])


def prompts() -> Mapping[str, Prompt]:
    """The prompts by purpose. Raises `PromptError`."""
    return {purpose: load_prompt(_PACKAGE, purpose) for purpose in (PROPOSER, CRITIC)}


@dataclass(frozen=True, slots=True)
class PrivilegedTexts:
    """What both agents know of a stage. Nothing of it but the query may reach an agent that is to be imitated."""

    repository: str
    query: str
    patch: str
    tests: str
    test_patch: str


class LlmCurators:
    """`trajectories.curation.graphs.distill.Curators` by models. What stands is asked for once: after a kill, a round
    goes on where its stored messages end."""

    def __init__(
        self,
        gateway: Gateway,
        store: Store,
        graph_id: str,
        texts: PrivilegedTexts,
        bench: Bench,
        options: GraphOptions,
        *,
        workdir: str,
        note: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._gateway = gateway
        self._store = store
        self._graph_id = graph_id
        self._texts = texts
        self._bench = bench
        self._options = options
        self._workdir = workdir
        self._note = note
        self._prompts = prompts()

    def propose(self, state: GraphState, mismatch: Mapping[str, str]) -> ProposerReply | None:
        """See `Curators`."""
        most = self._options.nodes
        agent = self._agent(PROPOSER, ProposerReply, lambda reply: check_proposal(reply, most))
        return self._ask(agent, PROPOSER, state, kept_nodes(state.candidates), mismatch)

    def criticize(self, state: GraphState, nodes: Sequence[Node], mismatch: Mapping[str, str]) -> CriticReply | None:
        """See `Curators`."""
        new, standing = ([node.name for node in nodes if _is_new(node, state) is it] for it in (True, False))
        agent = self._agent(CRITIC, CriticReply, lambda reply: check_verdicts(reply, new, standing))
        return self._ask(agent, CRITIC, state, nodes, mismatch)

    def _agent(self, purpose: str, shape: type[Shape], check: Callable[[Shape], None]) -> CuratorAgent[Shape]:
        options = self._options
        sampling = self._gateway.resolved(purpose, usual=SAMPLING)
        settings = LoopSettings(
            temperature=sampling.get("temperature"),
            max_tokens=sampling["max_tokens"],
            top_p=sampling.get("top_p"),
            purpose=purpose,
            overflow="elide",
            observation_chars=options.observation_chars,
            command_timeout=options.command_timeout,
        )
        limits = CuratorLimits(options.tool_calls, options.schema_repeats)
        return CuratorAgent(self._gateway, self._prompts[purpose], settings, limits, shape, check, purpose == CRITIC)

    def _ask(
        self,
        agent: CuratorAgent[Shape],
        purpose: str,
        state: GraphState,
        nodes: Sequence[Node],
        mismatch: Mapping[str, str],
    ) -> Shape | None:
        """The answer of a round; None where it is dropped. Raises `LlmError`, `SandboxError`, `StoreError`.

        A prompt that does not fit the model is none of the agent's faults: a model with more room can go on.
        """
        number = state.rounds + 1
        recorder = MessageRecorder(self._store, self._graph_id, number, purpose)
        losses = 0
        while True:
            with self._store.reading() as tx:
                entries = read_messages(tx, self._graph_id, number, purpose)
            if not entries:
                recorder.add(agent.opening(**self._variables(state, nodes, mismatch)))
                continue
            sandbox = self._bench.fresh()
            try:
                replay_calls(sandbox, entries, agent.settings)
                answer = agent.run(sandbox, f"{self._graph_id}/{number}", entries, recorder)
            except (SandboxLimit, SandboxLost) as error:
                self._bench.close()
                losses += 1
                if isinstance(error, SandboxLost) and losses < _MOST_LOSSES:
                    continue
                self._note(f"round {number}: the {purpose}'s sandbox was ended: {error}")
                return None
            if answer.ending is Ending.CONTEXT_LIMIT:
                raise ContextTooLong(f"round {number}, {purpose}: {answer.reason}")
            if answer.value is None:
                self._note(f"round {number}: the {purpose} gave no answer: {answer.reason}")
            return answer.value

    def _variables(self, state: GraphState, nodes: Sequence[Node], mismatch: Mapping[str, str]) -> dict[str, Any]:
        texts, options = self._texts, self._options
        shown = [
            {"name": node.name, "text": node_text(node, whole=new), "new": new}
            for node, new in ((node, _is_new(node, state)) for node in nodes)
        ]
        edits = "\n".join(f"{path}: {words}" for path, words in mismatch.items())
        fence = Fence(
            texts.query,
            texts.patch,
            texts.tests,
            texts.test_patch,
            edits,
            *(str(node["text"]) for node in shown),
            *state.feedback,
        )
        return {
            "repository": texts.repository,
            "query": texts.query,
            "patch": texts.patch,
            "tests": texts.tests,
            "test_patch": texts.test_patch,
            "nodes": shown,
            "feedback": list(state.feedback),
            "mismatch": edits,
            "fence": fence,
            "round": state.rounds + 1,
            "rounds": options.rounds,
            "tool_calls": options.tool_calls,
            "most_nodes": options.nodes,
            "observation_chars": f"{options.observation_chars:,}",
            "workdir": self._workdir,
        }


def _is_new(node: Node, state: GraphState) -> bool:
    """Whether a node was proposed in the round after this state."""
    return node.round > state.rounds


def node_text(node: Node, *, whole: bool) -> str:
    """A node as both agents read it; only a whole one with what it printed."""
    lines = [f"kind: {node.kind}", f"statement: {node.statement}", f"action: {node.action.to_json()}"]
    if whole and node.observation:
        lines.append(f"observation:\n{cut(node.observation, _SHOWN)}")
    return "\n".join(lines)
