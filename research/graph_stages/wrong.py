"""Nodes that are wrong, each put to the code that has to refuse it, with the rule that has to do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prchain.core.git.output import path_text
from research.graph_stages.cases import WrongNode
from research.graph_stages.stage import RealStage
from trajectories.curation.graphs.candidates import NodeCandidate, NodeVerdict
from trajectories.curation.graphs.distill import Distiller
from trajectories.curation.graphs.edits import FileContents
from trajectories.curation.graphs.nodes import Node, NodeKind
from trajectories.curation.graphs.replay import files_for
from trajectories.curation.graphs.rounds import GraphState
from trajectories.curation.graphs.shapes import CriticReply, NodeReply, NodeVerdictReply, ProposerReply

_LATE = {NodeKind.CODE_EDIT, NodeKind.VALIDATION}
_ROOM = 400
"""Characters of the words that are told of a refusal."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What became of a wrong node: the rules that took it out, empty where it came through."""

    wrong: WrongNode
    rules: tuple[str, ...]
    words: str = field(default="")

    @property
    def right(self) -> bool:
        """Whether the rule that has to refuse it did."""
        return self.wrong.rule in self.rules


@dataclass(frozen=True, slots=True)
class OneProposal:
    """`Curators` that propose these nodes and keep whatever code has left of them."""

    nodes: tuple[NodeReply, ...]

    def propose(self, state: GraphState, mismatch: Mapping[str, str]) -> ProposerReply:
        """See `Curators`."""
        return ProposerReply(nodes=self.nodes)

    def criticize(self, state: GraphState, nodes: Sequence[Node], mismatch: Mapping[str, str]) -> CriticReply:
        """See `Curators`."""
        return CriticReply(verdicts=tuple(NodeVerdictReply(id=node.name, verdict="keep") for node in nodes))


def refusal(distiller: Distiller, stage: RealStage, wrong: WrongNode, held: Sequence[NodeCandidate]) -> Refusal:
    """Propose a wrong node beside what the graph holds, of the right candidates `held`."""
    before = {
        "nothing": (),
        "plan": tuple(candidate for candidate in held if candidate.node.kind not in _LATE),
        "graph": tuple(held),
    }[wrong.held]
    node = _node(distiller, stage, wrong)
    after = distiller.round(GraphState(before, rounds=1), OneProposal((node,))).candidates
    new = [candidate for candidate in after[len(before) :] if not candidate.kept]
    # Of two equal claims the one with the stronger evidence stays, which may be the later one.
    merged = [candidate for candidate in after[: len(before)] if candidate.verdict is NodeVerdict.MERGED]
    faults = [fault for candidate in (*new, *merged) for fault in candidate.reasons]
    words = " | ".join(f"{fault.rule}: {' '.join(fault.words.split())}" for fault in faults)
    return Refusal(wrong, tuple(fault.rule for fault in faults), words[:_ROOM])


def _node(distiller: Distiller, stage: RealStage, wrong: WrongNode) -> NodeReply:
    """The wrong node with what it takes of the stage."""
    reply = wrong.reply(stage.right)
    match wrong.source:
        case "landed":
            trees, target = distiller.trees, stage.target
            files: FileContents = {
                path_text(change.path): None if change.new is None else trees.blob(change.new.blob)
                for change in trees.diff(target.start, target.target)
            }
        case "before":
            made = {
                str(other.action.path): other.node(name, 1, distiller.roots)
                for name, other in stage.right.items()
                if other.kind == "reproduce_script" and other.action.tool == "create"
            }
            files = files_for(reply.node(reply.id, 1, distiller.roots), made, {})
        case "line":
            added = [line[1:].strip() for line in stage.target.source_text.decode().split("\n") if line[:1] == "+"]
            return reply.model_copy(update={"statement": f"There is no line `{max(added, key=len)}`"})
        case _:
            return reply
    replay = distiller.bench.observe(reply.node(reply.id, 1, distiller.roots).action, files)
    return reply.model_copy(update={"observation": _shown(replay.text)})


def _shown(text: str) -> str:
    """What a command printed, without what stands around it."""
    start, end = text.find("<output>\n"), text.rfind("\n</output>")
    return text[start + len("<output>\n") : end] if 0 <= start < end else text
