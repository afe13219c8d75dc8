"""Building the chains of a repository: rows of the miner in, rows of chains out, in one transaction a repository."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from chains import outcomes
from chains.chain_rows import ChainWriter, FrozenChains, frozen_chains, lock
from chains.choice.select import Chain as Numbers
from chains.choice.select import choose_chains, choose_single, choose_temporal
from chains.choice.span import within_span
from chains.edges.graph import build_graph
from chains.edges.pairs import join_pairs, read_changed_code
from chains.history import MinedRepository, days_between, read_citations, read_landed, repositories, text_lengths
from chains.lineage.trace import trace
from chains.options import BuildOptions, BuildReport
from chains.stages.candidates import Examiner
from chains.survey import Survey
from prchain.core.console.progress import Progress, ProgressTask
from prchain.core.console.terminal import counted
from prchain.core.errors import GitError, IncompleteRepository, PrchainError, ShallowRepository
from prchain.core.git import open_mined
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
        survey, unread = self.survey(mined, task)
        task.phase("choosing")
        # What is frozen is read where the chains are written: a task may have been made of one meanwhile.
        with self._store.transaction() as tx:
            lock(tx, mined.id)
            frozen = frozen_chains(tx, mined.id, self._options)
            chosen = self._choose(survey, frozen)
            report = ChainWriter(tx, mined, self._options, survey, frozen).write(chosen)
        report.lineage_error = unread
        return report

    def survey(self, mined: MinedRepository, task: ProgressTask) -> tuple[Survey, GitError | None]:
        """The repository with its pairs judged, and why its lineage could not be read, if so."""
        rule = self._options.edge_rule
        unread = self._trace(mined, task) if rule else None
        survey = self.opened(mined, task)
        if rule:
            survey.look_at({number for pair in survey.pairs for number in pair}, with_footprints=True)
            survey.link(rule, self._options.span)
        else:
            survey.look_at(set(survey.landed), with_footprints=False)
        return survey, unread

    def opened(self, mined: MinedRepository, task: ProgressTask) -> Survey:
        """The repository with what was mined of it; no patch is read yet. Raises `NotARepository`."""
        rule = self._options.edge_rule
        with self._store.reading() as tx:
            landed = read_landed(tx, mined.id)
            pairs = join_pairs(read_citations(tx, mined.id), read_changed_code(tx, mined.id) if rule else {})
            lengths = text_lengths(tx, mined.id)
        repository = open_mined(mined.location, self._mirrors, mined.host, mined.full_name)
        examiner = Examiner(
            mined, repository, self._options.stage_filters, self._options.benchmarks, lengths, task.advance
        )
        landed_pairs = {pair: found for pair, found in pairs.items() if pair[0] in landed and pair[1] in landed}
        return Survey(repository, landed, landed_pairs, examiner, task)

    def _trace(self, mined: MinedRepository, task: ProgressTask) -> GitError | None:
        """Find the lineage. A strategy that can do without it gets the error of a repository that has none to read."""
        try:
            trace(self._store, mined, self._mirrors, task)
        except (IncompleteRepository, ShallowRepository) as error:
            if self._options.strategy == "lineage":
                raise
            return error
        return None

    def _choose(self, survey: Survey, frozen: FrozenChains) -> list[Numbers]:
        chosen, most = self._chosen(survey, frozen), self._options.span
        if most is None:
            return chosen
        times = {number: landed.landed_at for number, landed in survey.landed.items()}
        return within_span(
            chosen, lambda one, other: days_between(times[one], times[other]), most, shortest=self._options.shortest
        )

    def _chosen(self, survey: Survey, frozen: FrozenChains) -> list[Numbers]:
        kept = [chain.numbers for chain in frozen.kept.values()]
        frozen_numbers = frozen.numbers if self._options.disjoint else set()
        shortest, longest = self._options.shortest, self._options.longest
        if self._options.edge_rule:
            graph = build_graph(link.edge for link in survey.links if link.outcome == outcomes.KEPT)
            worths = {number: worth.worth for number, worth in survey.examination.worths.items()}
            chosen = choose_chains(
                graph,
                shortest=shortest,
                longest=longest,
                disjoint=self._options.disjoint,
                frozen=frozen_numbers,
                worths=worths if self._options.strategy != "reference" else None,
            )
            return [numbers for numbers in chosen if numbers not in kept]
        free = [survey.landed[number] for number in survey.examination.sizes if number not in frozen_numbers]
        if self._options.strategy == "single":
            return choose_single(landed.number for landed in free)
        branches: dict[str, list[int]] = defaultdict(list)
        for landed in sorted(free, key=lambda pull: pull.order):
            branches[landed.branch].append(landed.number)
        return choose_temporal(branches.values(), shortest=shortest, longest=longest)
