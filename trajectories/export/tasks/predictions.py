"""The agents' patches as predictions for SWE-bench's harness (5.x): one for every stage with an attempt.

The instances are those of `chains.tasks.swebench`, whose image holds B_t: the prediction is the whole patch from B_t to
A_t, so the harness grades A_t itself, also if the agent's earlier stages differ from the reference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from environments.stages import open_git, open_trees, read_chain
from prchain.core.errors import GitError, UsageError
from prchain.core.git.trees import TreeStore
from prchain.core.swebench.instances import instance_id, published_instance
from sql.chosen import repository_ids
from sql.store import Transaction
from sql.tables import Chain, ImportedTask, Trajectory, TrajectoryStage
from trajectories.options import RolloutOptions
from trajectories.privileged import DISCLOSED
from trajectories.rows import find_trajectory

PREFIX = "prefix"
"""The prompt that writes the overview of an accepted prefix; predictions do not depend on it."""

NOT_TRIED = "not_tried"
"""The stage has no attempt: it ends with the tree that it began with, which says nothing about the agent."""
NO_TREE = "no_tree"
"""No attempt at the stage ended."""
NOT_UTF8 = "not_utf8"
"""The patch holds bytes that are not UTF-8, which JSON cannot hold."""


@dataclass(frozen=True, slots=True)
class MissingPrediction:
    """A stage without a prediction, and why."""

    instance: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A trajectory with its model and setup, which are the same for all predictions of a file."""

    id: str
    chain_id: str
    sample: int
    model: str
    judge: str | None
    options: Mapping[str, Any]
    prompts: Mapping[str, str]

    @property
    def setup(self) -> str:
        """Judge, options that are not at their default, and prompts, as a text to compare."""
        chosen = RolloutOptions.from_row(self.options)
        prompts = {name: hash_ for name, hash_ in self.prompts.items() if name != PREFIX}
        values = (
            self.judge,
            chosen.chosen,
            chosen.temperature,
            chosen.top_p,
            chosen.max_tokens,
            chosen.observers,
            prompts,
        )
        return json.dumps(values, sort_keys=True)


def predictions(
    tx: Transaction,
    mirrors: Path,
    data_dir: Path,
    *,
    outcomes: Collection[str],
    repository: str | None = None,
    model: str | None = None,
    like: str | None = None,
    sample: int | None = None,
    chains: Collection[str] | None = None,
    only: Collection[str] | None = None,
    left_out: Callable[[MissingPrediction], None] = lambda missing: None,
) -> Iterator[dict[str, Any]]:
    """The predictions of trajectories with these outcomes, of one sample a chain: `sample`, or the lowest there is.

    The harness takes one prediction an instance; another sample needs a file of its own. `like` is a trajectory's id,
    or the beginning of it: only trajectories with its model, judge, options and prompts are taken. Raises `UsageError`
    if several setups are left, and `StoreError`.
    """
    chosen = chosen_rollouts(
        tx, outcomes=outcomes, repository=repository, model=model, like=like, sample=sample, chains=chains, only=only
    )
    for rollout in chosen:
        yield from _rollout_predictions(tx, rollout, mirrors, data_dir, left_out)


