"""Where the stage of an imported task begins and ends: commits of ours in a repository beside the mirror.

An import has no landed commit. M_t is a commit that we make of B_t's tree with the patches applied. Its id follows from
that tree and B_t alone, so that every import of the same task gives the same one. The repository that holds it borrows
all else from the mirror, which is not written to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chains.imports.instance import Instance
from prchain.core.errors import BadInstance, GitError, IncompleteRepository
from prchain.core.git import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.timestamps import stamp

_FOLDER = "imports"


@dataclass(frozen=True, slots=True)
class StageEnds:
    """B_t and M_t, and when M_t counts as landed."""

    base: str
    landed: str
    landed_at: str


def open_store(data_dir: Path, host: str, repository: str, mirror: GitRepository) -> TreeStore:
    """The repository of ours for a repository's imports, below the data folder. Raises `GitError`."""
    return TreeStore.open(data_dir / _FOLDER / host / f"{repository.lower()}.git", [mirror.path])


def make_ends(store: TreeStore, instance: Instance) -> StageEnds:
    """Make both ends of an instance's stage.

    Raises `IncompleteRepository` where the repository does not hold the commit that it begins on, and `BadInstance`
    where a patch does not apply to it.
    """
    base, seconds = _commit(store, instance.base_commit)
    landed_at = instance.created_at or stamp(datetime.fromtimestamp(seconds, UTC))
    if instance.breaks:
        start = store.commit(_applied(store, base, instance.patch, "patch"), [base], "Begin")
        end = store.commit(_applied(store, base, instance.test_patch, "test_patch"), [start], "End")
        return StageEnds(start, end, landed_at)
    tree = _applied(store, base, instance.patch, "patch")
    tree = _applied(store, tree, instance.test_patch, "test_patch")
    return StageEnds(base, store.commit(tree, [base], "End"), landed_at)


def _commit(store: TreeStore, name: str) -> tuple[str, int]:
    """The whole id of a commit, and its time."""
    try:
        answer = store.run("log", "-1", "--no-walk", "--format=%H %ct", f"{name}^{{commit}}", "--")
    except GitError:
        raise IncompleteRepository(f"the repository does not hold the commit {name}") from None
    sha, _, seconds = answer.strip().partition(" ")
    return sha, int(seconds)


def _applied(store: TreeStore, tree: str, patch: str, column: str) -> str:
    try:
        return store.apply(tree, patch.encode())
    except IncompleteRepository:
        raise
    except GitError as error:
        words = str(error).removeprefix("git apply: ").removeprefix("error: ")
        raise BadInstance(f"{column} does not apply to its commit: {words[:200]}") from None
