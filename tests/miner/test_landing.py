"""Which landing the git source finds in histories whose landings are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from miner.history import default_line
from miner.landing import LandingCandidate, OwnCommits, Patch, judge_patch
from tests.miner.gitworld import FILE, Content, Landed, Reading, World, lines


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository with a little history on its default branch."""
    created = World(tmp_path / "r.git")
    created.commit("main", {"README.md": "hi", **{f"src/{name}.py": lines(name) for name in "abcdef"}}, "start")
    created.commit("main", {"src/a.py": lines("a", 1)}, "second")
    return created


def move_on(world: World, branch: str = "main") -> int:
    """A direct push, so that the next landing's base is not the fork of its head."""
    return world.commit(
        branch, {"pushed.txt": str(len(world.made(branch).message) + world.made(branch).number)}, "push"
    )


class TestMerge:
    def test_head_is_the_second_parent(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/new.py": "n"})
        base = move_on(world)
        merge = world.merge("main", head, "Merge pull request #1 from bob/x\n\nTitle")
        found = Reading(world)
        assert found.landed == {1: Landed("merge", base, merge, "main", "head_is_parent")}
        assert found.own(1) == [head - 1, head]

    def test_without_any_number(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        merge = world.merge("main", head, "Merge branch 'fix' into main")
        assert Reading(world).landed == {1: Landed("merge", base, merge, "main", "head_is_parent")}

    def test_head_was_pushed_to_after_the_merge(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        merge = world.merge("main", head, "Merge pull request #1 from bob/x")
        later = world.commit(None, {"src/b.py": "late"}, "one more", parents=[head], author="bob")
        world.pull(1, later)
        found = Reading(world)
        assert found.landed == {1: Landed("merge", base, merge, "main", "contained_in_head")}
        assert found.own(1) == [head, later]

    def test_merge_edited_by_the_maintainer_on_top_of_the_head(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        edited = world.commit(None, {"src/a.py": lines("a", 3)}, "touch up", parents=[head], author="maintainer")
        base = move_on(world)
        merge = world.merge("main", edited, "Merge pull request #1 from bob/x")
        assert Reading(world).landed == {1: Landed("merge", base, merge, "main", "head_contains")}

    def test_merge_of_a_rewritten_head(self, world: World) -> None:
        world.propose(1, {"src/a.py": lines("a", 2)})
        rewritten = world.commit(None, {"src/a.py": lines("a", 2), "NEWS": "n"}, "rewritten", parents=[2])
        base = move_on(world)
        merge = world.merge("main", rewritten, "Merge pull request #1 from bob/x")
        assert Reading(world).landed == {1: Landed("merge", base, merge, "main", "most_files")}

    def test_one_parent_under_a_merge_subject(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Merge pull request #1 from bob/x\n\nTitle")
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "same_patch")}

    def test_two_parents_under_a_squash_subject(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        merge = world.merge("main", head, "Fix a (#1)")
        assert Reading(world).landed == {1: Landed("merge", base, merge, "main", "head_is_parent")}

    def test_octopus_lands_every_head_but_names_one_commit(self, world: World) -> None:
        first = world.propose(1, {"src/a.py": lines("a", 2)})
        second = world.propose(2, {"src/b.py": lines("b", 2)})
        base = world.made("main").number
        files = {**world.own_changes(first, base), **world.own_changes(second, base)}
        merge = world.commit("main", files, "Merge #1 #2", parents=[base, first, second])
        found = Reading(world).landed
        assert {n: (it.base, it.commit, it.evidence) for n, it in found.items()} == {
            1: (base, merge, "head_is_parent"),
            2: (base, merge, "head_is_parent"),
        }

    def test_criss_cross_merges_land_on_the_first_parents_side(self, world: World) -> None:
        fork = world.made("main").number
        topic = world.commit(None, {"src/b.py": "b1"}, "topic", parents=[fork], author="bob")
        push = move_on(world)
        back = world.commit(
            None, {"pushed.txt": world.made(push).files[b"pushed.txt"]}, "Merge main", parents=[topic, push]
        )
        merge = world.commit("main", {"src/b.py": "b1"}, "Merge branch 'topic'", parents=[push, topic])
        last = world.commit(None, {"src/c.py": "c1"}, "more", parents=[back], author="bob")
        world.pull(1, last)
        final = world.merge("main", last, "Merge pull request #1 from bob/topic")
        found = Reading(world)
        assert found.landed == {1: Landed("merge", merge, final, "main", "head_is_parent")}
        assert found.own(1) == [back, last]

    def test_merge_of_an_unrelated_root(self, world: World) -> None:
        root = world.commit(None, {"lib/x.c": "x"}, "root of another history", parents=[])
        head = world.commit(None, {"lib/y.c": "y"}, "more of it", parents=[root])
        world.pull(1, head)
        base = move_on(world)
        merge = world.commit(
            "main", {"lib/x.c": "x", "lib/y.c": "y"}, "Merge pull request #1 from a/b", parents=[base, head]
        )
        found = Reading(world)
        assert found.landed == {1: Landed("merge", base, merge, "main", "head_is_parent")}
        assert found.own(1) == [root, head]

    def test_foxtrot_merge_keeps_the_landings_of_the_side_that_was_the_trunk(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        landed = world.squash("main", head, "Fix a (#1)")
        local = world.commit(None, {"src/b.py": "local"}, "local work", parents=[base])
        world.commit(
            "main", {"src/a.py": lines("a", 2)}, "Merge branch 'main' of example.org:r", parents=[local, landed]
        )
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, landed, "main", "same_patch")}


SQUASH_SUBJECTS = [
    "Fix a (#1)",
    "Fix a (gh-1)",
    "Fix a [#1]",
    "Fix a (PR #1)",
    "Auto merge of #1 - bob:x, r=ada",
    "Merge #1",
    "Merge PR #1: fix a",
    "#1 from bob:x",
    "PR #1: fix a",
    "Closes #1 from bob/x.",
    "Fix a\n\nPR-URL: https://github.com/o/r/pull/1",
    "Fix a\n\nPull Request resolved: https://github.com/o/r/pull/1\n",
    "Fix a\n\nCloses #1 from bob/x and squashes",
    "Fix the thing that was too long for one line\nand goes on here (#1)",
]


class TestSquash:
    @pytest.mark.parametrize("subject", SQUASH_SUBJECTS)
    def test_every_way_to_name_the_number(self, world: World, subject: str) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        base = move_on(world)
        commit = world.squash("main", head, subject)
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "same_patch")}

    def test_same_tree_where_the_base_did_not_move(self, world: World) -> None:
        base = world.made("main").number
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        commit = world.squash("main", head, "Fix (#1)")
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "same_tree")}

    def test_same_files_where_the_base_changed_them_too(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix (#1)", extra={"src/a.py": lines("a", 3)})
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "same_files")}

    def test_most_files_where_the_maintainer_added_one(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix (#1)", extra={"src/b.py": lines("b", 3)})
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "most_files")}

    def test_few_files_need_the_same_author(self, world: World) -> None:
        extra: dict[str | bytes, Content] = {f"src/{name}.py": lines(name, 3) for name in "bcd"}
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix (#1)", extra=extra)
        other = world.propose(2, {"src/a.py": lines("a", 4)})
        foreign = world.squash("main", other, "Fix (#2)", extra={p: f"{c!r}!" for p, c in extra.items()}, author="eve")
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, commit, "main", "some_files")}
        assert found.refused == {(2, foreign, "head_differs")}

    def test_inner_number_is_carried_by_the_last_one(self, world: World) -> None:
        inner = world.propose(1, {"src/a.py": lines("a", 2)})
        outer = world.commit(None, {"src/b.py": lines("b", 2)}, "more", parents=[inner], author="bob")
        world.pull(2, outer)
        base = move_on(world)
        commit = world.squash("main", outer, "Fix a (#1) (#2)")
        assert Reading(world).landed == {2: Landed("squash", base, commit, "main", "same_patch")}

    def test_inner_number_lands_where_the_last_one_is_none_of_ours(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix a (#1) (#777)")
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, commit, "main", "same_patch")}
        assert found.refused == {(777, commit, "no_pull_head")}

    def test_the_head_is_an_ancestor_of_nothing_and_the_branch_was_merged_into_it(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        synced = world.commit(
            None,
            {"pushed.txt": world.made(base).files[b"pushed.txt"]},
            "Merge branch 'main' into x",
            parents=[head, base],
            author="bob",
        )
        world.pull(1, synced)
        commit = world.squash("main", synced, "Fix a (#1)")
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, commit, "main", "same_tree")}
        assert found.own(1) == [head, synced]

    def test_reverted_and_landed_again_under_one_number_keeps_the_first(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        first = world.squash("main", head, "Fix a (#1)")
        world.commit("main", {"src/a.py": lines("a", 1)}, 'Revert "Fix a (#1)"')
        again = world.squash("main", head, "Fix a (#1)", extra={"src/a.py": lines("a", 2)})
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, first, "main", "same_patch")}
        assert (1, again, "number_landed_elsewhere") in found.refused


