"""The curator: which step of a seed is written anew, towards which node, and its words and call (P2T, section 4.2 and
appendices F and H)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.model import Message, Reply
from prchain.core.llm.prompts import Fence, Prompt, load_prompt
from trajectories.agents.steps.conversation import Step, transcript
from trajectories.agents.steps.entities import ALL_KINDS, entities
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.graphs.nodes import ActionTool, Node, NodeKind
from trajectories.curation.graphs.surfaced import Surfaced
from trajectories.curation.windows.establishing import node_words
from trajectories.curation.windows.options import CURATOR
from trajectories.curation.windows.progress import Standing, StepProgress, open_nodes
from trajectories.curation.windows.questions import reader_question
from trajectories.model import Entry

PICK = "pick"
"""The prompt by which the curator picks; its calls count as `CURATOR`'s."""

_PACKAGE = "trajectories.curation"

Place = tuple[int, str]
"""The number of a seed's step, from 0, and the name of the node that it shall lead to."""


class PickReply(BaseModel):
    """The curator's choice: the number of a step in the session, and a node."""

    step: int
    node: str


@dataclass(frozen=True, slots=True)
class ScoredSeed:
    """A seed with what its steps came to. `standings` has one more item than `steps`: where the trajectory stands
    before the first step, and after each."""

    steps: Sequence[Step]
    standings: Sequence[Standing]
    progress: Sequence[StepProgress]


def is_target(node: Node) -> bool:
    """Whether a step may be written towards a node. An edit is no target: its text is the reference, which the curator
    does not see; nor is a validation, whose command may name what only the reference brings. What the query says is
    known from the beginning."""
    hidden = {NodeKind.CODE_EDIT, NodeKind.VALIDATION}
    return node.kind not in hidden and node.action.tool is not ActionTool.VIEW_PROBLEM


def places_of(graph: ProcessGraph, seed: ScoredSeed, tried: Collection[Place]) -> list[Place]:
    """The places that may be picked: every step with every node of its frontier, but those that were tried."""
    nodes = {node.name: node for node in graph.nodes}
    return [
        (number, name)
        for number in range(len(seed.steps))
        for name in sorted(open_nodes(graph, seed.standings[number]))
        if is_target(nodes[name]) and (number, name) not in tried
    ]


def pick_by_rule(
    graph: ProcessGraph,
    seed: ScoredSeed,
    tried: Collection[Place],
    shown_before: Callable[[int], Surfaced],
    roots: Collection[str] = (),
) -> Place | None:
    """The first step without progress, and the nearest node of its frontier; None where there is nothing to pick.

    Of the steps those that repeat a call, fail or act without a word come first. The nearest node is the one whose
    action names least that was not shown by then, then the one of the lowest level, then the one that was made first.
    """
    nodes = {node.name: node for node in graph.nodes}
    order = {name: place for place, name in enumerate(nodes)}
    by_step: dict[int, list[str]] = {}
    for number, name in places_of(graph, seed, tried):
        if not seed.progress[number].counted:
            by_step.setdefault(number, []).append(name)
    if not by_step:
        return None
    number = min(by_step, key=lambda at: (not _is_idle(seed.steps, at), at))
    shown = shown_before(number)

    def distance(name: str) -> tuple[int, int, int]:
        named = entities(nodes[name].action.text, roots=roots, kinds=ALL_KINDS)
        return sum(not shown.holds(entity) for entity in named), graph.levels[name], order[name]

    return number, min(by_step[number], key=distance)


def _is_idle(steps: Sequence[Step], at: int) -> bool:
    """Whether a step repeats a call of the steps before it, fails, or acts without a word."""
    step = steps[at]
    repeats = bool(step.action) and any(step.action == earlier.action for earlier in steps[:at])
    return repeats or step.failed or step.empty


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A step that the curator wrote: its reply, None where it gave none; `usd` is its cost, None where not known."""

    reply: Reply | None
    usd: float | None
    reason: str | None = None


class Curator:
    """Writes one step anew. It sees the request, the conversation, and the node that is the target; never the
    reference, tests, or another node (but the frontier, where it is asked to pick)."""

    def __init__(self, gateway: Gateway, tools: Sequence[Mapping[str, Any]], *, sample: int) -> None:
        self._gateway = gateway
        self._tools = [tool for tool in tools if tool["function"]["name"] != "submit"]
        self._sample = sample
        self._prompts = curator_prompts()

    def pick(
        self,
        subject: str,
        query: str,
        before: Sequence[Entry],
        seed: ScoredSeed,
        graph: ProcessGraph,
        tried: Iterable[Place],
    ) -> tuple[Place | None, float | None, str | None]:
        """The curator's own choice, its cost, and why there is none. Raises `LlmError`."""
        allowed = places_of(graph, seed, set(tried))
        if not allowed:
            return None, 0.0, None
        nodes = {node.name: node for node in graph.nodes}
        first = seed.steps[0].number
        listed = {
            name: {"text": node_words(nodes[name]), "steps": [first + at for at, other in allowed if other == name]}
            for name in dict.fromkeys(name for _, name in allowed)
        }
        past = transcript(before)
        steps = transcript([entry for step in seed.steps for entry in (step.turn, *step.observations)])
        fence = Fence(query, past, steps, *(str(node["text"]) for node in listed.values()))
        messages = self._prompts[PICK].render(query=query, past=past, steps=steps, nodes=listed, fence=fence)
        try:
            answer = self._gateway.ask_for(self._question(subject, self._prompts[PICK], messages), PickReply)
        except (BadReply, ContextTooLong) as error:
            return None, None, f"the curator picked nothing: {error.name}"
        place = (answer.value.step - first, answer.value.node)
        if place not in allowed:
            return None, answer.cost, f"the curator picked step {answer.value.step} and {answer.value.node!r}"
        return place, answer.cost, None

    def rewrite(self, subject: str, query: str, before: Sequence[Entry], step: Step, target: Node) -> Rewrite:
        """The step written anew towards a node; `before` is the conversation up to it. Raises `LlmError`."""
        past, now, wanted = transcript(before), transcript([step.turn]), node_words(target)
        fence = Fence(query, past, now, wanted)
        messages = self._prompts[CURATOR].render(query=query, past=past, step=now, target=wanted, fence=fence)
        try:
            answer = self._gateway.complete(self._question(subject, self._prompts[CURATOR], messages), self._tools)
        except (BadReply, ContextTooLong) as error:
            return Rewrite(None, None, f"the curator gave no step: {error.name}")
        return Rewrite(answer.reply, answer.cost)

    def _question(self, subject: str, prompt: Prompt, messages: tuple[Message, ...]) -> Question:
        return reader_question(self._gateway, CURATOR, subject, prompt, messages, self._sample)


def curator_prompts() -> Mapping[str, Prompt]:
    """The curator's prompts by name. Raises `PromptError`."""
    return {name: load_prompt(_PACKAGE, name) for name in (CURATOR, PICK)}
