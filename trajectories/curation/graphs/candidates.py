"""Candidate nodes: each node that was proposed, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trajectories.curation.graphs.gates import NodeFault
from trajectories.curation.graphs.nodes import Node


class NodeVerdict(StrEnum):
    """What became of a candidate."""

    KEEP = "keep"
    PRUNE = "prune"
    """The critic took it out."""
    REVISE = "revise"
    """The critic put another one in its place."""
    REFUSED = "refused"
    """Code took it out: it breaks a rule that code decides."""
    MERGED = "merged"
    """Another one makes the same claim with as strong evidence."""
    DROPPED = "dropped"
    """The critic gave no answer in its round."""


@dataclass(frozen=True, slots=True)
class NodeCandidate:
    """A node with its verdict; `claimed` is the evidence as the model quoted it."""

    node: Node
    claimed: str = ""
    verdict: NodeVerdict = NodeVerdict.KEEP
    verdict_round: int = 1
    reasons: tuple[NodeFault, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether it is in the node set."""
        return self.verdict is NodeVerdict.KEEP

    def ended(self, verdict: NodeVerdict, round_: int, reasons: Iterable[NodeFault]) -> NodeCandidate:
        """The candidate with a verdict that takes it out."""
        return replace(self, verdict=verdict, verdict_round=round_, reasons=tuple(reasons))


def kept_nodes(candidates: Sequence[NodeCandidate]) -> list[Node]:
    """The nodes that are kept, in the order in which they were made."""
    return [candidate.node for candidate in candidates if candidate.kept]


def hashes(candidates: Sequence[NodeCandidate]) -> frozenset[tuple[str, ...]]:
    """The node set: the claims that are kept."""
    return frozenset(node.claim for node in kept_nodes(candidates))


def unused_name(name: str, used: Iterable[str], round_: int) -> str:
    """A name for a node that no other has: the model's, or with the round behind it."""
    names = set(used)
    if name not in names:
        return name
    numbered = (f"{name}.{number}" for number in range(round_, round_ + len(names) + 1))
    return next(other for other in numbered if other not in names)
