"""The patches of many landings, read in one stream; one that cannot be read spoils no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chains.history import LandedPullRequest
from prchain.core.errors import IncompleteRepository
from prchain.core.git import FilePatch, GitRepository

CONTEXT = 3
"""Unchanged lines read around each change: the lines beside a change tell where it belongs."""

_BATCH = 64
"""Landings read one by one after a patch of the stream could not be read."""


def read_patches(
    repository: GitRepository, landed: Sequence[LandedPullRequest]
) -> Iterator[tuple[LandedPullRequest, list[FilePatch] | None]]:
    """Each landing with its patch B_t to M_t, in the order given; None where blobs are missing or damaged."""
    start = 0
    while start < len(landed):
        # A stream ends at the first patch that cannot be read. The next ones are read one by one, then a new stream.
        try:
            pairs = [(landed.base_sha, landed.landed_sha) for landed in landed[start:]]
            for patch in repository.patches(pairs, context=CONTEXT):
                yield landed[start], patch
                start += 1
        except IncompleteRepository:
            for later in landed[start : start + _BATCH]:
                yield later, _read_patch(repository, later)
            start += _BATCH


def _read_patch(repository: GitRepository, landed: LandedPullRequest) -> list[FilePatch] | None:
    try:
        return next(repository.patches([(landed.base_sha, landed.landed_sha)], context=CONTEXT))
    except IncompleteRepository:
        return None
