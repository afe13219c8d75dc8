"""Who owns every line of a tree: the state that a walk over a branch's first-parent history carries.

An owner is a pull request's number, `NOBODY` or `UNKNOWN`. Files are arrays of owners, a number a line; states that
branches fork from one another share the arrays of files that neither has changed since.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from prchain.core.git.line_changes import FileLines, LineHunk

NOBODY = 0
"""A direct push, or a merge that brings another branch's landings."""
UNKNOWN = -1
"""The line came while the file's content was not there to be read."""
ARRAY_TYPE = "i"
"""Of the arrays of owners; GitHub numbers fit in 32 bits."""


class OwnedHunk(NamedTuple):
    """A hunk with the owners of the lines that it removes and of those beside it; None where there is no such line."""

    path: bytes
    hunk: LineHunk
    removed: array[int]
    above: int | None
    below: int | None


@dataclass(slots=True)
class LineOwners:
    """The owners of a tree's lines. A file whose content was missing, or is binary, has no array."""

    files: dict[bytes, array[int] | None]
    unread: set[bytes] = field(default_factory=set)
    """Text files that changed while the content before was not there to be read."""

    @classmethod
    def empty(cls) -> LineOwners:
        """Those of no tree."""
        return cls({})

    def fork(self) -> LineOwners:
        """The same state, for another branch. No array is ever changed in place, so both may go on."""
        return LineOwners(dict(self.files), set(self.unread))

    def apply(self, owner: int, files: Iterable[FileLines], missing: frozenset[bytes] = frozenset()) -> list[OwnedHunk]:
        """Let a commit of an owner change the lines. `missing` are blobs that stand in as empty ones.

        Gives the hunks of files that it knew before, with the owners that their lines had.
        """
        found: list[OwnedHunk] = []
        after: dict[bytes, array[int] | None] = {}
        gone: list[bytes] = []
        unread: set[bytes] = set()
        for file in files:
            known = self.files.get(file.old_path) if file.old_path is not None else array(ARRAY_TYPE)
            if file.old_path is not None and file.old_path != file.new_path:
                gone.append(file.old_path)
            result, hunks = _changed(known, owner, file, missing)
            found += hunks
            if file.new_path is not None:
                after[file.new_path] = result
                if result is None and (file.hunks or file.old_path in self.unread):
                    unread.add(file.new_path)
        for path in gone:
            self.files.pop(path, None)
        self.files.update(after)
        self.unread.difference_update(gone, after)
        self.unread |= unread
        return found


def _changed(
    known: array[int] | None, owner: int, file: FileLines, missing: frozenset[bytes]
) -> tuple[array[int] | None, list[OwnedHunk]]:
    """The owners of a file's lines afterwards, and its hunks with the owners before."""
    path = file.old_path or file.new_path or b""
    if file.binary or file.submodule or file.new_blob in missing:
        return None, []
    if known is None or file.old_blob in missing:
        if not file.hunks or file.old_path is None:
            return known, []
        if file.old_blob not in missing:
            return None, []  # a text that follows one that was not read: where its lines were is not known
        return array(ARRAY_TYPE, [UNKNOWN]) * sum(hunk.new_count for hunk in file.hunks), []
    result, at, owned = array(ARRAY_TYPE), 0, list[OwnedHunk]()
    for hunk in file.hunks:
        start, end = hunk.before, hunk.before + hunk.old_count
        if start < at or end > len(known):
            return None, []
        above = known[start - 1] if start else None
        below = known[end] if end < len(known) else None
        owned.append(OwnedHunk(path, hunk, known[start:end], above, below))
        result += known[at:start]
        result += array(ARRAY_TYPE, [owner]) * hunk.new_count
        at = end
    result += known[at:]
    return result, owned
