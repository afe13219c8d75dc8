"""From evidence to edges: every pair of landed pull requests gets a confidence and exactly one outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from chains import outcomes
from chains.edges.evidence import REPEATS, REVERSALS, judge
from chains.edges.footprints import PatchFootprint, PatchOverlap, overlap_of
from chains.edges.graph import Edge, Sign
from chains.edges.pairs import PairEvidence, Pairs
from chains.edges.reversals import Reversals
from chains.edges.titles import TitleWords
from chains.history import LandedPullRequest, days_between

_SAME_CHANGE = 0.8
"""Two patches that repeat at least this share are one change that landed twice, with a revert between."""

_UNDONE = 0.5
"""The share of its lines, added and removed, from which a patch is taken back; as in `chains.edges.reversals`."""


@dataclass(frozen=True, slots=True)
class Link:
    """One pair, judged."""

    edge: Edge
    outcome: str
    sources: tuple[str, ...]
    """Those of `chains.edges.pairs.SOURCES` that know of the pair."""


@dataclass(frozen=True)
class Linker:
    """Judges the edges of one repository."""

    landed: Mapping[int, LandedPullRequest]
    footprints: Mapping[int, PatchFootprint]
    stages: Collection[int]
    """The pull requests that may be stages."""
    reversals: Reversals
    contains: Callable[[str, str], bool]
    """Whether the second commit is the first one or an ancestor of it."""
    floor: float
    """The least confidence of an edge that chains may use."""
    titles: TitleWords
    span: float | None
    """The most days between two landings; None: any."""
    sources: AbstractSet[str]
    """What has to know of an edge that chains may use; one of these is enough."""

    def link(self, found: Pairs) -> list[Link]:
        """Judge every pair, in their order. An edge to a change that landed again leads to the later landing."""
        pairs: dict[tuple[int, int], PairEvidence] = {}
        for (source, target), evidence in found.items():
            standing = self.reversals.stands_for.get(target, target)
            final = standing if standing != source and self._precedes(standing, source) else target
            pairs[source, final] = pairs.get((source, final), PairEvidence()).joined(evidence)
        return [self._judge(source, target, evidence) for (source, target), evidence in sorted(pairs.items())]

    def _precedes(self, target: int, source: int) -> bool:
        return self.contains(self.landed[source].base_sha, self.landed[target].landed_sha)

    def _judge(self, source: int, target: int, evidence: PairEvidence) -> Link:
        later, earlier = self.landed[source], self.landed[target]
        footprints = self.footprints.get(source), self.footprints.get(target)
        overlap = overlap_of(footprints[0], footprints[1]) if footprints[0] and footprints[1] else None
        days = days_between(earlier.landed_at, later.landed_at)
        score = judge(evidence, overlap, days=days, common_words=self.titles.common(source, target))
        edge = Edge(source, target, score.relation, score.confidence, score.signs)
        relations = {citation.relation for citation in evidence.citations}
        if relations & REPEATS:
            outcome = outcomes.BACKPORT
        elif self._is_reversal(source, target, relations, overlap) or _lands_again(overlap) or undoes(overlap):
            outcome = outcomes.REVERSAL
        elif source not in self.stages or target not in self.stages:
            outcome = outcomes.STAGE_DROPPED
        elif not self._precedes(target, source):
            outcome = outcomes.NOT_ANCESTOR
        elif evidence.code is None and (overlap is None or not overlap.share_an_area):
            outcome = outcomes.NO_SHARED_AREA
        elif not self.sources & set(evidence.sources):
            outcome = outcomes.UNUSED_SOURCE
        else:
            outcome = outcomes.KEPT if score.confidence >= self.floor else outcomes.BELOW_FLOOR
        if outcome == outcomes.KEPT and self.span is not None and days > self.span:
            outcome = outcomes.TOO_FAR_APART
        return Link(edge, outcome, evidence.sources)

    def _is_reversal(self, source: int, target: int, relations: AbstractSet[str], overlap: PatchOverlap | None) -> bool:
        reversals = self.reversals
        if not relations & REVERSALS:
            return False
        is_known = source in reversals.reverts or target in reversals.reverts
        return is_known or reversals.stands_for.get(target) == source or undoes(overlap, is_said=True)


def _lands_again(overlap: PatchOverlap | None) -> bool:
    return overlap is not None and overlap.repeated >= _SAME_CHANGE


def undoes(overlap: PatchOverlap | None, *, is_said: bool = False) -> bool:
    """Whether the later patch takes away most of what the earlier one added, and puts back most of what it removed: a
    revert that says nothing of it. One that says so (`is_said`), among other work perhaps, need put nothing back."""
    if overlap is None:
        return False
    return overlap.taken_away > _UNDONE and (is_said or overlap.restored > _UNDONE)


def rows_of(signs: Sequence[Sign]) -> list[dict[str, object]]:
    """Signs as the database keeps them."""
    return [{"sign": sign.name, "weight": sign.weight, "detail": sign.detail} for sign in signs]
