"""How many chains each strategy gives at several floors, and how good they probably are: the point is the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

from chains import outcomes
from chains.build import ChainBuilder
from chains.choice.select import choose_chains
from chains.edges.graph import build_graph
from chains.history import MinedRepository
from chains.options import EDGE_RULES, BuildOptions
from chains.survey import Survey
from prchain.core.console.progress import ProgressTask
from prchain.core.console.terminal import counted, say, say_counts, say_table

POINTS = ((0.7, 0.0), (0.7, 0.5), (0.85, 0.5), (0.9, 0.7))
"""Floors of confidence and of worth that are tried beside each strategy's own."""

EVERYTHING = BuildOptions(floor=0.0, worth=0.0)
"""The options of a survey that yields can be found from."""


@dataclass(frozen=True, slots=True)
class ChainYield:
    """What one strategy gives at one point."""

    repository: str
    strategy: str
    floor: float
    worth: float
    own: bool
    """Whether this is the strategy's own point."""
    landed: int
    chains: int
    lengths: dict[int, int]
    stages: int
    with_tests: int
    """Stages of chains whose every stage changes tests."""
    per_thousand: float
    """Stages per 1,000 landed pull requests."""
    every_step_real: float | None
    """Estimated: the mean over chains of the product of the confidences; None without chains."""
    sensible: float | None
    """Estimated: the same with the stages' worth multiplied in."""


@dataclass(frozen=True, slots=True)
class RepositoryYields:
    """One repository: its pairs by source, and its yields."""

    repository: str
    landed: int
    sources: Counter[str]
    rows: tuple[ChainYield, ...]
    dropped: Counter[str] = field(default_factory=Counter)
    """Filter to pull requests of pairs that it drops: these are missing at every point."""


def repository_yields(builder: ChainBuilder, mined: MinedRepository, task: ProgressTask) -> RepositoryYields:
    """Survey one repository, and choose chains at every point without writing any. Raises `GitError`, `StoreError`."""
    survey, _ = builder.survey(mined, task)
    task.phase("choosing")
    usable = [link for link in survey.links if link.outcome == outcomes.KEPT]
    rows = tuple(_rows(mined.full_name, survey))
    sources = Counter("+".join(link.sources) for link in usable)
    dropped = Counter(outcome for outcome, _ in survey.examination.dropped.values())
    return RepositoryYields(mined.full_name, len(survey.landed), sources, rows, dropped)


def _rows(name: str, survey: Survey) -> Iterator[ChainYield]:
    for strategy, rule in EDGE_RULES.items():
        own = (rule.floor, rule.worth)
        for floor, worth in sorted({own, *POINTS}):
            chosen = chosen_at(survey, strategy, floor, worth)
            yield _row(name, survey, strategy, (floor, worth), (floor, worth) == own, chosen)


def chosen_at(
    survey: Survey, strategy: str, floor: float, worth: float, *, shortest: int = 2, longest: int = 5
) -> list[tuple[int, ...]]:
    """The chains of one strategy at one point, from a survey without floors."""
    sources = EDGE_RULES[strategy].sources
    worths = {number: found.worth for number, found in survey.examination.worths.items()}
    edges = (
        link.edge
        for link in survey.links
        if link.outcome == outcomes.KEPT
        and sources & set(link.sources)
        and link.edge.confidence >= floor
        and min(worths.get(link.edge.source, 1.0), worths.get(link.edge.target, 1.0)) >= worth
    )
    weighed = None if strategy == "reference" else worths
    return choose_chains(build_graph(edges), shortest=shortest, longest=longest, worths=weighed)


