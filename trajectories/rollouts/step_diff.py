"""What one step of a trajectory changed of the tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from environments.stages import open_git, open_trees, read_chain
from prchain.core.console.terminal import say, say_content
from prchain.core.errors import StepUnknown
from prchain.core.git.patches import patch_fields
from sql.store import Store, Transaction
from trajectories.options import RolloutOptions
from trajectories.rows import find_trajectory, read_entries, read_stages, stored_trajectory


@dataclass(frozen=True, slots=True)
class StepDiff:
    """The patch of one step; empty where it changed no file."""

    trajectory: str
    step: int
    stage: int
    patch: bytes

    def row(self) -> dict[str, Any]:
        """For machines."""
        return {**asdict(self), **patch_fields("patch", self.patch)}


def step_diff(store: Store, prefix: str, step: int, *, mirrors: Path, data_dir: Path) -> StepDiff:
    """The patch from the tree before a step to the tree after it; of the trajectory whose id begins with `prefix`.

    Raises `UsageError` for the trajectory, `StepUnknown` where it has no such step or kept no trees, `GitError`.
    """
    with store.reading() as tx:
        name = find_trajectory(tx, prefix)
        row = stored_trajectory(tx, name)
        if row.chain_id is None:
            raise StepUnknown(f"trajectory {name} was imported: nothing is known of the trees of its steps")
        stage, before, after = _trees(tx, name, step)
        if not RolloutOptions.from_row(row.options).track_steps:
            raise StepUnknown(f"trajectory {name} kept no trees of its steps (--sandbox track=off)")
        if before is None or after in (None, before):
            return StepDiff(name, step, stage, b"")
        chain = read_chain(tx, row.chain_id)
    trees = open_trees(chain, open_git(chain, mirrors), data_dir)
    return StepDiff(name, step, stage, trees.patch_text(before, str(after)))


def print_step_diff(diff: StepDiff) -> None:
    """Print the patch of a step and nothing else to standard output: other tools read it."""
    if diff.patch:
        say_content(diff.patch)
    else:
        say(f"step {diff.step} of stage {diff.stage} changed no file", err=True)


def _trees(tx: Transaction, name: str, step: int) -> tuple[int, str | None, str | None]:
    """The stage of a step, the tree before it, and the one after it, None where none was stored with the step."""
    entries = read_entries(tx, name)
    own = [entry for entry in entries if entry.step == step and entry.step > 0]
    if not own:
        last = max((entry.step for entry in entries), default=0)
        raise StepUnknown(f"trajectory {name} has no step {step}; its last is {last}")
    position = own[0].position
    start = next((stage.start_tree for stage in read_stages(tx, name) if stage.position == position), None)
    earlier = [entry.tree for entry in entries if entry.position == position and entry.step < step and entry.tree]
    after = [entry.tree for entry in own if entry.tree]
    return position, (earlier[-1] if earlier else start), (after[-1] if after else None)
