"""What a base branch says of a stack (issue 20, point 8); what ancestry says is in `test_edges`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from miner.edge_facts import PullRequestFacts
from miner.edges import CitationEdge
from miner.stacks import MOST_BASED
from tests.miner.test_edges import landscape, pull

LOWER = replace(pull(40), head_branch="parser", bases=[("develop", "")], opened_at="2024-01-02", closed_at="2024-01-05")
UPPER = replace(pull(50), head_branch="lexer", bases=[("parser", "")], opened_at="2024-01-04", closed_at="2024-01-08")


def stacked(upper: PullRequestFacts, *others: PullRequestFacts) -> list[CitationEdge]:
    """The edges of a pull request that has no texts."""
    return landscape(upper, *others).edges_of(upper)


def test_a_base_branch_that_is_the_head_of_another_is_a_stack() -> None:
    [edge] = stacked(UPPER, LOWER)
    assert (edge.source, edge.target, edge.relation, edge.field) == (50, 40, "stacked_on", "base")
    assert (edge.counted, edge.confidence, edge.weak_signs) == (True, 0.9, ())
    assert "parser" in edge.snippet
    assert stacked(LOWER, UPPER) == []


def test_a_base_that_was_retargeted_is_remembered_by_its_event() -> None:
    [edge] = stacked(replace(UPPER, bases=[("develop", ""), ("parser", "EVENT")]), LOWER)
    assert (edge.target, edge.key, edge.counted) == (40, "EVENT", True)


@pytest.mark.parametrize(
    ("opened", "closed", "met"),
    [
        ("2024-01-01", "2024-01-04", True),
        ("2024-01-05", None, True),
        ("2024-01-09", None, False),
        ("2023-01-01", "2023-01-04", False),
    ],
)
def test_a_name_of_a_branch_that_was_used_at_another_time_is_another_branch(
    opened: str, closed: str | None, met: bool
) -> None:
    lower = replace(LOWER, opened_at=opened, closed_at=closed)
    assert bool(stacked(UPPER, lower)) is met


def test_a_branch_of_a_fork_is_no_base_of_anybody() -> None:
    assert stacked(UPPER, replace(LOWER, head_branch=None)) == []


def test_a_branch_that_many_go_to_is_a_line_of_development() -> None:
    uppers = [replace(UPPER, number=number) for number in range(50, 50 + MOST_BASED)]
    assert len(stacked(UPPER, LOWER, *uppers)) == 1
    assert stacked(UPPER, LOWER, *uppers, replace(UPPER, number=59)) == []


def test_what_landed_in_the_lower_ones_branch_before_that_landed_is_stored_and_does_not_count() -> None:
    [edge] = stacked(replace(UPPER, order=("parser", 3), landed_at="2024-01-01T00:00:00Z"), LOWER)
    assert (edge.counted, edge.reason) == (False, "landed_later")


def test_an_upper_part_that_is_open_is_stacked_all_the_same() -> None:
    [edge] = stacked(replace(UPPER, order=None, landed_at="", landed_sha="", closed_at=None), LOWER)
    assert edge.counted
