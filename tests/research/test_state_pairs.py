"""The measure of leaks: it finds what a worse rule would let in, and lets pass what upstream did itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from environments.checkouts.state import next_state
from prchain.core.git.trees import TreeStore
from research.state_pairs.leaks import leaks
from research.state_pairs.scripts import tree_by_script
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


def test_the_script_between_steps_of_harbors_tasks_makes_the_same_tree(store: TreeStore) -> None:
    before, landed, agent, upstream = (
        plant(store, {"a": text, "tests/a": test, "b": "b\n" * 9})
        for text, test in ((BEFORE, "1\n"), (LANDED, "2\n"), (BEFORE + "mine\n", "mine\n"), (UPSTREAM, "3\n"))
    )
    ours = next_state(store, landed_before=landed, agent_tree=agent, base=upstream, test_paths=[b"tests/a"])
    assert len(ours.conflicts) == 1
    assert tree_by_script(store, (before, landed, upstream), agent, [b"tests/a"]) == (ours.tree, 1)
    assert tree_by_script(store, (before, landed, upstream), landed, [b"tests/a"]) == (upstream, 0)


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
