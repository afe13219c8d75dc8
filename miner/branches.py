"""The branches beside the trunk, and which of them may hold landings: pure rules over the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from miner.history import FirstParentLine, History, branch_commits
from miner.landing import LandingDecisions


def other_branches(
    history: History, branches: Mapping[str, str], heads: Collection[str], trunk: FirstParentLine
) -> list[tuple[str, list[int], int]]:
    """The other branches, the longest first: what two of them share landed on the one that others fork from.

    A branch that is some pull request's head is a contributor's work in progress and comes last.
    """
    pull_heads = set(heads)
    found = []
    for branch, sha in branches.items():
        if branch != trunk.branch:
            commits, fork = branch_commits(history, history.index[sha], trunk)
            if commits:
                found.append((sha in pull_heads, -len(commits), branch, commits, fork))
    return [(branch, commits, fork) for _, _, branch, commits, fork in sorted(found, key=lambda item: item[:3])]


@dataclass(frozen=True, slots=True)
class UnlandedEvidence:
    """What would show that a pull request which has not landed yet did so on another branch."""

    heads: frozenset[int]
    merge_commits: frozenset[int]
    """Merge commits by the API's word."""

    @classmethod
    def of(cls, heads: Mapping[int, int], settled: LandingDecisions, api: Mapping[int, int]) -> UnlandedEvidence:
        """The evidence for what has not landed by the decisions so far."""
        return cls(
            frozenset(head for number, head in heads.items() if number not in settled.landed),
            frozenset(commit for number, commit in api.items() if number not in settled.landed),
        )


def may_hold_landings(
    history: History,
    commits: Iterable[int],
    heads: Mapping[int, int],
    settled: LandingDecisions,
    waiting: UnlandedEvidence,
) -> bool:
    """Whether the commits of another branch name, or merge, a pull request that has not landed yet."""
    for commit in commits:
        if commit in waiting.merge_commits or any(parent in waiting.heads for parent in history.parents[commit][1:]):
            return True
        for claim in settled.claims(history, commit):
            is_settled = claim.weak or claim.number not in heads or claim.number in settled.landed
            if not is_settled and (claim.number, commit) not in settled.doubted:
                return True
    return False
