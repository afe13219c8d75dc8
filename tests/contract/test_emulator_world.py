"""Generated worlds hold what real repositories hold, and their git repository says the same as they do."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.emulator import Classes, Sizes, World, generate_world
from tests.emulator.model import Issue, PullRequest
from tests.emulator.sizes import EDGES
from tests.growth import assert_linear


@pytest.fixture(scope="module")
def world() -> World:
    return generate_world(11, 300)


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "--git-dir", str(path), *arguments], capture_output=True, check=True)
    return done.stdout.decode()


def test_the_same_seed_gives_the_same_world(tmp_path: Path) -> None:
    def picture(world: World) -> list[object]:
        pulls = world.home.pulls
        return [[p.id, p.title, p.body, p.head.oid, p.updated_at, len(p.comments), p.state] for p in pulls]

    first = picture(generate_world(2, 60))
    assert picture(generate_world(2, 60, git_dir=tmp_path / "repository.git")) == first
    assert picture(generate_world(3, 60)) != first


def test_everything_awkward_occurs(world: World) -> None:
    pulls = world.home.pulls
    authors = [pull.author for pull in pulls]
    assert None in authors
    assert {author.kind for author in authors if author} >= {"User", "Bot"}
    bodies = [pull.body for pull in pulls]
    assert None in bodies and "" in bodies
    text = "".join(body or "" for body in bodies)
    assert "\x00" in text and "\ud83d here" in text and "🙈" in text and "\r\n" in text
    assert max(len(body or "") for body in bodies) > 50_000
    assert any(pull.head_repository is None for pull in pulls)
    assert any(pull.is_cross_repository and pull.head_repository for pull in pulls)
    assert any(pull.head_ref is None for pull in pulls)
    assert any(pull.merged and pull.merge_commit is None for pull in pulls)
    assert any(pull.locked for pull in pulls)
    assert any(pull.base_ref_name != "main" for pull in pulls)
    assert {pull.state for pull in pulls} == {"OPEN", "CLOSED", "MERGED"}
    assert {pull.landing for pull in pulls} == {"merge", "squash", "rebase", "fast_forward", "by_hand", None}
    comments = [comment for pull in pulls for comment in pull.comments]
    assert any(comment.author is None for comment in comments)
    assert any(comment.last_edited_at for comment in comments)


def test_numbers_are_shared_with_issues_and_have_no_gap(world: World) -> None:
    numbered = world.home.numbered
    assert sorted(numbered) == list(range(1, len(numbered) + 1))
    assert {type(thing) for thing in numbered.values()} == {PullRequest, Issue}


def test_ids_outgrow_graphqls_int(world: World) -> None:
    keys = [comment.database_key for pull in world.home.pulls for comment in pull.comments]
    assert min(keys) < 2**31 - 1 < max(keys)
    assert len(set(keys)) == len(keys)


def test_exact_sizes_occur(world: World) -> None:
    for edge in EDGES:
        for name, count in edge.items():
            if name == "thread_comments":
                assert any(len(t.comments) == count for p in world.home.pulls for t in p.threads), edge
            elif name == "timeline":
                # what others cite comes on top, so here it is a lower bound
                assert any(len(p.timeline) >= count for p in world.home.pulls), edge
            elif name != "commits" or count > 1:
                assert any(len(getattr(p, name)) == count for p in world.home.pulls), edge


def test_texts_and_timelines_cite(world: World) -> None:
    everything = [text or "" for p in world.home.pulls for text in (p.title, p.body, *(c.body for c in p.comments))]
    everything += [c.commit.message for p in world.home.pulls for c in p.commits]
    text = "\n".join(everything)
    for phrase in (
        "Reverts acme/widgets#",
        "This reverts commit ",
        "(cherry picked from commit ",
        "Backport",
        "Follow-up to #",
        "Stacked on",
        "Depends on #",
        "Supersedes #",
        "Fixes #",
        "Closes #",
        "GH-",
        "gh-",
        "Duplicate of #",
        "https://github.example/acme/widgets/pull/",
        "/commit/",
        "acme/widgets@",
        "evil.example",
        "<!-- Fixes #",
        "> Fixes #",
    ):
        assert phrase in text, phrase
    kinds = Counter(event.kind for pull in world.home.pulls for event in pull.timeline)
    assert set(kinds) >= {
        "CrossReferencedEvent",
        "ReferencedEvent",
        "HeadRefForcePushedEvent",
        "BaseRefChangedEvent",
        "RenamedTitleEvent",
        "ConnectedEvent",
        "MarkedAsDuplicateEvent",
        "MergedEvent",
        "ClosedEvent",
        "HeadRefDeletedEvent",
        "LockedEvent",
    }
    crossed = [e for p in world.home.pulls for e in p.timeline if e.kind == "CrossReferencedEvent"]
    assert {event.data["is_cross_repository"] for event in crossed} == {True, False}
    assert {type(event.data["source"]) for event in crossed} == {PullRequest, Issue}


def test_times_are_in_order(world: World) -> None:
    for pull in world.home.pulls:
        assert pull.created_at <= pull.updated_at
        assert all(pull.created_at <= comment.created_at <= pull.updated_at for comment in pull.comments)
        for connection in (pull.comments, pull.reviews, pull.timeline):
            keys = [thing.order for thing in connection]
            assert keys == sorted(keys)
    created = [pull.created_at for pull in world.home.pulls]
    assert created == sorted(created)
    assert world.tick() > max(pull.updated_at for pull in world.home.pulls)


def test_the_committed_sizes_leave_few_connections_to_complete() -> None:
    sizes = Sizes.load()
    over = sizes.comments.share_above(30) + sizes.commits.share_above(30)
    assert 0.03 <= over <= 0.05
    assert sizes.reviews.share_above(30) <= 0.015
    assert sizes.timeline.share_above(30) <= 0.015
    assert Classes.exactly(3).share_above(2) == 1
    with pytest.raises(ValueError, match="do not add up"):
        Classes(((0, 1, 50.0),))


def test_the_time_to_make_a_world_grows_as_it_does() -> None:
    assert_linear(lambda size: size, lambda size: generate_world(1, size), 250)


def test_a_large_world_has_the_committed_sizes() -> None:
    world = generate_world(1, 3000)
    over = sum(len(pull.comments) > 30 or len(pull.commits) > 30 for pull in world.home.pulls)
    assert 0.03 <= over / 3000 <= 0.055


# -- git -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_git(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    path = tmp_path_factory.mktemp("git") / "repository.git"
    return generate_world(12, 200, git_dir=path), path


def test_the_repository_is_sound_and_has_the_worlds_refs(with_git: tuple[World, Path]) -> None:
    world, path = with_git
    git(path, "fsck", "--strict", "--no-dangling")
    refs = dict(line.split()[::-1] for line in git(path, "show-ref").splitlines())
    heads = {f"refs/pull/{pull.number}/head": pull.head.oid for pull in world.home.pulls}
    assert {name: oid for name, oid in refs.items() if name.endswith("/head")} == heads
    open_pulls = {f"refs/pull/{pull.number}/merge" for pull in world.home.pulls if pull.state == "OPEN"}
    assert {name for name in refs if name.endswith("/merge")} == open_pulls
    assert refs["refs/heads/main"] == world.home.branches["main"].target.oid  # type: ignore[union-attr]
    assert "refs/heads/release/1.x" in refs
    assert git(path, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_landings_look_like_their_style(with_git: tuple[World, Path]) -> None:
    world, path = with_git
    lines = [line.split() for line in git(path, "rev-list", "--parents", "--all").splitlines()]
    parents = {line[0]: line[1:] for line in lines}
    first_parents = {
        branch: set(git(path, "rev-list", "--first-parent", branch).split()) for branch in ("main", "release/1.x")
    }
    styles: Counter[str] = Counter()
    for pull in world.home.pulls:
        if pull.merge_commit is None:
            continue
        assert pull.landing
        styles[pull.landing] += 1
        landed = pull.merge_commit.oid
        assert landed in first_parents[pull.base_ref_name]
        if pull.landing == "merge":
            assert parents[landed][1] == pull.head.oid
        elif pull.landing == "fast_forward":
            assert landed == pull.head.oid
        else:
            assert len(parents[landed]) == 1
    assert set(styles) == {"merge", "squash", "rebase", "fast_forward"}


def test_counts_and_commits_are_those_of_git(with_git: tuple[World, Path]) -> None:
    world, path = with_git
    checked = 0
    for pull in world.home.pulls:
        landed = pull.merge_commit
        if landed is None or pull.landing not in {"merge", "squash"}:
            continue
        rows = git(path, "diff", "--numstat", "--no-renames", f"{landed.oid}^1", landed.oid).splitlines()
        counts = [tuple(map(int, row.split("\t")[:2])) for row in rows]
        added, removed = sum(a for a, _ in counts), sum(r for _, r in counts)
        assert (pull.changed_files, pull.additions, pull.deletions) == (len(rows), added, removed), pull.number
        own = git(path, "rev-list", "--topo-order", "--reverse", f"{landed.oid}^1..{pull.head.oid}").split()
        assert own == [item.commit.oid for item in pull.commits], pull.number
        checked += 1
    assert checked > len(world.home.pulls) / 3


def test_forced_pushes_and_stacks_are_in_the_history(with_git: tuple[World, Path]) -> None:
    world, path = with_git
    pushes = [(p, e.data) for p in world.home.pulls for e in p.timeline if e.kind == "HeadRefForcePushedEvent"]
    assert pushes
    assert all(data["before_commit"].oid != data["after_commit"].oid for _, data in pushes)
    stacked = [p for p in world.home.pulls if p.head_ref_name.startswith("stack-")]
    assert stacked
    reverts = [p for p in world.home.pulls if p.head_ref_name.startswith("revert-") and p.merge_commit]
    for pull in reverts:
        named = pull.commits[0].commit.message.rsplit("This reverts commit ", 1)[1].rstrip(".")
        assert git(path, "cat-file", "-t", named).strip() == "commit"
        assert git(path, "diff", "--shortstat", f"{named}^1", named)
    assert reverts


def test_changes_reach_the_repository(tmp_path: Path) -> None:
    world = generate_world(4, 30, git_dir=tmp_path / "repository.git")
    path = tmp_path / "repository.git"

    def head(pull: PullRequest) -> str:
        return git(path, "rev-parse", f"refs/pull/{pull.number}/head").strip()

    new = world.add_pull(world.home, "New", None, None)
    assert head(new) == new.head.oid
    first = new.head.oid
    pushed = world.push(new)
    assert head(new) == pushed.oid
    assert git(path, "rev-parse", f"{pushed.oid}^").strip() == first
    forced = world.force_push(new)
    assert head(new) == forced.oid == new.commits[0].commit.oid
    assert [event.kind for event in new.timeline] == ["HeadRefForcePushedEvent"]
    landed = world.merge_pull(new, world.account("dev-1"))
    assert git(path, "rev-parse", "main", "main^2").split() == [landed.oid, new.head.oid]
    assert (new.state, new.merge_commit) == ("MERGED", landed)
    world.delete_pull(new)
    assert f"refs/pull/{new.number}/" not in git(path, "show-ref")
