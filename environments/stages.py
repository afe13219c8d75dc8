"""Chains as test runs and rollouts read them: their stages' commits, and what each stage's reference patch touches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from prchain.core.code.inline_tests import InlineTest, changed_inline_tests
from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.code.reference import split
from prchain.core.errors import ChainGone, NoRepository
from prchain.core.git.mirror import open_mined
from prchain.core.git.output import path_text
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import EXECUTABLE, FILE, TreeChange, TreeStore
from sql.store import Transaction
from sql.tables import Chain, ChainStage, ImportedTask, Repository

_TEXTS = {FILE, EXECUTABLE}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: `base` is the commit B_t, `landed` the commit M_t, `landed_at` ISO 8601; position 1 is the first.

    `chain` is the id of its chain, empty where that is not known; a stage is the same in whichever chain.
    """

    position: int
    number: int
    base: str
    landed: str
    landed_at: str
    chain: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ChainStages:
    """A chain with its stages in reference order. `repository` is ``owner/name``, `location` where it came from."""

    id: str
    repository_id: int
    repository: str
    host: str
    location: str
    stages: tuple[Stage, ...]
    imported: bool = False
    """Whether others published it: `location` is then a repository of ours that borrows from another one."""
    breaks: bool = False
    """Whether its stage begins with a fault that was brought in (SWE-smith): every commit before it is without."""


@dataclass(frozen=True, slots=True)
class StagePatch:
    """The paths that a stage's reference patch touches, parted by `prchain.core.code.reference.split`; both names of
    renames.

    The old name of a renamed file keeps its kind: source that moves into a test folder was no test before.
    Names are those of `prchain.core.git.output.path_text`; `test_paths` are the bytes of those in `test`.
    """

    source: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    test_paths: tuple[bytes, ...] = ()
    inline_tests: frozenset[InlineTest] = frozenset()
    """The tests inside source files that it adds, changes or removes. No overlay lays them over another tree."""


def read_chain(tx: Transaction, chain_id: str) -> ChainStages:
    """One chain, by its whole id. Raises `ChainGone`, and `NoRepository` for an import that waits for one."""
    query = (
        select(
            Chain.repository_id,
            Repository.host,
            Repository.owner,
            Repository.name,
            Repository.location,
            ImportedTask.chain_id,
            ImportedTask.location,
            ImportedTask.breaks,
        )
        .join(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTask, ImportedTask.chain_id == Chain.id)
        .where(Chain.id == chain_id)
    )
    row = tx.connection.execute(query).one_or_none()
    if row is None:
        raise ChainGone("`prchain chains build` chose anew, and the chain is gone")
    repository_id, host, owner, name, mined, imported, own, breaks = row
    if imported and own is None:
        raise NoRepository(f"chain {chain_id} was imported without a repository; `prchain tasks import` takes it again")
    columns = ("position", "number", "base_sha", "landed_sha", "landed_at")
    rows = tx.rows(ChainStage, *columns, chain_id=chain_id)
    stages = tuple(Stage(position, number, base, landed, day, chain_id) for position, number, base, landed, day in rows)
    location = own or mined
    full_name = f"{owner}/{name}"
    return ChainStages(chain_id, repository_id, full_name, host, location, stages, bool(imported), bool(breaks))


def open_git(chain: ChainStages, mirrors: Path) -> GitRepository:
    """The repository that the chain was mined from, below the folder of mirrors or where the user has it.

    Raises `NotARepository`, `GitMissing`.
    """
    return open_mined(chain.location, mirrors, chain.host, chain.repository)


def open_trees(chain: ChainStages, git: GitRepository, data_dir: Path) -> TreeStore:
    """The store of states of the chain's repository, below the data folder; it borrows from the mined repository."""
    folder = "trees-of-imports" if chain.imported else "trees"  # what they borrow from are different repositories
    return TreeStore.open(data_dir / folder / chain.host / f"{chain.repository.lower()}.git", [git.path])


def stage_patches(git: GitRepository, trees: TreeStore, stages: Sequence[Stage]) -> Iterator[StagePatch]:
    """What each stage's reference patch touches, in order. Raises `IncompleteRepository` where a blob is missing."""
    for stage, files in zip(stages, git.patches((stage.base, stage.landed) for stage in stages), strict=True):
        parts = split(files)
        source = [file.path for file in parts.source]
        test = [file.path for file in parts.test]
        other = [file.path for file in parts.other]
        for file in files:
            if file.status == "R" and file.old_path:
                was_test = kind_of(file.old_path) is FileKind.TEST
                (test if was_test else other if file in parts.other else source).append(file.old_path)
        test_names = set(test)
        changes = trees.diff(stage.base, stage.landed)
        yield StagePatch(
            tuple(source),
            tuple(test),
            tuple(other),
            tuple(change.path for change in changes if path_text(change.path) in test_names),
            _inline_tests(trees, changes, frozenset(source)),
        )


def _inline_tests(trees: TreeStore, changes: Sequence[TreeChange], source: Collection[str]) -> frozenset[InlineTest]:
    """`StagePatch.inline_tests`. A renamed file counts as one that goes and one that comes, with all its tests."""
    rust = [change for change in changes if (path := path_text(change.path)) in source and language_of(path) == "rust"]
    sides = [(entry.blob if entry and entry.mode in _TEXTS else None) for it in rust for entry in (it.old, it.new)]
    texts = iter(trees.blobs(blob for blob in sides if blob is not None))
    read = [next(texts).decode(errors="replace") if blob is not None else "" for blob in sides]
    return frozenset(
        InlineTest(path_text(change.path), name)
        for change, before, after in zip(rust, read[::2], read[1::2], strict=True)
        for name in changed_inline_tests(before, after)
    )
