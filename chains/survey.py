"""One repository while its chains are built: mined data, the results of reading patches, and the judged pairs."""

from __future__ import annotations

from collections.abc import Mapping

from chains.edges.ancestry import Ancestry
from chains.edges.evidence import REPEATS, REVERSALS
from chains.edges.link import Link, Linker
from chains.edges.pairs import Pairs
from chains.edges.reversals import Reversal, Reversals, find_reversals, is_whole
from chains.edges.titles import TitleWords
from chains.history import LandedPullRequest
from chains.options import EdgeRule
from chains.stages.candidates import Examination, Examiner, footprints_of
from prchain.core.console.progress import ProgressTask
from prchain.core.git import GitRepository


class Survey:
    """One repository while its chains are built."""

    def __init__(
        self,
        repository: GitRepository,
        landed: Mapping[int, LandedPullRequest],
        pairs: Pairs,
        examiner: Examiner,
        task: ProgressTask,
    ) -> None:
        self.repository = repository
        self.landed = landed
        self.pairs = pairs
        self.links: list[Link] = []
        self.examination = Examination()
        self._examiner = examiner
        self._task = task
        self.titles = TitleWords({number: pull.headline for number, pull in landed.items()})
        self.reversals = self._find_reversals()

    def _find_reversals(self) -> Reversals:
        turns = sorted(
            {
                (source, target, citation.relation)
                for (source, target), evidence in self.pairs.items()
                for citation in evidence.citations
                if citation.relation in REVERSALS
            },
            key=lambda turn: (self.landed[turn[0]].landed_at, self.landed[turn[0]].order, turn),
        )
        numbers = sorted({number for source, target, _ in turns for number in (source, target)})
        footprints = footprints_of(self.repository, [self.landed[number] for number in numbers])
        return find_reversals(
            (Reversal(*turn, counts=self._lands_there(*turn[:2])) for turn in turns),
            lambda source, target: is_whole(
                self.landed[source].headline, footprints.get(source), footprints.get(target)
            ),
        )

    def _lands_there(self, source: int, target: int) -> bool:
        """Whether the source changes the branch on which the target landed."""
        return self.landed[source].is_default or self.landed[source].branch == self.landed[target].branch

    def look_at(self, numbers: set[int], *, with_footprints: bool) -> None:
        """Judge these pull requests by the filters."""
        self._task.phase("reading patches", len(numbers))
        backports = {
            source: target
            for (source, target), evidence in sorted(self.pairs.items(), key=lambda item: item[0])
            if any(citation.relation in REPEATS for citation in evidence.citations)
        }
        pulls = [self.landed[number] for number in sorted(numbers)]
        self.examination = self._examiner.examine(
            pulls, reversals=self.reversals, backports=backports, with_footprints=with_footprints
        )

    def link(self, rule: EdgeRule, span: float | None = None) -> None:
        """Judge every pair by a strategy's rule; two landings may be `span` days apart."""
        self._task.phase("linking")
        # Only the history tells whether a base comes before a landing: positions are those of one branch.
        starts = {sha for pair in self.pairs for number in pair for sha in self._shas(number)}
        ancestry = Ancestry(self.repository.parents(sorted(starts))) if starts else Ancestry(())
        tip = self._tip()
        if tip:
            ancestry.set_first_parent_line(tip)
        linker = Linker(
            self.landed,
            self.examination.footprints,
            self.examination.sizes.keys(),
            self.reversals,
            ancestry.contains,
            rule.floor,
            self.titles,
            span,
            rule.sources,
        )
        self.links = linker.link(self.pairs)

    def _shas(self, number: int) -> tuple[str, str]:
        return self.landed[number].base_sha, self.landed[number].landed_sha

    def _tip(self) -> str | None:
        """The newest landing on the default branch among those that are linked."""
        on_trunk = [self.landed[number] for pair in self.pairs for number in pair if self.landed[number].is_default]
        return max(on_trunk, key=lambda landed: landed.position).landed_sha if on_trunk else None
