"""A repository's commits in memory, and the lines that its branches draw through them.

Commits are numbered children first (`git log --topo-order`), so a parent's number is always larger than its child's.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prchain.core.git import RawCommit


class History:
    """The commits of a repository as parallel columns; a commit is its number in them."""

    def __init__(self, commits: Iterable[RawCommit]) -> None:
        self.shas: list[str] = []
        self.trees: list[str] = []
        self.authors: list[tuple[str, str]] = []
        """Name and e-mail; the e-mail serves comparisons only and is never stored."""
        self.committers: list[str] = []
        self.author_times = array("q")
        self.commit_times = array("q")
        self.messages: list[bytes] = []
        self.index: dict[str, int] = {}
        parent_shas: list[tuple[str, ...]] = []
        people: dict[tuple[str, str], tuple[str, str]] = {}
        names: dict[str, str] = {}
        for number, commit in enumerate(commits):
            self.index[commit.sha] = number
            self.shas.append(commit.sha)
            self.trees.append(commit.tree)
            person = (commit.author, commit.author_email)
            self.authors.append(people.setdefault(person, person))
            self.committers.append(names.setdefault(commit.committer, commit.committer))
            self.author_times.append(commit.author_time)
            self.commit_times.append(commit.commit_time)
            self.messages.append(commit.message)
            parent_shas.append(commit.parents)
        index = self.index
        self.parents: list[tuple[int, ...]] = [
            tuple([index[sha] for sha in shas if sha in index]) for shas in parent_shas
        ]

    def __len__(self) -> int:
        return len(self.shas)

    def message(self, commit: int) -> str:
        """The whole message, decoded."""
        return self.messages[commit].decode("utf-8", "replace")

    def subject(self, commit: int) -> str:
        """The first paragraph on one line, as git's ``%s`` gives it."""
        paragraph = self.messages[commit].lstrip(b"\n").split(b"\n\n", 1)[0]
        return " ".join(paragraph.decode("utf-8", "replace").split("\n")).strip()

    def signature(self, commit: int) -> tuple[str, int, str]:
        """What a rebase or cherry-pick keeps: author's e-mail, author time and first line without a trailing number."""
        first = self.messages[commit].lstrip(b"\n").split(b"\n", 1)[0].decode("utf-8", "replace")
        return self.authors[commit][1], self.author_times[commit], _without_number(first)

    def first_parents(self, tip: int) -> Iterator[int]:
        """`tip` and its first-parent ancestors, newest first."""
        commit = tip
        while True:
            yield commit
            parents = self.parents[commit]
            if not parents:
                return
            commit = parents[0]


def _without_number(subject: str) -> str:
    text = subject.strip()
    if text.endswith(")"):
        head, _, tail = text.rpartition("(")
        if tail[:-1].lstrip("#ghGH-").isdigit():
            return head.strip()
    return text


@dataclass(slots=True)
class FirstParentLine:
    """The first-parent line of one branch, and for every commit reachable from it the position that brought it in.

    A line of another branch begins above the commit where it forks from the default branch's line; positions go on
    counting from there, so that they order the landings of a branch from its root.
    """

    branch: str
    is_default: bool
    commits: list[int]
    """Oldest first."""
    fork: int
    """Position on the default line of the commit below `commits[0]`; -1 where there is none."""
    brought: Mapping[int, int] = field(repr=False)
    """Commit to position, for commits brought in above the fork."""
    trunk: FirstParentLine | None = field(default=None, repr=False)
    _twins: dict[tuple[str, int, str], int] | None = field(default=None, repr=False)

    def twin(self, history: History, commit: int) -> int | None:
        """The position that brought in the commit which is the same work as `commit` (`History.signature`), as in a
        repository whose history was rewritten; None where there is none, or several."""
        if self._twins is None:
            found: dict[tuple[str, int, str], int] = {}
            several = set()
            for own, position in self.brought.items():
                if found.setdefault(signature := history.signature(own), position) != position:
                    several.add(signature)
            self._twins = {signature: place for signature, place in found.items() if signature not in several}
        place = self._twins.get(history.signature(commit))
        if place is not None or self.trunk is None:
            return place
        below = self.trunk.twin(history, commit)
        return below if below is not None and below <= self.fork else None

    def order(self, commit: int) -> int | None:
        """The position at which the line first contained `commit`; None where it never did."""
        position = self.brought.get(commit)
        if position is not None:
            return position
        if self.trunk is not None:
            below = self.trunk.order(commit)
            if below is not None and below <= self.fork:
                return below
        return None

    def at(self, position: int) -> int:
        """The commit at a position above the fork."""
        return self.commits[position - self.fork - 1]

    def position(self, commit: int) -> int | None:
        """The position of a commit that is itself on the line above the fork; None for every other commit."""
        place = self.brought.get(commit)
        return place if place is not None and self.at(place) == commit else None


def default_line(history: History, branch: str, tip: int) -> FirstParentLine:
    """The whole first-parent line of the default branch."""
    commits = list(history.first_parents(tip))[::-1]
    return FirstParentLine(branch, True, commits, -1, bring_in(history, commits, 0, lambda _commit: False))


def branch_commits(history: History, tip: int, trunk: FirstParentLine) -> tuple[list[int], int]:
    """The commits of a branch's first-parent line above its fork, oldest first, and the fork's position on `trunk`."""
    above: list[int] = []
    for commit in history.first_parents(tip):
        place = trunk.position(commit)
        if place is not None:
            return above[::-1], place
        above.append(commit)
    return above[::-1], -1


def branch_line(
    history: History, branch: str, commits: list[int], fork: int, trunk: FirstParentLine
) -> FirstParentLine:
    """The line of another branch from the commits above its fork."""

    def below(commit: int) -> bool:
        place = trunk.order(commit)
        return place is not None and place <= fork

    return FirstParentLine(branch, False, commits, fork, bring_in(history, commits, fork + 1, below), trunk)


def bring_in(history: History, commits: list[int], start: int, below: Callable[[int], bool]) -> dict[int, int]:
    """Commit to the position of the first of `commits` (oldest first, counted from `start`) that contains it.

    Commits for which `below` holds, and all that lies under them, were there before.
    """
    brought: dict[int, int] = {}
    parents = history.parents
    for position, commit in enumerate(commits, start):
        pending = [commit]
        while pending:
            current = pending.pop()
            if current in brought or below(current):
                continue
            brought[current] = position
            pending.extend(parents[current])
    return brought
