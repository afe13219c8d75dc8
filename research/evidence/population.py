"""Everything that can be drawn of a mined database: judged pairs and chosen chains, with their signs."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from chains import outcomes
from chains.build import ChainBuilder
from chains.edges.evidence import code_signs
from chains.edges.pairs import LINEAGE
from chains.history import MinedRepository, repositories
from chains.survey import Survey
from chains.yields import EVERYTHING, chosen_at
from prchain.core.console.progress import SILENT
from prchain.core.git import GitRepository, open_mined
from research.evidence.sheets import SheetStage
from sql.store import Store
from sql.tables import Commit, PullRequestCommit

_MOST_COMMITS = 12

Numbers = tuple[int, ...]
"""Of pull requests, earliest first."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One pair or chain that was drawn. `chance` is the share of its bin that was drawn; its inverse is its weight."""

    repository: str
    numbers: tuple[int, ...]
    bin: str
    chance: float
    steps: tuple[Mapping[str, float], ...]
    """The values of the signs of each step; empty for a step that is cited."""
    stages: tuple[Mapping[str, float], ...]
    """The values of the signs of each stage's worth."""
    confidences: tuple[float, ...]
    worths: tuple[float, ...]
    sources: tuple[str, ...]

    def row(self) -> dict[str, object]:
        """As a line of the table of labels begins."""
        return {
            "repository": self.repository,
            "numbers": " ".join(map(str, self.numbers)),
            "bin": self.bin,
            "chance": round(self.chance, 6),
            "confidences": " ".join(map(str, self.confidences)),
            "worths": " ".join(map(str, self.worths)),
            "sources": " ".join(self.sources),
            "step_signs": json.dumps([dict(step) for step in self.steps]),
            "stage_signs": json.dumps([dict(stage) for stage in self.stages]),
        }


class Population:
    """One mined repository, surveyed."""

    def __init__(self, mined: MinedRepository, survey: Survey, repository: GitRepository, store: Store) -> None:
        self.mined = mined
        self.survey = survey
        self.repository = repository
        self._store = store
        self._links = {(link.edge.source, link.edge.target): link for link in survey.links}
        self._usable = [link for link in survey.links if link.outcome == outcomes.KEPT]

    def uncited(self) -> list[tuple[int, int]]:
        """The pairs that lineage alone knows and chains could use: earlier and later number."""
        return [(link.edge.target, link.edge.source) for link in self._usable if link.sources == (LINEAGE,)]

    def chains(self, strategy: str, floor: float, worth: float) -> list[tuple[int, ...]]:
        """The chains that a strategy chooses at these floors."""
        return chosen_at(self.survey, strategy, floor, worth)

    def confidences(self, numbers: Sequence[int]) -> tuple[float, ...]:
        """Of each step."""
        return tuple(self._links[later, earlier].edge.confidence for earlier, later in pairwise(numbers))

    def worths(self, numbers: Sequence[int]) -> tuple[float, ...]:
        """Of each stage."""
        return tuple(self.survey.examination.worths[number].worth for number in numbers)

    def drawn(self, numbers: Sequence[int], name: str, chance: float) -> Drawn:
        """What the table of labels has of a pair or chain."""
        steps = tuple(self._step(earlier, later) for earlier, later in pairwise(numbers))
        sources = tuple("+".join(self._links[later, earlier].sources) for earlier, later in pairwise(numbers))
        found = self.survey.examination.worths
        stages = tuple(found[number].values for number in numbers)
        return Drawn(
            self.mined.full_name,
            tuple(numbers),
            name,
            chance,
            steps,
            stages,
            self.confidences(numbers),
            self.worths(numbers),
            sources,
        )

    def _step(self, earlier: int, later: int) -> dict[str, float]:
        evidence = self.survey.pairs.get((later, earlier))
        if evidence is None or evidence.citations or evidence.code is None:
            return {}
        signs = code_signs(evidence.code, self.survey.titles.common(earlier, later))
        return {name: round(value, 4) for name, (value, _) in signs.items()}

    def sheet_stages(self, numbers: Sequence[int]) -> list[SheetStage]:
        """What a reader is shown of a pair or chain."""
        return [self._sheet_stage(number) for number in numbers]

    def _sheet_stage(self, number: int) -> SheetStage:
        landed = self.survey.landed[number]
        with self._store.reading() as tx:
            shas = [row[0] for row in tx.rows(PullRequestCommit, "sha", repository_id=self.mined.id, number=number)]
            messages = dict.fromkeys(
                row[0].strip()
                for sha in dict.fromkeys([landed.landed_sha, *shas[:_MOST_COMMITS]])
                for row in tx.rows(Commit, "message", repository_id=self.mined.id, sha=sha)
            )
        return SheetStage(landed.base_sha, landed.landed_sha, landed.landed_at, tuple(messages))


def populations(store: Store, mirrors: Path) -> Iterator[Population]:
    """Every mined repository, surveyed with no floor."""
    builder = ChainBuilder(store, mirrors=mirrors, progress=SILENT, options=EVERYTHING)
    with store.reading() as tx:
        found = repositories(tx)
    for mined in found:
        survey, _ = builder.survey(mined, SILENT.task(""))
        yield Population(mined, survey, open_mined(mined.location, mirrors, mined.host, mined.full_name), store)


def stratified(
    found: Mapping[Numbers, float], edges: Sequence[float], each: int, seed: str
) -> list[tuple[Numbers, str, float]]:
    """At most `each` of every bin between `edges`, with the bin's name and the share of it that was drawn."""
    bins: dict[int, list[Numbers]] = defaultdict(list)
    for thing, value in found.items():
        bins[sum(value >= edge for edge in edges)].append(thing)
    drawn = []
    for place in sorted(bins):
        members = bins[place]
        chosen = random.Random(f"{seed} {place}").sample(members, min(each, len(members)))
        low, high = (edges[place - 1] if place else 0.0), (edges[place] if place < len(edges) else 1.0)
        drawn += [(thing, f"{low:g}-{high:g}", len(chosen) / len(members)) for thing in chosen]
    return drawn
