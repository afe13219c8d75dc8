"""The git repositories in which an import looks for commits, and those of ours that hold the ends of its stages."""

from __future__ import annotations

from pathlib import Path

from chains.imports.ends import open_store
from prchain.core.errors import NotARepository, OtherObjectFormat, PrchainError, ShallowRepository
from prchain.core.git import GitRepository, is_clone_url, mirror_path
from prchain.core.git.trees import TreeStore
from sql.store import Store, Transaction
from sql.tables import Repository

HOST = "github.com"
"""What rows name is there: none of the forms tells another host."""


class ImportRepositories:
    """Repositories by name. `mirrors` is the folder of mirrors, `own` a folder of the user's with git repositories;
    `passed_over` tells of what folder, or image, nothing is taken, and why."""

    def __init__(self, store: Store, data_dir: Path, mirrors: Path, own: Path | None) -> None:
        self._store = store
        self._data_dir = data_dir
        self._mirrors = mirrors
        self._own = own
        self._opened: dict[tuple[str, Path | None], TreeStore | None] = {}
        self._found: dict[str, list[GitRepository]] = {}
        self.passed_over: dict[str, str] = {}

    def store_over(self, repository: str, mirror: GitRepository | None) -> TreeStore | None:
        """The store for a repository's imports over a mirror, or over none; None where it is there with another object
        format than the mirror's. Raises `GitError`, `DiskFull`."""
        place = mirror.path if mirror is not None else None
        key = repository.lower(), place
        if key not in self._opened:
            try:
                self._opened[key] = open_store(self._data_dir, HOST, repository, mirror)
            except OtherObjectFormat as error:
                self.pass_over(place or repository, error)
                self._opened[key] = None
        return self._opened[key]

    def mirrors_of(self, repository: str) -> list[GitRepository]:
        """The repository as the user has it, as it was mined, as it was mirrored, and last what the user has under its
        bare name, which may be another one's fork. What cannot be opened is passed over."""
        if repository not in self._found:  # as it is written: folders are
            key = repository.lower()
            owner, _, name = repository.partition("/")
            with self._store.reading() as tx:
                locations = [
                    place for _, full_name, place in repositories_of_host(tx) if full_name.lower() == key and place
                ]
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
            self.pass_over(path, error)
            return None

    def pass_over(self, path: Path | str, error: PrchainError) -> None:
        """Keep why nothing is taken from a folder or an image; the first reason stays."""
        self.passed_over.setdefault(str(path), str(error))


def repositories_of_host(tx: Transaction) -> list[tuple[int, str, str]]:
    """Id, full name and location of the repositories of the host."""
    rows = tx.rows(Repository, "id", "owner", "name", "location", host=HOST)
    return [(int(id_), f"{owner}/{name}", str(location)) for id_, owner, name, location in rows]
