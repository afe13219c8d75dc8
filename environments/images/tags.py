"""The tag of a repository from which tools would read the version at a commit."""

from __future__ import annotations

import contextlib

from environments.images.plans import version_of_tags
from prchain.core.errors import GitError
from prchain.core.git.repository import GitRepository

_VERSIONS = "*[0-9].[0-9]*"


def version_at(git: GitRepository, commit: str) -> str:
    """The version that a tool would read at a commit from git's tags: that of `tag_at`."""
    return version_of_tags([tag_at(git, commit)])


def tag_at(git: GitRepository, commit: str) -> str:
    """The nearest tag before a commit that looks like a version; where none is, for releases can have branches of their
    own, the last one that was made before the commit; empty without any."""
    with contextlib.suppress(GitError):  # there is no such tag
        return git.run("describe", "--tags", "--abbrev=0", f"--match={_VERSIONS}", commit, named=True).strip()
    with contextlib.suppress(GitError, ValueError):
        day = int(git.run("show", "--no-patch", "--format=%ct", commit, named=True))
        form = "--format=%(creatordate:unix) %(refname:strip=2)"
        listed = git.run("for-each-ref", "--sort=-creatordate", form, f"refs/tags/{_VERSIONS}", named=True)
        dated = (line.partition(" ")[::2] for line in listed.splitlines())
        return next((tag for made, tag in dated if made.isdigit() and int(made) <= day), "")
    return ""
