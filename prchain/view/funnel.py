"""The page of the funnel: each repository from its pull requests to what can be exported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from miner.outcomes import OUTCOMES
from prchain.view.facets import ALL, UNTOLD, CountedRepository, Facet
from prchain.view.tones import COUNTED, GOING_ON
from trajectories.outcomes import KEPT


@dataclass(frozen=True, slots=True)
class Slice:
    """One outcome of a step, with where its share of a bar begins and ends, in percent."""

    name: str
    count: int
    page: str
    start: float
    width: float
    kept: bool
    """Whether what ended so goes on to the next step."""


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One step of the funnel."""

    title: str
    note: str
    total: int
    total_page: str
    slices: tuple[Slice, ...]
    adds_up: bool
    """Whether the outcomes add up to what the step is made from."""


@dataclass(frozen=True, slots=True)
class FunnelSection:
    """The funnel of one repository."""

    repository: str
    last_run: str
    steps: tuple[FunnelStep, ...]


def sections(repositories: Sequence[CountedRepository]) -> list[FunnelSection]:
    """The funnel as the page shows it. Pure."""
    return [_section(counted) for counted in repositories]


def facets(repositories: Sequence[CountedRepository]) -> Iterator[Facet]:
    """Every count of the page. Pure."""
    for counted in repositories:
        for _, _, _, found in _steps(counted):
            yield from found
        yield from _whole(counted)


def _section(counted: CountedRepository) -> FunnelSection:
    run = counted.row.last_run
    reason = f": {run.reason}" if run and run.reason else ""
    words = f"last run {run.outcome}, {run.started_at[:16]}, source {run.source}{reason}" if run else ""
    wholes = {facet.kind: facet for facet in _whole(counted)}
    steps = []
    for title, note, total, found in _steps(counted):
        whole = wholes.get(found[0].kind) if found else None
        steps.append(_step(title, note, total, whole.page if whole else "", found))
    return FunnelSection(counted.row.repository, words, tuple(steps))


def _whole(counted: CountedRepository) -> Iterator[Facet]:
    if counted.row.pull_requests:
        yield _facet(counted, "pull-requests", (ALL,), counted.row.pull_requests)


def _facet(counted: CountedRepository, kind: str, values: tuple[str, ...], count: int) -> Facet:
    return Facet(counted.id, counted.row.repository, counted.host, kind, values, count)


_Step = tuple[str, str, int | None, list[Facet]]


def _steps(counted: CountedRepository) -> Iterator[_Step]:
    """Title, note, what the counts add up to (None where nothing tells), and the counts; without steps of nothing."""
    row = counted.row

    def of(kind: str, counts: Mapping[str, int], *first: str) -> list[Facet]:
        return [_facet(counted, kind, (*first, name or UNTOLD), count) for name, count in counts.items()]

    outcomes = {name: row.outcomes[name] for name in OUTCOMES if row.outcomes.get(name)}
    outcomes |= {name: count for name, count in row.outcomes.items() if name not in outcomes}
    citations = [*of("citations", row.counted, "counted"), *of("citations", row.refused, "not counted")]
    all_steps: list[_Step] = [
        ("Pull requests", "", row.pull_requests, of("pull-requests", outcomes)),
        ("Landed as", "a pull request can land on several branches", None, of("landed", row.landed)),
        ("Claims to a landing refused", "", None, of("refused", row.refused_claims)),
        ("Citations", "", row.citations, citations),
    ]
    if row.incomplete:
        all_steps.append(("Read in part", "", None, [_facet(counted, "incomplete", (ALL,), row.incomplete)]))
    if row.landed_without_files:
        lacking = [_facet(counted, "lacking", (ALL,), row.landed_without_files)]
        all_steps.append(("Landings that lack files", "", None, lacking))
    for strategy, made in row.chaining.items():
        landed = row.outcomes.get("landed", 0)
        candidates = of("candidates", made.candidates, strategy)
        all_steps.append((f"Landed, strategy {strategy}", "", landed, candidates))
        chains = sum(made.chains.values())
        all_steps.append((f"Chains, strategy {strategy}", "", None, of("chains", made.chains, strategy)))
        all_steps.append((f"Their tasks, strategy {strategy}", "", chains, of("tasks", made.tasks, strategy)))
        all_steps.append((f"Their proofs, strategy {strategy}", "", chains, of("proofs", made.proofs, strategy)))
    kept = sum(row.rollouts.get(name, 0) for name in KEPT)
    note = f"{kept:,} of them can be exported as samples"
    all_steps.append(("Rollouts of all chains", note, None, of("rollouts", row.rollouts)))
    all_steps.append(("Process graphs", "", None, of("graphs", row.graphs)))
    return (step for step in all_steps if step[3])


def _step(title: str, note: str, total: int | None, total_page: str, found: Sequence[Facet]) -> FunnelStep:
    whole = sum(facet.count for facet in found)
    slices, start = [], 0.0
    for facet in found:
        width = 100 * facet.count / whole if whole else 0.0
        name = facet.values[-1] if facet.kind != "citations" else f"{facet.values[1]} ({facet.values[0]})"
        kept = facet.values[-1] in GOING_ON or facet.values[0] == COUNTED or facet.kind == "landed"
        slices.append(Slice(name, facet.count, facet.page, round(start, 3), round(width, 3), kept))
        start += width
    return FunnelStep(title, note, whole, total_page, tuple(slices), total is None or total == whole)
