"""What says that one landing builds on others: whose lines it changes, whose functions, whose names it begins to use.

A landing is collected hunk by hunk, each with the owners that its lines had before it, and weighed when it is whole.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from chains.lineage.definitions import DefinitionOwners, text_of
from chains.lineage.owners import OwnedHunk
from chains.lineage.real_lines import is_code, is_real, kind_and_family
from prchain.core.code.identifiers import bare_definitions, is_code_name
from prchain.core.code.kinds import FileKind

SWEEPING = 50
"""A landing that changes lines of more pull requests than this builds on none of them."""

_NAME = re.compile(r"\b[^\W\d]\w{3,}\b")
_USED = re.compile(r"\b([^\W\d]\w{3,})\b(\(?)")


@dataclass(frozen=True, slots=True)
class LineageEvidence:
    """What of an earlier pull request a later one changes. Lines are counted; a line that the landing takes away here
    and puts there is moved, not changed."""

    removed_lines: int
    """Lines of the earlier one that it removes or changes, of any file."""
    real_lines: int
    """Of these, lines of source and tests that are code and not moved."""
    source_lines: int
    """Of these, those of source files."""
    moved_lines: int
    inserted_lines: int
    """Real lines that it puts beside lines of the earlier one, where it removes none."""
    functions: tuple[str, ...]
    """Functions and classes that the earlier one introduced and in which it changes something."""
    names: tuple[str, ...]
    """Names that the earlier one introduced and that it begins to use."""


@dataclass(frozen=True, slots=True)
class LandingEvidence:
    """A whole landing: its sizes, and the earlier pull requests that it builds on."""

    removed_lines: int
    removed_real: int
    """As `LineageEvidence.real_lines`, of whomever."""
    added_lines: int
    added_real: int
    moved_lines: int
    owners: int
    """How many pull requests' lines it removes, changes, or puts lines beside."""
    pairs: dict[int, LineageEvidence]
    """By the earlier number; empty for a landing that sweeps."""

    @property
    def sweeps(self) -> bool:
        """Whether it touches too many pull requests to build on any."""
        return self.owners > SWEEPING


@dataclass(slots=True)
class _Pair:
    removed: int = 0
    real: int = 0
    source: int = 0
    moved: int = 0
    inserted: int = 0
    is_inside: bool = False
    """Whether lines were put beside the other's, or its names used, inside a function that was there."""
    functions: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class LandingCollector:
    """Collects the hunks of one landing, commit by commit."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pairs: defaultdict[int, _Pair] = defaultdict(_Pair)
        self._removed: list[tuple[int, bytes, bool]] = []
        """Owner, text and whether it is source, of each real line that is removed."""
        self._added: Counter[bytes] = Counter()
        self._removed_lines = 0
        self._added_lines = 0
        self._uses: dict[tuple[str, int], bool] = {}
        """Name and introducer of each name that is used, and whether inside a function."""
        self._removed_code: list[bytes] = []

    def add(self, hunks: Sequence[OwnedHunk], definitions: DefinitionOwners) -> None:
        """Take the hunks of a commit; `definitions` are those before it."""
        for owned in hunks:
            hunk = owned.hunk
            self._removed_lines += len(hunk.removed)
            self._added_lines += len(hunk.added)
            for owner, count in Counter(owned.removed).items():
                if self._is_other(owner):
                    self._pairs[owner].removed += count
            if is_code(owned.path):
                self._add_code(owned, definitions)

    def _add_code(self, owned: OwnedHunk, definitions: DefinitionOwners) -> None:
        hunk, path = owned.hunk, owned.path
        kind, family = kind_and_family(path)
        is_source = kind is FileKind.SOURCE
        for owner, line in zip(owned.removed, hunk.removed, strict=True):
            if is_real(line, family):
                self._removed.append((owner, line.strip(), is_source))
        real_added = [line for line in hunk.added if is_real(line, family)]
        self._added.update(line.strip() for line in real_added)
        function = _function_around(owned, family)
        if not hunk.removed and real_added:
            for neighbour in {owned.above, owned.below}:
                if neighbour is not None and self._is_other(neighbour):
                    self._pairs[neighbour].inserted += len(real_added)
                    self._pairs[neighbour].is_inside |= function is not None
        if function is not None:
            introducer = definitions.in_file(path, function)
            if introducer is not None and self._is_other(introducer):
                self._pairs[introducer].functions.add(function)
        self._removed_code += hunk.removed
        if real_added:
            self._add_uses(real_added, definitions, function is not None)

    def _add_uses(self, lines: Sequence[bytes], definitions: DefinitionOwners, is_inside: bool) -> None:
        for name, call in set(_USED.findall(text_of(lines))):
            owner = definitions.anywhere(name)
            if owner is not None and self._is_other(owner) and (call or is_code_name(name)):
                self._uses[name, owner] = self._uses.get((name, owner), False) or is_inside

    def _is_other(self, owner: int) -> bool:
        return owner > 0 and owner != self.number

    def weigh(self) -> LandingEvidence:
        """The evidence of the landing, now that it is whole."""
        added = Counter(self._added)
        removed_real = moved = 0
        for owner, text, is_source in self._removed:
            is_moved = added[text] > 0
            if is_moved:
                added[text] -= 1
                moved += 1
            else:
                removed_real += 1
            if self._is_other(owner):
                pair = self._pairs[owner]
                pair.moved += is_moved
                pair.real += not is_moved
                pair.source += is_source and not is_moved
        owners = sum(pair.removed > 0 or pair.inserted > 0 for pair in self._pairs.values())
        return LandingEvidence(
            self._removed_lines,
            removed_real,
            self._added_lines,
            self._added.total(),
            moved,
            owners,
            {} if owners > SWEEPING else self._stored(),
        )

    def _stored(self) -> dict[int, LineageEvidence]:
        if self._uses:
            old_names = set(_NAME.findall(text_of(self._removed_code)))
            for (name, owner), is_inside in self._uses.items():
                if name not in old_names:
                    self._pairs[owner].names.add(name)
                    self._pairs[owner].is_inside |= is_inside
        return {
            owner: LineageEvidence(
                pair.removed,
                pair.real,
                pair.source,
                pair.moved,
                pair.inserted,
                tuple(sorted(pair.functions)),
                tuple(sorted(pair.names)),
            )
            for owner, pair in sorted(self._pairs.items())
            if pair.real or (pair.is_inside and (pair.inserted or pair.names))
        }


def _function_around(owned: OwnedHunk, family: str | None) -> str | None:
    """The name of the function or class in which a hunk lies; None where there is none.

    Git names the last one that begins above; a hunk whose lines stand as far out as that one's is not in it.
    """
    section = owned.hunk.section
    if not section or family is None:
        return None
    lines = [line for line in (*owned.hunk.removed, *owned.hunk.added) if line.strip()]
    if not lines or min(map(_indent, lines)) <= _indent(section):
        return None
    names = bare_definitions(text_of([section]), family)
    return names[0] if names else None


def _indent(line: bytes) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())
