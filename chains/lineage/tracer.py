"""The walk of one repository's landings: what of the state before can be used, and what is left to walk."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from chains.lineage import cache
from chains.lineage.cache import CachedWalk
from chains.lineage.landings import LandedRange, LandingMap, map_landings
from chains.lineage.order import Lines, Segment, first_parent_line, segments
from chains.lineage.walk import Walk, WalkedLanding
from prchain.core.console.progress import ProgressTask
from prchain.core.git import GitRepository
from prchain.core.git.standins import StandInRepository

log = logging.getLogger(__name__)


class Tracer:
    """The walk of one repository. `folder` holds the state that walks leave for the next one."""

    def __init__(
        self,
        repository: GitRepository,
        folder: Path,
        ranges: Sequence[LandedRange],
        task: ProgressTask,
        kept: Collection[str] = (),
    ) -> None:
        self.ranges = ranges
        self.kept = frozenset(kept)
        """Commits whose states are kept besides those of the tips."""
        self.missing: frozenset[bytes] = frozenset()
        self._repository = repository
        self._folder = folder
        self._task = task
        task.phase("reading the graph")
        parents = {sha: tuple(above) for sha, *above in repository.parents([landed.landed_sha for landed in ranges])}
        self._parents = parents
        self.all_segments = segments(parents, [landed.landed_sha for landed in ranges])
        self.tips = [segment.commits[-1] for segment in self.all_segments]
        self._lines = Lines(parents, self.all_segments)
        self.commits = [sha for segment in self.all_segments for sha in segment.commits]
        self.landings: LandingMap = map_landings(ranges, self._lines, dict.fromkeys(self.commits))
        self._walk: Walk | None = None
        self._known: CachedWalk | None = None
        self._todo: Sequence[Segment] = self.all_segments

    def rewritten(self) -> tuple[str, ...]:
        """The branches that are there and do not have their newest landing any more."""
        newest: dict[str, str] = {}
        for landed in self.ranges:
            newest.setdefault(landed.branch, landed.landed_sha)
        there = {name.removeprefix("refs/heads/") for name in self._repository.refs("refs/heads")}
        return tuple(
            branch
            for branch, sha in newest.items()
            if branch in there and not self._repository.branches_with(sha, [branch])
        )

    def begin(self, known: CachedWalk | None, keys: Sequence[str | None]) -> str:
        """Decide where the walk begins; why it is at the roots, or nothing where it goes on from a state.

        `keys` are those of the rows that are stored, and of the walk before: rows are stored first, and a kill may
        have kept the state from being written.
        """
        if not keys:
            return "it is the first"
        if known is None or known.key not in keys:
            return "the state of the last walk is gone"
        if any(tip not in self._parents for tip in known.states):
            return "a branch was rewritten since the last walk"
        old = self._walked_by(known.states)
        if known.walked != self._digest(old):
            return "landings of before were found since the last walk"
        todo = segments(self._parents, self.tips, old)
        if any(segment.fork in old and segment.fork not in known.states for segment in todo):
            return "a branch with landings forks where no state was kept"
        self._known, self._todo = known, todo
        return ""

    def walk(self) -> list[WalkedLanding]:
        """Walk what is left. Raises `IncompleteRepository` where a commit or a tree is missing."""
        # Git ends a walk at the first blob that is missing, so they are all found before, in about a second.
        self._task.phase("looking for missing files")
        missing = self._repository.missing_blobs(self.tips)
        self.missing = frozenset(blob.encode() for blob in missing)
        repository = self._repository
        if missing:
            repository = StandInRepository.over(repository, self._folder / "stand-ins.git", missing)
        known = self._known
        self._walk = Walk(
            self._lines,
            self.landings,
            dict(known.states) if known else {},
            dict(known.patches) if known else {},
            self.kept.union(self.tips),
            self.missing,
        )
        self._task.phase("walking", sum(len(segment.commits) for segment in self._todo))
        return list(self._walk.run(repository, self._todo, self._task.advance))

    @property
    def steps(self) -> int:
        """How many commits were walked."""
        return self.finished.commits

    @property
    def finished(self) -> Walk:
        """The walk that was done."""
        assert self._walk is not None
        return self._walk

    @property
    def unread(self) -> int:
        """How many text files at the newest landing are without owners."""
        return len(self.finished.states[self.tips[0]].lines.unread) if self.tips else 0

    def save(self, key: str) -> None:
        """Write the state that the next walk begins with; without room for it that one begins at the roots."""
        walk = self.finished
        states = {tip: walk.states[tip] for tip in self.tips}
        state = CachedWalk(key, self._digest(self._walked_by(self.tips)), states, walk.patches)
        try:
            cache.save(self._folder / "owners", state)
        except OSError as error:
            log.warning("%s cannot be written (%s); the next walk begins anew", self._folder, error.strerror)

    def _walked_by(self, tips: Iterable[str]) -> dict[str, None]:
        """The commits of the lines that end at some tips."""
        return dict.fromkeys(sha for tip in tips for sha in first_parent_line(self._parents, tip))

    def _digest(self, commits: Iterable[str]) -> str:
        owners, carriers = self.landings.owners, self.landings.carriers
        digest = sha256()
        for sha in commits:
            digest.update(f"{sha} {owners.get(sha, 0)} {sha in carriers}\n".encode())
        return digest.hexdigest()
