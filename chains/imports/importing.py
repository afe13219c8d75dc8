"""The rows of imported tasks: each becomes a chain of one stage with the strategy ``imported``, and its task.

Rows are written a few at a time, so an import that was killed goes on where it was. What is there already stays as it
is, but for what its publisher says of it; an import that waits for a repository is looked at again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import select

from chains.imports.ends import StageEnds, make_ends, open_store
from chains.imports.instance import Instance
from chains.imports.marks import unknown_claims
from chains.imports.reading import ReadRow
from chains.imports.rows import RestUnread
from chains.stages.licence import licence_of
from chains.tasks.model import WAITING, StageQuery, TaskDraft
from chains.tasks.rows import write_drafts
from prchain.core.cli_options import IMPORTED
from prchain.core.code.reference import Reference, split
from prchain.core.errors import (
    BadInstance,
    GitError,
    ImageError,
    ImageMissing,
    IncompleteRepository,
    NoQuery,
    NotARepository,
    OtherObjectFormat,
    PrchainError,
    ShallowRepository,
)
from prchain.core.git import FilePatch, GitRepository, is_clone_url, mirror_path, parse_patch
from prchain.core.git.named_paths import named_paths
from prchain.core.git.trees import TreeStore
from prchain.core.secrets.scrub import redact_mined
from prchain.core.timestamps import now
from sql.benchmarks import benchmark_chains
from sql.outcomes import READY, SELECTED
from sql.repositories import new_repository
from sql.store import Store, Transaction
from sql.tables import Chain, ChainStage, ImportedTask, Repository, Selection

HOST = "github.com"
"""What rows name is there: none of the forms tells another host."""

_AT_ONCE = 50
_SUBJECT = 200
_EPOCH = "2000-01-01T00:00:00Z"
"""Of a task that waits, and whose publisher tells no time."""

_NUMBER = re.compile(r".*?-([0-9]{1,9})")
_SPDX = re.compile(r"[A-Za-z0-9.+-]+")


@dataclass(slots=True)
class ImportReport:
    """What became of the rows of a data set."""

    imported: int = 0
    known: int = 0
    """Those that were there."""
    waiting: Counter[str] = field(default_factory=Counter)
    """Repository to the tasks that no repository is there for, new and old."""
    bad: int = 0
    no_query: int = 0
    """Those of the bad rows that ask nothing; of SWE-smith's, faults that no issue was written for."""
    files_unread: int = 0
    """Files that could not be read, or not to their end: one of the bad rows of each."""
    benchmark: int = 0
    secrets: int = 0
    """What looks like a secret and was replaced in queries."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """Folder, or image, to why no tree was made from it: no repository, a shallow one, one that lacks files."""

    @property
    def good(self) -> int:
        """Tasks that can be worked on."""
        return self.imported + self.known

    def row(self) -> dict[str, Any]:
        """As a JSON value."""
        return {name: dict(it) if isinstance(it := getattr(self, name), dict) else it for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class _Made:
    """An instance with what git says of it."""

    instance: Instance
    query: str
    """Without secrets."""
    ends: StageEnds | None
    location: str | None
    licence: str | None
    reference: Reference


class ImageTrees(Protocol):
    """Takes what an instance begins on out of the image that its publisher names."""

    def take(self, instance: Instance, store: TreeStore) -> str:
        """The id of a commit in the store with that tree. Raises `ImageMissing`, `ImageError`, `SandboxError`."""


class Importer:
    """Imports instances. `mirrors` is the folder of mirrors, `own` a folder of the user's with git repositories;
    `images` takes from images what none of them holds."""

    def __init__(
        self,
        store: Store,
        data_dir: Path,
        mirrors: Path,
        own: Path | None = None,
        images: ImageTrees | None = None,
    ) -> None:
        self._store = store
        self._data_dir = data_dir
        self._mirrors = mirrors
        self._own = own
        self._images = images
        self._opened: dict[tuple[str, Path | None], TreeStore | None] = {}
        self._found: dict[str, list[GitRepository]] = {}
        self._passed_over: dict[str, str] = {}
        self._secrets: Counter[str] = Counter()

    def run(self, rows: Iterable[ReadRow], tell: Callable[[ReadRow], None], *, training: bool = False) -> ImportReport:
        """Import what was read; rows that hold no task, and those whose patches do not apply, go to `tell`.

        A task that is marked as a benchmark's stays so, whatever a later row says; `training` alone takes the mark off.
        Raises `StoreError`, and `GitError` where git or the disk fails.
        """
        report = ImportReport()
        left = iter(rows)
        while batch := list(islice(left, _AT_ONCE)):
            made: list[_Made] = []
            located = self._located(batch) if self._images is not None else set()
            for row in batch:
                bad = row
                if row.instance is not None:
                    try:
                        made.append(self._made(row.instance, located))
                        continue
                    except BadInstance as error:
                        bad = replace(row, error=BadInstance(f"{row.instance.instance_id}: {error}"))
                report.bad += 1
                report.no_query += isinstance(row.error, NoQuery)
                report.files_unread += isinstance(row.error, RestUnread)
                tell(bad)
            with self._store.transaction() as tx:
                self._write(tx, made, report, training=training)
        report.secrets = self._secrets.total()
        report.passed_over = dict(sorted(self._passed_over.items()))
        return report

    # ---- git

    def _made(self, instance: Instance, located: Collection[str] = ()) -> _Made:
        query = redact_mined(instance.query, counts=self._secrets)
        for mirror in self._mirrors_of(instance.repository):
            if mirror.missing([f"{instance.base_commit}^{{commit}}"]):
                continue
            try:
                if (git := self._store_over(instance.repository, mirror)) is None:
                    continue
                return _in_store(git, instance, query)
            except IncompleteRepository as error:
                self._pass_over(mirror.path, error)
        if self._images is not None and instance.image is not None and instance.chain_id not in located:
            try:
                if (git := self._store_over(instance.repository, None)) is not None:
                    return _in_store(git, instance, query, self._images.take(instance, git))
            except (ImageError, ImageMissing) as error:
                self._pass_over(instance.image, error)
        licence = instance.licence if instance.licence and _SPDX.fullmatch(instance.licence) else None
        return _Made(instance, query, None, None, licence, _told(instance))

    def _located(self, rows: Sequence[ReadRow]) -> set[str]:
        """The chains of these rows whose trees were made before."""
        ids = [row.instance.chain_id for row in rows if row.instance is not None]
        query = select(ImportedTask.chain_id).where(ImportedTask.chain_id.in_(ids), ImportedTask.location.is_not(None))
        with self._store.reading() as tx:
            return {str(chain) for chain in tx.connection.execute(query).scalars()}

    def _store_over(self, repository: str, mirror: GitRepository | None) -> TreeStore | None:
        """The store for a repository's imports over a mirror, or over none; None where it is there with another object
        format than the mirror's. Raises `GitError`, `DiskFull`."""
        place = mirror.path if mirror is not None else None
        key = repository.lower(), place
        if key not in self._opened:
            try:
                self._opened[key] = open_store(self._data_dir, HOST, repository, mirror)
            except OtherObjectFormat as error:
                self._pass_over(place or repository, error)
                self._opened[key] = None
        return self._opened[key]

    def _mirrors_of(self, repository: str) -> list[GitRepository]:
        """The repository as the user has it, as it was mined, as it was mirrored, and last what the user has under its
        bare name, which may be another one's fork. What cannot be opened is passed over."""
        if repository not in self._found:  # as it is written: folders are
            key = repository.lower()
            owner, _, name = repository.partition("/")
            with self._store.reading() as tx:
                locations = [place for _, full_name, place in _repositories(tx) if full_name.lower() == key and place]
            mirror = mirror_path(self._mirrors, HOST, repository)
            paths = [
                *self._own_places(repository, f"{owner}__{name}"),
                *(mirror if is_clone_url(location) else Path(location) for location in locations),
                mirror,
                *self._own_places(name),
            ]
            self._found[repository] = [
                git for path in dict.fromkeys(paths) if path.is_dir() if (git := self._open(path))
            ]
        return self._found[repository]

    def _own_places(self, *names: str) -> list[Path]:
        if self._own is None:
            return []
        return [self._own / place for name in names for place in (name, f"{name}.git")]

    def _open(self, path: Path) -> GitRepository | None:
        try:
            return GitRepository.open(path)
        except (NotARepository, ShallowRepository) as error:
            self._pass_over(path, error)
            return None

    def _pass_over(self, path: Path | str, error: PrchainError) -> None:
        self._passed_over.setdefault(str(path), str(error))

    # ---- rows

    def _write(self, tx: Transaction, made: Sequence[_Made], report: ImportReport, *, training: bool) -> None:
        ids = {it.instance.chain_id for it in made}
        query = select(ImportedTask.chain_id, ImportedTask.location, ImportedTask.imported_at, ImportedTask.benchmark)
        stored = list(tx.connection.execute(query.where(ImportedTask.chain_id.in_(ids))))
        before = {str(chain): (location, at) for chain, location, at, _ in stored}
        marks = {str(chain) for chain, _, _, marked in stored if marked}
        repositories = {str(name).lower(): id_ for id_, name, _ in _repositories(tx)}
        own = [it.instance for it in made if it.instance.own is not None]
        unknown = unknown_claims(tx, own, benchmark_chains(tx)) if own else set()
        fresh: dict[str, _Made] = {}
        imports: dict[str, dict[str, Any]] = {}
        for it in made:
            chain, known = it.instance.chain_id, before.get(it.instance.chain_id)
            if training:
                marks.discard(chain)
            elif it.instance.benchmark or chain in unknown:
                marks.add(chain)
            report.benchmark += chain in marks
            if it.ends is None and (known is None or known[0] is None):
                report.waiting[it.instance.repository] += 1
            elif (known is not None and known[0] is not None) or chain in fresh:
                report.known += 1
            else:
                report.imported += 1
            if known is None or (known[0] is None and it.ends is not None):
                fresh[chain] = it
                known = (it.location, now())
            said = _said(it.instance) | {"benchmark": chain in marks}
            imports[chain] = {"chain_id": chain, **said, "location": known[0], "imported_at": known[1]}
        for name in dict.fromkeys(it.instance.repository for it in fresh.values()):
            if name.lower() not in repositories:
                owner, _, own_name = name.partition("/")
                repositories[name.lower()] = new_repository(tx, HOST, owner, own_name, "")
        new = [(it, repositories[it.instance.repository.lower()]) for it in fresh.values()]
        tx.upsert(Chain, [_chain_row(*pair) for pair in new])
        tx.upsert(ChainStage, [_stage_row(*pair) for pair in new])
        tx.upsert(Selection, [_selection_row(it) for it, _ in new])
        tx.upsert(ImportedTask, imports.values())
        write_drafts(tx, [_draft(it) for it, _ in new], model=None, prompts={})


