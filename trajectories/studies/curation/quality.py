"""Whether curated trajectories are shorter and less redundant than plain rollouts (P2T, section 5.3 and figure 2).

Both of a pair resolved the same chain, by the same model: every stage was accepted. Of plain rollouts, and of curated
trajectories of each choice of settings, the first sample of a chain counts, so that a chain with many samples weighs no
more than another. Rollouts that an observer guided are neither.
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
from trajectories.curation.windows.settings import settings_of, settings_words
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import ACCEPTED
from trajectories.privileged import CURATED, DISCLOSED, GUIDED, PLAIN, is_guided, kind_of
from trajectories.rows import read_entries
from trajectories.studies.comparison import FEWEST, Comparison, compared
from trajectories.studies.curation.study_files import Study

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
    model: str
    """The agent's, of both."""
    settings: str
    """Of the windows of the curated one."""
    plain: MeasuredTrajectory
    curated: MeasuredTrajectory


@dataclass(frozen=True, slots=True)
class QualityPairs:
    """The pairs, by model, settings and chain; and how many accepted trajectories and chains with one there are of each
    kind."""

    accepted: Mapping[str, int]
    chains: Mapping[str, int]
    pairs: tuple[QualityPair, ...]

    @property
    def groups(self) -> dict[tuple[str, str], list[QualityPair]]:
        """The pairs by model and settings."""
        found: dict[tuple[str, str], list[QualityPair]] = {}
        for pair in self.pairs:
            found.setdefault((pair.model, pair.settings), []).append(pair)
        return found


def quality_pairs(store: Store, repository: str | None = None) -> QualityPairs:
    """One pair for each model, choice of settings, and chain that both kinds resolved."""
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.model,
            Trajectory.scaffold,
            Trajectory.options,
            Trajectory.decided_by,
            Repository.owner,
            Repository.name,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(Trajectory.outcome == ACCEPTED, Trajectory.scaffold != DISCLOSED)
        .order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)
    )
    accepted: Counter[str] = Counter({PLAIN: 0, CURATED: 0, GUIDED: 0})
    chains: dict[str, set[str]] = {kind: set() for kind in accepted}
    plain: dict[tuple[str, str], str] = {}
    curated: dict[tuple[str, str, str], tuple[str, str]] = {}
    with store.reading() as tx:
        for name, of, model, scaffold, options, decided_by, owner, repo in list(tx.connection.execute(query)):
            chain_id, full_name = str(of), f"{owner}/{repo}"
            if repository is not None and full_name.lower() != repository.lower():
                continue
            kind = kind_of(scaffold, options)
            accepted[kind] += 1
            chains[kind].add(chain_id)
            if kind == PLAIN:
                plain.setdefault((model, chain_id), name)
            elif kind == CURATED:
                words = settings_words(settings_of(decided_by)) + (f" {GUIDED}" if is_guided(options) else "")
                curated.setdefault((model, words, chain_id), (name, full_name))
        pairs = tuple(
            QualityPair(
                chain_id, full_name, model, words, *(measured(it, read_entries(tx, it)) for it in (before, name))
            )
            for (model, words, chain_id), (name, full_name) in sorted(curated.items())
            if (before := plain.get((model, chain_id))) is not None
        )
    return QualityPairs(accepted, {kind: len(found) for kind, found in chains.items()}, pairs)


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


def _both(found: Sequence[QualityPair], measure: str) -> list[tuple[float, float]]:
    """A measure of the pairs of which both have it."""
    both = [(getattr(pair.plain, measure), getattr(pair.curated, measure)) for pair in found]
    return [(plain, curated) for plain, curated in both if plain is not None and curated is not None]


def quality_study(found: QualityPairs) -> dict[str, Any]:
    """Each measure compared (`Comparison`), by model and settings. Raises `UsageError` where scipy is needed and not
    installed."""
    return {
        "accepted": dict(found.accepted),
        "chains": dict(found.chains),
        "pairs": len(found.pairs),
        "groups": [
            {
                "model": model,
                "settings": words,
                "pairs": len(pairs),
                "measures": {measure: asdict(compared(_both(pairs, measure))) for measure in MEASURES},
            }
            for (model, words), pairs in found.groups.items()
        ],
    }


def quality_rows(found: QualityPairs) -> str:
    """CSV: one row a pair."""
    columns = ("id", "steps", "views", "redundant", "redundant_share", "response_tokens")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ("chain", "repository", "model", "settings")
    writer.writerow([*head, *(f"{kind}_{name}" for kind in (PLAIN, CURATED) for name in columns)])
    for pair in found.pairs:
        both = (pair.plain, pair.curated)
        told = (pair.chain_id, pair.repository, pair.model, pair.settings)
        writer.writerow([*told, *(getattr(it, name) for it in both for name in columns)])
    return text.getvalue()


def quality_drawings(found: QualityPairs) -> dict[str, str]:
    """Name of each figure to its SVG; of several models or settings the figures have numbers."""
    figures = {"steps": ("Steps", 1.0, ""), "redundant_share": ("Views of files that show nothing new", 100.0, " %")}
    drawings = {}
    several = len(found.groups) > 1
    for number, ((model, words), of) in enumerate(found.groups.items() or [(("", ""), [])], 1):
        for measure, (head, factor, unit) in figures.items():
            pairs = _both(of, measure)
            groups = {PLAIN: [factor * before for before, _ in pairs], CURATED: [factor * it for _, it in pairs]}
            title = f"{head}, {counted(len(pairs), 'pair')}" + (f", {model}, {words}" if several else "")
            drawings[f"{measure}-{number}" if several else measure] = spread_svg(title, groups, unit)
    return drawings


def study_quality(store: Store, repository: str | None = None) -> Study:
    """The study `quality`. Raises `UsageError` where scipy is needed and not installed."""
    found = quality_pairs(store, repository)
    return Study(quality_study(found), quality_rows(found), quality_drawings(found), print_quality)


def print_quality(study: Mapping[str, Any]) -> None:
    """Print the study as a table of at most 80 columns."""
    accepted, chains = study["accepted"], study["chains"]
    kinds = (
        f"{accepted[kind]:,} {kind} in {counted(chains[kind], 'chain')}"
        for kind in (CURATED, PLAIN, GUIDED)
        if kind != GUIDED or accepted[kind]
    )
    say(f"{counted(study['pairs'], 'pair')}; accepted: {', '.join(kinds)}")
    if not study["pairs"]:
        say_prose(
            "A pair is a curated trajectory and a plain rollout of one model that were accepted in the same chain.",
            width=_WIDTH,
        )
        return
    for group in study["groups"]:
        if len(study["groups"]) > 1:
            say()
            say_prose(f"{group['model']}, windows {group['settings']}", width=_WIDTH)
        _print_group(group)
    say_prose(
        "U: Mann-Whitney; W: Wilcoxon signed-rank; delta: Cliff's, above 0 where plain ones are larger. "
        "The paper: steps -9.3%, delta 0.29; redundant views -31.0%, delta 0.33.",
        width=_WIDTH,
    )


def _print_group(study: Mapping[str, Any]) -> None:
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
