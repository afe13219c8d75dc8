"""Where the stage of an imported task begins and ends: commits of ours in a repository beside the mirror.

An import has no landed commit. M_t is a commit that we make of B_t's tree with the patches applied. Its id follows from
that tree and B_t alone, so that every import of the same task gives the same one. The repository that holds it borrows
all else from the mirror, which is not written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chains.imports.instance import Instance
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.errors import BadInstance, GitError, IncompleteRepository
from prchain.core.git import GitRepository
from prchain.core.git.binary_patches import require_room
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeStore
from prchain.core.timestamps import stamp

_FOLDER = "imports"


@dataclass(frozen=True, slots=True)
class StageEnds:
    """B_t and M_t, and when M_t counts as landed."""

    base: str
    landed: str
    landed_at: str


def open_store(data_dir: Path, host: str, repository: str, mirror: GitRepository | None) -> TreeStore:
    """The repository of ours for a repository's imports, below the data folder; it borrows from the mirror, if there is
    one. Raises `GitError`."""
    place, folder = data_dir / _FOLDER / host / f"{repository.lower()}.git", data_dir / _FOLDER / host
    if not place.resolve().is_relative_to(folder.resolve()):
        raise GitError(f"{place} lies outside of {folder}")
    return TreeStore.open(place, [mirror.path] if mirror is not None else [])


def make_ends(store: TreeStore, instance: Instance, base: str | None = None) -> StageEnds:
    """Make both ends of an instance's stage; `base` is a commit that stands for the one that the instance names, of
    which nobody knows the time.

    Where a fault is brought in, the files of the tests that tell it are not there at the beginning: so does the
    publisher, in a second commit. They are then the stage's test patch. Raises `IncompleteRepository` where the
    repository does not hold the commit that it begins on, or what a patch changes, and `BadInstance` where a patch does
    not apply to it.
    """
    base, seconds = _commit(store, base or instance.base_commit)
    landed_at = instance.created_at or stamp(datetime.fromtimestamp(seconds, UTC))
    if instance.breaks:
        faulty = _without_tests(store, _applied(store, base, instance.patch, "patch"), instance.f2p)
        start = store.commit(faulty, [base], "Begin")
        end = store.commit(_applied(store, base, instance.test_patch, "test_patch"), [start], "End")
        return StageEnds(start, end, landed_at)
    tree = _applied(store, base, instance.patch, "patch")
    tree = _applied(store, tree, instance.test_patch, "test_patch")
    return StageEnds(base, store.commit(tree, [base], "End"), landed_at)


def _without_tests(store: TreeStore, tree: str, tests: Sequence[str]) -> str:
    """The tree without the files of tests that the names of some tests begin with; names need not be of files."""
    named = {test.partition("::")[0] for test in tests}
    files = (path for path in store.entries(tree) if path_text(path) in named)
    return store.edit(tree, {path: None for path in files if kind_of(path_text(path)) is FileKind.TEST})


def _commit(store: TreeStore, name: str) -> tuple[str, int]:
    """The whole id of a commit, and its time."""
    try:
        answer = store.run("log", "-1", "--no-walk", "--format=%H %ct", f"{name}^{{commit}}", "--")
    except GitError as error:
        if error.infrastructure is not None:
            raise
        raise IncompleteRepository(f"the repository does not hold the commit {name}") from None
    sha, _, seconds = answer.strip().partition(" ")
    return sha, int(seconds)


def _applied(store: TreeStore, tree: str, patch: str, column: str) -> str:
    content = patch.encode()
    try:
        require_room(content)
        return store.apply(tree, content)
    except ValueError as error:
        raise BadInstance(f"{column}: {error}") from None
    except IncompleteRepository:
        raise
    except GitError as error:
        if error.infrastructure is not None:  # a full disk, no git: nothing is wrong with the row
            raise
        words = str(error).removeprefix("git apply: ").removeprefix("error: ")
        raise BadInstance(f"{column} does not apply to its commit: {words[:200]}") from None
