"""The walk over a repository's first-parent lines: one git process, and every commit once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from chains.lineage.definitions import DefinitionOwners
from chains.lineage.evidence import LandingCollector, LandingEvidence
from chains.lineage.landings import LandedRange, LandingMap
from chains.lineage.order import Lines, Segment
from chains.lineage.owners import NOBODY, LineOwners
from chains.lineage.patch_ids import patch_id
from prchain.core.git.line_changes import FileLines
from prchain.core.git.repository import GitRepository


@dataclass(slots=True)
class WalkState:
    """What is known after a commit: the owners of its tree's lines and of its definitions."""

    lines: LineOwners = field(default_factory=LineOwners.empty)
    definitions: DefinitionOwners = field(default_factory=DefinitionOwners)

    def fork(self) -> WalkState:
        """The same state, for another branch."""
        return WalkState(self.lines.fork(), self.definitions.fork())


@dataclass(frozen=True, slots=True)
class WalkedLanding:
    """A landing that was walked. `same_as` is the earlier pull request whose change it repeats on another branch."""

    landing: LandedRange
    evidence: LandingEvidence
    carries: bool
    same_as: int | None


@dataclass(slots=True)
class Walk:
    """A walk. `states` are those that segments begin with, and those at the tips, by commit."""

    lines: Lines
    landings: LandingMap
    states: dict[str, WalkState]
    patches: dict[str, str]
    """Patch id to the first commit that had it."""
    tips: frozenset[str]
    """The commits whose states are kept, wherever they stand on a line."""
    missing: frozenset[bytes] = frozenset()
    commits: int = 0
    credited: dict[str, int] = field(default_factory=dict)
    """Who got the lines of each commit that was walked."""

    def run(
        self, repository: GitRepository, segments: Sequence[Segment], advance: Callable[[int], None]
    ) -> Iterator[WalkedLanding]:
        """Walk segments, and give their landings as they end. Raises `IncompleteRepository` where a blob is missing."""
        kept = {*(segment.fork for segment in segments), *self.tips}
        changes = repository.line_changes(_steps(segments))
        for segment in segments:
            state = self.states[segment.fork].fork() if segment.fork is not None else WalkState()
            collector: LandingCollector | None = None
            same: list[int | None] = []
            for sha in segment.commits:
                walked, files = next(changes)
                assert walked == sha
                number = self.landings.owners.get(sha)
                if number is not None and (collector is None or collector.number != number):
                    collector, same = LandingCollector(number), []
                twin = self._twin(sha, files)
                same.append(twin)
                self._apply(state, sha, files, twin, collector if number is not None else None)
                self.commits += 1
                advance(1)
                landing = self.landings.ends.get(sha)
                if landing is not None and collector is not None:
                    same_as = same[0] if None not in same and len(set(same)) == 1 else None
                    yield WalkedLanding(landing, collector.weigh(), sha in self.landings.carriers, same_as)
                    collector = None
                if sha in kept:
                    self.states[sha] = state.fork()
        for _ in changes:  # lets the process end, and its exit be looked at
            raise AssertionError("git walked more commits than it was asked for")

    def _apply(
        self,
        state: WalkState,
        sha: str,
        files: list[FileLines],
        twin: int | None,
        collector: LandingCollector | None,
    ) -> None:
        owner = self.landings.owners.get(sha, NOBODY)
        if sha in self.landings.carriers:
            owner = NOBODY
        elif twin is not None:
            owner = twin
        self.credited[sha] = owner
        hunks = state.lines.apply(owner, files, self.missing)
        if collector is not None:
            collector.add(hunks, state.definitions)
        state.definitions.apply(owner, files)

    def _twin(self, sha: str, files: list[FileLines]) -> int | None:
        """The pull request whose commit, on another branch and walked before, makes the same change."""
        name = patch_id(files)
        if name is None:
            return None
        first = self.patches.setdefault(name, sha)
        if first == sha or self.lines.is_on_line(first, sha):
            return None
        return self.landings.owners.get(first)


def _steps(segments: Sequence[Segment]) -> Iterator[tuple[str, str | None]]:
    for segment in segments:
        parent = segment.fork
        for sha in segment.commits:
            yield sha, parent
            parent = sha
