"""From citations to edges: every pair of landed pull requests gets a confidence and exactly one outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from chains import outcomes
from chains.edges.evidence import REPEATS, REVERSALS, judge
from chains.edges.footprints import PatchFootprint, PatchOverlap, touch
from chains.edges.graph import Edge, Sign
from chains.edges.reversals import Reversals
from chains.history import CountedCitation, LandedPullRequest, days_between

_SAME = 0.8
"""Two patches that add so much of the same are one change that landed twice, with a revert between."""

Citations = Mapping[tuple[int, int], Sequence[CountedCitation]]


@dataclass(frozen=True, slots=True)
class Link:
    """One pair, judged."""

    edge: Edge
    outcome: str


@dataclass(frozen=True)
class Linker:
    """What the edges of one repository are judged by."""

    landed: Mapping[int, LandedPullRequest]
    traces: Mapping[int, PatchFootprint]
    stages: Collection[int]
    """Those that may be stages."""
    reversals: Reversals
    contains: Callable[[str, str], bool]
    """Whether the first commit has the second one among its ancestors, or is it."""
    floor: float
    """The least confidence of an edge that chains may use."""

    def link(self, citations: Citations) -> list[Link]:
        """Judge every pair; an edge to what landed again leads to the later landing. In the order of the pairs."""
        pairs: dict[tuple[int, int], list[CountedCitation]] = {}
        for (source, target), said in citations.items():
            stands = self.reversals.stands_for.get(target, target)
            moved = stands if stands != source and self._precedes(stands, source) else target
            pairs.setdefault((source, moved), []).extend(said)
        return [self._judge(source, target, said) for (source, target), said in sorted(pairs.items())]

    def _precedes(self, target: int, source: int) -> bool:
        return self.contains(self.landed[source].base_sha, self.landed[target].landed_sha)

    def _judge(self, source: int, target: int, said: Sequence[CountedCitation]) -> Link:
        later, earlier = self.landed[source], self.landed[target]
        traces = self.traces.get(source), self.traces.get(target)
        met = touch(traces[0], traces[1]) if traces[0] and traces[1] else None
        judged = judge(said, met, days=days_between(earlier.landed_at, later.landed_at))
        edge = Edge(source, target, judged.relation, judged.confidence, judged.signs)
        relations = {citation.relation for citation in said}
        if relations & REPEATS:
            outcome = outcomes.BACKPORT
        elif (relations & REVERSALS and self._is_reversal(source, target)) or _lands_again(met):
            outcome = outcomes.REVERSAL
        elif source not in self.stages or target not in self.stages:
            outcome = outcomes.STAGE_DROPPED
        elif not self._precedes(target, source):
            outcome = outcomes.NOT_ANCESTOR
        elif met is None or not met.share_an_area:
            outcome = outcomes.NO_SHARED_AREA
        else:
            outcome = outcomes.KEPT if judged.confidence >= self.floor else outcomes.BELOW_FLOOR
        return Link(edge, outcome)

    def _is_reversal(self, source: int, target: int) -> bool:
        found = self.reversals
        return source in found.reverts or found.stands_for.get(target) == source or target in found.reverts


def _lands_again(met: PatchOverlap | None) -> bool:
    return met is not None and met.repeated >= _SAME


def rows_of(signs: Sequence[Sign]) -> list[dict[str, object]]:
    """Signs as the database keeps them."""
    return [{"sign": sign.name, "weight": sign.weight, "detail": sign.detail} for sign in signs]
