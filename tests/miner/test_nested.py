"""Pull requests that landed on a branch which the trunk merged afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.miner.gitworld import Content, Landed, Reading, World, lines


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A development branch beside the trunk, both moving."""
    created = World(tmp_path / "r.git")
    created.commit("main", {f"src/{name}.py": lines(name) for name in "abcdef"}, "start")
    created.branch("dev", "main")
    created.commit("main", {"pushed": "main"}, "push")
    created.commit("dev", {"other": "dev"}, "push")
    return created


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "deleted"])
def test_squash_and_merge_on_a_branch_that_was_merged(world: World, kept: bool) -> None:
    first_head = world.propose(1, {"src/a.py": lines("a", 2)}, base="dev")
    base = world.commit("dev", {"other": "again"}, "push")
    squash = world.squash("dev", first_head, "Fix a (#1)")
    second_head = world.propose(2, {"src/b.py": lines("b", 2)}, {"src/b.py": lines("b", 3)}, base=1)
    merge = world.merge("dev", second_head, "Merge pull request #2 from bob/x")
    world.merge("main", world.made("dev").number, "Merge branch 'dev'")
    if not kept:
        world.drop("dev")
    found = Reading(world)
    assert found.landed == {
        1: Landed("squash", base, squash, "dev", "same_patch"),
        2: Landed("merge", squash, merge, "dev", "head_is_parent"),
    }
    assert found.own(2) == [second_head - 1, second_head]


def test_several_rebased_commits_that_each_name_the_number(world: World) -> None:
    steps: list[dict[str | bytes, Content]] = [{f"src/{name}.py": lines(name, 2)} for name in "abc"]
    head = world.propose(1, *steps, base="dev")
    base = world.commit("dev", {"other": "again"}, "push")
    landed = world.rebase("dev", head, suffix=" (#1)")
    world.merge("main", world.made("dev").number, "Merge branch 'dev'")
    world.drop("dev")
    [(number, found)] = Reading(world).landed.items()
    assert (number, found.style, found.base, found.commit, found.branch) == (1, "rebase", base, landed[-1], "dev")


def test_two_branches_deep_it_is_the_innermost(world: World) -> None:
    world.branch("topic", "dev")
    head = world.propose(1, {"src/a.py": lines("a", 2)}, base="topic")
    base = world.commit("topic", {"topic": "t"}, "push")
    squash = world.squash("topic", head, "Fix a (#1)")
    world.merge("dev", world.made("topic").number, "Merge branch 'topic' into dev")
    world.merge("main", world.made("dev").number, "Merge branch 'dev'")
    world.drop("topic")
    world.drop("dev")
    assert Reading(world).landed == {1: Landed("squash", base, squash, "topic", "same_patch")}


def test_the_merging_pull_request_is_a_landing_of_its_own(world: World) -> None:
    inner = world.propose(1, {"src/a.py": lines("a", 2)}, base="dev")
    below = world.commit("dev", {"other": "again"}, "push")
    squash = world.squash("dev", inner, "Fix a (#1)")
    outer = world.pull(2, "dev")
    base = world.commit("main", {"pushed": "again"}, "push")
    merge = world.merge("main", outer, "Merge pull request #2 from ada/dev")
    found = Reading(world)
    assert found.landed == {
        1: Landed("squash", below, squash, "dev", "same_patch"),
        2: Landed("merge", base, merge, "main", "head_is_parent"),
    }
    assert found.carried == {}


def test_a_maintainer_who_pulled_the_wrong_way_round_landed_on_the_trunk(world: World) -> None:
    head = world.propose(1, {"src/a.py": lines("a", 2)})
    base = world.commit("main", {"pushed": "again"}, "push")
    squash = world.squash("main", head, "Fix a (#1)")
    local = world.commit(None, {"local": "x"}, "local work", parents=[base])
    world.commit("main", {"src/a.py": lines("a", 2)}, "Merge branch 'main' of example.org:o/r", parents=[local, squash])
    assert Reading(world).landed == {1: Landed("squash", base, squash, "main", "same_patch")}


def test_foreign_numbers_in_a_merged_history_are_none(world: World) -> None:
    world.propose(1, {"src/a.py": lines("a", 2)})
    root = world.commit("import", {"lib/a.c": "x"}, "root", parents=[])
    world.commit("import", {"lib/b.c": "x"}, "Theirs (#1)", author="eve")
    world.commit(
        "main",
        {"lib/a.c": "x", "lib/b.c": "x"},
        "Merge branch 'import'",
        parents=[world.made("main").number, world.made("import").number],
    )
    world.drop("import")
    assert root and Reading(world).landed == {}