def _in_store(git: TreeStore, instance: Instance, query: str, base: str | None = None) -> _Made:
    """An instance whose ends are made in a store; `base` stands for the commit that it names. Raises as `make_ends`."""
    ends = make_ends(git, instance, base)
    (files,) = git.patches([(ends.base, ends.landed)])
    _require_named(instance, files)
    return _Made(instance, query, ends, str(git.path.absolute()), licence_of(git, ends.base), split(files))


def _require_named(instance: Instance, files: Iterable[FilePatch]) -> None:
    """Refuse patches that change a file which none of their heads names to us: copies of them could not be looked for
    in images. Files of tests that come back where a fault is brought in are in no patch. Raises `BadInstance`."""
    named = {*named_paths(instance.patch), *named_paths(instance.test_patch)}
    if instance.breaks:
        named |= {test.partition("::")[0] for test in instance.f2p}
    changed = {path for file in files for path in (file.path, file.old_path) if path}
    if unnamed := sorted(changed - named):
        raise BadInstance(f"a patch changes {unnamed[0][:100]!r}, and no line of it names that file")


def _said(instance: Instance) -> dict[str, Any]:
    return {
        "source": instance.source[:255],
        "revision": instance.revision[:64] if instance.revision else None,
        "split": instance.split[:64] if instance.split else None,
        "form": instance.form,
        "instance_id": instance.instance_id,
        "licence": instance.licence,
        "difficulty": instance.difficulty,
        "base_commit": instance.base_commit,
        "patch": instance.patch,
        "breaks": instance.breaks,
        "test_patch": instance.test_patch,
        "f2p": list(instance.f2p),
        "p2p": list(instance.p2p),
        "image": instance.image,
        "image_by": instance.image_by,
        "workdir": instance.workdir,
        "test_command": list(instance.test_command),
        "log_parser": instance.log_parser,
    }


