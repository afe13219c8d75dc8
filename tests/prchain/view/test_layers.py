"""A picture of layers: nothing stands on anything else, no line passes through a node, and the lines say it all."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from prchain.view.layers import LANE, NODE, Edge, lay_out

NAMES = [f"n{number}" for number in range(12)]


@st.composite
def pictures(draw: st.DrawFn) -> tuple[list[list[str]], list[Edge]]:
    """Rows of names, and edges between any of them and one that is in no row."""
    at = [draw(st.integers(0, 4)) for _ in NAMES]
    rows = [[name for name, row in zip(NAMES, at, strict=True) if row == number] for number in range(5)]
    ends = st.sampled_from([*NAMES, "elsewhere"])
    return [row for row in rows if row], draw(st.lists(st.tuples(ends, ends), max_size=30))


@given(pictures())
def test_nothing_stands_on_anything_else_and_what_follows_is_what_was_given(
    drawn: tuple[list[list[str]], list[Edge]],
) -> None:
    rows, edges = drawn
    laid = lay_out(rows, edges)
    taken: list[list[tuple[int, int]]] = [[] for _ in rows]
    for name, row in laid.row.items():
        taken[row].append((laid.x[name], laid.x[name] + NODE))
    for (source, target), way in laid.ways.items():
        assert [row for row, _ in way] == list(range(laid.row[source] + 1, laid.row[target]))
        for row, middle in way:
            taken[row].append((middle - LANE // 2, middle + LANE // 2))
    for own in map(sorted, taken):
        assert own[0][0] >= 0 and own[-1][1] <= laid.width
        assert all(one[1] < other[0] for one, other in pairwise(own))
    given_ = nx.DiGraph([(a, b) for a, b in edges if laid.row.get(a, 9) < laid.row.get(b, -1)])
    shown = nx.DiGraph(list(laid.ways))
    assert set(nx.transitive_closure(given_).edges) == set(nx.transitive_closure(shown).edges)
    assert lay_out(rows, edges) == laid


def test_a_line_that_others_lead_along_is_left_out_and_a_long_one_passes_beside_nodes() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")]
    laid = lay_out([["a"], ["b"], ["c", "d"]], edges)
    assert list(laid.ways) == [("a", "b"), ("b", "c"), ("a", "d")]
    [(row, middle)] = laid.ways["a", "d"]
    assert row == 1 and not laid.x["b"] <= middle <= laid.x["b"] + NODE


def test_rows_are_turned_so_that_lines_do_not_cross() -> None:
    laid = lay_out([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    assert (laid.x["a"] < laid.x["b"]) == (laid.x["d"] < laid.x["c"])
