"""What agents left, as predictions for SWE-bench's harness (5.x): one for every stage that an attempt was made at.

The instances are those of `chains.tasks.swebench`, whose image holds B_t: the prediction is all that leads from B_t to
A_t, so that the harness grades A_t itself, also where the agent's earlier stages differ from the reference.
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
from prchain.errors import GitError, UsageError
from prchain.git.trees import TreeStore
from prchain.instances import instance_id
from sql.chosen import repository_ids
from sql.store import Transaction
from sql.tables import Chain, Trajectory, TrajectoryStage
from trajectories.options import RolloutOptions
from trajectories.rows import find_trajectory

PREFIX = "prefix"
"""The prompt that writes the overview of an accepted prefix, which no prediction holds."""

NOT_TRIED = "not_tried"
"""No attempt was made at the stage: its end is its beginning, and tells nothing of the agent."""
NO_TREE = "no_tree"
"""No attempt at the stage came to an end."""
NOT_UTF8 = "not_utf8"
"""The patch holds bytes that a JSON text cannot carry."""


@dataclass(frozen=True, slots=True)
class MissingPrediction:
    """A stage that there is no prediction for."""

    instance: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A trajectory, and what it was made with: the same for all that one file tells of."""

    id: str
    chain_id: str
    sample: int
    model: str
    judge: str | None
    options: str
    prompts: str

    @property
    def way(self) -> str:
        """What it was made with, so that it can be compared: judge, options that are not at their default, prompts."""
        chosen = RolloutOptions.from_json(self.options)
        prompts = {name: hash_ for name, hash_ in json.loads(self.prompts).items() if name != PREFIX}
        told = (self.judge, chosen.chosen, chosen.temperature, chosen.max_tokens, chosen.observers, prompts)
        return json.dumps(told, sort_keys=True)


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
    left_out: Callable[[MissingPrediction], None] = lambda missing: None,
) -> Iterator[dict[str, Any]]:
    """The predictions of trajectories with some outcomes, of one sample a chain: `sample`, or the lowest there is.

    The harness knows one prediction an instance; another sample goes into a file of its own. `like` is the id of a
    trajectory, or its beginning: only those that were made with its model, judge and options. Raises `UsageError` where
    there is more than one of these to choose from, and `StoreError`.
    """
    for rollout in chosen_rollouts(tx, outcomes=outcomes, repository=repository, model=model, like=like, sample=sample):
        yield from _of_rollout(tx, rollout, mirrors, data_dir, left_out)


def chosen_rollouts(
    tx: Transaction,
    *,
    outcomes: Collection[str],
    repository: str | None = None,
    model: str | None = None,
    like: str | None = None,
    sample: int | None = None,
) -> list[Rollout]:
    """One trajectory a chain, all made with the same model, judge and options; see `predictions`.

    A branch repeats its parent up to a step that somebody chose: it stands for a chain that has nothing nearer to the
    beginning.
    """
    row = Trajectory
    columns = (row.id, row.chain_id, row.sample, row.model, row.judge, row.options, row.prompts)
    query = select(*columns).where(row.outcome.in_(sorted(outcomes)))
    if repository is not None:
        chains = select(Chain.id).where(Chain.repository_id.in_(repository_ids(tx, repository)))
        query = query.where(row.chain_id.in_(chains))
    if model is not None:
        query = query.where(row.model == model)
    made: Rollout | None = None
    if like is not None:
        made = Rollout(*tx.connection.execute(select(*columns).where(row.id == find_trajectory(tx, like))).one())
    if sample is not None:
        query = query.where(row.sample == sample)
    found = [Rollout(*fields) for fields in tx.connection.execute(query.order_by(row.chain_id, row.sample, row.id))]
    if made is not None:
        found = [rollout for rollout in found if (rollout.model, rollout.way) == (made.model, made.way)]
    branches = tx.connection.execute(select(row.id, row.parent_id).where(row.parent_id.is_not(None)))
    parents = {str(name): str(parent) for name, parent in branches}
    depths = {rollout.id: _depth(rollout.id, parents) for rollout in found}
    nearest: dict[str, int] = {}
    for rollout in found:
        nearest[rollout.chain_id] = min(depths[rollout.id], nearest.get(rollout.chain_id, depths[rollout.id]))
    nearest_ones = [rollout for rollout in found if depths[rollout.id] == nearest[rollout.chain_id]]
    _check_alike(nearest_ones)
    first: dict[str, Rollout] = {}
    for rollout in nearest_ones:
        first.setdefault(rollout.chain_id, rollout)
    return list(first.values())


def _depth(trajectory: str, parents: Mapping[str, str]) -> int:
    """How many branchings lie before it."""
    depth, parent = 0, parents.get(trajectory)
    while parent is not None:
        depth, parent = depth + 1, parents.get(parent)
    return depth


def _check_alike(rollouts: Sequence[Rollout]) -> None:
    """Raise `UsageError`, which says how to choose, where rollouts were made in several ways."""
    if len(models := sorted({rollout.model for rollout in rollouts})) > 1:
        raise UsageError(f"predictions are of one model a file; choose with --model: {', '.join(models)[:300]}")
    counts = Counter(rollout.way for rollout in rollouts)
    if len(counts) < 2:
        return
    examples = {rollout.way: rollout for rollout in reversed(rollouts)}
    settings = {
        way: {
            "judge": example.judge,
            **asdict(RolloutOptions.from_json(example.options)),
            "prompts": json.loads(example.prompts),
        }
        for way, example in examples.items()
    }
    names = sorted({name for setting in settings.values() for name in setting})
    different = [name for name in names if len({json.dumps(setting.get(name)) for setting in settings.values()}) > 1]
    ways = [
        f"{examples[way].id} ({', '.join(f'{name} {json.dumps(settings[way].get(name))}' for name in different)}; "
        f"{count:,} in all)"
        for way, count in counts.most_common()
    ]
    raise UsageError(f"predictions are of rollouts made alike; choose with --like ID: {', '.join(ways)[:600]}")


def _of_rollout(
    tx: Transaction, rollout: Rollout, mirrors: Path, data_dir: Path, left_out: Callable[[MissingPrediction], None]
) -> Iterator[dict[str, Any]]:
    chain = read_chain(tx, rollout.chain_id)
    stages = {stage.position: stage for stage in chain.stages}
    trees: TreeStore | None = None
    columns = ("position", "end_tree", "attempts")
    # Whoever reads predictions may stop at one, and would leave the cursor open behind the transaction.
    for position, tree, attempts in list(tx.rows(TrajectoryStage, *columns, trajectory_id=rollout.id)):
        name = instance_id(chain.repository, chain.id, position)
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
