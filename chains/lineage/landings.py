"""Which pull request each first-parent commit belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chains.lineage.order import Lines


@dataclass(frozen=True, slots=True)
class LandedRange:
    """Where a pull request landed on one branch: the commits above `base_sha` up to `landed_sha`."""

    number: int
    branch: str
    base_sha: str
    landed_sha: str
    counts: bool
    """Whether this is the landing of the pull request that counts, where it landed on several branches."""


@dataclass(slots=True)
class LandingMap:
    """The commits of landings, on the lines that are walked."""

    owners: dict[str, int] = field(default_factory=dict)
    """First-parent commit to its pull request."""
    ends: dict[str, LandedRange] = field(default_factory=dict)
    """The last commit of a landing to the landing."""
    carriers: set[str] = field(default_factory=set)
    """Merges that bring landings of another line."""
    off_line: list[int] = field(default_factory=list)
    """Pull requests whose landing that counts stands on no line that is walked."""


def map_landings(landings: Iterable[LandedRange], lines: Lines, walked: Mapping[str, object]) -> LandingMap:
    """The map of landings; `walked` has every commit of the lines.

    Where two pull requests landed with one commit, the one that counts owns it, then the smaller number.
    """
    found = LandingMap()
    for landing in sorted(landings, key=lambda landed: (not landed.counts, landed.number, landed.branch)):
        if landing.landed_sha not in walked:
            if landing.counts:
                found.off_line.append(landing.number)
            continue
        if landing.landed_sha in found.ends:
            if landing.counts:
                found.off_line.append(landing.number)
            continue
        found.ends[landing.landed_sha] = landing
        for sha in _range(landing, lines):
            found.owners.setdefault(sha, landing.number)
    for sha in walked:
        brought = lines.brought(sha)
        own = found.owners.get(sha)
        if any(commit in found.ends and found.ends[commit].number != own for commit in brought):
            found.carriers.add(sha)
    return found


def _range(landing: LandedRange, lines: Lines) -> list[str]:
    """The first-parent commits of a landing, the newest first; the landed one alone where its base is not below it."""
    found = []
    sha: str | None = landing.landed_sha
    while sha is not None and sha != landing.base_sha:
        found.append(sha)
        above = lines.parents[sha]
        sha = above[0] if above else None
        if len(found) > _MOST_COMMITS:
            return found[:1]
    return found if sha is not None else found[:1]


_MOST_COMMITS = 5000
"""First-parent commits of one landing; the miner takes none that has more."""
