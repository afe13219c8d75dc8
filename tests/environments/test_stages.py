"""Chains as rollouts and test runs read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.stages import read_chain
from prchain.core.code.inline_tests import InlineTest
from prchain.core.errors import ChainGone, UsageError
from sql.chosen import find_chain, selected_ids
from sql.tables import Selection
from tests.environments.stageworld import CHANGES, Changes, StageWorld, stage_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        yield world


def test_a_chain_has_its_stages_in_order_with_the_commits_of_git(world: StageWorld) -> None:
    chain = world.chain
    assert (chain.repository, chain.host) == ("shop/till", "github.com")
    assert [(stage.position, stage.number) for stage in chain.stages] == [(1, 1), (2, 2), (3, 3)]
    assert [stage.base for stage in chain.stages][1:] == [stage.landed for stage in chain.stages][:-1]
    assert world.trees().tree_of(chain.stages[0].base)


def test_a_chain_that_is_gone_is_named(world: StageWorld) -> None:
    with world.store.reading() as tx, pytest.raises(ChainGone):
        read_chain(tx, "f" * 16)


def test_chains_come_by_score_and_only_those_that_still_stand(world: StageWorld) -> None:
    low = world.add_chain((1, 2), score=0.5)
    high = world.add_chain((2, 3), score=2.0)
    single = world.add_chain((3,), strategy="single")
    with world.store.transaction() as tx:
        tx.upsert(
            Selection,
            [
                {
                    "strategy": "reference",
                    "chain_id": low,
                    "score": 0.5,
                    "outcome": "retired",
                    "reason": "x",
                    "selected_at": "2026-01-01T00:00:00Z",
                }
            ],
        )
    with world.store.reading() as tx:
        assert selected_ids(tx, "reference") == [high, world.chain_id]
        assert selected_ids(tx, "reference", limit=1) == [high]
        assert selected_ids(tx, "single", repository="Shop/Till") == [single]
        with pytest.raises(UsageError, match="not been mined"):
            selected_ids(tx, "single", repository="no/such")


def test_a_chain_is_found_by_the_beginning_of_its_id_when_that_names_one(world: StageWorld) -> None:
    other = world.add_chain((1, 2))
    with world.store.reading() as tx:
        assert find_chain(tx, other[:4].upper()) == other
        for prefix in ("zz", ""):
            with pytest.raises(UsageError, match="no chain"):
                find_chain(tx, prefix)


def test_a_patch_is_parted_and_its_test_paths_are_those_of_the_tree(world: StageWorld) -> None:
    first, second, third = world.patches()
    assert (first.source, first.test) == (("till/prices.py",), ("tests/test_prices.py",))
    assert second.test_paths == (b"tests/test_cart.py",)
    assert third.other == ()


def test_source_that_moves_into_the_tests_leaves_no_test_path_behind(tmp_path: Path) -> None:
    helper = "def make():\n    return [1, 2, 3]\n" * 5
    changes: dict[int, Changes] = {
        2: {**CHANGES[2], "till/helper.py": None, "tests/helper.py": helper},
        3: {**CHANGES[3], "tests/helper.py": None, "tests/hélper.py": helper},
    }
    with stage_world(tmp_path, changes, start={"till/helper.py": helper}) as world:
        _, second, third = world.patches()
        assert "till/helper.py" in second.source and "till/helper.py" not in second.test
        assert set(second.test_paths) == {b"tests/helper.py", b"tests/test_cart.py"}
        assert set(third.test_paths) == {b"tests/helper.py", "tests/hélper.py".encode(), b"tests/test_receipt.py"}


RUST = """\
pub fn area(side: u32) -> u32 {
    side * side
}

#[cfg(test)]
mod tests {
    #[test]
    fn squares() {}

    #[test]
    fn kept() {}
}
"""


def test_a_patch_names_the_tests_that_it_changes_inside_the_source(tmp_path: Path) -> None:
    changes = dict(CHANGES)
    changes[1] = CHANGES[1] | {"src/area.rs": RUST, "tests/area.rs": RUST.replace("squares", "laid")}
    changes[2] = CHANGES[2] | {"src/area.rs": RUST.replace("squares() {}", "squares() { panic!() }")}
    with stage_world(tmp_path, changes) as world:
        squares, kept = (InlineTest("src/area.rs", ("tests", name)) for name in ("squares", "kept"))
        assert [patch.inline_tests for patch in world.patches()] == [{squares, kept}, {squares}, frozenset()]
