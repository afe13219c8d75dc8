"""What happens between two steps: upstream's work since the last one comes into the agent's tree, by our rule of state.

Runs in the agent's container, in the repository's folder, before the agent is told of step t. The agent owned this
container: nothing of its repository, of its git's settings or of its variables is used. Beside this file lie what
`StepSaid` says and a pack; all of it is gone before the agent begins. Where the tree cannot be made the agent's own
stays: the step begins all the same and is graded, or an agent could end the trial before a step that it fears.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from environments.checkouts.checkout import write_repository
from environments.checkouts.extraction import folders_above
from environments.checkouts.state import StageState, next_state
from prchain.core.errors import PrchainError
from prchain.core.git.trees import EXECUTABLE, LINK, SUBMODULE, TreeEntry
from trajectories.export.tasks.harbor.inside.plain_git import GIT, PlainStore
from trajectories.export.tasks.harbor.inside.said import OBJECTS, paths_of, with_tuples
from trajectories.export.tasks.harbor.inside.work_tree import FolderRules, tree_of_folder

STEP = "step.json"
_REFRESHING = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSaid:
    """What the way from stage t-1 to stage t needs. The trees are in the pack; of their files those alone that upstream
    changed meanwhile, and the tests of the earlier stages."""

    base_before: str
    """The tree of B_{t-1}, whose ignore rules say what of the agent's is junk."""
    landed_before: str
    """The tree of M_{t-1}."""
    base: str
    """The tree of B_t."""
    test_paths: tuple[str, ...]
    """Of the earlier stages' test patches."""
    outputs: tuple[str, ...]
    refresh: tuple[str, ...]
    tag: str
    environment: Mapping[str, str]

    def text(self) -> str:
        """As a file."""
        return json.dumps(asdict(self), sort_keys=True) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """The other way round."""
        return cls(**with_tuples(json.loads(path.read_text(encoding="utf-8"))))


def next_tree(store: PlainStore, said: StepSaid, agent_tree: str) -> StageState:
    """S_t, by the rule of `environments.checkouts.state`. Raises `MergeUnsupported`, `GitError`."""
    return next_state(
        store,
        landed_before=said.landed_before,
        agent_tree=agent_tree,
        base=said.base,
        test_paths=sorted(paths_of(said.test_paths)),
    )


def move_folder(store: PlainStore, folder: Path, before: str, after: str) -> None:
    """Change a folder that holds a tree into another one; what neither holds stays, unless it is in the way."""
    root = os.fsencode(folder)
    changes = store.diff(before, after)
    kept = {above for path in store.entries(after) for above in folders_above(path)}
    for path, old, _ in changes:
        if old is not None and old.mode != SUBMODULE:
            _remove(os.path.join(root, path))
            for above in folders_above(path):
                if above not in kept and not os.path.islink(os.path.join(root, above)):
                    _remove_empty(os.path.join(root, above))
    new = [(path, entry) for path, _, entry in changes if entry is not None and entry.mode != SUBMODULE]
    for (path, entry), content in zip(new, store.blobs(entry.blob for _, entry in new), strict=True):
        for above in reversed(list(folders_above(path))):
            place = os.path.join(root, above)
            if os.path.islink(place) or not os.path.isdir(place):
                _remove(place)
                os.mkdir(place)
        _write(os.path.join(root, path), entry, content)


def _write(place: bytes, entry: TreeEntry, content: bytes) -> None:
    _remove(place)
    if entry.mode == LINK:
        os.symlink(content, place)
        return
    with open(place, "xb") as file:
        file.write(content)
    os.chmod(place, 0o755 if entry.mode == EXECUTABLE else 0o644)


def _remove(place: bytes) -> None:
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)


def _remove_empty(place: bytes) -> None:
    if os.path.isdir(place) and not os.listdir(place):
        os.rmdir(place)


def new_repository(store: PlainStore, folder: Path, tree: str, outputs: Sequence[str]) -> None:
    """Put a repository of one commit, which holds the tree, in the place of the folder's own, which goes."""
    commit = store.commit(tree, (), "Start of the stage\n")
    with tempfile.TemporaryFile() as archive:
        write_repository(store, commit, archive, (os.getuid(), os.getgid()))
        archive.seek(0)
        place = Path(tempfile.mkdtemp(prefix=".prchain-", dir=folder))
        with tarfile.open(fileobj=archive) as packed:
            packed.extractall(place)  # the archive is ours; 3.11.2 of Debian knows no filter
    lines = b"".join(b"/%s\n" % path for path in sorted(paths_of(outputs)) if b"\n" not in path)
    (place / ".git" / "info" / "exclude").write_bytes(lines)
    _remove(os.fsencode(folder / ".git"))
    (place / ".git").rename(folder / ".git")
    place.rmdir()
    # Its settings are ours by now. Stores the files' times, or the agent's first git command would.
    own = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    subprocess.run([GIT, "update-index", "-q", "--refresh"], cwd=folder, env=own, capture_output=True, check=False)


def refresh(folder: Path, said: StepSaid) -> None:
    """What makes a tree ready to run. A tree that the agent broke may not become so, which is for the agent to find."""
    tagged = f"git tag -- {said.tag}\ntrap 'git tag --delete -- {said.tag} > /dev/null' EXIT\n" if said.tag else ""
    for script in said.refresh:
        command = ["/bin/bash", "-c", f"set -euo pipefail\n{tagged}{script}"]
        try:
            done = subprocess.run(
                command, cwd=folder, env=dict(said.environment), capture_output=True, check=False, timeout=_REFRESHING
            )
        except subprocess.TimeoutExpired:
            sys.stdout.write("the refresh took too long\n")
            return
        if done.returncode != 0:
            sys.stdout.write(f"the refresh ended with {done.returncode}\n")
            return


def main(arguments: Sequence[str]) -> int:
    """Do it, in the folder of the first argument, by what lies in that of the second; 1 where the tree stays."""
    folder, place = map(Path, arguments)
    try:
        said = StepSaid.read(place / STEP)
        with tempfile.TemporaryDirectory(prefix="step-", dir=place) as own:
            store = PlainStore.made(Path(own) / "trees.git")
            with (place / OBJECTS).open("rb") as pack:
                store.take_pack(pack)
            rules = FolderRules(store.entries(said.base_before), said.base_before, paths_of(said.outputs))
            left = tree_of_folder(store, os.fsencode(folder), rules)
            state = next_tree(store, said, left)
            move_folder(store, folder, left, state.tree)
            new_repository(store, folder, state.tree, said.outputs)
    except (PrchainError, OSError) as error:
        sys.stdout.write(f"the step begins without upstream's work, with what the agent left: {error}\n")
        return 1
    refresh(folder, said)
    sys.stdout.write(f"{state.tree}: {len(state.conflicts)} conflicts\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
