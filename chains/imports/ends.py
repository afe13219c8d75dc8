"""Where the stages of an imported task begin and end: commits of ours in a repository beside the mirror.

An import has no landed commit. M_t is a commit that we make of B_t's tree with the patches applied. Its id follows from
that tree and B_t alone, so that every import of the same task gives the same one. The repository that holds it borrows
all else from the mirror, which is not written to.
"""

from __future__ import annotations

import os
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
from prchain.core.git.trees import EPOCH, EXECUTABLE, FILE, LINK, TreeEntry, TreeStore
from prchain.core.timestamps import stamp

_FOLDER = "imports"

TESTS = ".harbor-tests"
"""The folder of M_t's tree that holds the tests of a step which has no test patch
(`environments.suites.runners.harbor`): they reach a tree as the tests of any stage do, and no agent's."""


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


@dataclass(frozen=True, slots=True)
class StepTrees:
    """The trees that a step begins with and that its oracle leaves."""

    base: str
    landed: str


def step_ends(store: TreeStore, instance: Instance, trees: Sequence[StepTrees]) -> list[StageEnds]:
    """Make the ends of the stages of an instance with steps, whose trees are in the store. M_t has the step's tests,
    too, as its test patch; B_t, which has no parent, has none. Raises `BadInstance` where a tree has a folder of the
    name that these have, or where an oracle changes nothing."""
    ends = []
    for step, found in zip(instance.steps, trees, strict=True):
        step_of = f"step {step.name}: " if step.name else ""
        if any(path.startswith(TESTS.encode() + b"/") for path in store.entries(found.landed)):
            raise BadInstance(f"{step_of}the work folder has a folder {TESTS}, which is the place of tests")
        if found.base == found.landed:
            raise BadInstance(f"{step_of}the oracle leaves the work folder as it was, and nothing else of it is kept")
        base = store.commit(found.base, [], "Begin")
        end = store.edit(found.landed, _tests(store, step.tests))
        landed_at = instance.created_at or stamp(datetime.fromtimestamp(EPOCH, UTC))
        ends.append(StageEnds(base, store.commit(end, [base], "End"), landed_at))
    return ends


def _tests(store: TreeStore, folders: Sequence[Path]) -> dict[bytes, TreeEntry | None]:
    """The files of some folders, a later one's laid over those of earlier ones."""
    found: dict[bytes, TreeEntry | None] = {}
    for folder in folders:
        for place in sorted(folder.rglob("*")):
            if place.is_dir() and not place.is_symlink():
                continue
            name = f"{TESTS}/".encode() + os.fsencode(place.relative_to(folder).as_posix())
            if place.is_symlink():
                found[name] = TreeEntry(LINK, store.write_blob(os.fsencode(os.readlink(place))))
                continue
            mode = EXECUTABLE if place.stat().st_mode & 0o100 else FILE
            found[name] = TreeEntry(mode, store.write_blob(place.read_bytes()))
    return found


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
