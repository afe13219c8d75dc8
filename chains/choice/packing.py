"""Paths that share no node, of bounded length and great total weight: exact where small, else by local search.

Nodes are positions in reference order, so every edge runs from a smaller to a greater one. Weights are whole numbers,
held as floats: below 2**53 sums are exact, so no result depends on the order of additions.

Packing paths of at most three nodes is NP-hard already, so `Packing` is a heuristic in three steps. First it inserts
paths: it looks for the path whose insertion gains most, with the paths it breaks counted as loss, by one dynamic
programme over (node, length) for all paths at once, without listing them. It inserts the best paths and looks again
where something changed, until no path gains. Second, it cuts lines of paths anew (`chains.choice.lines`). Third, it
tries changes of several paths: it inserts an edge, repairs what that broke, a few steps deep, and undoes it all unless
the sum grew. A pass takes time in edges times `longest`; `EFFORT` bounds the number of edges to repair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from chains.choice.lines import best_cut, lines

Path = tuple[int, ...]

ROUNDS = 3
"""Rounds of repair over all edges; the third round gains about a thousandth."""
EFFORT = 3_000
"""Edges that are inserted for repair, in all rounds together; about 0.35 ms each."""
DEPTH = 3
"""Steps of repair after an edge was inserted."""
WIDTH = 6
"""Edges that are tried at one loose end, heaviest first; at a hub there are thousands."""


@dataclass(frozen=True, slots=True)
class PathSwap:
    """Paths to remove and to insert, and what the total weight gains by it."""

    removed: list[Path]
    added: list[Path]
    gain: float

    def reversed(self) -> PathSwap:
        """The swap that undoes this one."""
        return PathSwap(self.added, self.removed, -self.gain)


@dataclass(slots=True)
class Packing:
    """Disjoint paths over a graph, each of `shortest` to `longest` nodes; starts empty.

    `before[v]` gives the nodes with an edge to v, with its weight, heaviest first, ties in a fixed order.
    """

    before: Sequence[dict[int, float]]
    shortest: int
    longest: int
    after: list[list[int]] = field(init=False)
    """The nodes that each has an edge to, heaviest first."""
    path_of: list[Path | None] = field(init=False)
    _loss_in: list[float] = field(init=False)
    """What it costs to cut a node from the node before it on its path; includes the path up to there if it becomes too
    short to count. `_loss_out` is the same for the node after it."""
    _loss_out: list[float] = field(init=False)
    _worth: list[float] = field(init=False)
    """The weight of the path that starts at a node."""
    _previous: list[int] = field(init=False)
    _gains: list[list[float]] = field(init=False)
    """For each node: the gain of the best path of 1, 2, ... `longest` - 1 nodes that ends there, without its rest."""
    _from: list[list[int]] = field(init=False)
    """The node before it on that path."""
    _stale: bytearray = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.before)
        self.after = [[] for _ in range(size)]
        for later, cited in enumerate(self.before):
            for earlier in cited:
                self.after[earlier].append(later)
        for earlier, citing in enumerate(self.after):
            if len(citing) > 1:
                citing.sort(key=lambda later: (-self.before[later][earlier], later))
        self.path_of = [None] * size
        self._loss_in, self._loss_out, self._worth = [0.0] * size, [0.0] * size, [0.0] * size
        self._previous = [-1] * size
        self._gains, self._from = [[]] * size, [[]] * size
        self._stale = bytearray(b"\1") * size

    def paths(self) -> list[Path]:
        """The paths, by their first node."""
        return [path for node, path in enumerate(self.path_of) if path is not None and path[0] == node]

    def weight(self, path: Path) -> float:
        """The sum of its edges' weights."""
        total, earlier = 0.0, path[0]
        for later in path[1:]:
            total += self.before[later][earlier]
            earlier = later
        return total

    def plan(self, path: Path) -> PathSwap:
        """The swap that inserts a path: the paths that its nodes are on lose them; rests that are long enough stay."""
        members = set(path)
        removed = {found[0]: found for node in path if (found := self.path_of[node]) is not None}
        added, gain = [path], self.weight(path)
        for old in removed.values():
            gain -= self._worth[old[0]]
            for rest in _rests(old, members):
                if len(rest) >= self.shortest:
                    added.append(rest)
                    gain += self.weight(rest)
        return PathSwap(list(removed.values()), added, gain)

    def apply(self, change: PathSwap) -> None:
        """Apply a swap."""
        for path in change.removed:
            for node in path:
                self.path_of[node] = None
                self._loss_in[node] = self._loss_out[node] = 0.0
                self._previous[node] = -1
                self._stale[node] = 1
        for path in change.added:
            self._link(path)

    def _link(self, path: Path) -> None:
        weights = [self.before[later][earlier] for earlier, later in pairwise(path)]
        head, tail = 0.0, sum(weights)
        self._worth[path[0]] = tail
        for index, node in enumerate(path):
            self.path_of[node] = path
            self._stale[node] = 1
            if index:
                edge = weights[index - 1]
                self._previous[node] = path[index - 1]
                self._loss_in[node] = edge + (head if index < self.shortest else 0.0)
                head += edge
            if index < len(weights):
                edge = weights[index]
                tail -= edge
                self._loss_out[node] = edge + (tail if len(weights) - index < self.shortest else 0.0)

    def improve(self) -> None:
        """Insert paths, and repair, until nothing is gained or the rounds are over."""
        self.insert_paths()
        self._recut()
        self.insert_paths()
        effort = EFFORT
        for _ in range(ROUNDS):
            tried, gained = self._eject(effort)
            if gained:
                self.insert_paths()
            effort -= tried
            if not gained or not effort:
                return

    def _recut(self) -> None:
        """Cut each line of paths and free nodes anew where that gains."""
        pieces = [path or (node,) for node, path in enumerate(self.path_of) if path is None or path[0] == node]
        for line in lines(pieces, self.before):
            old = list({path[0]: path for node in line if (path := self.path_of[node]) is not None}.values())
            new = best_cut(line, self.before, self.shortest, self.longest)
            gain = sum(map(self.weight, new)) - sum(map(self.weight, old))
            if gain > 0:
                self.apply(PathSwap(old, new, gain))

    def insert_paths(self) -> None:
        """Insert paths that gain, the greatest gain first, until none does."""
        while True:
            found = sorted(self._gaining())
            applied = False
            for _, last, size in found:
                path = self._trace(last, size)
                if self._estimate(path) > 0 and (change := self.plan(path)).gain > 0:
                    self.apply(change)
                    applied = True
                else:
                    self._stale[last] = 1
            if not applied:
                return

    def _estimate(self, path: Path) -> float:
        """What a path gains, as `_gaining` counts it. Cheap: most paths have lost a node since they were found."""
        losses_in, losses_out, previous = self._loss_in, self._loss_out, self._previous
        earlier = path[0]
        gain = -losses_in[earlier]
        for later in path[1:]:
            if previous[later] != earlier:
                gain += self.before[later][earlier] - losses_out[earlier] - losses_in[later]
            earlier = later
        return gain - losses_out[earlier]

    def _gaining(self) -> Iterator[tuple[float, int, int]]:
        """The best path at each node where something changed, if it gains: (-gain, last node, length).

        The gain here is a lower bound: a broken edge between two nodes of the path counts as lost twice.
        """
        stale, losses_in, losses_out, gains = self._stale, self._loss_in, self._loss_out, self._gains
        unreached, unknown = [-inf] * self.longest, [-1] * self.longest
        node = stale.find(1)
        while node >= 0:
            stale[node] = 0
            loss_in, loss_out, previous = losses_in[node], losses_out[node], self._previous[node]
            row, origin = unreached.copy(), unknown.copy()
            row[0] = -loss_in
            for earlier, weight in self.before[node].items():
                base = losses_out[earlier] if earlier == previous else weight - loss_in
                for index, gain in enumerate(gains[earlier], 1):
                    value = gain + base
                    if value > row[index]:
                        row[index] = value
                        origin[index] = earlier
            top = max(row[self.shortest - 1 :]) - loss_out
            if top > 0:
                yield -top, node, row.index(top + loss_out, self.shortest - 1) + 1
            row.pop()
            if loss_out:
                row = [gain - loss_out for gain in row]
            self._from[node] = origin
            if row != gains[node]:
                gains[node] = row
                for later in self.after[node]:
                    stale[later] = 1
            node = stale.find(1, node + 1)

    def _trace(self, last: int, size: int) -> Path:
        path = [last]
        for index in range(size - 1, 0, -1):
            path.append(self._from[path[-1]][index])
        return tuple(reversed(path))

    def _eject(self, effort: int) -> tuple[int, int]:
        """Insert the most promising edges, at most `effort`, and repair; returns how many were tried, and gained."""
        promising = sorted(
            (doubt, earlier, later)
            for later, cited in enumerate(self.before)
            for earlier, weight in cited.items()
            if (doubt := self._doubt(earlier, later, weight)) <= 0
        )[:effort]
        gained = sum(
            self._previous[later] != earlier and self._mended(earlier, later) for _, earlier, later in promising
        )
        return len(promising), gained

    def _doubt(self, earlier: int, later: int, weight: float) -> float:
        """The cost of inserting an edge, less the most that the first step of repair could regain; 1 if it is in."""
        other, path = self._previous[later], self.path_of[earlier]
        if other == earlier:
            return 1
        doubt = self._loss_out[earlier] + self._loss_in[later] - weight
        if other >= 0:
            ways = (
                self.before[node][other] - self._loss_in[node] for node in self.after[other][:WIDTH] if node != later
            )
            doubt -= max(ways, default=0)
        if path is not None and path[-1] != earlier:
            other = path[path.index(earlier) + 1]
            ways = (gain - self._loss_out[node] for node, gain in self.before[other].items() if node != earlier)
            doubt -= max(ways, default=0)
        return doubt

    def _mended(self, earlier: int, later: int) -> bool:
        """Insert an edge and repair; undo it all if nothing is gained."""
        change = self._joining(earlier, later, frozenset())
        if change is None:
            return False
        total, kept = 0.0, {(earlier, later)}
        done: list[PathSwap] = []
        for _ in range(DEPTH + 1):
            self.apply(change)
            done.append(change)
            total += change.gain
            if total > 0:
                return True
            options = [
                (option.gain, -index, edge, option)
                for index, edge in enumerate(self._loose(change))
                if (option := self._joining(*edge, kept)) is not None
            ]
            if not options:
                break
            _, _, edge, change = max(options, key=lambda option: option[:2])
            kept.add(edge)
        for change in reversed(done):
            self.apply(change.reversed())
        return False

    def _loose(self, change: PathSwap) -> Iterator[tuple[int, int]]:
        """Edges at the ends that a change has left loose."""
        for path in change.removed:
            for earlier, later in pairwise(path):
                if self._previous[later] == earlier:
                    continue
                for other in self.after[earlier][:WIDTH]:
                    if other != later:
                        yield earlier, other
                for index, other in enumerate(self.before[later]):
                    if index == WIDTH:
                        break
                    if other != earlier:
                        yield other, later

    def _joining(self, earlier: int, later: int, kept: AbstractSet[tuple[int, int]]) -> PathSwap | None:
        """The best change that inserts an edge between the paths before and after it, without breaking a kept edge."""
        head, tail = self.path_of[earlier] or (earlier,), self.path_of[later] or (later,)
        head, tail = head[: head.index(earlier) + 1], tail[tail.index(later) :]
        joined = head + tail
        if len(joined) < self.shortest:
            return None
        size = min(len(joined), self.longest)
        first = max(0, len(head) + 1 - size)
        best = None
        for start in range(first, min(len(head) - 1, len(joined) - size) + 1):
            change = self.plan(joined[start : start + size])
            if (best is None or change.gain > best.gain) and not (kept and _breaks(change, kept)):
                best = change
        return best


def _breaks(change: PathSwap, kept: AbstractSet[tuple[int, int]]) -> bool:
    stays = {edge for path in change.added for edge in pairwise(path)}
    return any(edge in kept and edge not in stays for path in change.removed for edge in pairwise(path))


def _rests(path: Path, members: set[int]) -> Iterator[Path]:
    rest: list[int] = []
    for node in path:
        if node in members:
            if rest:
                yield tuple(rest)
            rest = []
        else:
            rest.append(node)
    if rest:
        yield tuple(rest)
