"""Chains chosen from the reference graph: which pull requests become the stages of one task.

The choice maximises the sum of the confidences of the edges used, over paths that share no pull request. Packing paths
of bounded length is NP-hard, so a component is solved exactly up to `EXACT` edges (`chains.choice.exact`) and by local
search beyond (`chains.choice.packing`), which takes time in edges times `longest` a pass and lists no paths. In six
mined repositories with 1,833 edges no component had more than 11. Of edges with equal confidence the one between the
nearer numbers is preferred; the result depends on neither the order of edges nor hashes.

Measured by `make optimality ARGS="--graphs 60 --nodes 13"`, against brute force on 2,160 graphs of six
shapes: the local search alone reaches 99.7 % of the best on average at 2 to 5 pull requests, at worst 88 %; over all
limits tried 97.8 %, at worst 48 %, where chains must have exactly three. With `--exact 14`, as in use, it is 99.7 % (at
worst 88 %) and 98.9 % (at worst 55 %). On components of 157 and 584 pull requests with more than four edges each it
reached 96 and 97 % of the upper bound of an integer programme.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from chains.choice.exact import best_paths
from chains.choice.packing import Packing
from chains.edges.graph import reference_order

if TYPE_CHECKING:
    import networkx as nx

Chain = tuple[int, ...]
"""Numbers of pull requests, earliest first."""

MOST_CITED = 16
"""Of the edges of one pull request, so many are looked at in a component beyond `EXACT`, the heaviest. Measured on
30,000 pull requests with 300,000 edges: 12 give as much as all."""

EXACT = 14
"""A component of at most so many edges is solved exactly."""


def choose_chains(
    graph: nx.DiGraph[int],
    *,
    shortest: int = 2,
    longest: int = 5,
    disjoint: bool = True,
    frozen: Collection[int] = frozenset(),
    worths: Mapping[int, float] | None = None,
    exact: int = EXACT,
) -> list[Chain]:
    """The chains of greatest total confidence, of `shortest` to `longest` pull requests, none frozen; sorted.

    Disjoint: no pull request is in two chains. Otherwise: for each pull request the chain of greatest confidence that
    ends with it, unless the chain of a later pull request contains it whole. `exact` is the number of edges up to which
    a component is solved exactly. Where the stages' `worths` are given, an edge counts with its confidence times the
    worth of both, as the chance that it gives a good step. Raises ValueError for limits that make no sense.
    """
    _check(shortest, longest)
    if shortest < 2:
        raise ValueError("a chain of one pull request has no reference; choose_single gives those")
    order = [node for node in reference_order(graph) if node not in frozen]
    places = {node: place for place, node in enumerate(order)}
    before = [_cited(graph, node, places, worths or {}) for node in order]
    longest = max(shortest, min(longest, _deepest(before)))
    paths = _disjoint(before, shortest, longest, exact) if disjoint else _overlapping(before, shortest, longest)
    return sorted(tuple(order[place] for place in path) for path in paths)


def choose_single(nodes: Iterable[int]) -> list[Chain]:
    """One chain for each pull request."""
    return [(node,) for node in sorted(set(nodes))]


def choose_temporal(branches: Iterable[Sequence[int]], *, shortest: int = 2, longest: int = 5) -> list[Chain]:
    """Each branch's pull requests in landing order, cut into runs of `longest`.

    A remainder shorter than `shortest` is dropped.
    """
    _check(shortest, longest)
    windows = (
        tuple(branch[start : start + longest]) for branch in branches for start in range(0, len(branch), longest)
    )
    return sorted(window for window in windows if len(window) >= shortest)


def _check(shortest: int, longest: int) -> None:
    if not 1 <= shortest <= longest:
        raise ValueError(f"chains of {shortest} to {longest} pull requests cannot be: 1 <= min <= max must hold")


def weigh(source: int, target: int, confidence: float) -> float:
    """An edge's confidence in millionths. The lower digits say how near the two numbers are, which decides ties."""
    return float((max(1, round(confidence * 1_000_000)) << 20) + max(0, 1023 - abs(source - target)))


def _deepest(before: Sequence[Collection[int]]) -> int:
    """Nodes on the longest path."""
    depths: list[int] = []
    for cited in before:
        depths.append(1 + max((depths[earlier] for earlier in cited), default=0))
    return max(depths, default=0)


def _cited(
    graph: nx.DiGraph[int], node: int, places: Mapping[int, int], worths: Mapping[int, float]
) -> dict[int, float]:
    """The places of the pull requests that a pull request cites, with weights, heaviest first."""
    cited = sorted(
        (
            -weigh(node, target, attributes["confidence"] * worths.get(node, 1.0) * worths.get(target, 1.0)),
            places[target],
        )
        for target, attributes in graph.adj[node].items()
        if target in places
    )
    return {place: -loss for loss, place in cited}


def _disjoint(before: list[dict[int, float]], shortest: int, longest: int, exact: int) -> list[Chain]:
    groups = _groups(before)
    edges = Counter[int]()
    for later, cited in enumerate(before):
        edges[groups[later]] += len(cited)
    small: dict[int, dict[int, dict[int, float]]] = {}
    large = []
    for place, cited in enumerate(before):
        if edges[groups[place]] > exact:
            large.append(place)
        elif cited:
            small.setdefault(groups[place], {})[place] = cited
    paths = [path for group in small.values() for path in best_paths(group, shortest, longest)]
    index = {place: position for position, place in enumerate(large)}
    heaviest = (islice(before[later].items(), MOST_CITED) for later in large)
    packing = Packing([{index[earlier]: weight for earlier, weight in some} for some in heaviest], shortest, longest)
    packing.improve()
    return paths + [tuple(large[position] for position in path) for path in packing.paths()]


def _groups(before: Sequence[Mapping[int, float]]) -> list[int]:
    """For each place, the smallest place of its component."""
    root = list(range(len(before)))
    for later, cited in enumerate(before):
        for earlier in cited:
            first, second = earlier, later
            while root[first] != first:
                root[first] = first = root[root[first]]
            while root[second] != second:
                root[second] = second = root[root[second]]
            root[max(first, second)] = min(first, second)
    for place, parent in enumerate(root):
        root[place] = root[parent]
    return root


def _overlapping(before: Sequence[Mapping[int, float]], shortest: int, longest: int) -> Iterator[Chain]:
    """The best path that ends at each place, unless another of them contains it whole."""
    totals: list[list[float]] = []
    origins: list[list[int]] = []
    for cited in before:
        row, origin = [0.0], [-1]
        for earlier, weight in cited.items():
            for size, total in enumerate(totals[earlier][: longest - 1], 1):
                if size == len(row):
                    row.append(total + weight)
                    origin.append(earlier)
                elif total + weight > row[size]:
                    row[size], origin[size] = total + weight, earlier
        totals.append(row)
        origins.append(origin)
    paths: list[Chain] = []
    for last, row in enumerate(totals):
        backwards = [last]
        if len(row) >= shortest:
            for size in range(row.index(max(row[shortest - 1 :]), shortest - 1), 0, -1):
                backwards.append(origins[backwards[-1]][size])
        paths.append(tuple(reversed(backwards)))
    contained = set()
    for path in paths:
        for end in range(1, len(path)):
            inner = paths[path[end - 1]]
            if inner == path[max(0, end - len(inner)) : end]:
                contained.add(path[end - 1])
    return (path for last, path in enumerate(paths) if len(path) >= shortest and last not in contained)
