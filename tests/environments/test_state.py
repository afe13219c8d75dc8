"""S_t: what a stage starts with, by how the work of earlier stages is carried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.checkouts.carry import Carry
from environments.checkouts.state import StageState, first_state, next_state
from prchain.core.errors import IncompleteRepository, MergeUnsupported, NoneUnavailable
from prchain.core.git.trees import SUBMODULE, TreeStore
from tests.prchain.treeworld import Content, harvest, new_store, plant

Files = dict[str | bytes, Content]

BASE_1: Files = {"app.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n", "tests/test_app.py": "old test\n", "doc": "d\n"}
LANDED_1: Files = {**BASE_1, "app.py": "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\n", "tests/test_app.py": "test 1\n"}
BASE_2: Files = {
    **LANDED_1,
    "app.py": "one\ntwo\nTHREE\nfour\nfive\nsix\nSEVEN\n",
    "tests/test_app.py": "test 1\nmore\n",
    "doc": "D\n",
}
TESTS = [b"tests/test_app.py"]


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def after(store: TreeStore, agent: Files, base: Files = BASE_2, landed: Files = LANDED_1) -> StageState:
    """The second stage's state after an agent's first."""
    return next_state(
        store,
        landed_before=plant(store, landed),
        agent_tree=plant(store, agent),
        base=plant(store, base),
        test_paths=TESTS,
    )


def test_the_first_state_is_the_base(store: TreeStore) -> None:
    tree = plant(store, BASE_1)
    assert first_state(store, store.commit(tree)) == StageState(tree)
    with pytest.raises(IncompleteRepository):
        first_state(store, "1" * 40)


class TestAgent:
    def test_who_did_what_the_reference_did_finds_the_base(self, store: TreeStore) -> None:
        assert after(store, LANDED_1) == StageState(plant(store, BASE_2))

    def test_the_agents_version_stands_in_for_the_references(self, store: TreeStore) -> None:
        state = after(store, {**LANDED_1, "app.py": "one\ntwo\nmy three\nfour\nfive\nsix\nseven\n", "mine.py": "x\n"})
        assert harvest(store, state.tree) == {
            **BASE_2,
            "app.py": "one\ntwo\nmy three\nfour\nfive\nsix\nSEVEN\n",
            "mine.py": "x\n",
        }
        assert (state.conflicts, state.test_paths_reset) == ((), ())

    def test_no_line_of_the_reference_comes_with_upstreams_later_work(self, store: TreeStore) -> None:
        later = {**BASE_2, "app.py": "one\ntwo\nTHREE, again\nfour\nfive\nsix\nSEVEN\n"}
        state = after(store, BASE_1, later)
        assert "THREE" not in str(harvest(store, state.tree)["app.py"])
        [conflict] = state.conflicts
        assert (conflict.path, conflict.hunks, conflict.lost_lines) == (b"app.py", 1, ("THREE, again",))

    @pytest.mark.parametrize(
        "tests",
        [
            {"tests/test_app.py": "my own test\n"},
            {},
            {"tests/test_app.py/now_a_folder.py": "x\n"},
            {"tests": "now a file\n"},
        ],
    )
    def test_earlier_test_files_are_the_references_whatever_the_agent_made_of_them(
        self, store: TreeStore, tests: Files
    ) -> None:
        agent: Files = {"app.py": LANDED_1["app.py"], "doc": LANDED_1["doc"], **tests}
        state = after(store, agent)
        assert state == StageState(plant(store, BASE_2), (), (b"tests/test_app.py",))

    def test_a_test_file_that_the_reference_deleted_stays_deleted(self, store: TreeStore) -> None:
        landed, base = ({k: v for k, v in side.items() if k != "tests/test_app.py"} for side in (LANDED_1, BASE_2))
        state = after(store, BASE_1, base, landed)
        assert "tests/test_app.py" not in harvest(store, state.tree)
        assert state.test_paths_reset == (b"tests/test_app.py",)

    def test_paths_that_nobody_has_are_nothing_to_reset(self, store: TreeStore) -> None:
        tree = plant(store, LANDED_1)
        state = next_state(store, landed_before=tree, agent_tree=tree, base=tree, test_paths=[b"gone", b"bad\xff"])
        assert state == StageState(tree)

    def test_what_cannot_merge_has_a_name(self, store: TreeStore) -> None:
        sides: list[Files] = [{**LANDED_1, "sub": (SUBMODULE, digit * 40)} for digit in "123"]
        with pytest.raises(MergeUnsupported):
            after(store, sides[1], sides[2], sides[0])


class TestReference:
    def test_is_the_base_whatever_the_agent_did(self, store: TreeStore) -> None:
        tree = plant(store, BASE_2)
        state = next_state(
            store, landed_before=plant(store, LANDED_1), agent_tree=plant(store, {}), base=tree, carry="reference"
        )
        assert state == StageState(tree)


class TestNone:
    def take_back(self, store: TreeStore, base: Files, *earlier: tuple[Files, Files]) -> StageState:
        """The state with these patches taken back."""
        done = [(plant(store, before), plant(store, landed)) for before, landed in earlier]
        return next_state(
            store, landed_before="", agent_tree="", base=plant(store, base), carry=Carry.NONE, earlier=done
        )

    def test_earlier_patches_are_taken_back_and_upstreams_work_stays(self, store: TreeStore) -> None:
        expected = {**BASE_2, "app.py": "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n", "tests/test_app.py": "old test\n"}
        upstream = {**BASE_2, "tests/test_app.py": "test 1\n"}
        assert harvest(store, self.take_back(store, upstream, (BASE_1, LANDED_1)).tree) == expected

    def test_the_latest_is_taken_back_first(self, store: TreeStore) -> None:
        sides: list[Files] = [{"a": text} for text in ("1\n", "2\n", "3\n")]
        first, second, third = sides
        state = self.take_back(store, {**third, "b": "x"}, (first, second), (second, third))
        assert harvest(store, state.tree) == {"a": "1\n", "b": "x"}

    def test_what_later_work_stands_on_cannot_be_taken_back(self, store: TreeStore) -> None:
        with pytest.raises(NoneUnavailable, match=r"cannot be taken back: app\.py"):
            self.take_back(store, {"app.py": "3\n"}, ({"app.py": "1\n"}, {"app.py": "2\n"}))


def test_an_unknown_way_to_carry_is_refused(store: TreeStore) -> None:
    with pytest.raises(ValueError, match="both"):
        next_state(store, landed_before="", agent_tree="", base="", carry="both")
