"""The reference graph: what it holds, what it refuses, and that the order of edges does not matter."""

from __future__ import annotations

import random

import pytest

from chains.edges.graph import CyclicGraph, Edge, Sign, build_graph, components, reference_order


def test_an_edge_runs_from_the_later_to_the_earlier_and_keeps_what_chains_need() -> None:
    graph = build_graph([Edge(20, 10, "fixes", 0.8, (Sign("says_fixes", 0.8, "fixes #10"),))])
    assert list(graph.edges(data=True)) == [(20, 10, {"confidence": 0.8, "relation": "fixes"})]


def test_of_several_edges_of_a_pair_the_surest_counts_in_any_order() -> None:
    edges = [Edge(2, 1, "mentions", 0.6), Edge(2, 1, "fixes", 0.9), Edge(2, 1, "closes", 0.9)]
    for order in (edges, edges[::-1], [edges[1], edges[0], edges[2]]):
        assert build_graph(order)[2][1] == {"confidence": 0.9, "relation": "fixes"}


def test_a_cycle_is_refused_and_named() -> None:
    edges = [Edge(source, target, "mentions", 0.6) for source, target in ((2, 1), (3, 2), (1, 3), (4, 1))]
    with pytest.raises(CyclicGraph, match="#") as caught:
        build_graph(edges)
    cycle = caught.value.cycle
    assert sorted(cycle) == [1, 2, 3]
    pairs = {(edge.source, edge.target) for edge in edges}
    assert set(zip(cycle, (*cycle[1:], cycle[0]), strict=True)) <= pairs


def test_a_pull_request_that_cites_itself_is_a_cycle() -> None:
    with pytest.raises(CyclicGraph, match="#7 -> #7"):
        build_graph([Edge(7, 7, "mentions", 0.6)])


@pytest.mark.parametrize("confidence", [0.0, -0.1, 1.01, float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="#2 -> #1"):
        build_graph([Edge(2, 1, "mentions", confidence)])


def test_the_order_puts_each_after_all_that_it_cites_whatever_the_numbers_say() -> None:
    pairs = [(1, 9), (5, 1), (5, 9), (4, 5), (8, 7)]
    expected = None
    for seed in range(5):
        shuffled = random.Random(seed).sample(pairs, len(pairs))
        order = reference_order(build_graph(Edge(*pair, "mentions", 0.6) for pair in shuffled))
        assert all(order.index(target) < order.index(source) for source, target in pairs)
        assert expected in (None, order)
        expected = order


def test_components_come_largest_first() -> None:
    graph = build_graph(Edge(*pair, "mentions", 0.6) for pair in [(9, 8), (2, 1), (5, 4), (6, 4)])
    assert components(graph) == [{4, 5, 6}, {1, 2}, {8, 9}]


def test_no_edges_make_an_empty_graph() -> None:
    graph = build_graph([])
    assert reference_order(graph) == [] and components(graph) == []