def chosen_rollouts(
    tx: Transaction,
    *,
    outcomes: Collection[str],
    repository: str | None = None,
    model: str | None = None,
    like: str | None = None,
    sample: int | None = None,
    chains: Collection[str] | None = None,
    only: Collection[str] | None = None,
) -> list[Rollout]:
    """One trajectory a chain, of these `chains` or of all, and of the trajectories `only` or of all; all with the same
    model, judge and options; see `predictions`.

    A branch repeats its parent up to a chosen step. It is taken only if the chain has no trajectory with fewer
    branchings before it. What agents did that were told a part of a process graph is no prediction.
    """
    table = Trajectory
    columns = (table.id, table.chain_id, table.sample, table.model, table.judge, table.options, table.prompts)
    query = select(*columns).where(
        table.outcome.in_(sorted(outcomes)), table.scaffold != DISCLOSED, table.chain_id.is_not(None)
    )
    if repository is not None:
        of_repository = select(Chain.id).where(Chain.repository_id.in_(repository_ids(tx, repository)))
        query = query.where(table.chain_id.in_(of_repository))
    if model is not None:
        query = query.where(table.model == model)
    like_rollout: Rollout | None = None
    if like is not None:
        like_rollout = Rollout(
            *tx.connection.execute(select(*columns).where(table.id == find_trajectory(tx, like))).one()
        )
        if tx.count(table, id=like_rollout.id, scaffold=DISCLOSED):
            raise UsageError(
                f"the agent of trajectory {like_rollout.id} was told a part of a process graph; what it did is no "
                "prediction"
            )
    if sample is not None:
        query = query.where(table.sample == sample)
    found = [
        Rollout(*fields)
        for fields in tx.connection.execute(query.order_by(table.chain_id, table.sample, table.id))
        if (chains is None or fields.chain_id in chains) and (only is None or fields.id in only)
    ]
    if like_rollout is not None:
        found = [
            rollout for rollout in found if (rollout.model, rollout.setup) == (like_rollout.model, like_rollout.setup)
        ]
    branches = tx.connection.execute(select(table.id, table.parent_id).where(table.parent_id.is_not(None)))
    parents = {str(name): str(parent) for name, parent in branches}
    depths = {rollout.id: _depth(rollout.id, parents) for rollout in found}
    least_depths: dict[str, int] = {}
    for rollout in found:
        least_depths[rollout.chain_id] = min(depths[rollout.id], least_depths.get(rollout.chain_id, depths[rollout.id]))
    nearest_rollouts = [rollout for rollout in found if depths[rollout.id] == least_depths[rollout.chain_id]]
    _check_same_setup(nearest_rollouts)
    first_rollouts: dict[str, Rollout] = {}
    for rollout in nearest_rollouts:
        first_rollouts.setdefault(rollout.chain_id, rollout)
    return list(first_rollouts.values())


def _depth(trajectory: str, parents: Mapping[str, str]) -> int:
    """How many branchings come before a trajectory."""
    depth, parent = 0, parents.get(trajectory)
    while parent is not None:
        depth, parent = depth + 1, parents.get(parent)
    return depth


def _check_same_setup(rollouts: Sequence[Rollout]) -> None:
    """Raise `UsageError` for rollouts with different setups; it says how to choose."""
    if len(models := sorted({rollout.model for rollout in rollouts})) > 1:
        raise UsageError(f"predictions are of one model a file; choose with --model: {', '.join(models)[:300]}")
    counts = Counter(rollout.setup for rollout in rollouts)
    if len(counts) < 2:
        return
    examples = {rollout.setup: rollout for rollout in reversed(rollouts)}
    settings = {
        setup: {
            "judge": example.judge,
            **asdict(RolloutOptions.from_row(example.options)),
            "prompts": example.prompts,
        }
        for setup, example in examples.items()
    }
    names = sorted({name for setting in settings.values() for name in setting})
    different = [name for name in names if len({json.dumps(setting.get(name)) for setting in settings.values()}) > 1]
    choices = [
        f"{examples[setup].id} ({', '.join(f'{name} {json.dumps(settings[setup].get(name))}' for name in different)}; "
        f"{count:,} in all)"
        for setup, count in counts.most_common()
    ]
    raise UsageError(
        f"predictions are of rollouts made alike; choose with --predictions like=ID: {', '.join(choices)[:600]}"
    )


def _rollout_predictions(
    tx: Transaction, rollout: Rollout, mirrors: Path, data_dir: Path, left_out: Callable[[MissingPrediction], None]
) -> Iterator[dict[str, Any]]:
    chain = read_chain(tx, rollout.chain_id)
    stages = {stage.position: stage for stage in chain.stages}
    trees: TreeStore | None = None
    published = next(iter(tx.rows(ImportedTask, "instance_id", chain_id=chain.id)), None)
    columns = ("position", "end_tree", "attempts")
    # A caller may stop after one prediction, which would leave the cursor open after the transaction.
    for position, tree, attempts in list(tx.rows(TrajectoryStage, *columns, trajectory_id=rollout.id)):
        name = instance_id(chain.repository, chain.id, position)
        if published:
            name = published_instance(str(published[0]), position, len(stages))
        if not attempts:
            left_out(MissingPrediction(name, NOT_TRIED))
            continue
        if tree is None or position not in stages:
            left_out(MissingPrediction(name, NO_TREE))
            continue
        try:
            trees = trees or open_trees(chain, open_git(chain, mirrors), data_dir)
            text = trees.patch_text(stages[position].base, tree).decode()
        except UnicodeDecodeError:
            left_out(MissingPrediction(name, NOT_UTF8))
            continue
        except GitError as error:
            left_out(MissingPrediction(name, error.name, str(error)))
            continue
        yield {"instance_id": name, "model_name_or_path": rollout.model, "model_patch": text}
