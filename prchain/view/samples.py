"""The pages that lay the trajectories of one chain beside each other, and say where each begins to go its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prchain.view.divergence import Act, acts, nearest
from prchain.view.places import chain_page, slug, trajectory_page
from prchain.view.shown import shown_of_chain
from prchain.view.texts import cut
from sql.store import Store, Transaction
from sql.tables import Chain
from trajectories.curation.windows.settings import read_settings, settings_words
from trajectories.outcomes import FINAL, NOT_REACHED
from trajectories.rollouts.report import TrajectoryReport, trajectory_report
from trajectories.studies.curation.quality import measured
from trajectories.studies.evaluation.stored import redundant_shares, stage_resolved
from trajectories.studies.statistics.groups import option_labels

SAMPLES = 20
"""Trajectories on one page: each is compared with those before it."""

_SHOWN = 1_500
"""Characters of what an agent did that stand beside each other."""


@dataclass(frozen=True, slots=True)
class ComparedStage:
    """What a trajectory did at one stage."""

    position: int
    outcome: str
    resolved: bool | None
    """As `prchain evaluate` counts it; None where the stage is not over."""
    attempts: int
    steps: int
    redundant: float | None
    """The share of its views of files that showed nothing new; None where it looked at none."""


@dataclass(frozen=True, slots=True)
class ShownAct:
    """What an agent did in a step, with where it stands."""

    page: str
    step: int
    position: int
    attempt: int
    words: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a trajectory leaves the one above it that it goes with for longest."""

    other: str
    """Its id."""
    number: int
    """Its place among the trajectories of the chain."""
    shared: int
    """Steps that both begin with."""
    own: ShownAct | None
    """What each did next; None where it ended."""
    others: ShownAct | None


@dataclass(frozen=True, slots=True)
class ComparedSample:
    """One trajectory of the chain."""

    number: int
    """Its place among those of the chain: trajectories of several settings may all be sample 0."""
    report: TrajectoryReport
    """Without its messages."""
    page: str
    anchor: str
    setting: str
    """What sets its options apart from those of the others on the page."""
    redundant: float | None
    """The share of its views of files that showed nothing new, as `prchain curate study quality` tells it."""
    stages: tuple[ComparedStage, ...]
    divergence: Divergence | None
    """None for the first one of a page."""


@dataclass(frozen=True, slots=True)
class SamplesView:
    """A page of the trajectories of one chain."""

    chain_id: str
    length: int
    total: int
    start: int
    """How many stand on the pages before."""
    samples: tuple[ComparedSample, ...]
    next: str | None


def samples_pages(tx: Transaction, chain_id: str, shown: frozenset[str] | None) -> list[str]:
    """The pages that compare the trajectories of a chain, within its folder; none where there is nothing to compare."""
    ids = shown_of_chain(tx, chain_id, shown)
    if len(ids) < 2:
        return []
    return ["compare.html", *(_page(ids[place - 1]) for place in range(SAMPLES, len(ids), SAMPLES))]


def samples_page_of(tx: Transaction, chain_id: str, trajectory: str, shown: frozenset[str] | None) -> str | None:
    """The page that compares a trajectory with the others of its chain; None where there is none."""
    ids = shown_of_chain(tx, chain_id, shown)
    if len(ids) < 2 or trajectory not in ids:
        return None
    place = ids.index(trajectory) // SAMPLES * SAMPLES
    page = chain_page(chain_id, _page(ids[place - 1]) if place else "compare.html")
    return f"{page}#{_anchor(trajectory)}"


def samples_view(store: Store, chain_id: str, page: str, shown: frozenset[str] | None) -> SamplesView | None:
    """A page of `samples_pages`; None where there is no such page."""
    with store.reading() as tx:
        ids = shown_of_chain(tx, chain_id, shown)
        [(length,)] = tx.rows(Chain, "length", id=chain_id)
        windows = {name: settings_words(settings) for name, settings in read_settings(tx).items()}
    starts = {"compare.html": 0} | {_page(ids[it - 1]): it for it in range(SAMPLES, len(ids), SAMPLES)}
    start = starts.get(page)
    if start is None or len(ids) < 2:
        return None
    found = [_read(store, trajectory) for trajectory in ids[start : start + SAMPLES]]
    labels = option_labels(
        [{**it.report.options, "scaffold": it.report.scaffold, "windows": windows.get(it.report.id)} for it in found]
    )
    samples = tuple(
        ComparedSample(
            start + place + 1,
            replace(it.report, options={}),
            trajectory_page(it.report.id),
            _anchor(it.report.id),
            label,
            it.redundant,
            tuple(it.stages.get(at) or ComparedStage(at, NOT_REACHED, None, 0, 0, None) for at in range(1, length + 1)),
            _divergence(it, found[:place], start),
        )
        for place, (it, label) in enumerate(zip(found, labels, strict=True))
    )
    following = start + SAMPLES
    more = _page(ids[following - 1]) if following < len(ids) else None
    return SamplesView(chain_id, length, len(ids), start, samples, more)


@dataclass(frozen=True, slots=True)
class _Read:
    report: TrajectoryReport
    acts: list[Act]
    redundant: float | None
    stages: Mapping[int, ComparedStage]


def _read(store: Store, trajectory: str) -> _Read:
    report = trajectory_report(store, trajectory, messages=True)
    entries = report.messages or ()
    shares = redundant_shares(entries)
    tests = {(verdict.position, verdict.attempt): verdict.tests for verdict in report.verdicts}
    stages = {
        it.position: ComparedStage(
            it.position,
            it.outcome,
            stage_resolved(tests.get((it.position, it.attempts)), it.outcome) if it.outcome in FINAL else None,
            it.attempts,
            it.steps,
            shares.get(it.position),
        )
        for it in report.stages
    }
    slim = replace(report, messages=None, stages=(), verdicts=(), tools=(), prompts={}, overview=None)
    return _Read(slim, acts(entries), measured(report.id, entries).redundant_share, stages)


def _divergence(own: _Read, above: Sequence[_Read], start: int) -> Divergence | None:
    found = nearest(own.acts, [it.acts for it in above])
    if found is None:
        return None
    place, shared = found
    other = above[place]
    return Divergence(other.report.id, start + place + 1, shared, _act(own, shared), _act(other, shared))


def _act(of: _Read, place: int) -> ShownAct | None:
    if place >= len(of.acts):
        return None
    act = of.acts[place]
    page = f"{trajectory_page(of.report.id)}#step-{act.step}"
    return ShownAct(page, act.step, act.position, act.attempt, cut(act.words, _SHOWN)[0])


def _page(last: str) -> str:
    """The page after the one that ends with this trajectory."""
    return f"compare-after-{slug(last)}.html"


def _anchor(trajectory: str) -> str:
    return f"sample-{slug(trajectory)}"
