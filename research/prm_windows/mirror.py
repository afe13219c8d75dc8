"""The trajectory files in all that a mirror's refs reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from prchain.core.git import GitRepository
from research.prm_windows.conversation import RealTrajectory, read_trajectory

SHORTEST = 12
"""Turns of the shortest trajectory that is taken."""

_SUFFIX = b".traj.json"
_NAME = 16
"""Digits of a trajectory's name."""


def read_trajectories(mirror: Path) -> list[RealTrajectory]:
    """The trajectories of a repository with `SHORTEST` turns or more, by name. Each content counts once.

    Objects that the mirror lacks are passed over. Raises `PrchainError`.
    """
    repository = GitRepository.open(mirror)
    files = dict(sorted(_files(repository)))
    lacking = repository.missing(files)
    read = [
        (read_trajectory(name[:_NAME], repository.blob(name)), instance)
        for name, instance in files.items()
        if name not in lacking
    ]
    return [replace(it, instance=instance) for it, instance in read if it is not None and it.turns >= SHORTEST]


def _files(repository: GitRepository) -> Iterator[tuple[str, str]]:
    """The names of files' contents, and of the files without folder and ending."""
    with repository.stream("rev-list", "--objects", "--all", "--missing=allow-any", named=True) as output:
        for line in output:
            name, _, path = line.rstrip(b"\n").partition(b" ")
            if path.endswith(_SUFFIX):
                yield name.decode(), path[: -len(_SUFFIX)].decode(errors="replace").rpartition("/")[2]
