"""Recipes for training data: rejection sampling by tests, the same with failed steps masked, curation, curation cut to
the same size, and rejection sampling with the compute of curation (P2T, section 5.2 and appendix K).

A recipe's money and hours are those of all its attempts, failed ones too: what is thrown away was paid for. Curation
pays for its process graphs besides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from environments.suites.outcomes import PASSED
from sql.store import Transaction
from sql.tables import (
    Chain,
    CurationCandidate,
    GraphRow,
    Repository,
    Trajectory,
    TrajectoryStage,
    Verdict,
)
from trajectories.agents.scaffolds.context import BYTES_PER_TOKEN
from trajectories.agents.steps.conversation import told_tokens
from trajectories.agents.steps.redundancy import exploration
from trajectories.curation.windows.settings import read_settings, settings_words
from trajectories.export.draw import drawn
from trajectories.export.masks import DEFAULT_MASKS, Mask, loss_decisions
from trajectories.export.reading import response_lengths
from trajectories.export.shortest import shortest_first
from trajectories.model import LIMITS, EntryKind
from trajectories.outcomes import FINAL, KEPT
from trajectories.privileged import CURATED, GUIDED, PRIVILEGED, kind_of
from trajectories.rows import read_entries, read_verdicts
from trajectories.sums import calls_of

TEST_PASS, ERROR_MASKED, SIZE_MATCHED, COMPUTE_MATCHED = (
    "test_pass",
    "error_masked",
    "size_matched",
    "compute_matched",
)

PASSES = 1
"""Of plain rollouts, in rejection sampling that is not matched to the compute of curation."""

HOUR = 3_600
"""Seconds."""


@dataclass(frozen=True, slots=True)
class RecipeAttempt:
    """A trajectory that a recipe may use; `usd` is None where a price is not known."""

    id: str
    chain_id: str
    sample: int
    curated: bool
    accepted: int
    """Accepted stages from the first one on."""
    kept: bool
    passed: bool
    """Whether it is kept, and tests passed in all accepted stages."""
    setting: tuple[str, str, str | None]
    """The agent's model, the hash of the options, and the settings of windows of a curated one."""
    usd: float | None
    seconds: float
    at_limit: bool = False
    """Whether an accepted stage ended at a limit, and not because the agent handed its work in."""

    @property
    def model(self) -> str:
        """The agent's."""
        return self.setting[0]

    @property
    def windows(self) -> str | None:
        """See `setting`."""
        return self.setting[2]


@dataclass(frozen=True, slots=True)
class RecipeAttempts:
    """The attempts of all recipes, by chain, sample and id; and what the process graphs of these chains took."""

    attempts: tuple[RecipeAttempt, ...] = ()
    graphs: int = 0
    graphs_usd: float | None = 0.0
    graphs_seconds: float = 0.0
    guided: int = 0
    """Rollouts that an observer guided: of no recipe."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """What a model said in the accepted stages of a trajectory; tokens are None where those of a turn are not known."""

    steps: int
    trained_steps: int
    """Under loss."""
    tokens: int | None
    trained_tokens: int | None
    views: int = 0
    """Of files."""
    redundant: int = 0
    """Those of them that showed nothing new."""
    told: int = 0
    """Tokens of all that the model was told, once, estimated by bytes."""


@dataclass(frozen=True, slots=True)
class RecipeLine:
    """What a recipe comes to. Sums of tokens and USD are None where one of their parts is not known."""

    recipe: str
    attempts: int
    """Rollouts or curated trajectories, also those that failed or have not ended."""
    chains: int
    """Of the attempts."""
    samples: int
    steps: int
    trained_steps: int
    tokens: int | None
    """Of the samples' replies."""
    trained_tokens: int | None
    usd: float | None
    hours: float
    without: int
    """Chains that were tried and have no sample (P2T, section 1: no supervision)."""
    at_limit: int
    """Samples that passed where a limit ended them."""
    redundant: float | None
    """The share of the samples' views of files that showed nothing new; None where they looked at none."""


