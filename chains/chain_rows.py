"""The rows of chains: reads what earlier runs wrote, and writes the result of this run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update

from chains import outcomes
from chains.choice.select import Chain as Numbers
from chains.edges.link import Link, rows_of
from chains.history import MinedRepository
from chains.identity import chain_id
from chains.options import EDGE_RULES, BuildOptions, BuildReport
from chains.survey import Survey
from chains.tasks.model import FINAL
from prchain.core import timestamps
from prchain.core.cli_options import IMPORTED, SURVEYED
from sql.outcomes import READY, SELECTED
from sql.store import Transaction
from sql.tables import Candidate, Chain, ChainBuild, ChainStage, Dependency, Repository, Selection, TaskStage
from sql.tables import Task as TaskRow


@dataclass(frozen=True, slots=True)
class FrozenChain:
    """A selected chain that a task was made of."""

    numbers: tuple[int, ...]
    landed: tuple[str, ...]
    """The landed commits of its stages."""


@dataclass(frozen=True, slots=True)
class FrozenChains:
    """The chains of a repository that tasks were made of."""

    kept: Mapping[str, FrozenChain]
    """Those that the strategy keeps, by id."""
    numbers: frozenset[int]
    """The pull requests that are taken: of all frozen chains, or, side by side, of the strategy's own."""


def lock(tx: Transaction, repository_id: int) -> None:
    """Lock the repository's row: until the transaction ends, no other run chooses chains of this repository."""
    tx.connection.execute(select(Repository.id).where(Repository.id == repository_id).with_for_update())


def frozen_chains(tx: Transaction, repository_id: int, options: BuildOptions) -> FrozenChains:
    """The selected chains that a task was made of. What one strategy froze is frozen for all, unless strategies are to
    stand side by side: then only what this one froze is.

    A strategy keeps its own, unless it is to choose anew; the strategies that look at who builds on whom keep each
    other's. A task that failed before any of its stages was ready freezes nothing.
    """
    by_strategy = _frozen_chains(tx, repository_id)
    own = by_strategy.pop(options.strategy, {})
    others: dict[str, dict[str, FrozenChain]] = {} if options.side_by_side else by_strategy
    if options.reselect:
        # Also where another strategy keeps the same chain: else two that keep each other's would never let go of it.
        others = {
            strategy: {chain: frozen for chain, frozen in chains.items() if chain not in own}
            for strategy, chains in others.items()
        }
        own = {}
    shared = {
        chain: frozen
        for strategy, chains in others.items()
        if strategy in EDGE_RULES and options.strategy in EDGE_RULES
        for chain, frozen in chains.items()
    }
    taken = [frozen for chains in (own, *others.values()) for frozen in chains.values()]
    return FrozenChains({**own, **shared}, frozenset(number for frozen in taken for number in frozen.numbers))


def _frozen_chains(tx: Transaction, repository_id: int) -> dict[str, dict[str, FrozenChain]]:
    """Strategy to id to chain."""
    ready_chains = select(TaskStage.chain_id).where(TaskStage.outcome == READY)
    query = (
        select(Selection.strategy, ChainStage.chain_id, ChainStage.number, ChainStage.landed_sha)
        .join(Selection, Selection.chain_id == ChainStage.chain_id)
        .join(TaskRow, TaskRow.chain_id == ChainStage.chain_id)
        .where(
            ChainStage.repository_id == repository_id,
            Selection.strategy.not_in((IMPORTED, SURVEYED)),
            Selection.outcome == SELECTED,
            TaskRow.outcome.in_(FINAL) | TaskRow.chain_id.in_(ready_chains),
        )
        .order_by(Selection.strategy, ChainStage.chain_id, ChainStage.position)
    )
    stages: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for strategy, chain, number, landed in tx.connection.execute(query):
        stages[strategy, chain].append((number, landed))
    found: dict[str, dict[str, FrozenChain]] = defaultdict(dict)
    for (strategy, chain), chain_stages in stages.items():
        numbers, commits = zip(*chain_stages, strict=True)
        found[strategy][chain] = FrozenChain(numbers, commits)
    return found


