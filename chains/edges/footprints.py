"""What one patch leaves in the code, and where a later patch meets it.

The strongest sign of a dependency: the later patch changes or removes lines that the earlier one added (measured: 69 of
76 cited pairs with that sign were real, five more borderline). Lines are compared by their text within one path.
`git blame` would follow every move, but costs a process for each file, and there are thousands of pairs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from prchain.core.code.identifiers import defined_names, identifiers
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git import FilePatch

_CODE_KINDS = frozenset({FileKind.SOURCE, FileKind.TEST})

_MIN_TELLING = 12
"""A line with fewer letters and digits occurs in many places: ``else:``, ``return None``, ``});``."""

_COMMON_LINE = re.compile(
    r"^(?:import|from|use|#include|using|package|return|continue|pass|end|else)\b.{0,24}$|^[\W\d_]*$"
)

_MOST_LINES = 4000
"""Lines kept per path and kind; a generated file of a million lines proves no more."""


@dataclass(slots=True)
class PatchFootprint:
    """The code side of one patch: telling lines by path, names and folders."""

    added: dict[str, frozenset[str]] = field(default_factory=dict)
    removed: dict[str, frozenset[str]] = field(default_factory=dict)
    """By the path that the file had before."""
    around: dict[str, frozenset[str]] = field(default_factory=dict)
    """The unchanged lines beside its changes, by the path before."""
    defined: frozenset[str] = frozenset()
    """Names that its added lines define and its other lines do not have."""
    used: frozenset[str] = frozenset()
    """Names in its added lines and beside them."""
    sources: frozenset[str] = frozenset()
    """The source files it changes, by both names where it renames them."""
    tests: frozenset[str] = frozenset()

    @property
    def lines(self) -> int:
        """How many telling lines it adds and removes."""
        return sum(map(len, self.added.values())) + sum(map(len, self.removed.values()))

    @property
    def folders(self) -> frozenset[str]:
        """The folders of the source files; the root is none."""
        return frozenset(folder for path in self.sources if (folder := str(PurePosixPath(path).parent)) != ".")


@dataclass(frozen=True, slots=True)
class PatchOverlap:
    """Where a later patch meets an earlier one."""

    lines: int = 0
    """How many telling lines the later patch adds and removes."""
    repeated: float = 0.0
    """The share of added lines that both patches add; near 1 where a change lands again."""
    changed_lines: int = 0
    """Telling lines that the earlier patch added and the later one removes or changes."""
    restored: float = 0.0
    """The share of the telling lines which the earlier patch removed that the later one adds again."""
    taken_away: float = 0.0
    """The share of the telling lines which the earlier patch added that the later one removes or changes."""
    neighbour_lines: int = 0
    """Telling lines that the earlier patch added and that are beside a change of the later one."""
    names: tuple[str, ...] = ()
    """Names that the earlier patch introduced and the later one uses."""
    files: tuple[str, ...] = ()
    """Source files both change."""
    tests: tuple[str, ...] = ()
    """Test files both change."""
    folders: tuple[str, ...] = ()
    """Folders in which both change source files."""

    @property
    def share_an_area(self) -> bool:
        """Whether the two work on one part of the code."""
        return bool(self.files or self.folders or self.changed_lines or self.neighbour_lines or self.names)


def footprint_of(patch: Sequence[FilePatch]) -> PatchFootprint:
    """The footprint of a patch that has some lines of context."""
    footprint = PatchFootprint()
    defined: set[str] = set()
    known: set[str] = set()
    used: set[str] = set()
    sources: set[str] = set()
    tests: set[str] = set()
    for file in patch:
        kind = kind_of(file.path)
        if kind not in _CODE_KINDS or file.binary:
            continue
        before = file.old_path or file.path
        (sources if kind is FileKind.SOURCE else tests).update((file.path, before))
        neighbours = [line[1:] for hunk in file.hunks for line in hunk.lines if line[0] == " "]
        footprint.added[file.path] = _telling_lines(file.added)
        footprint.removed[before] = _telling_lines(file.removed)
        footprint.around[before] = _telling_lines(neighbours)
        if kind is FileKind.SOURCE:
            defined |= defined_names(file.added, file.path)
        known.update(identifiers("\n".join((*file.removed, *neighbours))))
        used.update(identifiers("\n".join((*file.added, *neighbours))))
    footprint.defined = frozenset(name for name in defined - known if _is_telling_name(name))
    footprint.used = frozenset(used)
    footprint.sources, footprint.tests = frozenset(sources), frozenset(tests)
    return footprint


def overlap_of(later: PatchFootprint, earlier: PatchFootprint) -> PatchOverlap:
    """Where the later patch meets the earlier one."""
    return PatchOverlap(
        lines=later.lines,
        repeated=_repeated(later, earlier),
        changed_lines=sum(len(earlier.added.get(path, _NONE) & lines) for path, lines in later.removed.items()),
        restored=_met_share(earlier.removed, later.added),
        taken_away=_met_share(earlier.added, later.removed),
        neighbour_lines=sum(len(earlier.added.get(path, _NONE) & lines) for path, lines in later.around.items()),
        names=tuple(sorted(earlier.defined & later.used)),
        files=tuple(sorted(earlier.sources & later.sources)),
        tests=tuple(sorted(earlier.tests & later.tests)),
        folders=tuple(sorted(earlier.folders & later.folders)),
    )


def _met_share(first: Mapping[str, frozenset[str]], second: Mapping[str, frozenset[str]]) -> float:
    """The share of the first lines, path by path, that are among the second; 0 where there are none."""
    total = sum(map(len, first.values()))
    return sum(len(lines & second.get(path, _NONE)) for path, lines in first.items()) / total if total else 0.0


def _repeated(later: PatchFootprint, earlier: PatchFootprint) -> float:
    both = sum(len(earlier.added.get(path, _NONE) & lines) for path, lines in later.added.items())
    largest = max(sum(map(len, footprint.added.values())) for footprint in (later, earlier))
    return both / largest if largest else 0.0


_NONE: frozenset[str] = frozenset()


def _telling_lines(lines: Collection[str]) -> frozenset[str]:
    texts = set()
    for line in lines:
        text = " ".join(line.split())
        if sum(map(str.isalnum, text[:80])) >= _MIN_TELLING and not _COMMON_LINE.match(text):
            texts.add(text)
            if len(texts) >= _MOST_LINES:
                break
    return frozenset(texts)


def _is_telling_name(name: str) -> bool:
    """Whether a name is unlikely to occur by chance: long, or made of several words."""
    bare = name.strip("_")
    return len(bare) >= 10 or (
        len(bare) >= 6 and ("_" in bare or not (bare.islower() or bare.isupper() or bare[1:].islower()))
    )