def _selection_row(made: _Made) -> dict[str, Any]:
    return {
        "strategy": IMPORTED,
        "chain_id": made.instance.chain_id,
        "score": 0.0,
        "outcome": SELECTED if made.ends else WAITING,
        "reason": None,
        "selected_at": now(),
    }


def _chain_row(made: _Made, repository_id: int) -> dict[str, Any]:
    return {
        "id": made.instance.chain_id,
        "repository_id": repository_id,
        "length": 1,
        "licence": made.licence,
        "language": made.reference.language,
    }


def _stage_row(made: _Made, repository_id: int) -> dict[str, Any]:
    instance, ends, reference = made.instance, made.ends, made.reference
    number = _NUMBER.fullmatch(instance.instance_id)
    first = next((line.strip() for line in made.query.splitlines() if line.strip()), instance.instance_id)
    return {
        "chain_id": instance.chain_id,
        "position": 1,
        "repository_id": repository_id,
        "number": int(number[1]) if number else 0,
        "branch": "",
        "base_sha": ends.base if ends else instance.base_commit,
        "landed_sha": ends.landed if ends else "",
        "landed_at": ends.landed_at if ends else instance.created_at or _EPOCH,
        "subject": first[:_SUBJECT],
        "source_files": len(reference.code),
        "source_lines": reference.source_lines,
        "test_files": len(reference.test),
        "test_lines": reference.test_lines,
        "relation": None,
        "confidence": None,
        "signs": None,
        "worth": None,
        "worth_signs": None,
    }


def _draft(made: _Made) -> TaskDraft:
    files = tuple(sorted(file.path for file in made.reference.source))
    chain, query = made.instance.chain_id, made.query
    if made.ends is None:
        reason = f"no repository of {made.instance.repository} holds the commit {made.instance.base_commit}"
        stage = StageQuery(1, WAITING, reason, query=query, files=files)
        return TaskDraft(chain, WAITING, reason, stages=(stage,))
    return TaskDraft(chain, READY, overview="", stages=(StageQuery(1, READY, query=query, files=files),))


def _told(instance: Instance) -> Reference:
    """The reference patch as the row tells it."""
    try:
        files = [*parse_patch(instance.patch), *parse_patch(instance.test_patch)]
    except GitError:
        return Reference()
    return split(files)


def _repositories(tx: Transaction) -> list[tuple[int, str, str]]:
    """Id, full name and location of the repositories of the host."""
    rows = tx.rows(Repository, "id", "owner", "name", "location", host=HOST)
    return [(int(id_), f"{owner}/{name}", str(location)) for id_, owner, name, location in rows]
