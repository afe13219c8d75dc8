"""Trajectories in the database: any text that is written can be read back, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prchain.core.errors import UsageError
from prchain.core.llm.model import ToolCall
from prchain.core.storable import clean_text
from sql.store import Store
from sql.tables import Chain, Repository, TrajectoryMessage
from trajectories.model import Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.rollouts.recorder import StoreRecorder
from trajectories.rows import (
    StageRow,
    VerdictRow,
    begin_trajectory,
    end_trajectory,
    find_trajectory,
    read_entries,
    read_outcome,
    read_stages,
    read_verdicts,
    write_stage,
    write_verdict,
)

ROW = {
    "chain_id": "c",
    "sample": 0,
    "parent_id": None,
    "parent_step": None,
    "scaffold": "react",
    "model": "m",
    "judge": None,
    "options": asdict(RolloutOptions()),
    "options_hash": "h",
    "prompts": {},
    "tools": [],
    "decided_by": None,
}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    with opened.transaction() as tx:
        tx.upsert(
            Repository,
            [
                {
                    "id": 1,
                    "host": "h",
                    "owner": "o",
                    "name": "n",
                    "location": "l",
                    "default_branch": None,
                    "node_id": None,
                }
            ],
        )
        tx.upsert(Chain, [{"id": "c", "repository_id": 1, "length": 2, "licence": None, "language": None}])
        for name in ("aa11", "aa22"):
            begin_trajectory(tx, {"id": name, **ROW})
    yield opened
    opened.close()


def turn(ordinal: int, **fields: Any) -> Entry:
    return Entry(ordinal, 1, 1, 1, EntryKind.TURN, "assistant", "Let me look.", at="2026-01-01T00:00:00Z", **fields)


def observation(ordinal: int, **fields: Any) -> Entry:
    return Entry(ordinal, 1, 1, 1, EntryKind.OBSERVATION, "tool", "fine", at="2026-01-01T00:00:00Z", **fields)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(), st.text(), st.none() | st.text(), st.dictionaries(st.text(max_size=5), st.integers() | st.text()))
def test_entries_come_back_as_they_were(
    store: Store, content: str, arguments: str, reasoning: str | None, details: dict[str, Any]
) -> None:
    calls = (ToolCall("1", "bash", arguments),)
    entry = Entry(
        0, 1, 1, 1, EntryKind.TURN, "assistant", content, reasoning, calls, details=details, usd=0.5, at="now"
    )
    recorder = StoreRecorder(store, "aa11", [])
    with store.transaction() as tx:
        tx.delete(TrajectoryMessage, trajectory_id="aa11")
    recorder.add([entry])
    with store.reading() as tx:
        (stored,) = read_entries(tx, "aa11")
    assert (stored.content, stored.tool_calls[0].arguments) == (clean_text(content), clean_text(arguments))
    assert stored.reasoning == (None if reasoning is None else clean_text(reasoning))
    if all(clean_text(text) == text for pair in details.items() for text in pair if isinstance(text, str)):
        assert stored.details == details
    assert (stored.kind, stored.role, stored.usd, stored.at) == (EntryKind.TURN, "assistant", 0.5, "now")


def test_a_step_is_written_before_the_next_and_must_follow_what_is_stored(store: Store) -> None:
    recorder = StoreRecorder(store, "aa11", [])
    recorder.add([turn(0), observation(1)])
    with pytest.raises(ValueError, match="numbered from 2 on"):
        recorder.add([turn(1)])
    recorder.add([])
    recorder.add([turn(2)])
    with store.reading() as tx:
        assert [entry.ordinal for entry in read_entries(tx, "aa11")] == [0, 1, 2]
        assert read_entries(tx, "aa22") == []


def test_what_befell_the_sandbox_stands_on_the_first_entry_after_it(store: Store) -> None:
    recorder = StoreRecorder(store, "aa11", [], first_details={"restored": {"tree": "t"}})
    recorder.add([turn(0, details={"finish": "stop"})])
    recorder.add([turn(1)])
    with store.reading() as tx:
        assert [entry.details for entry in read_entries(tx, "aa11")] == [
            {"finish": "stop", "restored": {"tree": "t"}},
            {},
        ]


def test_a_tree_is_kept_where_it_is_another_one(store: Store) -> None:
    trees = iter(["t1", "t1", "t2"])
    recorder = StoreRecorder(store, "aa11", [], tree_now=lambda: next(trees), last_tree="t0")
    assert [recorder.tree() for _ in range(3)] == ["t1", None, "t2"]
    assert StoreRecorder(store, "aa11", []).tree() is None


def test_the_trees_of_a_scaffold_that_never_asks_for_them_are_kept_all_the_same(store: Store) -> None:
    trees = iter(["t1", "t1", "t2"])
    recorder = StoreRecorder(store, "aa11", [], tree_now=lambda: next(trees), last_tree="t0")
    for ordinal in (0, 2, 4):
        recorder.add([turn(ordinal), observation(ordinal + 1)])
    with store.reading() as tx:
        assert [entry.tree for entry in read_entries(tx, "aa11")] == [None, "t1", None, None, None, "t2"]


def test_stages_and_verdicts_come_back_and_are_replaced_by_what_is_written_later(store: Store) -> None:
    stage = StageRow(
        1,
        "accepted",
        None,
        "s",
        "a",
        ({"path": "x", "kind": "content"},),
        ("t.py",),
        {"done_early": []},
        ("submitted",),
        1,
        3,
        2.0,
    )
    verdict = VerdictRow(
        1, 1, "a", True, "judge", 0.9, "good", findings=({"kind": "sha"},), grade={"outcome": "passed"}, at="now"
    )
    with store.transaction() as tx:
        write_stage(tx, "aa11", StageRow(1, "running"))
        write_stage(tx, "aa11", stage)
        write_verdict(tx, "aa11", verdict)
    with store.reading() as tx:
        assert read_stages(tx, "aa11") == [stage]
        assert read_verdicts(tx, "aa11") == [verdict]


def test_a_trajectory_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    with store.reading() as tx:
        assert find_trajectory(tx, "AA1") == "aa11"
        with pytest.raises(UsageError, match="several"):
            find_trajectory(tx, "aa")
        for unknown in ("b", "", "%"):
            with pytest.raises(UsageError, match="no trajectory"):
                find_trajectory(tx, unknown)


def test_beginning_again_keeps_what_is_there_and_an_end_says_how_it_came(store: Store) -> None:
    with store.transaction() as tx:
        end_trajectory(tx, "aa11", "sandbox_lost", reason="gone\x00", accepted=1, overview=None)
    with store.transaction() as tx:
        assert read_outcome(tx, "aa11") == "sandbox_lost"
        begin_trajectory(tx, {"id": "aa11", **ROW})
        assert read_outcome(tx, "aa11") == "running"
        assert read_outcome(tx, "none") is None
