"""The emulator prices queries by the formulas that GitHub documents, and refuses what GitHub refuses."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import parse

from tests.emulator.cost import Cost, Refused, cost_of
from tests.emulator.resolvers import load_schema

SCHEMA = load_schema()

# The shape of a sweep: its connections and nothing else.
SWEEP = """
query Sweep($first: Int!, $after: String) {
  repository(owner: "o", name: "n") {
    pullRequests(first: $first, after: $after) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes { ...Pull }
    }
  }
}
fragment Pull on PullRequest {
  mergeCommit { oid parents(first: 3) { nodes { oid } } }
  labels(first: 20) { nodes { name } }
  commits(first: 30) { nodes { id } }
  comments(first: 30) { nodes { id } }
  reviews(first: 30) { nodes { id %s } }
  closingIssuesReferences(first: 10) { nodes { number } }
  timelineItems(first: 30, itemTypes: [CROSS_REFERENCED_EVENT]) { nodes { __typename } }
}
"""
TOTALS_ONLY = "comments { totalCount }"
NESTED = "comments(first: 30) { nodes { id } }"


def cost(query: str, **variables: Any) -> Cost:
    return cost_of(SCHEMA, parse(query), variables)


@pytest.mark.parametrize(
    "first, nodes, requests, points", [(20, 3080, 141, 1), (25, 3850, 176, 2), (50, 7700, 351, 4), (100, 15400, 701, 7)]
)
def test_a_sweep_costs_what_the_formula_says(first: int, nodes: int, requests: int, points: int) -> None:
    assert cost(SWEEP % TOTALS_ONLY, first=first) == Cost(points, nodes, requests, first)


@pytest.mark.parametrize("first, points", [(20, 7), (25, 9), (50, 19), (100, 37)])
def test_nested_review_comments_cost_much_more(first: int, points: int) -> None:
    assert cost(SWEEP % NESTED, first=first).points == points


@pytest.mark.parametrize("first, points", [(21, 1), (22, 2)])
def test_points_are_rounded_and_at_least_one(first: int, points: int) -> None:
    assert cost(SWEEP % TOTALS_ONLY, first=first).points == points
    assert cost("{ viewer { login } }") == Cost(1, 0, 0, None)


FILL = """
query Threads($ids: [ID!]!, $n: Int = 20) {
  nodes(ids: $ids) {
    ... on PullRequest { reviewThreads(first: $n) { nodes { comments(first: 30) { nodes { id } } } } }
  }
}
"""


def test_each_id_counts_as_a_node_and_multiplies_what_is_inside() -> None:
    ids = [str(number) for number in range(25)]
    assert cost(FILL, ids=ids) == Cost(5, 25 + 25 * 20 + 25 * 20 * 30, 25 + 25 * 20, 25)
    assert cost(FILL, ids=ids, n=1).requests == 25 + 25


def test_aliases_add_up_and_repeated_fragments_do_not() -> None:
    selection = "comments(first: 10) { nodes { id } }"
    pull = "node(id: 1) { ... on PullRequest { %s } }"
    assert cost(f"{{ a: {pull % selection} b: {pull % selection} }}").requests == 2
    assert cost(f"{{ {pull % f'{selection} {selection}'} }}").requests == 1


def test_what_a_directive_leaves_out_costs_nothing() -> None:
    query = """query ($deep: Boolean!) { repository(owner: "o", name: "n") {
        pullRequests(first: 100) { nodes { comments(first: 100) @include(if: $deep) { nodes { id } } } } } }"""
    assert (cost(query, deep=True).nodes, cost(query, deep=False).nodes) == (10_100, 100)


@pytest.mark.parametrize(
    "connection, kind, words",
    [
        ("pullRequests(first: 101) { nodes { id } }", "EXCESSIVE_PAGINATION", "Requesting 101 records"),
        ("pullRequests(last: 200) { nodes { id } }", "EXCESSIVE_PAGINATION", "the `last` limit of 100 records"),
        ("pullRequests { nodes { id } }", "MISSING_PAGINATION_BOUNDARIES", "provide a `first` or `last`"),
        ("pullRequests { pageInfo { endCursor } }", "MISSING_PAGINATION_BOUNDARIES", "`pullRequests` connection"),
        ("pullRequests(first: 0) { nodes { id } }", "INVALID_PAGINATION_BOUNDARIES", "between 1 and 100"),
        ("pullRequests(first: -1) { nodes { id } }", "INVALID_PAGINATION_BOUNDARIES", "between 1 and 100"),
        (
            "pullRequests(first: 1, last: 1) { nodes { id } }",
            "INVALID_PAGINATION_BOUNDARIES",
            "both `first` and `last`",
        ),
    ],
)
def test_page_sizes_outside_of_githubs_limits_are_refused(connection: str, kind: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        cost(f'{{ repository(owner: "o", name: "n") {{ {connection} }} }}')
    error = caught.value.error
    assert (error["type"], error["path"]) == (kind, ["query", "repository", "pullRequests"])
    assert words in error["message"]


def test_only_a_total_needs_no_page_size() -> None:
    assert cost('{ repository(owner: "o", name: "n") { pullRequests { totalCount } } }').requests == 0


def test_more_than_half_a_million_nodes_are_refused() -> None:
    query = """query ($n: Int!) { repository(owner: "o", name: "n") { pullRequests(first: $n) { nodes {
        reviewThreads(first: 100) { nodes { comments(first: 100) { nodes { id } } } } } } } }"""
    assert cost(query, n=49).nodes == 49 + 4_900 + 490_000
    with pytest.raises(Refused, match="up to 505,050 possible nodes") as caught:
        cost(query, n=50)
    assert caught.value.error["type"] == "MAX_NODE_LIMIT_EXCEEDED"


def test_more_than_a_hundred_ids_are_refused() -> None:
    with pytest.raises(Refused, match="more than 100 node ids; you provided 101") as caught:
        cost(FILL, ids=["x"] * 101)
    assert caught.value.error["type"] == "ARGUMENT_LIMIT"
