"""Building the chains of a repository: rows of the miner in, rows of chains out, in one transaction a repository."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from chains import outcomes
from chains.chain_rows import ChainWriter, FrozenChain, frozen_chains, lock
from chains.choice.select import Chain as Numbers
from chains.choice.select import choose_chains, choose_single, choose_temporal
from chains.edges.graph import build_graph
from chains.history import MinedRepository, read_citations, read_landed, repositories, text_lengths
from chains.options import BuildOptions, BuildReport
from chains.stages.candidates import Examiner
from chains.survey import Survey
from prchain.errors import PrchainError
from prchain.git import open_mined
from prchain.progress import Progress, ProgressTask
from prchain.terminal import counted
from sql.store import Store


class ChainBuilder:
    """Builds the chains of mined repositories."""

    def __init__(self, store: Store, *, mirrors: Path, progress: Progress, options: BuildOptions) -> None:
        self._store = store
        self._mirrors = mirrors
        self._progress = progress
        self._options = options

    def build(self, full_name: str | None = None) -> list[BuildReport]:
        """Build the chains of every mined repository, or of one; a repository that fails spoils no other."""
        with self._store.reading() as tx:
            mined = repositories(tx, full_name)
        return [self._build(repository) for repository in mined]

    def _build(self, mined: MinedRepository) -> BuildReport:
        task = self._progress.task(f"{mined.full_name}: chains")
        try:
            report = self._chains_of(mined, task)
        except PrchainError as error:
            task.done(error.name)
            return BuildReport(mined.full_name, error=error)
        task.done(counted(report.chains, "chain"))
        return report

    def _chains_of(self, mined: MinedRepository, task: ProgressTask) -> BuildReport:
        with self._store.reading() as tx:
            landed = read_landed(tx, mined.id)
            citations = read_citations(tx, mined.id)
            lengths = text_lengths(tx, mined.id)
        repository = open_mined(mined.location, self._mirrors, mined.host, mined.full_name)
        examiner = Examiner(mined, repository, self._options.filters, self._options.benchmarks, lengths, task.advance)
        pairs = {
            pair: pair_citations
            for pair, pair_citations in citations.items()
            if pair[0] in landed and pair[1] in landed
        }
        survey = Survey(repository, landed, pairs, examiner, task)
        if self._options.strategy == "reference":
            survey.look_at({number for pair in pairs for number in pair}, with_footprints=True)
            survey.link(self._options.floor)
        else:
            survey.look_at(set(landed), with_footprints=False)
        task.update(note="choosing")
        # What is frozen is read where the chains are written: a task may have been made of one meanwhile.
        with self._store.transaction() as tx:
            lock(tx, mined.id)
            frozen = {} if self._options.reselect else frozen_chains(tx, mined.id, self._options.strategy)
            chosen = self._choose(survey, frozen)
            return ChainWriter(tx, mined, self._options, survey, frozen).write(chosen)

    def _choose(self, survey: Survey, frozen: Mapping[str, FrozenChain]) -> list[Numbers]:
        kept = [frozen.numbers for frozen in frozen.values()]
        frozen_numbers = {number for numbers in kept for number in numbers} if self._options.disjoint else set()
        shortest, longest = self._options.shortest, self._options.longest
        if self._options.strategy == "reference":
            graph = build_graph(link.edge for link in survey.links if link.outcome == outcomes.KEPT)
            chosen = choose_chains(
                graph, shortest=shortest, longest=longest, disjoint=self._options.disjoint, frozen=frozen_numbers
            )
            return [numbers for numbers in chosen if numbers not in kept]
        free = [survey.landed[number] for number in survey.examination.sizes if number not in frozen_numbers]
        if self._options.strategy == "single":
            return choose_single(landed.number for landed in free)
        branches: dict[str, list[int]] = defaultdict(list)
        for landed in sorted(free, key=lambda pull: pull.order):
            branches[landed.branch].append(landed.number)
        return choose_temporal(branches.values(), shortest=shortest, longest=longest)
