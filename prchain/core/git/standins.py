"""A repository in which blobs that it lacks are there, and empty.

Git ends a walk over a history at the first blob that is missing. A private repository over the incomplete one, with
the missing blobs replaced (git-replace(1)), lets the walk go on; the incomplete one is not written to.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from prchain.core.errors import GitError
from prchain.core.git.process import GitStream, only
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import alternate_line


class StandInRepository(GitRepository):
    """A repository that borrows all objects, and in which some missing blobs are empty."""

    def stream(
        self,
        *arguments: str,
        lines: Iterable[str] = (),
        fine: Collection[int] = (0,),
        config: Mapping[str, str] | None = None,
        named: bool = True,
    ) -> GitStream:
        """As in `GitRepository`; always in its own folder, whose replace refs count."""
        own = {**only(self.path), "GIT_NO_REPLACE_OBJECTS": None}
        return GitStream(arguments, lines, own=own, config=config, fine=fine)

    @classmethod
    def over(cls, repository: GitRepository, path: Path, missing: Collection[str]) -> StandInRepository:
        """The repository at `path`, made where it is not there, that stands over another one.

        `missing` are blobs that are to be empty, beside those that are already. Raises `GitError`, `DiskFull`.
        """
        try:
            (path / "objects" / "info").mkdir(parents=True, exist_ok=True)
            line = os.fsencode(f"{alternate_line(repository.objects)}\n")
            (path / "objects" / "info" / "alternates").write_bytes(line)
        except OSError as error:
            raise GitError(f"{path} cannot be written: {error.strerror}") from error
        found = cls(path)
        found.run("init", "--quiet", "--bare", "--template=", f"--object-format={repository.object_format}")
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
