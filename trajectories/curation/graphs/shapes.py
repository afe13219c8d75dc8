"""The JSON that proposer and critic answer with, and how it becomes nodes (P2T, appendix D)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from prchain.core.llm.replies import UnfitReply
from trajectories.agents.steps.entities import normalized_path
from trajectories.curation.graphs.gates import NodeFault
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind

_STRICT = ConfigDict(frozen=True)
_NAME = re.compile(r"[A-Za-z][\w-]{0,31}")
_RULE = re.compile(r"\s*\(?([RHS]\d)\b\)?[:.,]?\s*")
_LONGEST_REASON = 500
_MOST_FEEDBACK = 20

OTHER_RULE = "critic"
"""The rule of a reason that names none."""

ToolName = Literal["view", "view_problem_statement", "bash", "create", "str_replace", "think"]
KindName = Literal[
    "static_fact", "dynamic_fact", "reproduce_script", "issue_analysis", "fix_plan", "code_edit", "validation"
]


class ActionReply(BaseModel):
    """An unlocker's action; fields that the tool does not use are null."""

    model_config = _STRICT

    tool: ToolName
    path: str | None = None
    first: int | None = None
    last: int | None = None
    command: str | None = None
    content: str | None = None
    old: str | None = None
    new: str | None = None
    thought: str | None = None


class NodeReply(BaseModel):
    """A candidate node. `observation` quotes lines of what the action printed."""

    model_config = _STRICT

    id: str
    kind: KindName
    statement: str
    action: ActionReply
    observation: str = ""

    def node(self, name: str, round_: int, roots: Collection[str]) -> Node:
        """The node, with its path from the root of the repository."""
        given = self.action.model_dump()
        path = None if self.action.path is None else normalized_path(self.action.path, roots)
        action = Action(**{**given, "tool": ActionTool(self.action.tool), "path": path})
        return Node(name, NodeKind(self.kind), self.statement.strip(), action, "", round_)


class ProposerReply(BaseModel):
    """New candidates; none where nothing is missing."""

    model_config = _STRICT

    nodes: tuple[NodeReply, ...]


class NodeVerdictReply(BaseModel):
    """The critic's verdict on one candidate; `patched_node` is for ``revise``."""

    model_config = _STRICT

    id: str
    verdict: Literal["keep", "prune", "revise"]
    reasons: tuple[str, ...] = ()
    patched_node: NodeReply | None = None

    def faults(self) -> tuple[NodeFault, ...]:
        """The reasons, each with the rule that it names."""
        return tuple(_fault(reason) for reason in self.reasons)


class FeedbackReply(BaseModel):
    """A gap, and where to look next."""

    model_config = _STRICT

    gap: str
    look: str


class CriticReply(BaseModel):
    """A verdict on every candidate, and what the proposer is told."""

    model_config = _STRICT

    verdicts: tuple[NodeVerdictReply, ...]
    feedback: tuple[FeedbackReply, ...] = Field(default=())

    def words(self) -> list[str]:
        """The feedback as the proposer gets it: word for word."""
        return [f"{entry.gap} Next: {entry.look}" for entry in self.feedback[:_MOST_FEEDBACK]]


def _fault(reason: str) -> NodeFault:
    match = _RULE.match(reason)
    rule, words = (match[1], reason[match.end() :]) if match else (OTHER_RULE, reason)
    return NodeFault(rule, " ".join(words.split())[:_LONGEST_REASON])


def check_proposal(reply: ProposerReply, most: int) -> None:
    """Check what a schema cannot say of a proposal. Raises `UnfitReply`."""
    problems = [f"{name!r} is no id: a letter, then letters, digits, _ and -" for name in _odd(reply.nodes)]
    counts = Counter(node.id for node in reply.nodes)
    problems += [f"the id {name} stands {count} times" for name, count in counts.items() if count > 1]
    if len(reply.nodes) > most:
        problems.append(f"{len(reply.nodes)} nodes are too many; {most} at most")
    _raise(problems)


def check_verdicts(reply: CriticReply, new: Collection[str], standing: Collection[str] = ()) -> None:
    """Check that each new candidate has exactly one verdict, with what it needs, and those that stand one at most.
    Raises `UnfitReply`."""
    counts: Mapping[str, int] = Counter(verdict.id for verdict in reply.verdicts)
    problems = [f"{name} has no verdict" for name in new if name not in counts]
    problems += [f"there is no candidate {name}" for name in counts if name not in {*new, *standing}]
    problems += [f"{name} has {count} verdicts" for name, count in counts.items() if count > 1]
    for verdict in reply.verdicts:
        if verdict.verdict == "revise" and verdict.patched_node is None:
            problems.append(f"{verdict.id} is to be revised, and has no patched_node")
        if verdict.verdict == "prune" and not any(map(str.strip, verdict.reasons)):
            problems.append(f"{verdict.id} is pruned without a reason")
    _raise(problems)


def _odd(nodes: Sequence[NodeReply]) -> list[str]:
    return [node.id[:40] for node in nodes if not _NAME.fullmatch(node.id)]


def _raise(problems: Sequence[str]) -> None:
    if problems:
        raise UnfitReply(
            f"Your answer does not do: {'; '.join(problems[:8])}. Reply with the corrected JSON object alone."
        )
