"""An upper bound of what disjoint paths of bounded length can weigh: a linear programme, solved by HiGHS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.sparse import coo_array  # type: ignore[import-untyped]


def upper_bound(edges: Mapping[tuple[int, int], float], longest: int) -> float:
    """The greatest weight of fractional disjoint paths of at most `longest` nodes; `edges` are (later, earlier) to
    weight.

    A variable tells how much of an edge is the k-th of a path. What leaves a node as the k-th has come to it as the one
    before, and a node is come to or begun with once at most. Whole paths are a special case, so no choice weighs more.
    """
    depths = range(longest - 1)
    column = {(edge, depth): place for place, (edge, depth) in enumerate((e, k) for e in edges for k in depths)}
    rows: list[tuple[int, int, float]] = []
    into: dict[int, list[tuple[int, int]]] = defaultdict(list)
    out: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for edge in edges:
        into[edge[0]].append(edge)
        out[edge[1]].append(edge)
    limits: list[float] = []
    for node in sorted(into.keys() | out.keys()):
        for depth in depths[1:]:
            rows += [(len(limits), column[edge, depth], 1.0) for edge in out[node]]
            rows += [(len(limits), column[edge, depth - 1], -1.0) for edge in into[node]]
            limits.append(0.0)
        rows += [(len(limits), column[edge, depth], 1.0) for edge in into[node] for depth in depths]
        rows += [(len(limits), column[edge, 0], 1.0) for edge in out[node]]
        limits.append(1.0)
    places, columns, values = zip(*rows, strict=True)
    matrix = coo_array((values, (places, columns)), shape=(len(limits), len(column)))
    costs = [-edges[edge] for edge, _ in column]
    result = linprog(costs, A_ub=matrix.tocsr(), b_ub=limits, bounds=(0, None), method="highs")
    if result.status != 0:
        raise RuntimeError(f"no bound: {result.message}")
    return float(-result.fun)
