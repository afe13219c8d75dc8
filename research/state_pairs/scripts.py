"""S_t by what an exported task of Harbor's ships between two steps: its own pack, and the agent's files."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from prchain.core.git.trees import SUBMODULE, TreeStore
from trajectories.export.tasks.harbor.drift import step_pack
from trajectories.export.tasks.harbor.inside.plain_git import PlainStore
from trajectories.export.tasks.harbor.inside.said import texts_of
from trajectories.export.tasks.harbor.inside.step import StepSaid, next_tree
from trajectories.export.tasks.harbor.objects import packed, trees_of


def tree_by_script(
    trees: TreeStore, landed: tuple[str, str, str], agent: str, tests: Collection[bytes]
) -> tuple[str, int]:
    """The tree and the number of conflicts, with B_{t-1}, M_{t-1} and B_t in `landed`. Raises as `next_tree`."""
    base_before, landed_before, base = map(trees.tree_of, landed)
    said = StepSaid(
        base_before=base_before,
        landed_before=landed_before,
        base=base,
        test_paths=texts_of(tests),
        outputs=(),
        refresh=(),
        tag="",
        environment={},
    )
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        store = PlainStore.made(Path(folder) / "trees.git")
        _take(store, step_pack(trees, said))
        # In a container the agent's files are read from the repository's folder.
        blobs = [it.blob for it in trees.entries(agent).values() if it.mode != SUBMODULE]
        _take(store, packed(trees, dict.fromkeys([*trees_of(trees, agent), *blobs])))
        state = next_tree(store, said, agent)
    return state.tree, len(state.conflicts)


def _take(store: PlainStore, pack: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(pack)
        store.take_pack(file)
