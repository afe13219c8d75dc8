"""The figures of rollouts by model, by options or by repository: resolved at k steps, domains, queries, cost.

daVinci-Agency tells pull requests and queries by repository (table 4), the domains of its samples (figure 3) and what
is resolved under more and more steps (figure 7).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import func, select

from prchain.core.errors import UsageError
from sql.outcomes import READY
from sql.store import Transaction
from sql.tables import Chain, GraphRow, PullRequest, Repository, TaskStage, Trajectory, TrajectoryStage, Verdict
from trajectories.curation.windows.settings import read_settings, settings_words
from trajectories.extensions import extended_prefixes
from trajectories.options import DEFAULTS
from trajectories.outcomes import FINAL, KEPT
from trajectories.privileged import DISCLOSED, PRIVILEGED
from trajectories.studies.resolved import STEPS, is_resolved, within
from trajectories.studies.statistics.spent import SpentSum, all_spent, shared_out
from trajectories.studies.statistics.stats import PAPER

GroupKind = Literal["model", "option", "repository"]

UNKNOWN_DOMAIN = "unknown"


@dataclass(frozen=True, slots=True)
class GroupedRollout:
    """A trajectory of the database, and the group that it is in."""

    id: str
    chain_id: str
    repository: str
    group: str
    outcome: str
    counts: bool
    """Whether it is a rollout from the beginning that nobody told or wrote anything: its steps can be compared."""
    sample: bool
    """Whether it is kept, and no other one extends it."""
    length: int
    """Stages of its chain."""


@dataclass(slots=True)
class _Resolved:
    """Steps of each stage, or chain, that was resolved; and how many there were."""

    all: int = 0
    steps: list[int] = field(default_factory=list)

    def row(self, steps: Iterable[int]) -> dict[str, Any]:
        limits = tuple(steps)
        shares = within(self.steps, self.all, limits)
        return {
            "of": self.all,
            "resolved": len(self.steps),
            "at": {str(most): round(shares[most], 4) if shares else None for most in limits},
        }


def read_domains(path: Path) -> dict[str, str]:
    """The domain of each repository (``owner/name``, lower case) from a TOML file of lines like ``"numpy/numpy" =
    "scientific computing"``. Raises `UsageError`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}") from None
    for name, domain in table.items():
        if not isinstance(domain, str) or "/" not in name:
            raise UsageError(f'{path}: {name} is no line like "owner/name" = "domain"')
    return {name.lower(): domain for name, domain in table.items()}


