"""The import of tasks: each row becomes a chain of one stage with the strategy ``imported``, and its task; a folder
of several steps becomes one of as many stages.

Rows are written a few at a time, so an import that was killed goes on where it was. What is there already stays as it
is, but for what its publisher says of it; an import that waits for a repository is looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from sqlalchemy import select

from chains.imports.ends import StepTrees
from chains.imports.instance import Instance
from chains.imports.made import MadeTask, in_store, of_steps, waiting
from chains.imports.reading import ReadRow
from chains.imports.report import ImportReport
from chains.imports.repositories import ImportRepositories
from chains.imports.rows import RestUnread
from chains.imports.writing import write_tasks
from prchain.core.errors import BadInstance, ImageError, ImageMissing, IncompleteRepository, NoQuery
from prchain.core.git.trees import TreeStore
from prchain.core.secrets.scrub import redact_mined
from sql.benchmarks import benchmark_chains
from sql.store import Store, Transaction
from sql.tables import ImportedTask

_AT_ONCE = 50


class ImageTrees(Protocol):
    """Takes what an instance begins on out of the image that its publisher names."""

    def take(self, instance: Instance, store: TreeStore) -> str:
        """The id of a commit in the store with that tree. Raises `ImageMissing`, `ImageError`, `SandboxError`."""

    def play(self, instance: Instance, store: TreeStore) -> tuple[str, Sequence[StepTrees]]:
        """Run the oracle of an instance with steps: the image's work folder, and the trees before and after each step.
        Raises as `take`, and `BadInstance` where a script of it fails."""


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
        self._repositories = ImportRepositories(store, data_dir, mirrors, own)
        self._images = images
        self._secrets: Counter[str] = Counter()

    def run(self, rows: Iterable[ReadRow], tell: Callable[[ReadRow], None], *, training: bool = False) -> ImportReport:
        """Import what was read; rows that hold no task, and those whose patches do not apply, go to `tell`.

        A task that is marked as a benchmark's stays so, whatever a later row says; `training` alone takes the mark off.
        Raises `StoreError`, and `GitError` where git or the disk fails.
        """
        report = ImportReport()
        left = iter(rows)
        while batch := list(islice(left, _AT_ONCE)):
            made: list[MadeTask] = []
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
                write_tasks(tx, made, report, training=training, barred=_barred(tx, made))
        report.secrets = self._secrets.total()
        report.passed_over = dict(sorted(self._repositories.passed_over.items()))
        return report

    def _made(self, instance: Instance, located: Collection[str] = ()) -> MadeTask:
        if instance.steps:
            return self._played(instance, located)
        query = self._redacted(instance.query)
        found = self._repositories
        for mirror in found.mirrors_of(instance.repository):
            if mirror.missing([f"{instance.base_commit}^{{commit}}"]):
                continue
            try:
                if (git := found.store_over(instance.repository, mirror)) is None:
                    continue
                return in_store(git, instance, query)
            except IncompleteRepository as error:
                found.pass_over(mirror.path, error)
        if self._images is not None and instance.image is not None and instance.chain_id not in located:
            try:
                if (git := found.store_over(instance.repository, None)) is not None:
                    return in_store(git, instance, query, self._images.take(instance, git))
            except (ImageError, ImageMissing) as error:
                found.pass_over(instance.image, error)
        return waiting(instance, lambda _: query)

    def _played(self, instance: Instance, located: Collection[str]) -> MadeTask:
        """A task whose trees no repository can hold: its image has them, and its oracle makes them."""
        found = self._repositories
        if self._images is not None and instance.image is not None and instance.chain_id not in located:
            try:
                if (git := found.store_over(instance.repository, None)) is not None:
                    workdir, trees = self._images.play(instance, git)
                    return of_steps(git, replace(instance, workdir=workdir), trees, self._redacted)
            except (ImageError, ImageMissing) as error:
                found.pass_over(instance.image, error)
        return waiting(instance, self._redacted)

    def _redacted(self, query: str) -> str:
        return redact_mined(query, counts=self._secrets)

    def _located(self, rows: Sequence[ReadRow]) -> set[str]:
        """The chains of these rows whose trees were made before."""
        ids = [row.instance.chain_id for row in rows if row.instance is not None]
        query = select(ImportedTask.chain_id).where(ImportedTask.chain_id.in_(ids), ImportedTask.location.is_not(None))
        with self._store.reading() as tx:
            return {str(chain) for chain in tx.connection.execute(query).scalars()}


def _barred(tx: Transaction, made: Iterable[MadeTask]) -> Collection[str]:
    """The chains that hold a benchmark's task, which is asked for where rows call themselves ours."""
    return benchmark_chains(tx) if any(it.instance.own is not None for it in made) else ()
