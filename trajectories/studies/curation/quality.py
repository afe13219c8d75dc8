"""Whether curated trajectories are shorter and less redundant than plain rollouts (P2T, section 5.3 and figure 2).

Both of a pair resolved the same chain: every stage was accepted. Of each kind the first sample of a chain counts, so
that a chain with many samples weighs no more than another.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_prose, say_table
from sql.store import Store
from sql.tables import Chain, Repository, Trajectory
from trajectories.agents.steps.conversation import told_tokens
from trajectories.agents.steps.redundancy import exploration
from trajectories.curation.graphs.svg import spread_svg
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import ACCEPTED
from trajectories.privileged import CURATED, DISCLOSED
from trajectories.rows import read_entries
from trajectories.studies.comparison import FEWEST, Comparison, compared
from trajectories.studies.curation.study_files import Study

PLAIN = "plain"

MEASURES: Mapping[str, str] = {
    "steps": "steps",
    "redundant_share": "redundant views",
    "response_tokens": "response tokens",
}
"""Measures, with their names for people."""

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class MeasuredTrajectory:
    """What is compared of a trajectory."""

    id: str
    steps: float
    """Assistant turns."""
    views: int
    redundant: int
    redundant_share: float | None
    """Of the views of files; None where it looked at none."""
    response_tokens: float | None
    """Of all turns; None where that of a turn is not known."""


@dataclass(frozen=True, slots=True)
class QualityPair:
    """A plain and a curated trajectory that resolved the same chain."""

    chain_id: str
    repository: str
    plain: MeasuredTrajectory
    curated: MeasuredTrajectory


@dataclass(frozen=True, slots=True)
class QualityPairs:
    """The pairs, by chain; and how many accepted trajectories and chains with one there are of each kind."""

    accepted: Mapping[str, int]
    chains: Mapping[str, int]
    pairs: tuple[QualityPair, ...]


def quality_pairs(store: Store, repository: str | None = None) -> QualityPairs:
    """One pair for each chain that both kinds resolved."""
    query = (
        select(Trajectory.id, Trajectory.chain_id, Trajectory.scaffold, Repository.owner, Repository.name)
        .join(Chain, Chain.id == Trajectory.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(Trajectory.outcome == ACCEPTED, Trajectory.scaffold != DISCLOSED)
        .order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)
    )
    accepted: Counter[str] = Counter({PLAIN: 0, CURATED: 0})
    first: dict[str, dict[str, str]] = {PLAIN: {}, CURATED: {}}
    repositories: dict[str, str] = {}
    with store.reading() as tx:
        for name, of, scaffold, owner, repo in list(tx.connection.execute(query)):
            chain_id = str(of)
            if repository is None or f"{owner}/{repo}".lower() == repository.lower():
                kind = CURATED if scaffold == CURATED else PLAIN
                accepted[kind] += 1
                first[kind].setdefault(chain_id, name)
                repositories[chain_id] = f"{owner}/{repo}"
        pairs = tuple(
            QualityPair(
                chain_id,
                repositories[chain_id],
                *(measured(name, read_entries(tx, name)) for name in (plain, first[CURATED][chain_id])),
            )
            for chain_id, plain in first[PLAIN].items()
            if chain_id in first[CURATED]
        )
    return QualityPairs(accepted, {kind: len(chains) for kind, chains in first.items()}, pairs)


def measured(trajectory_id: str, entries: Sequence[Entry]) -> MeasuredTrajectory:
    """The measures of a trajectory, from its conversation. Pure."""
    looks = exploration(entries)
    tokens = [told_tokens(entry.tokens_out, entry.details) for entry in entries if entry.kind is EntryKind.TURN]
    known = [count for count in tokens if count is not None]
    return MeasuredTrajectory(
        trajectory_id,
        looks.steps,
        len(looks.views),
        looks.redundant,
        looks.redundant_share,
        sum(known) if tokens and len(known) == len(tokens) else None,
    )


def _both(found: QualityPairs, measure: str) -> list[tuple[float, float]]:
    """A measure of the pairs of which both have it."""
    both = [(getattr(pair.plain, measure), getattr(pair.curated, measure)) for pair in found.pairs]
    return [(plain, curated) for plain, curated in both if plain is not None and curated is not None]


def quality_study(found: QualityPairs) -> dict[str, Any]:
    """Each measure compared (`Comparison`). Raises `UsageError` where scipy is needed and not installed."""
    return {
        "accepted": dict(found.accepted),
        "chains": dict(found.chains),
        "pairs": len(found.pairs),
        "measures": {measure: asdict(compared(_both(found, measure))) for measure in MEASURES},
    }


def quality_rows(found: QualityPairs) -> str:
    """CSV: one row a pair."""
    columns = ("id", "steps", "views", "redundant", "redundant_share", "response_tokens")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["chain", "repository", *(f"{kind}_{name}" for kind in (PLAIN, CURATED) for name in columns)])
    for pair in found.pairs:
        both = (pair.plain, pair.curated)
        writer.writerow([pair.chain_id, pair.repository, *(getattr(it, name) for it in both for name in columns)])
    return text.getvalue()


def quality_drawings(found: QualityPairs) -> dict[str, str]:
    """Name of each figure to its SVG."""
    figures = {"steps": ("Steps", 1.0, ""), "redundant_share": ("Views of files that show nothing new", 100.0, " %")}
    drawings = {}
    for measure, (head, factor, unit) in figures.items():
        pairs = _both(found, measure)
        groups = {PLAIN: [factor * plain for plain, _ in pairs], CURATED: [factor * curated for _, curated in pairs]}
        drawings[measure] = spread_svg(f"{head}, {counted(len(pairs), 'pair')}", groups, unit)
    return drawings


def study_quality(store: Store, repository: str | None = None) -> Study:
    """The study `quality`. Raises `UsageError` where scipy is needed and not installed."""
    found = quality_pairs(store, repository)
    return Study(quality_study(found), quality_rows(found), quality_drawings(found), print_quality)


def print_quality(study: Mapping[str, Any]) -> None:
    """Print the study as a table of at most 80 columns."""
    accepted, chains = study["accepted"], study["chains"]
    kinds = (f"{accepted[kind]:,} {kind} in {counted(chains[kind], 'chain')}" for kind in (CURATED, PLAIN))
    say(f"{counted(study['pairs'], 'pair')}; accepted: {', '.join(kinds)}")
    if not study["pairs"]:
        say_prose(
            "A pair is a curated trajectory and a plain rollout that were accepted in the same chain.", width=_WIDTH
        )
        return
    comparisons = {measure: Comparison(**values) for measure, values in study["measures"].items()}
    rows = [
        (
            MEASURES[measure],
            it.pairs,
            _mean(measure, it.plain),
            _mean(measure, it.curated),
            "" if it.shift is None else f"{it.shift:.1f}%",
            _p(it.mann_whitney_p),
            _p(it.wilcoxon_p),
            "" if it.cliffs_delta is None else f"{it.cliffs_delta:.2f}",
        )
        for measure, it in comparisons.items()
    ]
    say_table(("mean of", "pairs", "plain", "curated", "shift", "U p", "W p", "delta"), rows)
    say_prose(
        "U: Mann-Whitney; W: Wilcoxon signed-rank; delta: Cliff's, above 0 where plain ones are larger. "
        "The paper: steps -9.3%, delta 0.29; redundant views -31.0%, delta 0.33.",
        width=_WIDTH,
    )
    if study["pairs"] < FEWEST:
        say(f"{counted(study['pairs'], 'pair')} has no p value")


def _mean(measure: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.1f}%" if measure == "redundant_share" else f"{value:,.1f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
