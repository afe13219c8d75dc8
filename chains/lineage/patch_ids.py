"""Telling that two commits make the same change, as a cherry-pick does; git-patch-id(1) is the model."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from prchain.core.git.line_changes import FileLines

FEWEST_LINES = 3
"""A change of fewer lines, such as a version's, can be made twice by chance."""


def patch_id(files: Iterable[FileLines]) -> str | None:
    """A digest of the paths and the lines that change, without white space and places; None for too small a change."""
    digest = blake2b(digest_size=16)
    lines = 0
    for file in files:
        digest.update(b"\0%b\0%b\0" % (file.old_path or b"", file.new_path or b""))
        if not file.hunks:
            digest.update(file.new_blob)
        for hunk in file.hunks:
            for mark, side in ((b"-", hunk.removed), (b"+", hunk.added)):
                for line in side:
                    text = b"".join(line.split())
                    if text:
                        lines += 1
                        digest.update(mark + text + b"\n")
    return digest.hexdigest() if lines >= FEWEST_LINES else None