class ChainWriter:
    """Writes the result of one strategy in one repository."""

    def __init__(
        self,
        tx: Transaction,
        mined: MinedRepository,
        options: BuildOptions,
        survey: Survey,
        frozen: FrozenChains,
    ) -> None:
        self._tx = tx
        self._mined = mined
        self._options = options
        self._survey = survey
        self._frozen = frozen
        self._links = {(link.edge.source, link.edge.target): link for link in survey.links}

    def write(self, chosen: Sequence[Numbers]) -> BuildReport:
        report = BuildReport(
            self._mined.full_name,
            self._options.strategy,
            landed=len(self._survey.landed),
            frozen=len(self._frozen.kept),
            taken=len(self._frozen.numbers - {it for frozen in self._frozen.kept.values() for it in frozen.numbers}),
            by_api=self._mined.by_api,
            unfinished=self._mined.unfinished,
        )
        ids = {self._id(numbers): numbers for numbers in chosen}
        self._write_dependencies(report)
        self._write_selections(ids, report)
        self._write_candidates(chosen, report)
        rule = self._options.edge_rule
        build = {
            "repository_id": self._mined.id,
            "strategy": self._options.strategy,
            "built_at": timestamps.now(),
            "serial": 1 + max((serial for (serial,) in self._tx.rows(ChainBuild, "serial")), default=0),
            "floor": rule.floor if rule else None,
            "worth": self._options.stage_filters.min_worth,
        }
        self._tx.upsert(ChainBuild, [build])
        report.lengths = Counter(map(len, (*ids.values(), *(frozen.numbers for frozen in self._frozen.kept.values()))))
        if report.candidates["benchmark_repository"]:
            report.benchmark = self._options.benchmarks.repository(self._mined.full_name)
        report.stale = sum(not self._still_landed(frozen) for frozen in self._frozen.kept.values())
        return report

    def write_drawn(self, numbers: Iterable[int]) -> None:
        """Write chains of one that a survey drew, as `SURVEYED`; what strategies chose stays as it is."""
        ids = {self._id((number,)): (number,) for number in numbers}
        self._write_chains(ids)
        row = {"strategy": SURVEYED, "score": 0.0, "outcome": SELECTED, "reason": None, "selected_at": timestamps.now()}
        self._tx.insert_new(Selection, [{**row, "chain_id": chain} for chain in ids])

    def _still_landed(self, frozen: FrozenChain) -> bool:
        landed = (self._survey.landed.get(number) for number in frozen.numbers)
        return all(landed and landed.landed_sha == sha for landed, sha in zip(landed, frozen.landed, strict=True))

    def _id(self, numbers: Numbers) -> str:
        stages = [(number, self._survey.landed[number].landed_sha) for number in numbers]
        return chain_id(self._mined.host, self._mined.full_name, stages)

    def _write_dependencies(self, report: BuildReport) -> None:
        if not self._options.edge_rule:
            return
        self._tx.delete(Dependency, repository_id=self._mined.id)
        self._tx.upsert(Dependency, (self._dependency(link) for link in self._survey.links))
        report.edges = Counter(link.outcome for link in self._survey.links)
        report.sources = Counter(source for link in self._survey.links for source in link.sources)
        report.relations = Counter(link.edge.relation for link in self._survey.links if link.outcome == outcomes.KEPT)

    def _dependency(self, link: Link) -> dict[str, Any]:
        edge = link.edge
        return {
            "repository_id": self._mined.id,
            "source": edge.source,
            "target": edge.target,
            "relation": edge.relation,
            "confidence": edge.confidence,
            "signs": rows_of(edge.signs),
            "sources": ",".join(link.sources),
            "outcome": link.outcome,
        }

    def _write_selections(self, ids: Mapping[str, Numbers], report: BuildReport) -> None:
        strategy = self._options.strategy
        query = (
            select(Selection.chain_id, Selection.outcome, Selection.selected_at, TaskRow.outcome)
            .join(Chain, Chain.id == Selection.chain_id)
            .outerjoin(TaskRow, TaskRow.chain_id == Chain.id)
            .where(Chain.repository_id == self._mined.id, Selection.strategy == strategy)
        )
        now = timestamps.now()
        since: dict[str, str] = {}
        rows = self._tx.connection.execute(query).all()
        for chain, outcome, selected_at, task in rows:
            if chain in ids:
                report.kept += 1
                since[chain] = selected_at
            elif chain in self._frozen.kept:
                continue
            elif task is None or (task not in FINAL and not self._options.reselect):
                report.gone += outcome == SELECTED
                self._tx.delete(Selection, chain_id=chain, strategy=strategy)
            elif outcome == SELECTED:
                report.retired += 1
                self._retire(chain, f"chosen anew at {now}")
        report.added = len(ids) - report.kept
        known = {row[0] for row in rows}
        adopted = {chain: frozen.numbers for chain, frozen in self._frozen.kept.items() if chain not in known}
        self._write_chains(ids)
        self._tx.upsert(
            Selection,
            [
                {
                    "strategy": strategy,
                    "chain_id": chain,
                    "score": self._score(numbers),
                    "outcome": SELECTED,
                    "reason": None,
                    "selected_at": since.get(chain, now),
                }
                for chain, numbers in (*ids.items(), *adopted.items())
            ],
        )
        self._drop_orphans()

    def _write_chains(self, ids: Mapping[str, Numbers]) -> None:
        """Write the chains. Rows of a chain that another strategy found too, or that has a task, stay.

        Only the strategies that look at who builds on whom know why a stage follows the one before; they add that.
        """
        self._tx.insert_new(Chain, [self._chain(chain, numbers) for chain, numbers in ids.items()])
        stages = [row for chain, numbers in ids.items() for row in self._stages(chain, numbers)]
        self._tx.insert_new(ChainStage, stages)
        for row in stages if self._options.edge_rule else ():
            conditions = (ChainStage.chain_id == row["chain_id"], ChainStage.position == row["position"])
            evidence = {name: row[name] for name in ("relation", "confidence", "signs", "worth", "worth_signs")}
            self._tx.connection.execute(update(ChainStage).where(*conditions).values(**evidence))

    def _retire(self, chain: str, reason: str) -> None:
        conditions = (Selection.strategy == self._options.strategy, Selection.chain_id == chain)
        values = {"outcome": outcomes.RETIRED, "reason": reason}
        self._tx.connection.execute(update(Selection).where(*conditions).values(**values))

    def _drop_orphans(self) -> None:
        """Delete the chains that no strategy selects any more and that have no task."""
        referenced = select(Selection.chain_id).union(select(TaskRow.chain_id).where(TaskRow.outcome.in_(FINAL)))
        self._tx.connection.execute(
            delete(Chain).where(Chain.repository_id == self._mined.id, Chain.id.not_in(referenced))
        )

    def _chain(self, chain: str, numbers: Numbers) -> dict[str, Any]:
        languages: Counter[str] = Counter()
        for number in numbers:
            size = self._survey.examination.sizes[number]
            if size.language:
                languages[size.language] += size.source_lines
        return {
            "id": chain,
            "repository_id": self._mined.id,
            "length": len(numbers),
            "licence": self._survey.examination.licences.get(numbers[-1]),
            "language": min(languages, key=lambda name: (-languages[name], name)) if languages else None,
        }

    def _stages(self, chain: str, numbers: Numbers) -> Iterable[dict[str, Any]]:
        before: int | None = None
        for position, number in enumerate(numbers, 1):
            landed = self._survey.landed[number]
            size = self._survey.examination.sizes[number]
            link = self._links.get((number, before)) if before is not None else None
            worth = self._survey.examination.worths.get(number)
            yield {
                "chain_id": chain,
                "position": position,
                "repository_id": self._mined.id,
                "number": number,
                "branch": landed.branch,
                "base_sha": landed.base_sha,
                "landed_sha": landed.landed_sha,
                "landed_at": landed.landed_at,
                "subject": landed.headline,
                "source_files": size.source_files,
                "source_lines": size.source_lines,
                "test_files": size.test_files,
                "test_lines": size.test_lines,
                "relation": link.edge.relation if link else None,
                "confidence": link.edge.confidence if link else None,
                "signs": rows_of(link.edge.signs) if link else None,
                "worth": worth.worth if worth else None,
                "worth_signs": rows_of(worth.signs) if worth else None,
            }
            before = number

    def _score(self, numbers: Numbers) -> float:
        pairs = zip(numbers[1:], numbers, strict=False)
        return round(sum(self._links[pair].edge.confidence for pair in pairs if pair in self._links), 4)

    def _write_candidates(self, chosen: Sequence[Numbers], report: BuildReport) -> None:
        strategy = self._options.strategy
        chained = {number for numbers in chosen for number in numbers}
        frozen = self._frozen.numbers
        usable = {
            number
            for link in self._survey.links
            if link.outcome == outcomes.KEPT
            for number in (link.edge.source, link.edge.target)
        }
        rows = []
        for number in sorted(self._survey.landed):
            reason: str | None = None
            if number in frozen:
                outcome = outcomes.FROZEN
            elif number in chained:
                outcome = outcomes.CHAINED
            elif number in self._survey.examination.dropped:
                outcome, reason = self._survey.examination.dropped[number]
            elif number in usable or not self._options.edge_rule:
                outcome = outcomes.NOT_CHOSEN
            else:
                outcome = outcomes.UNLINKED
            report.candidates[outcome] += 1
            rows.append((self._mined.id, strategy, number, outcome, reason))
        self._tx.delete(Candidate, repository_id=self._mined.id, strategy=strategy)
        self._tx.bulk(Candidate, ("repository_id", "strategy", "number", "outcome", "reason"), rows)
