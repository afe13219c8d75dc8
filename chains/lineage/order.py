"""The order of a walk: first-parent lines of several branches form trees, and every commit is walked once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Parents = Mapping[str, Sequence[str]]
"""Commit to its parents, first parent first."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of commits, each the first parent of the next: from a root, or from where an earlier segment forks."""

    fork: str | None
    """The commit below the first one; None for a root."""
    commits: tuple[str, ...]


def first_parent_line(parents: Parents, tip: str) -> Iterator[str]:
    """A tip and its ancestors by first parents, the newest first."""
    sha: str | None = tip
    while sha is not None:
        yield sha
        above = parents[sha]
        sha = above[0] if above else None


def segments(parents: Parents, tips: Iterable[str], walked: Collection[str] = ()) -> list[Segment]:
    """The segments of the lines that end at some commits, without what was walked. The first one's line is whole.

    A commit that stands on the line of one before it makes no segment.
    """
    seen = set(walked)
    found: list[Segment] = []
    for tip in tips:
        line: list[str] = []
        fork: str | None = None
        for sha in first_parent_line(parents, tip):
            if sha in seen:
                fork = sha
                break
            line.append(sha)
        if line:
            seen.update(line)
            found.append(Segment(fork, tuple(reversed(line))))
    return found


@dataclass(slots=True)
class Lines:
    """All segments from the roots on; says which commits a merge brings, and which stand below which."""

    parents: Parents
    segments: Sequence[Segment]
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Commit of a line to its segment and its position there."""
    _reached: list[dict[str, int]] = field(default_factory=list)
    """For each segment, every commit that it brings, with the position that brings it."""
    _brought: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, segment in enumerate(self.segments):
            reached: dict[str, int] = {}
            self._reached.append(reached)
            for position, sha in enumerate(segment.commits):
                self._places[sha] = number, position
                reached[sha] = position
                pending = list(self.parents[sha][1:])
                new: list[str] = []
                while pending:
                    commit = pending.pop()
                    if commit in reached or self._below(segment.fork, commit):
                        continue
                    reached[commit] = position
                    new.append(commit)
                    pending += self.parents[commit]
                if new:
                    self._brought[sha] = new

    def brought(self, merge: str) -> Sequence[str]:
        """The commits that a merge brings: reachable from it and not from its first parent."""
        return self._brought.get(merge, ())

    def is_on_line(self, earlier: str, later: str) -> bool:
        """Whether a commit is among the first-parent ancestors of another one, or is that one."""
        place = self._places.get(earlier)
        at: str | None = later
        while place is not None and at is not None:
            number, position = self._places[at]
            if place[0] == number:
                return place[1] <= position
            at = self.segments[number].fork
        return False

    def _below(self, at: str | None, commit: str) -> bool:
        """Whether a commit is reachable from one of a line."""
        while at is not None:
            number, position = self._places[at]
            if (order := self._reached[number].get(commit)) is not None and order <= position:
                return True
            at = self.segments[number].fork
        return False