def recipe_attempts(tx: Transaction, repository: str | None = None, model: str | None = None) -> RecipeAttempts:
    """The plain rollouts and the curated trajectories, of one repository or agent's model. Branches are neither: they
    share steps with their parents; nor are rollouts that an observer guided. Graphs count whatever the model."""
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.sample,
            Trajectory.scaffold,
            Trajectory.outcome,
            Trajectory.accepted,
            Trajectory.model,
            Trajectory.options,
            Trajectory.options_hash,
            Trajectory.usd,
        )
        .where(
            Trajectory.scaffold.not_in(sorted(PRIVILEGED - {CURATED})),
            Trajectory.parent_id.is_(None),
            Trajectory.chain_id.in_(_chains(tx, repository)),
        )
        .order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)
    )
    if model is not None:
        query = query.where(Trajectory.model == model)
    passed, seconds, cut, windows = _passed_stages(tx), _seconds(tx), _cut_stages(tx), read_settings(tx)
    attempts, guided = [], 0
    for row in list(tx.connection.execute(query)):
        if kind_of(row.scaffold, row.options) == GUIDED:
            guided += 1
            continue
        curated, kept = row.scaffold == CURATED, row.outcome in KEPT
        attempts.append(
            RecipeAttempt(
                row.id,
                row.chain_id,
                row.sample,
                curated,
                row.accepted,
                kept,
                kept and set(range(1, row.accepted + 1)) <= passed.get(row.id, set()),
                (row.model, row.options_hash, settings_words(windows[row.id]) if curated else None),
                # A trajectory's row has the sum only once it has ended.
                row.usd if row.outcome in FINAL else calls_of(tx, row.id)["usd"],
                seconds.get((row.id, curated), 0.0),
                bool(set(range(1, row.accepted + 1)) & cut.get(row.id, set())),
            )
        )
    graphs = list(
        tx.connection.execute(
            select(GraphRow.usd, GraphRow.seconds).where(GraphRow.chain_id.in_(_chains(tx, repository)))
        )
    )
    return RecipeAttempts(
        tuple(attempts), len(graphs), _sum(usd for usd, _ in graphs), sum(spent for _, spent in graphs), guided
    )


def _chains(tx: Transaction, repository: str | None) -> Any:
    """A query for the ids of the chains."""
    query = select(Chain.id)
    if repository is None:
        return query
    rows = tx.rows(Repository, "id", "owner", "name")
    ids = [number for number, owner, name in rows if f"{owner}/{name}".lower() == repository.lower()]
    return query.where(Chain.repository_id.in_(ids))


def _passed_stages(tx: Transaction) -> dict[str, set[int]]:
    """Trajectory to the stages of which an accepted attempt passed its tests."""
    query = select(Verdict.trajectory_id, Verdict.position).where(Verdict.accepted.is_(True), Verdict.tests == PASSED)
    found: dict[str, set[int]] = {}
    for name, position in tx.connection.execute(query):
        found.setdefault(name, set()).add(position)
    return found


def _cut_stages(tx: Transaction) -> dict[str, set[int]]:
    """Trajectory to the stages whose last attempt a limit ended."""
    found: dict[str, set[int]] = {}
    for name, position, endings in tx.rows(TrajectoryStage, "trajectory_id", "position", "endings"):
        if endings and endings[-1] in LIMITS:
            found.setdefault(name, set()).add(position)
    return found


def _seconds(tx: Transaction) -> dict[tuple[str, bool], float]:
    """Trajectory, and whether it is curated, to the seconds of models, tools and verdicts.

    The stages of a curated one have the time of the committed steps alone; that of all candidates stands with these.
    """
    stages = select(TrajectoryStage.trajectory_id, func.sum(TrajectoryStage.seconds))
    found = {
        (name, False): float(spent)
        for name, spent in tx.connection.execute(stages.group_by(TrajectoryStage.trajectory_id))
    }
    for table in (CurationCandidate, Verdict):
        parts = select(table.trajectory_id, func.sum(table.seconds)).group_by(table.trajectory_id)
        for name, spent in tx.connection.execute(parts):
            found[name, True] = found.get((name, True), 0.0) + float(spent)
    return found


