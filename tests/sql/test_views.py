"""The views are a promise: their columns, their order, and which row stands for many."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from prchain.core.cli_options import SURVEYED
from sql.store import Store
from sql.tables import Chain, ChainStage, Repository, Selection
from tests.sql.rows import citation, fill, landing

LANDED = ("repository", "number", "style", "branch", "base_sha", "landed_sha", "head_sha", "landed_at", "subject")
EDGES = ("repository", "source", "target", "relation", "syntax", "field", "snippet", "counted", "reason")

COMMENTS = (
    *("repository", "number", "comment", "review", "review_state", "reply_to", "author"),
    *("path", "line", "original_line", "side", "resolved", "outdated", "created_at", "body"),
)


CHAINS = {
    "chosen_stages": (
        *("repository", "chain", "strategy", "score", "position", "number", "subject", "landed_at", "base_sha"),
        *("landed_sha", "source_lines", "test_lines", "relation", "confidence", "worth"),
    ),
    "task_queries": ("repository", "chain", "outcome", "overview", "position", "number", "query", "model"),
    "stage_proofs": (
        *("repository", "chain", "position", "number", "chain_outcome", "outcome", "reason", "f2p", "p2p", "own_f2p"),
        *("image", "runner", "backend"),
    ),
    "rollout_stages": (
        *("repository", "chain", "trajectory", "sample", "scaffold", "model", "trajectory_outcome", "usd", "position"),
        *("number", "outcome", "reason", "attempts", "steps", "score", "tests"),
    ),
}


def view(store: Store, name: str, columns: str = "*") -> list[dict[str, Any]]:
    with store.reading() as tx:
        return [dict(row) for row in tx.connection.execute(text(f"SELECT {columns} FROM {name}")).mappings()]


def test_the_columns_of_the_views_stand_in_the_promised_order(store: Store) -> None:
    with store.reading() as tx:
        assert tuple(tx.connection.execute(text("SELECT * FROM landed_pull_requests")).keys()) == LANDED
        assert tuple(tx.connection.execute(text("SELECT * FROM citation_edges")).keys()) == EDGES
        assert tuple(tx.connection.execute(text("SELECT * FROM review_comments")).keys()) == COMMENTS
        for name, columns in CHAINS.items():
            assert tuple(tx.connection.execute(text(f"SELECT * FROM {name}")).keys()) == columns


def test_only_what_landed_is_a_landed_pull_request(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, pulls=3, landings=[landing(2, "main", head_sha="h" * 40)])
    assert view(store, "landed_pull_requests") == [
        {
            "repository": "o/n",
            "number": 2,
            "style": "squash",
            "branch": "main",
            "base_sha": "b" * 40,
            "landed_sha": f"{2:040d}",
            "head_sha": "h" * 40,
            "landed_at": "2024-01-01T00:00:00Z",
            "subject": "subject of 2 on main",
        }
    ]


@pytest.mark.parametrize(
    ("branches", "chosen"),
    [
        ({"a": "2020-01-01T00:00:00Z", "main": "2024-01-01T00:00:00Z"}, "main"),
        ({"a": "2024-01-01T00:00:00Z", "b": "2020-01-01T00:00:00Z"}, "b"),
        ({"b": "2020-01-01T00:00:00Z", "a": "2020-01-01T00:00:00Z"}, "a"),
        ({"a": "2020-01-01T00:00:00Z", "B": "2020-01-01T00:00:00Z"}, "B"),
        ({"release/1.10": "2020-01-01T00:00:00Z", "release-2": "2020-01-01T00:00:00Z"}, "release-2"),
    ],
)
def test_a_pull_request_that_landed_on_several_branches_is_one_row(
    branches: dict[str, str], chosen: str, store: Store
) -> None:
    with store.transaction() as tx:
        fill(tx, landings=[landing(1, branch, landed_at=time) for branch, time in branches.items()])
    assert [row["branch"] for row in view(store, "landed_pull_requests")] == [chosen]


def test_an_edge_needs_two_pull_requests_of_the_repository_landed_or_not(store: Store) -> None:
    with store.transaction() as tx:
        fill(
            tx,
            pulls=3,
            landings=[landing(1, "main")],
            citations=[
                citation(3, 2),
                citation(3, 77, counted=False, reason="not_a_pull_request"),
                citation(2, 1, relation="stacked-on", field="history", syntax="ancestry", snippet=""),
            ],
        )
    edges = sorted(view(store, "citation_edges"), key=lambda row: row["source"])
    assert edges == [
        dict(zip(EDGES, ("o/n", 2, 1, "stacked-on", "ancestry", "history", "", 1, None), strict=True)),
        dict(zip(EDGES, ("o/n", 3, 2, "mentions", "hash", "body", "see #2", 1, None), strict=True)),
    ]
    assert type(edges[0]["counted"]) is int


@pytest.mark.parametrize(
    ("occurrences", "chosen"),
    [
        ([("1", False, 0.9, "quoted"), ("2", True, 0.1, None)], ("2", 1, None)),
        ([("1", True, 0.5, None), ("2", True, 0.9, None)], ("2", 1, None)),
        ([("b", True, 0.5, None), ("a", True, 0.5, None), ("B", True, 0.5, None)], ("B", 1, None)),
        ([("1", False, 0.9, "quoted"), ("2", False, 0.2, "code")], ("1", 0, "quoted")),
        ([("1", True, 0.9, "left over")], ("1", 1, None)),
    ],
)
def test_of_several_occurrences_the_best_is_the_edge(
    occurrences: list[tuple[str, bool, float, str | None]], chosen: tuple[str, int, str | None], store: Store
) -> None:
    with store.transaction() as tx:
        fill(
            tx,
            citations=[
                citation(5, 2, field="comment", key=key, snippet=key, counted=counted, confidence=sure, reason=reason)
                for key, counted, sure, reason in occurrences
            ],
        )
    rows = view(store, "citation_edges", "snippet, counted, reason")
    assert [tuple(row.values()) for row in rows] == [chosen]


def test_fields_and_relations_are_edges_of_their_own(store: Store) -> None:
    with store.transaction() as tx:
        fill(tx, citations=[citation(5, 2), citation(5, 2, field="title"), citation(5, 2, relation="fixes")])
    assert len(view(store, "citation_edges")) == 3


def test_what_a_survey_drew_is_no_chosen_stage(store: Store) -> None:
    stage = {
        **{"chain_id": "c" * 16, "position": 1, "number": 1, "branch": "main", "base_sha": "b" * 40},
        **{"landed_sha": "a" * 40, "landed_at": "2024-01-01T00:00:00Z", "subject": "One", "source_files": 1},
        **{"source_lines": 1, "test_files": 0, "test_lines": 0},
    }
    chosen = {"chain_id": "c" * 16, "score": 1.0, "outcome": "selected", "selected_at": "2024-01-01T00:00:00Z"}
    with store.transaction() as tx:
        fill(tx, pulls=1)
        [(repository,)] = tx.rows(Repository, "id")
        tx.upsert(Chain, [{"id": "c" * 16, "repository_id": repository, "length": 1}])
        tx.upsert(ChainStage, [{**stage, "repository_id": repository}])
        tx.upsert(Selection, [{**chosen, "strategy": name} for name in (SURVEYED, "single")])
    assert [row["strategy"] for row in view(store, "chosen_stages")] == ["single"]