def read_steps(words: str) -> tuple[int, ...]:
    """Numbers of steps from a list like ``25,50``. Raises `UsageError`."""
    parts = [part.strip() for part in words.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise UsageError(f"--steps takes numbers of steps, as in 25,50,100, not {words!r}")
    return tuple(sorted({int(part) for part in parts}))


def grouped_stats(
    tx: Transaction,
    by: GroupKind,
    *,
    steps: Sequence[int] = STEPS,
    domains: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The figures of every group, as JSON values. Raises `StoreError`.

    `domains` maps repositories to their domains (`read_domains`); None: a chain's domain is its language.

    A stage is *resolved* where its hidden tests pass on the last attempt, or, where none ran, where the gate accepted
    it; of stages that a rollout from the beginning worked on to their end. A chain is where all of its stages are.
    What was asked for a chain or a repository is shared by the rollouts over it, so that the sums of all groups, and of
    what no rollout had a part in, are what the ledger says.
    """
    names = _repositories(tx)
    rollouts = _rollouts(tx, by)
    domain_of = _domains(tx, domains)
    stages, chains = _resolved(tx, rollouts)
    costs, rest = _costs(tx, by, rollouts, names)
    queries = _queries(tx)
    groups = sorted({rollout.group for rollout in rollouts} | (set(names.values()) if by == "repository" else set()))
    rows = []
    for group in groups:
        mine = [rollout for rollout in rollouts if rollout.group == group]
        samples = [rollout for rollout in mine if rollout.sample]
        covered = Counter(domain_of[rollout.chain_id] for rollout in samples)
        rows.append(
            {
                "group": group,
                "rollouts": len(mine),
                "chains": len({rollout.chain_id for rollout in mine}),
                "samples": len(samples),
                "resolved_stages": stages.get(group, _Resolved()).row(steps),
                "resolved_chains": chains.get(group, _Resolved()).row(steps),
                "domains": dict(sorted(covered.items(), key=lambda item: (-item[1], item[0]))),
                **_cost_row(costs.get(group, SpentSum()), len(samples)),
                **(_mined(tx, names, group, queries) if by == "repository" else {}),
            }
        )
    total = {"pull_requests": tx.count(PullRequest), "queries": sum(queries.values())}
    known = sorted(set(domain_of.values()))
    return {
        "by": by,
        "steps": list(steps),
        "groups": rows,
        "all_domains": known,
        "domains_are": "languages of chains" if domains is None else "as told",
        "rest": _cost_row(rest, 0)["cost"],
        **({"sum": total, "paper": {name: PAPER[name] for name in total}} if by == "repository" else {}),
    }


def _cost_row(cost: SpentSum, samples: int) -> dict[str, Any]:
    return {"cost": cost.row(samples)}


def _repositories(tx: Transaction) -> dict[int, str]:
    return {number: f"{owner}/{name}" for number, owner, name in tx.rows(Repository, "id", "owner", "name")}


def _rollouts(tx: Transaction, by: GroupKind) -> list[GroupedRollout]:
    names = _repositories(tx)
    extended = set(extended_prefixes(tx).values())
    query = (
        select(
            Trajectory.id,
            Trajectory.chain_id,
            Trajectory.model,
            Trajectory.scaffold,
            Trajectory.options,
            Trajectory.outcome,
            Trajectory.parent_id,
            Chain.repository_id,
            Chain.length,
        )
        .join(Chain, Chain.id == Trajectory.chain_id)
        .where(Trajectory.scaffold != DISCLOSED)
        .order_by(Trajectory.id)
    )
    found = list(tx.connection.execute(query))
    windows = {name: settings_words(settings) for name, settings in read_settings(tx).items()}
    labels = option_labels([{**row.options, "scaffold": row.scaffold, "windows": windows.get(row.id)} for row in found])
    return [
        GroupedRollout(
            row.id,
            row.chain_id,
            names[row.repository_id],
            {"model": row.model, "option": label, "repository": names[row.repository_id]}[by],
            row.outcome,
            row.outcome in FINAL and row.parent_id is None and row.scaffold not in PRIVILEGED,
            row.outcome in KEPT and row.id not in extended,
            row.length,
        )
        for row, label in zip(found, labels, strict=True)
    ]


def option_labels(options: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each set of options: those in which some differ. One that is missing is at its default."""
    whole = [{**DEFAULTS, **row} for row in options]
    names = sorted({name for row in whole for name in row})
    seen = {name: {json.dumps(row.get(name), sort_keys=True) for row in whole} for name in names}
    differing = [name for name in names if len(seen[name]) > 1]
    return [", ".join(f"{name}={_word(row.get(name))}" for name in differing) or "all alike" for row in whole]


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(f"{most:g} {unit}" for unit, most in value.items() if most is not None) or "none"
    if isinstance(value, list):
        return "+".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _domains(tx: Transaction, domains: Mapping[str, str] | None) -> dict[str, str]:
    """Chain id to its domain."""
    names = _repositories(tx)
    return {
        chain: (language if domains is None else domains.get(names[repository].lower())) or UNKNOWN_DOMAIN
        for chain, repository, language in tx.rows(Chain, "id", "repository_id", "language")
    }


def _resolved(
    tx: Transaction, rollouts: Collection[GroupedRollout]
) -> tuple[dict[str, _Resolved], dict[str, _Resolved]]:
    """Stages and chains that were resolved, by group."""
    counting = {rollout.id: rollout for rollout in rollouts if rollout.counts}
    tests = {
        (name, position, attempt): outcome
        for name, position, attempt, outcome in tx.rows(Verdict, "trajectory_id", "position", "attempt", "tests")
        if name in counting
    }
    stages: dict[str, _Resolved] = {}
    taken: dict[str, list[int]] = {}
    columns = ("trajectory_id", "position", "outcome", "attempts", "steps")
    for name, position, outcome, attempts, steps in tx.rows(TrajectoryStage, *columns):
        if name not in counting or outcome not in FINAL or not attempts:
            continue
        result = tests.get((name, position, attempts))
        found = stages.setdefault(counting[name].group, _Resolved())
        found.all += 1
        if is_resolved(result, outcome):
            found.steps.append(steps)
            taken.setdefault(name, []).append(steps)
    chains: dict[str, _Resolved] = {}
    for name, rollout in counting.items():
        found = chains.setdefault(rollout.group, _Resolved())
        found.all += 1
        found.steps += [sum(taken[name])] if len(taken.get(name, ())) == rollout.length else []
    return stages, chains


def _costs(
    tx: Transaction, by: GroupKind, rollouts: Collection[GroupedRollout], names: Mapping[int, str]
) -> tuple[dict[str, SpentSum], SpentSum]:
    of_chain: dict[str, list[str]] = {}
    of_repository: dict[str, list[str]] = {}
    for rollout in rollouts:
        of_chain.setdefault(rollout.chain_id, []).append(rollout.group)
        of_repository.setdefault(rollout.repository, []).append(rollout.group)
    if by == "repository":
        of_repository = {name: [name] for name in names.values()}
        of_chain = {chain: [names[number]] for chain, number in tx.rows(Chain, "id", "repository_id")}
    # Calls for a process graph begin with the graph's id.
    of_chain |= {graph: of_chain[chain] for graph, chain in tx.rows(GraphRow, "id", "chain_id") if chain in of_chain}
    return shared_out(all_spent(tx), {it.id: it.group for it in rollouts}, of_chain, of_repository)


def _queries(tx: Transaction) -> dict[int, int]:
    """How many queries were written, by repository."""
    query = (
        select(Chain.repository_id, func.count())
        .join(TaskStage, TaskStage.chain_id == Chain.id)
        .where(TaskStage.outcome == READY)
        .group_by(Chain.repository_id)
    )
    return {int(number): int(count) for number, count in tx.connection.execute(query)}


def _mined(tx: Transaction, names: Mapping[int, str], group: str, queries: Mapping[int, int]) -> dict[str, int]:
    numbers = [number for number, name in names.items() if name == group]
    return {
        "pull_requests": sum(tx.count(PullRequest, repository_id=number) for number in numbers),
        "queries": sum(queries.get(number, 0) for number in numbers),
    }
