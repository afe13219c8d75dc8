"""Trees of a repository that a test makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import git

from environments.images.buildtree import GitTree
from prchain.core.git.repository import GitRepository


def committer(folder: Path) -> Callable[..., GitTree]:
    """Makes commits of a new repository, of texts by name beside what lies in the folder, and gives their trees."""
    repository = git.Repo.init(folder)

    def make(**files: str) -> GitTree:
        for name, text in files.items():
            (folder / name).write_text(text)
        repository.git.add("-A")
        repository.git.execute(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"])
        return GitTree(GitRepository.open(folder), str(repository.head.commit))

    return make