class TestRebase:
    @pytest.mark.parametrize("suffix", ["", " (#1)"], ids=["numberless", "numbered"])
    @pytest.mark.parametrize("commits", [1, 2, 4])
    def test_base_is_the_parent_of_the_first_own_commit(self, world: World, suffix: str, commits: int) -> None:
        steps: list[dict[str | bytes, Content]] = [{f"src/{name}.py": lines(name, 2)} for name in "abcd"[:commits]]
        head = world.propose(1, *steps)
        base = move_on(world)
        landed = world.rebase("main", head, suffix=suffix)
        move_on(world)
        found = Reading(world)
        [(number, landing)] = found.landed.items()
        assert (number, landing.base, landing.commit, landing.branch) == (1, base, landed[-1], "main")
        assert landing.style == ("squash" if suffix and commits == 1 else "rebase")
        assert len(found.own(1)) == commits

    def test_a_numbered_rebase_of_one_commit_with_an_unchanged_message(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, message="Fix a (#1)")
        base = move_on(world)
        [commit] = world.rebase("main", head)
        assert Reading(world).landed[1] == Landed("rebase", base, commit, "main", "same_patch")

    def test_neighbours_rebased_one_after_the_other_stay_apart(self, world: World) -> None:
        first_head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        second_head = world.propose(2, {"src/c.py": lines("c", 2)}, {"src/d.py": lines("d", 2)})
        base = move_on(world)
        first, second = world.rebase("main", first_head), world.rebase("main", second_head)
        found = Reading(world).landed
        assert {n: (it.style, it.base, it.commit) for n, it in found.items()} == {
            1: ("rebase", base, first[-1]),
            2: ("rebase", first[-1], second[-1]),
        }

    def test_half_of_the_commits_is_no_landing(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        move_on(world)
        world.pick("main", head)
        assert Reading(world).landed == {}

    def test_a_squash_that_keeps_the_subject_of_one_of_many_commits(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)}, {"src/c.py": lines("c", 2)})
        base = move_on(world)
        message = world.made(head).message.decode() + " (#1)"
        commit = world.commit("main", world.own_changes(head, base), message, author="bob", date=world.made(head).date)
        assert Reading(world).landed[1] == Landed("squash", base, commit, "main", "same_patch")


