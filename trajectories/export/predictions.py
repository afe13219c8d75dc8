"""What agents left, as predictions for SWE-bench's harness (5.x): one for every stage that an attempt was made at.

The instances are those of `chains.tasks.swebench`, whose image holds B_t: the prediction is all that leads from B_t to
A_t, so that the harness grades A_t itself, also where the agent's earlier stages differ from the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from environments.stages import open_git, open_trees, read_chain
from prchain.errors import GitError, UsageError
from prchain.git.trees import TreeStore
from prchain.instances import instance_id
from sql.store import Transaction
from sql.tables import Trajectory, TrajectoryStage

NO_TREE = "no_tree"
"""No attempt at the stage came to an end."""
NOT_UTF8 = "not_utf8"
"""The patch holds bytes that a JSON text cannot carry."""


@dataclass(frozen=True, slots=True)
class Unpredicted:
    """A stage that there is no prediction for."""

    instance: str
    outcome: str
    reason: str = ""


def predictions(
    tx: Transaction,
    mirrors: Path,
    data_dir: Path,
    *,
    outcomes: Collection[str],
    repository: str | None = None,
    model: str | None = None,
    sample: int | None = None,
    left_out: Callable[[Unpredicted], None] = lambda one: None,
) -> Iterator[dict[str, Any]]:
    """The predictions of trajectories with some outcomes, of one sample a chain: `sample`, or the lowest there is.

    The harness knows one prediction an instance; another sample goes into a file of its own. Raises `UsageError` where
    there are several models to choose from, and `StoreError`.
    """
    query = select(Trajectory.id, Trajectory.chain_id, Trajectory.sample, Trajectory.model).where(
        Trajectory.outcome.in_(sorted(outcomes))
    )
    if model is not None:
        query = query.where(Trajectory.model == model)
    if sample is not None:
        query = query.where(Trajectory.sample == sample)
    done: set[str] = set()
    rows = tx.connection.execute(query.order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)).all()
    if len(models := sorted({row.model for row in rows})) > 1:
        raise UsageError(f"predictions are of one model a file; choose with --model: {', '.join(models)[:300]}")
    for row in rows:
        if row.chain_id in done:
            continue
        chain = read_chain(tx, row.chain_id)
        if repository and chain.repository.lower() != repository.lower():
            continue
        done.add(row.chain_id)
        trees: TreeStore | None = None
        stages = {stage.position: stage for stage in chain.stages}
        for position, tree in tx.rows(TrajectoryStage, "position", "end_tree", trajectory_id=row.id):
            name = instance_id(chain.repository, chain.id, position)
            if tree is None or position not in stages:
                left_out(Unpredicted(name, NO_TREE))
                continue
            try:
                trees = trees or open_trees(chain, open_git(chain, mirrors), data_dir)
                patch = trees.patch_text(stages[position].base, tree)
                text = patch.decode()
            except UnicodeDecodeError:
                left_out(Unpredicted(name, NOT_UTF8))
                continue
            except GitError as error:
                left_out(Unpredicted(name, error.name, str(error)))
                continue
            yield {"instance_id": name, "model_name_or_path": row.model, "model_patch": text}
