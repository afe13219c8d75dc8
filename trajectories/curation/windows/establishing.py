"""Which nodes a step establishes (Est; P2T, section 4.1 and appendix H): an action of the step matches the unlocker by
intent (E1), and what it shows entails the statement (E2). A model decides, from the conversation alone; code chooses
which nodes it is asked of, and takes a yes only with a quote of what the step shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel

from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.prompts import Fence, Prompt, load_prompt
from trajectories.agents.steps.conversation import Step, said, steps_of, texts_of, transcript
from trajectories.agents.steps.entities import EDGE_KINDS, entities, is_stop_word
from trajectories.agents.tools.edits import EDITOR
from trajectories.agents.tools.think import Think
from trajectories.curation.graphs.masking import shows
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.replay import is_frame
from trajectories.curation.graphs.surfaced import Surfaced
from trajectories.curation.windows.options import ESTABLISH, Asked
from trajectories.curation.windows.questions import reader_question
from trajectories.model import Entry

ESTABLISH_PREFIX = "establish_prefix"
"""The prompt by which any step may show a node; its calls count as `ESTABLISH`'s."""

_SHORTEST_PART = 3
"""Characters of a quote that is a part of a line; a shorter one is a whole line."""
_SHORTEST_THOUGHT = 40
"""Characters that an assistant has to say for an analysis or a plan to stand in them."""

_SHARED_WORDS = 3
"""Words of a subject that a thought and a step have to share where they share no name."""
_WORD = re.compile(r"[^\W\d_]{4,40}")

_WRITES = (">", "tee ", "sed -i", "patch", "git apply", "perl -", "python", "cat <<")
"""What a command has that writes files, by any chance."""

_STATIC = frozenset({ActionTool.VIEW, ActionTool.BASH})


class NodeFinding(BaseModel):
    """What the verifier says of one node."""

    id: str
    established: bool
    evidence: str
    reason: str


class VerifierReply(BaseModel):
    """What the verifier says of the nodes that it was asked of."""

    nodes: list[NodeFinding]


class MatchedFinding(NodeFinding):
    """What the verifier says of one node where any step may show it."""

    matched_action: int | None = None
    """The number of the step whose action matches the unlocker."""


class MatchedReply(BaseModel):
    """What the verifier says of nodes that any step of the session may show."""

    nodes: list[MatchedFinding]


@dataclass(frozen=True, slots=True)
class EstablishedNode:
    """A node that a step established, with the quote that shows it."""

    node: str
    step: int
    evidence: str


@dataclass(frozen=True, slots=True)
class StepFindings:
    """What was found of one step: the nodes it establishes, the number of calls and their cost (None: not known), and
    notes on answers that could not be used."""

    established: tuple[EstablishedNode, ...] = ()
    calls: int = 0
    usd: float | None = 0.0
    notes: tuple[str, ...] = field(default=())
    unanswered: tuple[str, ...] = ()
    """Of the calls without a usable answer, why: names of errors."""


class Verifier(Protocol):
    """Says which nodes a step establishes."""

    def established(
        self, subject: str, query: str, before: Sequence[Entry], step: Step, nodes: Sequence[Node]
    ) -> StepFindings:
        """Those of `nodes`, none of which is established yet; `before` is the conversation up to the step. Raises
        `LlmError`."""


class LlmVerifier:
    """The verifier by a model. It sees no reference, no tests, and of edits only which file they are in."""

    def __init__(self, gateway: Gateway, asked: Asked, *, sample: int, roots: Collection[str] = ()) -> None:
        self._gateway = gateway
        self._asked = asked
        self._sample = sample
        self._roots = tuple(roots)
        self._prompt = verifier_prompt(asked)
        self._shape: type[VerifierReply | MatchedReply] = MatchedReply if asked is Asked.PREFIX else VerifierReply

    def established(
        self, subject: str, query: str, before: Sequence[Entry], step: Step, nodes: Sequence[Node]
    ) -> StepFindings:
        """See `Verifier`."""
        batches = self._batches(step, nodes)
        found: list[EstablishedNode] = []
        usd: float | None = 0.0
        notes: list[str] = []
        unanswered: list[str] = []
        for batch in batches:
            question = self._question(subject, query, before, step, batch)
            try:
                answer = self._gateway.ask_verdict(question, self._shape)
            except (BadReply, ContextTooLong) as error:
                notes.append(f"step {step.number}: the verifier gave no answer: {error.name}")
                unanswered.append(error.name)
                continue
            usd = None if usd is None or answer.cost is None else usd + answer.cost
            asked = {node.name: node for node in batch}
            for finding in answer.value.nodes:
                node = asked.pop(finding.id, None)
                if node is None or not finding.established:
                    continue
                shown_by = _shown_by_step(finding, before, step)
                if shown_by is None or not is_quoted(node, shown_by, finding.evidence):
                    notes.append(f"step {step.number}: the evidence of {node.name} is not what the step shows")
                    continue
                found.append(EstablishedNode(node.name, step.number, finding.evidence))
                if shown_by is not step:
                    notes.append(f"step {step.number}: {node.name} was shown by step {shown_by.number}")
        return StepFindings(tuple(found), len(batches), usd, tuple(notes), tuple(unanswered))

    def estimate(
        self, subject: str, query: str, before: Sequence[Entry], step: Step, nodes: Sequence[Node]
    ) -> CostEstimate:
        """What `established` would cost with the same arguments; nothing for replies that are stored. Asks nothing."""
        total = CostEstimate()
        for batch in self._batches(step, nodes):
            total += self._gateway.estimate(self._question(subject, query, before, step, batch), self._shape)
        return total

    def _batches(self, step: Step, nodes: Sequence[Node]) -> list[list[Node]]:
        """The nodes that one question each is asked of."""
        if self._asked is not Asked.STEP:
            return [[node] for node in nodes]
        fitting = [node for node in nodes if fits(node, step, self._roots)]
        return [fitting] if fitting else []

    def _question(
        self, subject: str, query: str, before: Sequence[Entry], step: Step, nodes: Sequence[Node]
    ) -> Question:
        texts = {node.name: node_words(node) for node in nodes}
        past, now = transcript(before), transcript([step.turn, *step.observations])
        fence = Fence(query, past, now, *texts.values())
        messages = self._prompt.render(query=query, past=past, step=now, number=step.number, nodes=texts, fence=fence)
        return reader_question(self._gateway, ESTABLISH, subject, self._prompt, messages, self._sample)


