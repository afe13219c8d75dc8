"""A repository in which blobs that it lacks are there, and empty.

Git ends a walk over a history at the first blob that is missing. A private repository over the incomplete one, with
the missing blobs replaced (git-replace(1)), lets the walk go on; the incomplete one is not written to.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from prchain.errors import GitError
from prchain.git.repository import GitRepository
from prchain.git.trees import alternate_line, objects_of


class StandInRepository(GitRepository):
    """A repository that borrows all objects, and in which some missing blobs are empty."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        del self._environment["GIT_NO_REPLACE_OBJECTS"]

    @classmethod
    def over(cls, repository: GitRepository, path: Path, missing: Collection[str]) -> StandInRepository:
        """The repository at `path`, made where it is not there, that stands over another one.

        `missing` are blobs that are to be empty, beside those that are already. Raises `GitError`, `DiskFull`.
        """
        try:
            (path / "objects" / "info").mkdir(parents=True, exist_ok=True)
            (path / "objects" / "info" / "alternates").write_text(f"{alternate_line(objects_of(repository))}\n")
        except OSError as error:
            raise GitError(f"{path} cannot be written: {error.strerror}") from error
        found = cls(path)
        object_format = repository.run("rev-parse", "--show-object-format").strip()
        found.run("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}")
        with found.stream("hash-object", "-w", "--stdin") as output:
            empty = output.read().decode().strip()
        with found.stream(
            "update-ref", "--stdin", lines=(f"update refs/replace/{blob} {empty}" for blob in sorted(missing))
        ) as output:
            output.read()
        return found

    def replaced(self) -> set[str]:
        """The blobs that are empty here."""
        names = self.run("for-each-ref", "--format=%(refname)", "refs/replace/").split()
        return {name.rpartition("/")[2] for name in names}
