"""Whether one commit contains another, for many pairs: one walk of the history, then arithmetic."""

from __future__ import annotations

from collections.abc import Iterable


class Ancestry:
    """The commit graph of one repository.

    A commit's position counts from the tips down, children before parents. So an ancestor always has the larger
    position, and a search never looks beyond the commit that it looks for.
    """

    def __init__(self, commits: Iterable[tuple[str, ...]]) -> None:
        """`commits` are shas with their parents after them, children before parents (`GitRepository.parents`)."""
        rows = list(commits)
        self._positions = {row[0]: position for position, row in enumerate(rows)}
        self._parents = [
            tuple(self._positions[parent] for parent in row[1:] if parent in self._positions) for row in rows
        ]
        self._line: dict[int, int] = {}

    def set_first_parent_line(self, tip: str) -> None:
        """Remember the first-parent history of `tip`: pairs on it are compared without a search."""
        position: int | None = self._positions.get(tip)
        line = []
        while position is not None:
            line.append(position)
            position = self._parents[position][0] if self._parents[position] else None
        self._line = {position: depth for depth, position in enumerate(line)}

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is `commit` or an ancestor of it; false where either is unknown."""
        start, goal = self._positions.get(commit), self._positions.get(ancestor)
        if start is None or goal is None or start > goal:
            return False
        if start in self._line and goal in self._line:
            return self._line[start] <= self._line[goal]
        seen = {start}
        waiting = [start]
        while waiting:
            current = waiting.pop()
            if current == goal:
                return True
            for parent in self._parents[current]:
                if parent <= goal and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False
