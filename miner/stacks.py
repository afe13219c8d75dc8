"""Which pull requests one was stacked on: base branches say so, and the history does.

- A base branch that is the head branch of another pull request of the same time, now or before it was retargeted:
  a forge retargets what is stacked on a branch when that branch is deleted. GitHub's API has no object for a stack.
- The head of an earlier landed pull request among the own commits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from miner.edge_facts import PullRequestFacts
from prchain.core.code.paths import is_housekeeping

MOST_STACKED = 3
"""A branch with more heads of others below it collects them; it is not built on each."""
MOST_BASED = 3
"""A branch that more pull requests are based on is a line of development; who merges it on is no lower part of them."""

_LAST = "9999"
"""After every time."""


@dataclass(frozen=True, slots=True)
class StackSign:
    """One sign that a pull request was stacked on another."""

    target: int
    field: str
    """``base`` or ``history``."""
    key: str
    syntax: str
    snippet: str
    reason: str | None = None
    """Why it does not count."""


class Stacks:
    """The stacks of one repository's pull requests."""

    def __init__(self, pulls: Mapping[int, PullRequestFacts], forge: str) -> None:
        """`forge` is the title of the forge that tells the base branches."""
        self._pulls = pulls
        self._forge = forge
        self._heads = {pull.head_sha: pull.number for pull in pulls.values() if pull.head_sha and pull.order}
        self._by_branch: dict[str, list[int]] = defaultdict(list)
        for pull in pulls.values():
            if pull.head_branch:
                self._by_branch[pull.head_branch].append(pull.number)
        self._based = Counter(branch for pull in pulls.values() for branch in {branch for branch, _ in pull.bases})

    def signs(self, pull: PullRequestFacts) -> Iterator[StackSign]:
        """Every sign of what the pull request was stacked on."""
        yield from self._by_base(pull)
        yield from self._by_ancestry(pull)

    def _by_base(self, pull: PullRequestFacts) -> Iterator[StackSign]:
        """Names of branches are used again: the two have to have been open at the same time."""
        for branch, event in pull.bases:
            if self._based[branch] > MOST_BASED:
                continue
            for number in self._by_branch.get(branch, ()):
                if number != pull.number and _met(pull, self._pulls[number]):
                    words = "was" if event else "is"
                    snippet = f"{self._forge}: its base branch {words} {branch[:100]}, the head branch of #{number}"
                    yield StackSign(number, "base", event, "base", snippet)

    def _by_ancestry(self, pull: PullRequestFacts) -> Iterator[StackSign]:
        """Earlier landed pull requests whose heads are among the own commits: the branch was stacked on theirs.

        Where their landed commits are among them too, a whole branch was carried over, and nothing was stacked. And
        where the two change no file in common, a contributor went on working on one branch.
        """
        if pull.order is None:
            return
        own = set(pull.own)
        stacked = [sha for sha in pull.own if sha in self._heads and sha != pull.head_sha]
        for sha in stacked if len(stacked) <= MOST_STACKED else ():
            target = self._heads[sha]
            cited = self._pulls[target]
            if target == pull.number or cited.landed_sha in own:
                continue
            shared = {path for path in {*pull.paths} & {*cited.paths} if not is_housekeeping(path)}
            snippet = f"the head of #{target}, {sha[:12]}, is among its own commits"
            yield StackSign(target, "history", sha, "ancestry", snippet, None if shared else "no_common_file")


def _met(one: PullRequestFacts, other: PullRequestFacts) -> bool:
    return one.opened_at <= (other.closed_at or _LAST) and other.opened_at <= (one.closed_at or _LAST)