def _row(
    name: str,
    survey: Survey,
    strategy: str,
    point: tuple[float, float],
    is_own: bool,
    chosen: Sequence[tuple[int, ...]],
) -> ChainYield:
    confidences = {(link.edge.source, link.edge.target): link.edge.confidence for link in survey.links}
    sizes, worths = survey.examination.sizes, survey.examination.worths
    real = [prod(confidences[later, earlier] for earlier, later in pairwise(chain)) for chain in chosen]
    good = [
        value * prod(worths[number].worth if number in worths else 1.0 for number in chain)
        for value, chain in zip(real, chosen, strict=True)
    ]
    stages = sum(map(len, chosen))
    return ChainYield(
        name,
        strategy,
        *point,
        is_own,
        len(survey.landed),
        len(chosen),
        dict(sorted(Counter(map(len, chosen)).items())),
        stages,
        sum(len(chain) for chain in chosen if all(sizes[number].test_lines for number in chain)),
        round(1000 * stages / max(len(survey.landed), 1), 1),
        round(sum(real) / len(real), 3) if real else None,
        round(sum(good) / len(good), 3) if good else None,
    )


def yields_row(found: RepositoryYields) -> dict[str, Any]:
    """One repository for machines."""
    return {
        "repository": found.repository,
        "landed": found.landed,
        "pairs": dict(found.sources.most_common()),
        "dropped": dict(found.dropped.most_common()),
        "yields": [asdict(row) for row in found.rows],
    }


def total_yields(everything: Sequence[RepositoryYields]) -> RepositoryYields:
    """The sums over several repositories, point by point; shares are those of all chains."""
    landed = sum(found.landed for found in everything)
    points: dict[tuple[str, float, float], list[ChainYield]] = {}
    for found in everything:
        for row in found.rows:
            points.setdefault((row.strategy, row.floor, row.worth), []).append(row)
    name = counted(len(everything), "repository")
    rows = tuple(_sum(name, landed, same) for same in points.values())
    sources = sum((found.sources for found in everything), Counter[str]())
    return RepositoryYields(name, landed, sources, rows, sum((found.dropped for found in everything), Counter[str]()))


def _sum(name: str, landed: int, rows: Sequence[ChainYield]) -> ChainYield:
    chains, stages = (sum(getattr(row, field) for row in rows) for field in ("chains", "stages"))
    lengths = sum((Counter(row.lengths) for row in rows), Counter[int]())

    def share(field: str) -> float | None:
        return round(sum((getattr(row, field) or 0) * row.chains for row in rows) / chains, 3) if chains else None

    return replace(
        rows[0],
        repository=name,
        landed=landed,
        chains=chains,
        lengths=dict(sorted(lengths.items())),
        stages=stages,
        with_tests=sum(row.with_tests for row in rows),
        per_thousand=round(1000 * stages / max(landed, 1), 1),
        every_step_real=share("every_step_real"),
        sensible=share("sensible"),
    )


def print_yields(everything: Sequence[RepositoryYields]) -> None:
    """Print every repository's table, and that of all."""
    for found in [*everything, *([total_yields(everything)] if len(everything) > 1 else [])]:
        say(f"{found.repository}: {counted(found.landed, 'landed pull request')}")
        say_counts("pairs that chains may use, by source", dict(found.sources.most_common()))
        say_counts("of these dropped by filters", dict(found.dropped.most_common()))
        if found.dropped["benchmark_repository"]:
            say("  benchmarks are made from it: `chains build --allow-benchmarks` keeps what that filter drops")
        say_table(
            ("strategy", "floor", "worth", "chains", "stages", "tested", "/1,000", "real", "sensible"),
            map(_cells, found.rows),
        )
    if everything:
        say("* the strategy's own floors. chains: 5x2 is five with two stages. tested: stages")
        say("of chains whose every stage changes tests. /1,000: stages for 1,000 landed.")
        say("real, sensible: estimated shares of chains whose every step is real, and that")
        say("also make a sensible task. Other points: `chains build --floor F --worth W`.")


def _cells(row: ChainYield) -> tuple[object, ...]:
    return (
        row.strategy + (" *" if row.own else ""),
        f"{row.floor:.2f}",
        f"{row.worth:.2f}",
        " ".join(f"{count:,}x{length}" for length, count in row.lengths.items()) or "0",
        row.stages,
        row.with_tests,
        row.per_thousand,
        "" if row.every_step_real is None else f"{row.every_step_real:.0%}",
        "" if row.sensible is None else f"{row.sensible:.0%}",
    )
