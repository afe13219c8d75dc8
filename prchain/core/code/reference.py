"""The reference patch of a stage, split into source, tests and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.git.patches import FilePatch

_SOURCE = {FileKind.SOURCE, FileKind.CONFIG, FileKind.DATA, FileKind.BINARY}


@dataclass(frozen=True)
class Reference:
    """What the developers merged: the patch from B_t to M_t.

    `source` solves the stage: source, configuration and data. `test` is all below the repository's test conventions,
    fixtures and snapshots included. `other` belongs to neither: docs, lock files, generated and vendored files, CI. It
    is applied together with `source`, but neither counted nor asked for.
    """

    source: tuple[FilePatch, ...] = ()
    test: tuple[FilePatch, ...] = ()
    other: tuple[FilePatch, ...] = ()
    kinds: frozenset[FileKind] = field(default_factory=frozenset)
    """Every kind of file that it changes."""

    @cached_property
    def code(self) -> tuple[FilePatch, ...]:
        """The part of `source` that is program text."""
        return tuple(file for file in self.source if kind_of(file.path) is FileKind.SOURCE)

    @cached_property
    def source_lines(self) -> int:
        """Lines with content that it adds to and removes from program text; what the limits of size count."""
        return lines_changed(self.code)

    @cached_property
    def test_lines(self) -> int:
        """Lines with content that it adds to and removes from tests, fixtures included."""
        return lines_changed(self.test)

    @cached_property
    def language(self) -> str | None:
        """The language of most changed lines of program text; None where there is none."""
        lines: Counter[str] = Counter()
        for file in self.code:
            language = language_of(file.path)
            if language is not None:
                lines[language] += lines_changed((file,)) or 1
        return min(lines, key=lambda name: (-lines[name], name)) if lines else None

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it touches, both names of a renamed file."""
        files = (*self.source, *self.test, *self.other)
        return tuple(dict.fromkeys(path for file in files for path in (file.old_path, file.path) if path))


def split(patch: Sequence[FilePatch]) -> Reference:
    """Part a patch by what its files are. A file moved out of a test folder counts as what it has become."""
    source: list[FilePatch] = []
    test: list[FilePatch] = []
    other: list[FilePatch] = []
    kinds: set[FileKind] = set()
    for file in patch:
        kind = kind_of(file.path)
        kinds.add(kind)
        (source if kind in _SOURCE else test if kind is FileKind.TEST else other).append(file)
    return Reference(tuple(source), tuple(test), tuple(other), frozenset(kinds))


def lines_changed(files: Iterable[FilePatch]) -> int:
    """Lines added and removed that are not blank; a binary file has none."""
    return sum(1 for file in files for line in (*file.added, *file.removed) if line.strip())
