"""The measure of leaks: it finds what a worse rule would let in, and lets pass what upstream did itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from prchain.core.git.trees import TreeStore
from research.state_pairs.leaks import leaks
from tests.prchain.treeworld import new_store, plant

BEFORE = "one\ntwo\nthree\nfour\n"
LANDED = "one\ntwo\nREFERENCE\nthree\nfour\n"
UPSTREAM = "one\ntwo\nREFERENCE\nthree\nfour\nfive\n"


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def found(store: TreeStore, *texts: str, path: str = "a", tests: tuple[bytes, ...] = ()) -> tuple[Counter[str], ...]:
    """Leaked and moved lines of trees that hold one file, in the order landed, agent, base, state."""
    landed, agent, base, state = (plant(store, {path: text}) for text in texts)
    return leaks(store, (landed, agent, base, state), tests)


def test_the_base_itself_is_full_of_what_the_agent_did_not_do(store: TreeStore) -> None:
    assert found(store, LANDED, BEFORE, UPSTREAM, UPSTREAM) == (Counter({"REFERENCE": 1}), Counter())


def test_upstreams_later_lines_are_none_of_the_references(store: TreeStore) -> None:
    assert found(store, LANDED, BEFORE, UPSTREAM, BEFORE + "five\n") == (Counter(), Counter())


def test_what_the_agent_wrote_itself_is_no_leak(store: TreeStore) -> None:
    assert found(store, LANDED, LANDED, UPSTREAM, UPSTREAM) == (Counter(), Counter())


def test_test_files_of_earlier_stages_do_not_count(store: TreeStore) -> None:
    assert found(store, LANDED, BEFORE, UPSTREAM, UPSTREAM, tests=(b"a",)) == (Counter(), Counter())


def test_a_line_that_upstream_moved_is_told_apart(store: TreeStore) -> None:
    moved = "one\ntwo\nthree\nfour\nREFERENCE\n"
    assert found(store, LANDED, BEFORE, moved, moved) == (Counter(), Counter({"REFERENCE": 1}))
