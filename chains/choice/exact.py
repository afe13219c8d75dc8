"""The best disjoint paths of a small graph, by branch and bound.

Nodes are positions in reference order, weights whole numbers, as in `chains.choice.packing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

Path = tuple[int, ...]


def best_paths(before: Mapping[int, Mapping[int, float]], shortest: int, longest: int) -> list[Path]:
    """The disjoint paths of `shortest` to `longest` nodes with the greatest sum of weights; among equals the first.

    `before[v]` maps each node with an edge to v to the weight of that edge, the preferred node first. Takes time
    exponential in the number of edges.
    """
    return _Search(before, shortest, longest).run()


class _Search:
    """Decides for each node, in order, which node precedes it on its path, if any."""

    def __init__(self, before: Mapping[int, Mapping[int, float]], shortest: int, longest: int) -> None:
        self.before, self.shortest, self.longest = before, shortest, longest
        self.nodes = sorted(node for node, cited in before.items() if cited)
        self.bounds = [0.0]
        for node in reversed(self.nodes):
            self.bounds.append(self.bounds[-1] + max(before[node].values()))
        self.bounds.reverse()
        self.chosen: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.followed: set[int] = set()
        self.best = 0.0
        self.found: list[Path] = []

    def run(self) -> list[Path]:
        self._branch(0, 0.0)
        return self.found

    def _branch(self, index: int, total: float) -> None:
        if total + self.bounds[index] <= self.best:
            return
        if index == len(self.nodes):
            self._weigh()
            return
        node = self.nodes[index]
        for earlier, weight in self.before[node].items():
            size = self.sizes.get(earlier, 1) + 1
            if earlier in self.followed or size > self.longest:
                continue
            self.followed.add(earlier)
            self.chosen[node], self.sizes[node] = earlier, size
            self._branch(index + 1, total + weight)
            self.followed.discard(earlier)
            del self.chosen[node], self.sizes[node]
        self._branch(index + 1, total)

    def _weigh(self) -> None:
        """Keep the current decisions if they are the best so far; paths that are too short count for nothing."""
        paths, total = [], 0.0
        for last, size in self.sizes.items():
            if last in self.followed or size < self.shortest:
                continue
            path = [last]
            while (earlier := self.chosen.get(path[-1])) is not None:
                path.append(earlier)
            path.reverse()
            paths.append(tuple(path))
            total += sum(self.before[later][earlier] for earlier, later in pairwise(path))
        if total > self.best:
            self.best, self.found = total, paths