def sample_size(tx: Transaction, attempt: RecipeAttempt, masks: frozenset[Mask]) -> SampleSize:
    """What an export with these masks would hold of a trajectory."""
    entries = [entry for entry in read_entries(tx, attempt.id) if entry.position <= attempt.accepted]
    accepted = {verdict.position: verdict.attempt for verdict in read_verdicts(tx, attempt.id) if verdict.accepted}
    decided = zip(entries, loss_decisions(entries, accepted, masks), strict=True)
    turns = [
        (told_tokens(entry.tokens_out, entry.details), decision.train)
        for entry, decision in decided
        if entry.kind is EntryKind.TURN
    ]
    looked = exploration(entries)
    return SampleSize(
        len(turns),
        sum(train for _, train in turns),
        _total(tokens for tokens, _ in turns),
        _total(tokens for tokens, train in turns if train),
        len(looked.views),
        looked.redundant,
        sum(
            -(-len(it.content.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
            for it in entries
            if it.kind is not EntryKind.TURN
        ),
    )


def recipe_lines(tx: Transaction, found: RecipeAttempts, *, passes: int = PASSES, seed: int = 0) -> list[RecipeLine]:
    """One line a recipe. `passes` is how many samples of each chain rejection sampling uses where its compute is not
    matched; `seed` draws the samples of the size-matched recipe, as in an export."""
    plain = [attempt for attempt in found.attempts if not attempt.curated]
    first = [attempt for attempt in plain if attempt.sample < passes]
    curated = [attempt for attempt in found.attempts if attempt.curated]
    resolved = _passed(first)
    wanted = drawn((attempt.id for attempt in _passed(curated)), len(resolved), seed)
    groups = shortest_first(_passed(plain), response_lengths(tx))
    chosen: Mapping[str, tuple[Sequence[RecipeAttempt], Sequence[RecipeAttempt], frozenset[Mask]]] = {
        TEST_PASS: (first, resolved, DEFAULT_MASKS),
        ERROR_MASKED: (first, resolved, DEFAULT_MASKS | {Mask.TOOL_ERRORS, Mask.COMMAND_ERRORS}),
        CURATED: (curated, _passed(curated), DEFAULT_MASKS),
        SIZE_MATCHED: (curated, [attempt for attempt in _passed(curated) if attempt.id in wanted], DEFAULT_MASKS),
        COMPUTE_MATCHED: (plain, [group[0] for group in groups], DEFAULT_MASKS),
    }
    return [
        _line(recipe, attempts, samples, [sample_size(tx, sample, masks) for sample in samples], found)
        for recipe, (attempts, samples, masks) in chosen.items()
    ]


def _passed(attempts: Iterable[RecipeAttempt]) -> list[RecipeAttempt]:
    return [attempt for attempt in attempts if attempt.passed]


def _line(
    recipe: str,
    attempts: Collection[RecipeAttempt],
    samples: Sequence[RecipeAttempt],
    sizes: Sequence[SampleSize],
    found: RecipeAttempts,
) -> RecipeLine:
    with_graphs = recipe in {CURATED, SIZE_MATCHED}
    usd = [attempt.usd for attempt in attempts] + [found.graphs_usd] * with_graphs
    seconds = sum(attempt.seconds for attempt in attempts) + found.graphs_seconds * with_graphs
    return RecipeLine(
        recipe,
        len(attempts),
        len({attempt.chain_id for attempt in attempts}),
        len(sizes),
        sum(size.steps for size in sizes),
        sum(size.trained_steps for size in sizes),
        _total(size.tokens for size in sizes),
        _total(size.trained_tokens for size in sizes),
        _sum(usd),
        seconds / HOUR,
        len({it.chain_id for it in attempts} - {it.chain_id for it in samples}),
        sum(it.at_limit for it in samples),
        sum(size.redundant for size in sizes) / views if (views := sum(size.views for size in sizes)) else None,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum((value or 0.0 for value in known), 0.0)


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)
