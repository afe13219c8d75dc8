"""The reference graph: landed pull requests, and edges from each to the earlier ones it builds on.

An edge runs from the later pull request (source) to the earlier one (target) in reference order, so the graph has no
cycle. Pure: edges in, a networkx graph out. The graph holds what the choice of chains needs: confidence and relation.
The signs stay with the edges: at 400,000 edges they would take most of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import networkx as nx


@dataclass(frozen=True, slots=True)
class Sign:
    """One reason why an edge's confidence is what it is."""

    name: str
    weight: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """Pull request `source` builds on `target`, which landed before it; `confidence` is above 0 and at most 1."""

    source: int
    target: int
    relation: str
    confidence: float
    signs: tuple[Sign, ...] = ()


class CyclicGraph(ValueError):
    """The edges do not follow one order; `cycle` holds the pull requests of one cycle, each citing the next."""

    def __init__(self, cycle: tuple[int, ...]) -> None:
        super().__init__("the edges form a cycle: " + " -> ".join(f"#{node}" for node in (*cycle, cycle[0])))
        self.cycle = cycle


def build_graph(edges: Iterable[Edge]) -> nx.DiGraph[int]:
    """The graph of these edges, source -> target, each with `confidence` and `relation`.

    Of several edges between two pull requests the one of greatest confidence counts. Raises `CyclicGraph`, and
    ValueError for a confidence outside (0, 1].
    """
    graph: nx.DiGraph[int] = nx.DiGraph()
    for edge in edges:
        if not 0 < edge.confidence <= 1:
            raise ValueError(f"#{edge.source} -> #{edge.target}: confidence {edge.confidence} is outside (0, 1]")
        known = graph.get_edge_data(edge.source, edge.target)
        if known is None or (known["confidence"], known["relation"]) < (edge.confidence, edge.relation):
            graph.add_edge(edge.source, edge.target, confidence=edge.confidence, relation=edge.relation)
    if not nx.is_directed_acyclic_graph(graph):
        raise CyclicGraph(tuple(source for source, _ in nx.find_cycle(graph)))
    return graph


def reference_order(graph: nx.DiGraph[int]) -> list[int]:
    """The pull requests that have an edge, earliest first: each after all that it cites.

    Sorted by the longest path to it from a pull request that nobody cites, then by number; independent of edge order.
    """
    order: list[int] = []
    for generation in nx.topological_generations(graph):
        order.extend(sorted(generation, reverse=True))
    order.reverse()
    return order


def components(graph: nx.DiGraph[int]) -> list[set[int]]:
    """The connected sets of pull requests, largest first, then by smallest number."""
    return sorted(nx.weakly_connected_components(graph), key=lambda nodes: (-len(nodes), min(nodes)))
