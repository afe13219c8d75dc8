"""The page of the funnel: each repository from its pull requests to what can be exported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from miner.outcomes import OUTCOMES
from prchain.view.facets import ALL, UNTOLD, CountedRepository, Facet
from prchain.view.tones import COUNTED, GOING_ON, tone
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
    shade: str
    """Its colour: one for each outcome of a page."""


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
    strategy: str
    """Whose chains it is about; empty where it is about none."""


@dataclass(frozen=True, slots=True)
class FunnelBlock:
    """Steps that stand together."""

    strategy: str
    """Of chains that another build than the last one chose: they are folded. Else empty."""
    steps: tuple[FunnelStep, ...]


@dataclass(frozen=True, slots=True)
class FunnelSection:
    """The funnel of one repository."""

    repository: str
    last_run: str
    blocks: tuple[FunnelBlock, ...]
    adds_up: bool
    """Whether all of its steps do."""


class _Shades:
    """Colours of outcomes: each keeps the one that it got first, so that it looks alike in every bar."""

    _KEPT = ("k0", "k1", "k2", "k3", "k4")
    _FIRST: Mapping[str, tuple[str, ...]] = {"bad": ("d3",), "dull": ("d1", "d0"), "odd": ("d2", "d4", "d0")}

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], str] = {}

    def of(self, name: str, kept: bool, beside: set[str]) -> str:
        """The colour of an outcome, another than those `beside` it where there is one left."""
        wanted = self._KEPT if kept else (*self._FIRST.get(tone(name), ()), "d2", "d4", "d0", "d1", "d3")
        free = next((shade for shade in wanted if shade not in beside), wanted[len(beside) % len(wanted)])
        return self._known.setdefault((name, kept), free)


def sections(repositories: Sequence[CountedRepository]) -> list[FunnelSection]:
    """The funnel as the page shows it. Pure."""
    shades = _Shades()
    return [_section(counted, shades) for counted in repositories]


def facets(repositories: Sequence[CountedRepository]) -> Iterator[Facet]:
    """Every count of the page. Pure."""
    for counted in repositories:
        for step in _steps(counted):
            yield from step.found
        yield from _whole(counted)


def _section(counted: CountedRepository, shades: _Shades) -> FunnelSection:
    run = counted.row.last_run
    reason = f": {run.reason}" if run and run.reason else ""
    words = f"last run {run.outcome}, {run.started_at[:16]}, source {run.source}{reason}" if run else ""
    wholes = {facet.kind: facet for facet in _whole(counted)}
    steps = []
    for step in _steps(counted):
        whole = wholes.get(step.found[0].kind) if step.found else None
        steps.append(_step(step, whole.page if whole else "", shades))
    blocks = [
        FunnelBlock(strategy, tuple(own))
        for strategy, own in groupby(steps, lambda it: it.strategy if it.strategy != counted.strategy else "")
    ]
    return FunnelSection(counted.row.repository, words, tuple(blocks), all(step.adds_up for step in steps))


def _whole(counted: CountedRepository) -> Iterator[Facet]:
    if counted.row.pull_requests:
        yield _facet(counted, "pull-requests", (ALL,), counted.row.pull_requests)


def _facet(counted: CountedRepository, kind: str, values: tuple[str, ...], count: int) -> Facet:
    return Facet(counted.id, counted.row.repository, counted.host, kind, values, count)


class _Counts(NamedTuple):
    """The counts of a step."""

    title: str
    note: str
    total: int | None
    """What they add up to; None where nothing tells."""
    found: list[Facet]
    strategy: str = ""


def _steps(counted: CountedRepository) -> Iterator[_Counts]:
    """The counts of each step; without steps of nothing."""
    row = counted.row

    def of(kind: str, counts: Mapping[str, int], *first: str) -> list[Facet]:
        return [_facet(counted, kind, (*first, name or UNTOLD), count) for name, count in counts.items()]

    outcomes = {name: row.outcomes[name] for name in OUTCOMES if row.outcomes.get(name)}
    outcomes |= {name: count for name, count in row.outcomes.items() if name not in outcomes}
    citations = [*of("citations", row.counted, "counted"), *of("citations", row.refused, "not counted")]
    all_steps = [
        _Counts("Pull requests", "", row.pull_requests, of("pull-requests", outcomes)),
        _Counts("Landed as", "a pull request can land on several branches", None, of("landed", row.landed)),
        _Counts("Claims to a landing refused", "", None, of("refused", row.refused_claims)),
        _Counts("Citations", "", row.citations, citations),
    ]
    if row.incomplete:
        all_steps.append(_Counts("Read in part", "", None, [_facet(counted, "incomplete", (ALL,), row.incomplete)]))
    if row.landed_without_files:
        lacking = [_facet(counted, "lacking", (ALL,), row.landed_without_files)]
        all_steps.append(_Counts("Landings that lack files", "", None, lacking))
    for strategy, made in row.chaining.items():
        chains = sum(made.chains.values())
        all_steps += [
            _Counts(f"{title}, strategy {strategy}", "", total, of(kind, counts, strategy), strategy)
            for title, total, kind, counts in (
                ("Landed", row.outcomes.get("landed", 0), "candidates", made.candidates),
                ("Chains", None, "chains", made.chains),
                ("Their tasks", chains, "tasks", made.tasks),
                ("Their proofs", chains, "proofs", made.proofs),
            )
        ]
    kept = sum(row.rollouts.get(name, 0) for name in KEPT)
    note = f"{kept:,} of them can be exported as samples"
    all_steps.append(_Counts("Rollouts of all chains", note, None, of("rollouts", row.rollouts)))
    all_steps.append(_Counts("Process graphs", "", None, of("graphs", row.graphs)))
    return (step for step in all_steps if step.found)


def _step(counts: _Counts, total_page: str, shades: _Shades) -> FunnelStep:
    whole = sum(facet.count for facet in counts.found)
    slices: list[Slice] = []
    start = 0.0
    for facet in counts.found:
        width = 100 * facet.count / whole if whole else 0.0
        name = facet.values[-1] if facet.kind != "citations" else f"{facet.values[1]} ({facet.values[0]})"
        kept = facet.values[-1] in GOING_ON or facet.values[0] == COUNTED or facet.kind == "landed"
        shade = shades.of(name, kept, {it.shade for it in slices})
        slices.append(Slice(name, facet.count, facet.page, round(start, 3), round(width, 3), kept, shade))
        start += width
    adds_up = counts.total is None or counts.total == whole
    return FunnelStep(counts.title, counts.note, whole, total_page, tuple(slices), adds_up, counts.strategy)
