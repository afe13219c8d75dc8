"""Which chains are chosen: near the best there are, disjoint, within the limits, the same every time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chains.choice.select import EXACT, choose_chains, choose_single, choose_temporal
from chains.edges.graph import Edge, build_graph
from research.bench.chains_bench import rows
from research.optimality import CONFIDENCES, LIMITS, Edges, best_total, ratios, total

ROOT = Path(__file__).parents[2]


def graph_of(edges: Edges) -> nx.DiGraph[int]:
    return build_graph(Edge(*edge, "mentions", confidence) for edge, confidence in edges.items())


def choose(edges: Edges, **options: Any) -> list[tuple[int, ...]]:
    return choose_chains(graph_of(edges), **options)


@st.composite
def histories(draw: st.DrawFn, nodes: int = 9) -> dict[tuple[int, int], float]:
    size = draw(st.integers(2, nodes))
    pairs = [(later, earlier) for later in range(size) for earlier in range(later)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=3 * size, unique=True))
    return {pair: draw(st.sampled_from(CONFIDENCES)) for pair in chosen}


def test_the_heuristic_alone_reaches_95_percent_of_the_best_on_average() -> None:
    found = ratios(graphs=12, nodes=10, exact=0)
    assert sum(row.average for row in found) / len(found) >= 0.95
    usual = [row for row in found if row.limits == (2, 5)]
    assert sum(row.average for row in usual) / len(usual) >= 0.98
    assert min(row.worst for row in usual) >= 0.75


def test_chosen_chains_reach_95_percent_of_the_best_at_any_limits() -> None:
    found = ratios(graphs=8, nodes=10, exact=EXACT, seed=2)
    for limits in LIMITS:
        averages = [row.average for row in found if row.limits == limits]
        assert sum(averages) / len(averages) >= 0.95, limits


@given(histories(), st.sampled_from(LIMITS))
def test_a_small_component_gets_the_best_chains_there_are(edges: Edges, limits: tuple[int, int]) -> None:
    chains = choose(edges, shortest=limits[0], longest=limits[1], exact=100)
    assert total(edges, chains) == pytest.approx(best_total(edges, *limits))


@given(histories(nodes=14), st.sampled_from(LIMITS), st.sampled_from([0, EXACT]), st.randoms(use_true_random=False))
def test_chains_are_disjoint_paths_within_the_limits_and_do_not_hang_on_the_order_of_edges(
    edges: Edges, limits: tuple[int, int], exact: int, rng: random.Random
) -> None:
    options: dict[str, Any] = {"shortest": limits[0], "longest": limits[1], "exact": exact}
    chains = choose(edges, **options)
    nodes = [node for chain in chains for node in chain]
    assert len(nodes) == len(set(nodes))
    assert all(limits[0] <= len(chain) <= limits[1] for chain in chains)
    assert all((later, earlier) in edges for chain in chains for earlier, later in pairwise(chain))
    assert chains == sorted(chains)
    shuffled = list(edges.items())
    rng.shuffle(shuffled)
    assert choose(dict(shuffled), **options) == chains


@given(histories(nodes=12), st.sampled_from([0, EXACT]))
def test_no_edge_can_be_added_to_what_was_chosen(edges: Edges, exact: int) -> None:
    chains = choose(edges, exact=exact)
    chain_of = {node: chain for chain in chains for node in chain}
    for later, earlier in edges:
        head, tail = chain_of.get(earlier, (earlier,)), chain_of.get(later, (later,))
        joins = head[-1] == earlier and tail[0] == later
        assert not (joins and len(head) + len(tail) <= 5)


def test_no_hash_seed_changes_the_chains() -> None:
    code = (
        "from chains.edges.graph import Edge, build_graph\n"
        "from chains.choice.select import choose_chains\n"
        "from research.bench.chains_bench import rows\n"
        "print(choose_chains(build_graph(Edge(s, t, 'mentions', c) for s, t, c in rows(600))))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 1000


def test_a_component_of_hundreds_is_packed_well() -> None:
    edges = {(source, target): confidence for source, target, confidence in rows(2000)}
    chains = choose(edges)
    # The best is at most one edge a pull request, four fifths of all nodes in chains of five.
    surest: dict[int, float] = {}
    for (source, _), confidence in edges.items():
        surest[source] = max(surest.get(source, 0.0), confidence)
    assert total(edges, chains) > 0.6 * sum(surest.values())
    greedy: dict[int, int] = {}
    size: dict[int, int] = {}
    reached = 0.0
    followed: set[int] = set()
    for (later, earlier), confidence in sorted(edges.items(), key=lambda item: (-item[1], item[0])):
        if later in greedy or earlier in followed:
            continue
        length = size.get(earlier, 1) + size.get(later, 1)
        if length > 5:
            continue
        greedy[later] = earlier
        followed.add(earlier)
        reached += confidence
        members = [later]
        while members[-1] in greedy:
            members.append(greedy[members[-1]])
        ups = {below: above for above, below in greedy.items()}
        while (above := ups.get(members[0])) is not None:
            members.insert(0, above)
        size.update(dict.fromkeys(members, length))
    assert total(edges, chains) > 1.02 * reached, "better than taking the surest edges first"


# Branching histories. 1 is the change; 2 fixes it; 3 fixes the fix; 4 follows up on 1.

FIX_OF_A_FIX = {(2, 1): 0.8, (3, 2): 0.8, (4, 1): 0.8}


def test_a_fix_of_a_fix_is_one_chain_and_another_follow_up_does_not_break_it() -> None:
    assert choose(FIX_OF_A_FIX) == [(1, 2, 3)]


def test_a_surer_follow_up_takes_the_change_only_where_the_sum_grows() -> None:
    assert choose(FIX_OF_A_FIX | {(4, 1): 1.0}) == [(1, 4), (2, 3)], "1.0 + 0.8 is more than 0.8 + 0.8"
    assert choose(FIX_OF_A_FIX | {(4, 1): 1.0}, shortest=3) == [(1, 2, 3)], "where two make no chain, three win"


def test_a_long_tail_behind_the_other_follow_up_wins() -> None:
    edges = {(2, 1): 0.9, (4, 1): 0.6, (5, 4): 0.6, (6, 5): 0.6}
    assert choose(edges) == [(1, 2), (4, 5, 6)]
    assert choose(edges, shortest=3) == [(1, 4, 5, 6)]


def test_of_two_equal_follow_ups_the_nearer_wins_and_a_surer_one_wins_over_both() -> None:
    twins = {(5, 1): 0.8, (7, 1): 0.8}
    assert choose(twins) == [(1, 5)]
    assert choose(twins, exact=0) == [(1, 5)]
    assert choose(twins | {(9, 1): 0.9}) == [(1, 9)]


def test_of_two_equal_targets_the_nearer_wins() -> None:
    assert choose({(9, 2): 0.8, (9, 7): 0.8}) == choose({(9, 2): 0.8, (9, 7): 0.8}, exact=0) == [(7, 9)]


def test_a_change_that_joins_two_lines_continues_the_surer_one() -> None:
    assert choose({(2, 1): 0.6, (4, 3): 0.6, (5, 2): 0.8, (5, 4): 0.9}) == [(1, 2), (3, 4, 5)]


def test_the_middle_of_a_long_history_is_cut_where_it_is_least_sure() -> None:
    edges = {(node, node - 1): 0.9 for node in range(2, 9)} | {(4, 3): 0.3}
    assert choose(edges) == choose(edges, exact=0) == [(1, 2, 3), (4, 5, 6, 7, 8)]


def test_a_history_longer_than_the_limit_is_one_chain_when_longer_is_allowed() -> None:
    edges = {(node, node - 1): 0.9 for node in range(2, 31)}
    assert choose(edges, longest=30) == choose(edges, longest=99) == [tuple(range(1, 31))]
    assert [len(chain) for chain in choose(edges)] == [5] * 6


def test_a_frozen_pull_request_is_in_no_chain_and_breaks_none_of_the_rest() -> None:
    edges = {(2, 1): 0.9, (3, 2): 0.9, (4, 3): 0.9, (5, 4): 0.9}
    assert choose(edges, frozen={3}) == [(1, 2), (4, 5)]
    assert choose(edges, frozen={3}, disjoint=False) == [(1, 2), (4, 5)]
    assert choose(edges, frozen=[1, 2, 3, 4, 99]) == []


@pytest.mark.parametrize("disjoint", [True, False])
def test_nothing_gives_nothing_and_one_edge_one_chain(disjoint: bool) -> None:
    assert choose({}, disjoint=disjoint) == []
    assert choose({(2, 1): 0.1}, disjoint=disjoint) == [(1, 2)]
    assert choose({(1, 2): 1.0}, disjoint=disjoint, exact=0) == [(2, 1)], "the edge's direction counts, not the number"
    assert choose({(2, 1): 0.1}, disjoint=disjoint, shortest=3) == []


@pytest.mark.parametrize(("shortest", "longest"), [(1, 5), (0, 5), (3, 2), (2, 1)])
def test_limits_that_make_no_chain_are_refused(shortest: int, longest: int) -> None:
    with pytest.raises(ValueError, match="pull request"):
        choose({(2, 1): 0.5}, shortest=shortest, longest=longest)


def paths_ending_at(edges: Edges, last: int, shortest: int, longest: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    walks: list[tuple[int, ...]] = [(last,)]
    while walks:
        walk = walks.pop()
        if shortest <= len(walk):
            found.append(walk)
        if len(walk) < longest:
            walks += [(earlier, *walk) for later, earlier in edges if later == walk[0]]
    return found


@settings(max_examples=60)
@given(histories(nodes=8), st.sampled_from(LIMITS))
@example({(1, 0): 0.8, (2, 1): 0.8, (3, 1): 0.8}, (2, 5))
def test_overlapping_chains_are_the_best_at_each_end_and_none_is_part_of_another(
    edges: Edges, limits: tuple[int, int]
) -> None:
    chains = choose(edges, disjoint=False, shortest=limits[0], longest=limits[1])
    ends = {chain[-1]: chain for chain in chains}
    assert len(ends) == len(chains)
    parts = {chain[i:j] for chain in chains for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)}
    strictly = {part for part in parts if part not in chains}
    assert len(parts) == len(strictly) + len(chains)
    for last in {later for later, _ in edges}:
        paths = paths_ending_at(edges, last, *limits)
        if last in ends:
            best = max(total(edges, [path]) for path in paths)
            assert total(edges, [ends[last]]) == pytest.approx(best)
            assert not any(ends[last] == other[: len(ends[last])] for other in chains if other != ends[last])
        elif paths:
            assert any(last in chain[:-1] for chain in chains), "left out only where a later one's chain holds it"


def test_overlapping_chains_share_the_change_that_two_follow_up() -> None:
    assert choose(FIX_OF_A_FIX, disjoint=False) == [(1, 2, 3), (1, 4)]


def test_overlapping_chains_of_a_long_history_are_windows_and_millions_of_paths_are_no_matter() -> None:
    line: Mapping[tuple[int, int], float] = {(node, node - 1): 0.9 for node in range(2, 8)}
    assert choose(line, disjoint=False) == [(1, 2, 3, 4, 5), (2, 3, 4, 5, 6), (3, 4, 5, 6, 7)]
    layers = {
        (10 * layer + 10 + number, 10 * layer + other): 0.6
        for layer in range(9)
        for number in range(10)
        for other in range(10)
    }
    assert max(len(chain) for chain in choose(layers, longest=10, disjoint=False)) == 10
    disjoint = choose(layers, longest=10)
    assert len(disjoint) == 10 and {len(chain) for chain in disjoint} == {10}


def test_single_pull_requests_are_chains_of_one() -> None:
    assert choose_single([3, 1, 2, 3]) == [(1,), (2,), (3,)]
    assert choose_single([]) == []


def test_neighbours_in_landing_order_are_chains_that_do_not_overlap_or_leave_their_branch() -> None:
    main, release = [9, 2, 3, 4, 5, 7, 8], [20, 11]
    assert choose_temporal([main, release], longest=3) == [(4, 5, 7), (9, 2, 3), (20, 11)]
    assert choose_temporal([main], shortest=1, longest=3)[-2:] == [(8,), (9, 2, 3)]
    assert choose_temporal([main, release], shortest=3) == [(9, 2, 3, 4, 5)]
    assert choose_temporal([]) == []
    with pytest.raises(ValueError, match="min <= max"):
        choose_temporal([main], shortest=4, longest=3)
