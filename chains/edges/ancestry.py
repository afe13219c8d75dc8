"""Which commit another one contains, for many pairs at once: one walk of the history, then arithmetic."""

from __future__ import annotations

from collections.abc import Iterable


class Ancestry:
    """The commit graph of one repository.

    A commit's place counts from the tips down, children before parents, so an ancestor always has the larger place and
    a search never looks beyond the one it seeks.
    """

    def __init__(self, commits: Iterable[tuple[str, ...]]) -> None:
        """`commits` are shas with their parents after them, children before parents (`GitRepository.parents`)."""
        rows = list(commits)
        self._place = {row[0]: place for place, row in enumerate(rows)}
        self._parents = [tuple(self._place[parent] for parent in row[1:] if parent in self._place) for row in rows]
        self._line: dict[int, int] = {}

    def on_one_line(self, tip: str) -> None:
        """Remember the first-parent line of `tip`: pairs on it are compared without a search."""
        place: int | None = self._place.get(tip)
        found = []
        while place is not None:
            found.append(place)
            place = self._parents[place][0] if self._parents[place] else None
        self._line = {place: depth for depth, place in enumerate(found)}

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is `commit` or an ancestor of it; false where either is unknown."""
        start, goal = self._place.get(commit), self._place.get(ancestor)
        if start is None or goal is None or start > goal:
            return False
        if start in self._line and goal in self._line:
            return self._line[start] <= self._line[goal]
        seen = {start}
        waiting = [start]
        while waiting:
            here = waiting.pop()
            if here == goal:
                return True
            for parent in self._parents[here]:
                if parent <= goal and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False