class TestFastForward:
    def test_head_stands_on_the_branch(self, world: World) -> None:
        base = move_on(world)
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        world.branch("main", head)
        move_on(world)
        found = Reading(world)
        assert found.landed == {1: Landed("fast_forward", base, head, "main", "is_head")}
        assert found.own(1) == [head - 1, head]

    def test_head_reset_to_another_pull_requests_landing_is_none(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        move_on(world)
        landed = world.squash("main", head, "Fix a (#1)")
        world.pull(2, landed)
        move_on(world)
        assert set(Reading(world).landed) == {1}

    def test_head_reset_to_a_merge_or_to_a_commit_of_the_site_is_none(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        move_on(world)
        merge = world.merge("main", head, "Merge pull request #1 from bob/x")
        world.pull(2, merge)
        edit = world.commit("main", {"README.md": "edited"}, "Update README.md", committer="GitHub")
        world.pull(3, edit)
        assert set(Reading(world).landed) == {1}

    def test_several_heads_reset_to_the_same_push_are_none(self, world: World) -> None:
        push = move_on(world)
        move_on(world)
        world.pull(1, push)
        world.pull(2, push)
        assert Reading(world).landed == {}

    def test_a_head_that_nothing_was_committed_to_is_none(self, world: World) -> None:
        world.pull(1, world.commit("main", {"x": "y"}, "feature (#9)"))
        assert Reading(world).landed == {}


class TestQueues:
    def test_homu_merges_with_the_number_in_front(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        merge = world.merge("main", head, "Auto merge of #1 - bob:x, r=ada\n\nTitle\n\nText that cites #2")
        assert Reading(world).landed == {1: Landed("merge", base, merge, "main", "head_is_parent")}

    def test_homu_rollup_carries_its_members(self, world: World) -> None:
        members = {n: world.propose(n, {f"src/{name}.py": lines(name, 2)}) for n, name in ((1, "a"), (2, "b"))}
        base = move_on(world)
        world.branch("rollup", "main")
        merges = {n: world.merge("rollup", head, f"Rollup merge of #{n} - bob:x, r=ada") for n, head in members.items()}
        tip = world.pull(3, "rollup")
        auto = world.merge("main", tip, "Auto merge of #3 - ada:rollup, r=ada\n\nRollup of 2 pull requests")
        found = Reading(world).landed
        assert found[3] == Landed("merge", base, auto, "main", "head_is_parent")
        assert {n: (found[n].base, found[n].commit) for n in (1, 2)} == {
            1: (base, merges[1]),
            2: (merges[1], merges[2]),
        }

    def test_bors_batch_names_several(self, world: World) -> None:
        first_head = world.propose(1, {"src/a.py": lines("a", 2)})
        second_head = world.propose(2, {"src/b.py": lines("b", 2)})
        base = move_on(world)
        files = {**world.own_changes(first_head, base), **world.own_changes(second_head, base)}
        merge = world.commit(
            "main", files, "Merge #1 #2\n\n1: fix a r=ada\n2: fix b r=ada", parents=[base, first_head, second_head]
        )
        assert {n: it.commit for n, it in Reading(world).landed.items()} == {1: merge, 2: merge}

    def test_merge_queue_squashes_on_top_of_each_other(self, world: World) -> None:
        heads = {n: world.propose(n, {f"src/{name}.py": lines(name, 2)}) for n, name in enumerate("abcde", 1)}
        base = move_on(world)
        landed = {n: world.squash("main", head, f"Change {n} (#{n})") for n, head in heads.items()}
        bases = [base, *landed.values()]
        assert {n: (it.base, it.commit) for n, it in Reading(world).landed.items()} == {
            n: (bases[place], landed[n]) for place, n in enumerate(landed)
        }


class TestOtherBranches:
    def test_squash_on_a_release_branch(self, world: World) -> None:
        world.branch("v1", "main")
        move_on(world)
        head = world.propose(1, {"src/a.py": lines("a", 2)}, base="v1")
        base = move_on(world, "v1")
        commit = world.squash("v1", head, "Fix a (#1)")
        assert Reading(world).landed == {1: Landed("squash", base, commit, "v1", "same_patch")}

    def test_cherry_pick_to_a_release_branch_is_not_the_landing(self, world: World) -> None:
        world.branch("v1", "main")
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix a (#1)")
        move_on(world, "v1")
        world.pick("v1", commit)
        assert Reading(world).landed == {1: Landed("squash", base, commit, "main", "same_patch")}

    def test_backport_pull_request_lands_on_the_release_branch(self, world: World) -> None:
        world.branch("v1", "main")
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.squash("main", head, "Fix a (#1)")
        picked = world.commit(None, {"src/a.py": lines("a", 2)}, "Fix a (#1)", parents=[world.made("v1").number])
        world.pull(2, picked)
        below = move_on(world, "v1")
        backport = world.squash("v1", picked, "[v1] Fix a (#1) (#2)")
        assert Reading(world).landed == {
            1: Landed("squash", base, commit, "main", "same_patch"),
            2: Landed("squash", below, backport, "v1", "same_patch"),
        }

    def test_the_branch_that_lives_longest_is_where_a_shared_landing_is(self, world: World) -> None:
        world.branch("v1", "main")
        head = world.propose(1, {"src/a.py": lines("a", 2)}, base="v1")
        base = move_on(world, "v1")
        commit = world.squash("v1", head, "Fix a (#1)")
        world.branch("zz-topic", "v1")
        world.branch("aa-topic", "v1")
        move_on(world, "v1")
        move_on(world, "v1")
        assert Reading(world).landed == {1: Landed("squash", base, commit, "v1", "same_patch")}

    def test_a_contributors_branch_that_is_a_pull_head_comes_after_a_real_one(self, world: World) -> None:
        world.branch("dev", "main")
        head = world.propose(1, {"src/a.py": lines("a", 2)}, base="dev")
        base = move_on(world, "dev")
        commit = world.merge("dev", head, "Merge pull request #1 from bob/x")
        world.branch("topic", "dev")
        for number in range(3):
            world.commit("topic", {"src/topic.py": str(number)}, "topic work", author="bob")
        world.pull(2, "topic", keep_branch=True)
        found = Reading(world)
        assert found.landed == {1: Landed("merge", base, commit, "dev", "head_is_parent")}
        assert len(found.own(2)) == 3


class TestRefusals:
    def test_number_without_a_pull_head(self, world: World) -> None:
        world.propose(5, {"src/a.py": lines("a", 2)})
        commit = world.commit("main", {"src/b.py": "b"}, "Fix b (#1535)")
        found = Reading(world)
        assert (found.landed, found.refused) == ({}, {(1535, commit, "no_pull_head")})

    def test_a_head_of_before_the_history_was_rewritten(self, world: World) -> None:
        old = [world.made(number) for number in (1, 2)]
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/new.py": "n"})
        world.pull(2, head)
        again = 0
        for made in old:
            files: dict[str | bytes, Content] = {b"LICENSE": (FILE, b"mit")}
            for path, content in made.files.items():
                files[path] = content
            parents = [again] if again else []
            again = world.commit(None, files, made.message, author=made.author, date=made.date, parents=parents)
        world.branch("main", again)
        base = move_on(world)
        landed = world.commit("main", {"src/a.py": lines("a", 2), "src/new.py": "n"}, "Title (#1)", author="bob")
        found = Reading(world)
        assert found.landed == {1: Landed("squash", base, landed, "main", "same_patch")}
        assert found.own(1) == found.own(2) == [head - 1, head]

    def test_imported_history_with_foreign_numbers(self, world: World) -> None:
        world.propose(1, {"src/a.py": lines("a", 2)})
        imported = [world.commit("main", {f"other/{n}.js": str(n)}, f"Other work (#{n})", author="eve") for n in (1, 2)]
        found = Reading(world)
        assert found.landed == {}
        assert found.refused == {(1, imported[0], "head_differs"), (2, imported[1], "no_pull_head")}

    def test_ticket_number_on_a_stranger_s_changelog_entry(self, world: World) -> None:
        world.commit("main", {"CHANGELOG.md": "0"}, "log")
        world.propose(1, {"CHANGELOG.md": "1"})
        late = world.commit("main", {"CHANGELOG.md": "2"}, "Note (#1)", author="eve", committed=1_700_000_000)
        found = Reading(world)
        assert (found.landed, found.refused) == ({}, {(1, late, "head_differs")})

    def test_pasted_merge_line_in_a_body(self, world: World) -> None:
        world.propose(3, {"src/a.py": lines("a", 2)})
        world.commit(
            "main", {"vendor/x.c": "x"}, "Update vendored x\n\nMerge pull request #3 from upstream/fix\nCloses #3"
        )
        assert Reading(world).landed == {}

    def test_a_forks_own_merge(self, world: World) -> None:
        world.propose(3, {"src/a.py": lines("a", 2)})
        side = world.commit(None, {"src/f.py": "fork"}, "fork work", parents=[1], author="eve")
        merge = world.merge("main", side, "Merge pull request #3 from eve/master")
        found = Reading(world)
        assert (found.landed, found.refused) == ({}, {(3, merge, "head_differs")})

    def test_a_forks_merge_with_the_same_number_inside_a_real_pull_request(self, world: World) -> None:
        real = world.propose(3, {"src/a.py": lines("a", 2)})
        inner = world.commit(None, {"src/f.py": "fork"}, "fork work", parents=[2], author="eve")
        world.branch("fork", 2)
        world.commit("fork", {"src/e.py": "e"}, "fork", author="eve")
        world.merge("fork", inner, "Merge pull request #3 from someone/elses")
        head = world.pull(8, "fork")
        base = move_on(world)
        first = world.merge("main", head, "Merge pull request #8 from eve/fork")
        second = world.squash("main", real, "Fix a (#3)")
        assert Reading(world).landed == {
            3: Landed("squash", first, second, "main", "same_patch"),
            8: Landed("merge", base, first, "main", "head_is_parent"),
        }

    def test_citations_in_the_subject_of_another_landing(self, world: World) -> None:
        world.propose(1, {"src/a.py": lines("a", 2)})
        head = world.propose(2, {"src/a.py": lines("a", 3)})
        base = move_on(world)
        commit = world.squash("main", head, "Do what #1 wanted (#2)")
        assert Reading(world).landed == {2: Landed("squash", base, commit, "main", "same_patch")}


class TestSharedAndCarried:
    def test_two_pull_requests_with_one_head(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)})
        world.pull(2, head)
        base = move_on(world)
        merge = world.merge("main", head, "Merge pull request #2 from bob/x")
        found = Reading(world)
        assert found.landed == {2: Landed("merge", base, merge, "main", "head_is_parent")}
        assert found.carried == {1: merge}

    def test_a_stacked_head_comes_with_the_one_above(self, world: World) -> None:
        lower = world.propose(1, {"src/a.py": lines("a", 2)})
        upper = world.pull(2, world.commit(None, {"src/b.py": lines("b", 2)}, "upper", parents=[lower], author="bob"))
        base = move_on(world)
        merge = world.merge("main", upper, "Merge pull request #2 from bob/x")
        found = Reading(world)
        assert found.landed == {2: Landed("merge", base, merge, "main", "head_is_parent")}
        assert found.carried == {1: merge}
        assert found.own(2) == [lower, upper]

    @pytest.mark.parametrize("suffix", ["", " (#{})"], ids=["numberless", "numbered"])
    def test_a_stack_that_was_rebased_lands_one_above_the_other(self, world: World, suffix: str) -> None:
        lower = world.propose(2, {"src/a.py": lines("a", 2)})
        upper = world.commit(None, {"src/b.py": lines("b", 2)}, "upper", parents=[lower], author="bob")
        world.pull(1, upper)
        base = move_on(world)
        first = world.pick("main", lower, suffix=suffix.format(2))
        second = world.pick("main", upper, suffix=suffix.format(1))
        found = Reading(world).landed
        assert {n: (it.base, it.commit) for n, it in found.items()} == {2: (base, first), 1: (first, second)}

    def test_an_open_pull_request_has_its_own_commits_and_no_landing(self, world: World) -> None:
        head = world.propose(1, {"src/a.py": lines("a", 2)}, {"src/b.py": lines("b", 2)})
        move_on(world)
        found = Reading(world)
        assert (found.landed, found.carried, found.own(1)) == ({}, {}, [head - 1, head])


class TestApi:
    def test_the_apis_merge_commit_is_borne_out_by_standing_on_the_branch(self, world: World) -> None:
        world.propose(1, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.commit("main", {"src/f.py": "rewritten"}, "Rewritten by hand")
        found = Reading(world, api={1: commit})
        assert found.landed == {1: Landed("squash", base, commit, "main", "api")}

    def test_a_pull_request_without_a_head_lands_on_the_apis_word(self, world: World) -> None:
        world.propose(2, {"src/a.py": lines("a", 2)})
        base = move_on(world)
        commit = world.commit("main", {"src/f.py": "x"}, "Title (#1)")
        assert Reading(world, api={1: commit}).landed == {1: Landed("squash", base, commit, "main", "api")}


SOON, LATE = 1_600_100_000, 1_700_000_000


@pytest.mark.parametrize(
    ("landed", "proposed", "landed_at", "evidence"),
    [
        ({"a": "1"}, {"b": "1"}, SOON, None),
        ({}, {}, SOON, None),
        ({"a": "1"}, {"a": "1"}, LATE, "same_patch"),
        ({"a": "1"}, {"a": "1", "b": "2"}, LATE, "same_patch"),
        ({"a": "1", "b": "2"}, {"a": "3", "b": "4"}, LATE, "same_files"),
        ({"a": "1", "b": "2"}, {"a": "1"}, SOON, "most_files"),
        ({"a": "1", "b": "2", "c": "3"}, {"a": "1"}, SOON, None),
        ({"CHANGELOG.md": "1"}, {"CHANGELOG.md": "2"}, LATE, None),
    ],
)
def test_what_two_patches_of_strangers_say(
    world: World, landed: Patch, proposed: Patch, landed_at: int, evidence: str | None
) -> None:
    head = world.propose(1, {"src/a.py": "2"}, author="bob")
    commit = world.commit("main", {"src/f.py": "f"}, "Other (#1)", author="eve", committed=landed_at)
    history = Reading(world).facts.history
    ours, theirs = history.index[world.sha(commit)], history.index[world.sha(head)]
    line = default_line(history, "main", ours)
    candidate = LandingCandidate(1, theirs, ours, history.parents[ours][0], line, 2, "subject_tail")
    candidate.own = OwnCommits((theirs,), history.parents[theirs][0])
    assert judge_patch(history, candidate, landed, proposed) == evidence