def verifier_prompt(asked: Asked) -> Prompt:
    """The verifier's prompt. Raises `PromptError`."""
    return load_prompt("trajectories.curation", ESTABLISH_PREFIX if asked is Asked.PREFIX else ESTABLISH)


def _shown_by_step(finding: NodeFinding, before: Sequence[Entry], step: Step) -> Step | None:
    """The step that shows a node: the latest one, or where any may the one that the finding names, if it does; None
    for a number that no step has."""
    if not isinstance(finding, MatchedFinding) or finding.matched_action in {None, step.number}:
        return step
    return next((it for it in steps_of(before) if it.number == finding.matched_action), None)


def node_words(node: Node) -> str:
    """A node as curator and verifier read it. Of an edit they read the file alone: its text is the reference's."""
    action = node.action
    if node.kind is NodeKind.CODE_EDIT:
        unlocker = f"an edit of {action.path}" if action.path else "a command that edits files"
    elif action.tool is ActionTool.THINK:
        unlocker = "a thought of the assistant's, in its own words"
    else:
        unlocker = _action_words(action)
    return f"kind: {node.kind}\nstatement: {node.statement}\nunlocker: {unlocker}"


def _action_words(action: Action) -> str:
    match action.tool:
        case ActionTool.VIEW:
            return f"view lines {action.first} to {action.last} of {action.path}"
        case ActionTool.CREATE:
            run = f", and run: {action.command}" if action.command else ""
            return f"create {action.path}{run}\n{action.content}"
        case ActionTool.BASH:
            return f"run: {action.command}"
    return action.words()


def fits(node: Node, step: Step, roots: Collection[str] = ()) -> bool:
    """Whether a step can establish a node at all: by the tools of its calls, and by something that both name."""
    if not _tools(node) & _used(step):
        return False
    surfaced = Surfaced()
    surfaced.add(entities(f"{step.words}\n{step.shown}", roots=roots, kinds=EDGE_KINDS))
    action = node.action.path or "" if node.kind is NodeKind.CODE_EDIT else node.action.text
    # A plain word of a statement is no name: it joins a node to any step.
    named = entities(f"{node.statement}\n{action}", roots=roots, kinds=EDGE_KINDS, defined=frozenset())
    if not named or any(surfaced.holds(entity) for entity in named):
        return True
    # A thought may say the same in other words, without the names.
    thought = node.action.tool is ActionTool.THINK
    return thought and len(_content(f"{node.statement}\n{action}") & _content(step.words)) >= _SHARED_WORDS


def _content(text: str) -> set[str]:
    """The words of a text that carry its subject."""
    return {word for word in map(str.lower, _WORD.findall(text)) if not is_stop_word(word)}


def _tools(node: Node) -> frozenset[str]:
    """What a step may do to match a node's unlocker by intent: a static fact can be read in an editor or by a
    command."""
    tool = node.action.tool
    if tool is ActionTool.THINK:
        return frozenset({"think"})
    if node.kind is NodeKind.CODE_EDIT:
        return frozenset({"write"})
    if node.kind is NodeKind.STATIC_FACT and tool in _STATIC:
        return frozenset({"view", "bash"})
    return frozenset({"write", "bash"} if tool is ActionTool.CREATE else {"bash"})


def _used(step: Step) -> set[str]:
    used = {"think"} if len(said(step.turn)) >= _SHORTEST_THOUGHT else set[str]()
    for call, arguments, result in step.calls:
        if result is None:
            continue
        if call.name == EDITOR:
            used.add("view" if arguments.get("command") == "view" else "write")
        elif call.name == Think.name:
            used.add("think")
        elif call.name == "bash":
            used.add("bash")
            if any(sign in str(arguments.get("command", "")) for sign in _WRITES):
                used.add("write")
    return used


def is_quoted(node: Node, step: Step, evidence: str) -> bool:
    """Whether evidence is a quote of what shows the node in the step: of facts and runs the observations, of thoughts
    what the assistant says, of edits and files the arguments of calls that did not fail."""
    quote = _folded(evidence)
    if not quote or is_frame(evidence):
        return False
    return any(
        shows(text, evidence, numbered=True) or (len(quote) >= _SHORTEST_PART and quote in _folded(text))
        for text in _shown_by(node, step)
    )


def _shown_by(node: Node, step: Step) -> Iterable[str]:
    if node.action.tool is ActionTool.THINK:
        yield said(step.turn)
        for call, arguments, _ in step.calls:
            if call.name == Think.name:
                yield from texts_of(arguments)
        return
    if node.action.writes or node.kind is NodeKind.CODE_EDIT:
        for _, arguments, result in step.calls:
            if result is not None and result.error is None:
                yield from texts_of(arguments)
    if node.kind is not NodeKind.CODE_EDIT:
        yield from (entry.content for entry in step.observations)


def _folded(text: str) -> str:
    return " ".join(text.split())
