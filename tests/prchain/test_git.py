"""Git plumbing on real repositories: what it reads equals what plain git says, and nothing of theirs runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from miner.git_facts import read_refs
from prchain.core.errors import (
    CloneFailed,
    DiskFull,
    GitError,
    GitMissing,
    IncompleteRepository,
    NoPullRefs,
    NotARepository,
    ShallowRepository,
)
from prchain.core.git import GitRepository, RawCommit, environment, is_clone_url, path_text, process, update_mirror
from prchain.core.git.standins import StandInRepository
from prchain.core.git.trees import TreeStore
from tests.miner.gitworld import EXECUTABLE, FILE, GITHUB, LINK, SUBMODULE, World, facts_of, git, lines


@pytest.fixture
def world(tmp_path: Path) -> World:
    created = World(tmp_path / "r.git")
    created.commit("main", {"a.py": lines("a"), "b.py": lines("b"), "run": (EXECUTABLE, b"#!\n")}, "start")
    return created


def commits_of(world: World) -> dict[str, RawCommit]:
    repository = GitRepository.open(world.save())
    return {commit.sha: commit for commit in repository.commits(repository.refs("refs/heads").values())}


def raw_commit(world: World, body: bytes, ref: str = "refs/heads/odd") -> str:
    """Write a commit that git itself would not make, and let a branch point at it."""
    sha = git(world.path, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=body).strip()
    (world.path / ref).parent.mkdir(parents=True, exist_ok=True)
    (world.path / ref).write_text(sha + "\n")
    return sha


def remove_object(world: World, sha: str) -> None:
    (world.path / "objects" / sha[:2] / sha[2:]).unlink()


class TestCommits:
    def test_order_and_fields_are_gits(self, world: World) -> None:
        side = world.commit(None, {"s": "s"}, "side\n\nbody", author="Ada Lovelace", committer="GitHub", parents=[1])
        world.merge("main", side, "Merge")
        found = commits_of(world)
        order = git(world.path, "rev-list", "--topo-order", "--all").split()
        assert list(found) == order
        merged = found[world.sha(side)]
        assert (merged.author, merged.author_email) == ("Ada Lovelace", "ada.lovelace@example.org")
        assert (merged.committer, merged.parents, merged.message) == ("GitHub", (world.sha(1),), b"side\n\nbody")
        assert merged.tree == git(world.path, "rev-parse", f"{merged.sha}^{{tree}}").strip()
        assert (merged.author_time, merged.commit_time) == (1_600_000_120, 1_600_000_120)

    def test_messages_in_other_encodings_come_as_utf8(self, world: World) -> None:
        latin = world.commit("main", {"x": "1"}, "h\u00e4 (#1)".encode("latin-1"), encoding="ISO-8859-1")
        bogus = world.commit("main", {"x": "2"}, b"bytes \xff\xfe", encoding="no-such-encoding")
        wrong = world.commit("main", {"x": "3"}, b"not utf-8 \xe4")
        found = commits_of(world)
        assert found[world.sha(latin)].message == "h\u00e4 (#1)".encode()
        assert found[world.sha(bogus)].message == b"bytes \xff\xfe"
        assert b"not utf-8" in found[world.sha(wrong)].message

    def test_empty_and_huge_messages(self, world: World) -> None:
        huge = b"subject\n\n" + b"x" * 3_000_000
        commits = [world.commit("main", {"x": str(n)}, m) for n, m in enumerate((b"", b"\n\n", huge))]
        found = commits_of(world)
        assert [len(found[world.sha(c)].message.strip()) for c in commits] == [0, 0, len(huge)]

    @pytest.mark.parametrize(
        "stamp", ["-1 +0000", "99999999999999 +0000", "999999999999999999999 +0000", " +0000", "x", "12 +99999999"]
    )
    def test_absurd_times_keep_the_commit(self, world: World, stamp: str) -> None:
        world.save()
        tree = git(world.path, "rev-parse", "main^{tree}").strip()
        parent = world.sha("main")
        sha = raw_commit(
            world, f"tree {tree}\nparent {parent}\nauthor a <a@b> {stamp}\ncommitter c <c@d> {stamp}\n\nodd\n".encode()
        )
        repository = GitRepository.open(world.path)
        [commit] = [c for c in repository.commits([sha]) if c.sha == sha]
        assert commit.parents == (parent,)
        assert 0 <= commit.author_time < 253_402_300_800
        assert 0 <= commit.commit_time < 253_402_300_800

    def test_commits_without_names_or_with_a_nul_in_the_message(self, world: World) -> None:
        world.save()
        tree = git(world.path, "rev-parse", "main^{tree}").strip()
        nameless = raw_commit(world, f"tree {tree}\nauthor  <> 5 +0000\ncommitter  <> 5 +0000\n\nm\n".encode())
        nul = raw_commit(
            world,
            f"tree {tree}\nparent {nameless}\nauthor a <b> 5 +0000\ncommitter c <d> 5 +0000\n\n".encode() + b"a\0b\n",
        )
        found = {c.sha: c for c in GitRepository.open(world.path).commits([nul])}
        assert (found[nameless].author, found[nameless].parents) == ("", ())
        assert found[nul].message.startswith(b"a")
        assert list(found) == [nul, nameless]

    def test_octopus_and_duplicate_starts(self, world: World) -> None:
        sides = [world.commit(None, {f"s{n}": "s"}, f"side {n}", parents=[1]) for n in range(3)]
        octopus = world.commit("main", {}, "octopus", parents=[1, *sides])
        world.save()
        repository = GitRepository.open(world.path)
        found = list(repository.commits([world.sha(octopus)] * 3))
        assert len(found) == 5
        assert found[0].parents == tuple(world.shas([1, *sides]))

    def test_grafts_and_replace_refs_of_the_repository_count_for_nothing(self, world: World) -> None:
        second = world.commit("main", {"a.py": "2"}, "second")
        third = world.commit("main", {"a.py": "3"}, "third")
        world.save()
        (world.path / "info").mkdir(exist_ok=True)
        (world.path / "info" / "grafts").write_text(f"{world.sha(third)} {world.sha(1)}\n")
        git(world.path, "update-ref", f"refs/replace/{world.sha(second)}", world.sha(1))
        found = list(GitRepository.open(world.path).commits([world.sha(third)]))
        assert [c.sha for c in found] == world.shas([third, second, 1])

    def test_sha256_repositories(self, tmp_path: Path) -> None:
        world = World(tmp_path / "r.git", objects="sha256")
        world.commit("main", {"a": "1"}, "start")
        head = world.propose(1, {"a": "2"})
        world.squash("main", head, "Fix (#1)")
        facts = facts_of(world)
        assert len(facts.history.shas[0]) == 64
        assert set(facts.decisions.landed) == {1}


PATHS = [
    b"plain",
    b"with space",
    b"tab\there",
    b"new\nline",
    b'quo"te',
    b"back\\slash",
    "\u00fcml\u00e4ut/\u4e2d".encode(),
    b"bad\xff\xfebytes",
    b":(top)magic",
    b"*",
    b"-dash",
    b":100644 fake",
    b"bad\\xff\\xfebytes",
    "nel\u0085x".encode(),
]


class TestChanges:
    def test_every_kind_of_path_and_change_equals_plain_git(self, world: World) -> None:
        sha = b"1" * 40
        old = world.commit(
            "main",
            {
                "sub": (SUBMODULE, sha),
                "link": (LINK, b"a.py"),
                "kind": "text",
                "bin": b"\0\1",
                "gone": "g",
                "ren": lines("ren"),
                **dict.fromkeys(PATHS, b"1"),
            },
        )
        new = world.commit(
            "main",
            {
                "sub": (SUBMODULE, b"2" * 40),
                "link": (LINK, b"b.py"),
                "kind": (LINK, b"elsewhere"),
                "bin": b"\0\2",
                "gone": None,
                "ren": None,
                "moved/ren": lines("ren") + "more\n",
                "a.py": (EXECUTABLE, lines("a").encode()),
                "run": (FILE, b"#!\n"),
                "newsub": (SUBMODULE, sha),
                **dict.fromkeys(PATHS, b"2"),
            },
        )
        repository = GitRepository.open(world.save())
        pair = (world.sha(old), world.sha(new))
        for renames in (False, True):
            [found] = repository.changes([pair], renames=renames)
            option = "-M" if renames else "--no-renames"
            plain = git(world.path, "diff", "--raw", "-z", "--no-abbrev", option, *pair).encode(
                "utf-8", "surrogateescape"
            )
            assert [(c.status, c.old_mode, c.new_mode, c.old_blob, c.new_blob, c.old_path, c.path) for c in found] == (
                list(raw_fields(plain))
            )
        statuses = {change.path: change.status for change in found}
        assert statuses["moved/ren"] == "R" and statuses["kind"] == "T" and statuses["gone"] == "D"
        assert statuses["sub"] == "M" and statuses["newsub"] == "A" and statuses["a.py"] == "M"
        assert len({change.path for change in found}) == len(found)

    def test_line_counts_equal_plain_git(self, world: World) -> None:
        old = world.commit(
            "main",
            {
                "ren": lines("ren"),
                "bin": b"\0\1",
                "kind": "t\n",
                "sub": (SUBMODULE, b"1" * 40),
                **dict.fromkeys(PATHS, b"1\n"),
            },
        )
        new = world.commit(
            "main",
            {
                "ren": None,
                "moved": lines("ren") + "more\n",
                "bin": b"\0\2",
                "kind": (LINK, b"x"),
                "sub": (SUBMODULE, b"2" * 40),
                "nonl": "no newline",
                **dict.fromkeys(PATHS, b"1\n2\n"),
            },
        )
        repository = GitRepository.open(world.save())
        pair = (world.sha(old), world.sha(new))
        [counts] = repository.line_counts([pair])
        plain = git(world.path, "diff", "--numstat", "-M", "-z", *pair).encode("utf-8", "surrogateescape")
        expected = {}
        parts = iter(plain.split(b"\0")[:-1])
        for part in parts:
            added, removed, name = part.split(b"\t", 2)
            if not name:
                next(parts)
                name = next(parts)
            expected[path_text(name)] = (None, None) if added == b"-" else (int(added), int(removed))
        assert {c.path: (c.additions, c.deletions) for c in counts} == expected
        assert expected["bin"] == (None, None) and expected["moved"] == (1, 0)

    def test_answers_come_in_the_order_of_the_questions(self, world: World) -> None:
        commits = [1, *(world.commit("main", {f"f{n}": str(n)}, str(n)) for n in range(6))]
        same = world.commit("main", {}, "changes nothing")
        repository = GitRepository.open(world.save())
        names = [
            (commits[0], commits[6]),
            (commits[6], same),
            (commits[5], commits[6]),
            (commits[4], commits[6]),
            (same, same),
            (commits[6], commits[0]),
            (commits[0], commits[1]),
            (commits[0], commits[1]),
        ]
        pairs = [(world.sha(a), world.sha(b)) for a, b in names]
        found = [[change.path for change in changes] for changes in repository.changes(pairs)]
        assert found == [
            [f"f{n}" for n in range(6)],
            [],
            ["f5"],
            ["f4", "f5"],
            [],
            [f"f{n}" for n in range(6)],
            ["f0"],
            ["f0"],
        ]
        assert [len(counts) for counts in repository.line_counts(pairs)] == [6, 0, 1, 2, 0, 6, 1, 1]

    def test_nothing_asked_is_nothing_answered(self, world: World) -> None:
        repository = GitRepository.open(world.save())
        assert list(repository.changes([])) == []
        assert list(repository.line_counts([])) == []

    def test_submodules_that_the_repository_wants_ignored_are_seen(self, world: World) -> None:
        modules = '[submodule "sub"]\n\tpath = sub\n\turl = x\n\tignore = all\n'
        old = world.commit("main", {"sub": (SUBMODULE, b"1" * 40), ".gitmodules": modules})
        new = world.commit("main", {"sub": (SUBMODULE, b"2" * 40)})
        world.save()
        with (world.path / "config").open("a") as config:
            config.write('[submodule "sub"]\n\tignore = all\n[diff]\n\tignoreSubmodules = all\n')
        [found] = GitRepository.open(world.path).changes([(world.sha(old), world.sha(new))])
        assert [change.path for change in found] == ["sub"]

    def test_counts_of_some_changes_follow_their_renames(self, world: World) -> None:
        new = world.commit("main", {"a.py": None, "moved.py": lines("a") + "more\n", "*": "1\n", "**": "2\n"})
        repository = GitRepository.open(world.save())
        pair = (world.sha(1), world.sha(new))
        [changes] = repository.changes([pair], renames=True)
        requested = [change for change in changes if change.path in {"moved.py", "*"}]
        counts = repository.line_counts_of(pair, requested)
        assert {c.path: (c.additions, c.deletions) for c in counts} == {"moved.py": (1, 0), "*": (1, 0)}

    def test_counts_of_more_changes_than_a_command_line_takes(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("prchain.core.git.repository._ARGUMENTS", 3)
        new = world.commit("main", {f"f{n}": "x\n" for n in range(10)})
        repository = GitRepository.open(world.save())
        pair = (world.sha(1), world.sha(new))
        [changes] = repository.changes([pair])
        assert len(repository.line_counts_of(pair, changes)) == 10


def raw_fields(plain: bytes) -> Iterator[tuple[str, str, str, str, str, str | None, str]]:
    """The fields of `git diff --raw -z`, read independently."""
    parts = iter(plain.split(b"\0")[:-1])
    for part in parts:
        old_mode, new_mode, old_blob, new_blob, status = part[1:].decode().split()
        first = path_text(next(parts))
        second = path_text(next(parts)) if status[0] == "R" else None
        yield status[0], old_mode, new_mode, old_blob, new_blob, first if second else None, second or first


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"a/b.py", "a/b.py"),
        ("\u00fc\u4e2d\U0001f600".encode(), "\u00fc\u4e2d\U0001f600"),
        (b"a\xffb", "a\\xffb"),
        (b"a\\xffb", "a\\x5cxffb"),
        (b"a\\x5cxffb", "a\\x5cx5cxffb"),
        (b"a\\x41\\b", "a\\x41\\b"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
    ],
)
def test_a_path_is_text_that_tells_it_from_every_other(path: bytes, text: str) -> None:
    assert path_text(path) == text


class TestRefs:
    def test_names_with_foreign_line_ends_and_slashes(self, world: World) -> None:
        names = ["odd\u2028name", "nel\u0085x", "a/b/c", "\u00fc"]
        for name in names:
            world.branch(name, "main")
        found = GitRepository.open(world.save()).refs("refs/heads")
        assert set(found) == {f"refs/heads/{name}" for name in [*names, "main"]}

    def test_only_what_is_a_commit_in_the_end(self, world: World) -> None:
        head = world.propose(1, {"a.py": "1"})
        world.save()
        blob = git(world.path, "rev-parse", "main:a.py").strip()
        for name, target, kind in (("good", world.sha(head), "commit"), ("bad", blob, "blob")):
            text = f"object {target}\ntype {kind}\ntag {name}\ntagger a <a@b> 1 +0000\n\nx\n"
            tag = git(world.path, "mktag", stdin=text.encode()).strip()
            git(world.path, "update-ref", f"refs/pull/{2 if kind == 'commit' else 3}/head", tag)
        git(world.path, "update-ref", "refs/pull/4/head", blob)
        repository = GitRepository.open(world.path)
        assert read_refs(repository, GITHUB.pull_heads).heads == {1: world.sha(head), 2: world.sha(head)}
        assert set(facts_of(world.path).refs.heads) == {1, 2}

    def test_pull_refs_of_other_shapes_are_none(self, world: World) -> None:
        head = world.propose(1, {"a.py": "1"})
        world.save()
        for name in ("1/merge", "x/head", "\u0663/head", "12", "1/2/head", "01x/head"):
            git(world.path, "update-ref", f"refs/pull/{name}", world.sha(head))
        assert read_refs(GitRepository.open(world.path), GITHUB.pull_heads).heads == {1: world.sha(head)}


class TestDefaultBranch:
    def test_is_what_head_names(self, tmp_path: Path) -> None:
        world = World(tmp_path / "r.git", default="trunk")
        world.commit("trunk", {"a": "1"})
        world.commit("main", {"a": "1"})
        world.propose(1, {"a": "2"})
        assert read_refs(GitRepository.open(world.save()), GITHUB.pull_heads).default_branch == "trunk"

    @pytest.mark.parametrize(
        ("branches", "chosen"), [(("main", "master", "a"), "main"), (("master", "a"), "master"), (("b", "a"), "a")]
    )
    @pytest.mark.parametrize("head", ["unborn", "detached"])
    def test_falls_back_where_head_names_none(
        self, tmp_path: Path, branches: tuple[str, ...], chosen: str, head: str
    ) -> None:
        world = World(tmp_path / "r.git", default=branches[0])
        for branch in branches:
            world.commit(branch, {"a": branch})
        world.propose(1, {"a": "2"})
        world.save(head="unborn")
        if head == "detached":
            (world.path / "HEAD").write_text(world.sha(branches[0]) + "\n")
        repository = GitRepository.open(world.path)
        assert repository.default_branch() is None
        assert read_refs(repository, GITHUB.pull_heads).default_branch == chosen


class TestBadRepositories:
    def test_not_a_repository(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
            with pytest.raises(NotARepository) as caught:
                GitRepository.open(path)
            assert "\n" not in str(caught.value)

    def test_a_folder_inside_another_repository_is_not_that_repository(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", ".")
        inner = tmp_path / "mirrors" / "typo.git"
        inner.mkdir(parents=True)
        with pytest.raises(NotARepository):
            GitRepository.open(inner)

    def test_the_repository_of_a_surrounding_git_hook_is_not_taken(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git(tmp_path, "init", "-q", "other")
        world.save()
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
        assert set(GitRepository.open(world.path).refs("refs/heads")) == {"refs/heads/main"}

    def test_work_trees_and_relative_paths(self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        git(tmp_path, "clone", "-q", str(world.save()), "clone")
        git(tmp_path / "clone", "worktree", "add", "-q", "-b", "second", "../linked")
        monkeypatch.chdir(tmp_path)
        for path in (Path("clone"), tmp_path / "clone", Path("clone/.git"), Path("linked"), Path("r.git")):
            assert "refs/heads/main" in GitRepository.open(path).refs("refs/heads")

    @pytest.mark.parametrize("name", [b"caf\xe9", b"new\nline\n", b'quo"te', b"a:b", b"-dash", b" blank "])
    def test_a_folder_may_have_any_name(self, name: bytes, world: World, tmp_path: Path) -> None:
        folder = world.save().rename(tmp_path / os.fsdecode(name))
        repository = GitRepository.open(folder)
        assert repository.paths_at(repository.refs()["refs/heads/main"]) == {"a.py", "b.py", "run"}
        trees = TreeStore.open(tmp_path / "trees", [folder])
        assert trees.paths_at(world.sha("main")) == {"a.py", "b.py", "run"}
        stand_in = StandInRepository.over(repository, tmp_path / "stand-ins.git", ())
        assert stand_in.paths_at(world.sha("main")) == {"a.py", "b.py", "run"}

    def test_shallow(self, world: World, tmp_path: Path) -> None:
        world.commit("main", {"a.py": "2"})
        git(tmp_path, "clone", "-q", "--bare", "--depth=1", f"file://{world.save()}", "shallow.git")
        with pytest.raises(ShallowRepository, match="unshallow"):
            GitRepository.open(tmp_path / "shallow.git")

    def test_empty_and_without_pull_heads(self, world: World, tmp_path: Path) -> None:
        with pytest.raises(IncompleteRepository, match="no branches"):
            read_refs(GitRepository.open(World(tmp_path / "empty.git").path), GITHUB.pull_heads)
        with pytest.raises(NoPullRefs, match="refs/pull"):
            read_refs(GitRepository.open(world.save()), GITHUB.pull_heads)

    @pytest.mark.parametrize("what", ["commit", "root commit", "tree"])
    def test_missing_commits_and_trees_are_one_line(self, world: World, what: str) -> None:
        second = world.commit("main", {"a.py": lines("a", 2)}, "second")
        head = world.propose(1, {"b.py": lines("b", 2)})
        world.commit("main", {"pushed": "x"}, "push")
        world.squash("main", head, "Fix b (#1)")
        world.save()
        victim = {
            "commit": world.sha(second),
            "root commit": world.sha(1),
            "tree": git(world.path, "rev-parse", f"{world.sha(head)}^{{tree}}").strip(),
        }
        remove_object(world, victim[what])
        with pytest.raises(IncompleteRepository) as caught:
            facts_of(world.path)
        assert "\n" not in str(caught.value)
        assert "missing" in str(caught.value) or "no branches" in str(caught.value)

    @pytest.mark.parametrize("damage", [b"", b"garbage"])
    def test_damaged_commits_are_one_line(self, world: World, damage: bytes) -> None:
        second = world.commit("main", {"a.py": lines("a", 2)}, "second")
        world.propose(1, {"b.py": lines("b", 2)})
        world.save()
        sha = world.sha(second)
        file = world.path / "objects" / sha[:2] / sha[2:]
        file.chmod(0o600)
        file.write_bytes(damage)
        with pytest.raises(GitError) as caught:
            facts_of(world.path)
        assert "\n" not in str(caught.value)

    def test_old_or_absent_git(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / "git"
        monkeypatch.setenv("PATH", str(tmp_path))
        process.git_module.cache_clear()
        try:
            with pytest.raises(GitMissing, match="not installed"):
                GitRepository.open(tmp_path)
            with monkeypatch.context() as without, pytest.raises(GitMissing, match="cannot be run"):
                without.setitem(sys.modules, "git", None)  # as where git cannot read the user's settings
                GitRepository.open(tmp_path)
            program.write_text("#!/bin/sh\necho git version 2.30.2\n")
            program.chmod(0o755)
            with pytest.raises(GitMissing, match=r"2\.30 is too old"):
                GitRepository.open(tmp_path)
        finally:
            process.git_module.cache_clear()


class TestMissingBlobs:
    def test_missing_names_them_and_only_them(self, world: World) -> None:
        world.save()
        blobs = [git(world.path, "rev-parse", f"main:{name}").strip() for name in ("a.py", "b.py")]
        remove_object(world, blobs[0])
        assert GitRepository.open(world.path).missing([*blobs, "f" * 40]) == {blobs[0], "f" * 40}

    def test_changes_without_renames_need_no_blob(self, world: World) -> None:
        new = world.commit("main", {"a.py": None, "moved.py": lines("a") + "x\n"})
        world.save()
        remove_object(world, git(world.path, "rev-parse", "main:moved.py").strip())
        repository = GitRepository.open(world.path)
        pair = (world.sha(1), world.sha(new))
        assert [c.status for c in next(repository.changes([pair]))] == ["D", "A"]
        with pytest.raises(IncompleteRepository):
            list(repository.changes([pair], renames=True))


class TestHostileRepositories:
    def test_nothing_of_it_runs_and_nothing_in_it_changes(self, world: World, tmp_path: Path) -> None:
        evil = tmp_path / "evil"
        trap = tmp_path / "trap.sh"
        trap.write_text(f"#!/bin/sh\ntouch {evil}\ncat\n")
        trap.chmod(0o755)
        world.commit(
            "main", {".gitattributes": "*.py diff=trap filter=trap merge=trap\n", "c.py": lines("c")}, "attributes"
        )
        head = world.propose(1, {"a.py": None, "moved.py": lines("a") + "more\n", "b.py": lines("b", 2)})
        world.commit("main", {"pushed": "x"})
        world.squash("main", head, "Fix (#1)")
        checkout = tmp_path / "checkout"
        git(tmp_path, "clone", "-q", str(world.save()), str(checkout))
        git(checkout, "fetch", "-q", "origin", "refs/pull/*/head:refs/pull/*/head")
        folder = checkout / ".git"
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        for name in (
            "post-checkout",
            "pre-auto-gc",
            "reference-transaction",
            "fsmonitor-watchman",
            "post-index-change",
        ):
            for place in (hooks, folder / "hooks"):
                place.mkdir(exist_ok=True)
                (place / name).write_text(trap.read_text())
                (place / name).chmod(0o755)
        with (folder / "config").open("a") as config:
            config.write(
                f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\thooksPath = {hooks}\n\tsshCommand = {trap}\n"
                f"\tgitProxy = {trap}\n\taskPass = {trap}\n\teditor = {trap}\n\talternateRefsCommand = {trap}\n"
                f'[diff]\n\texternal = {trap}\n[diff "trap"]\n\ttextconv = {trap}\n\tcommand = {trap}\n'
                f'[filter "trap"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n'
                f'[merge "trap"]\n\tdriver = {trap}\n[uploadpack]\n\tpackObjectsHook = {trap}\n'
                f"[alias]\n\tlog = !{trap}\n\tdiff-tree = !{trap}\n\tcat-file = !{trap}\n\tfor-each-ref = !{trap}\n"
                f"[pager]\n\tlog = {trap}\n\tdiff-tree = {trap}\n[log]\n\tshowSignature = true\n"
                f"[gpg]\n\tprogram = {trap}\n[credential]\n\thelper = !{trap}\n[color]\n\tui = always\n"
                f'[format]\n\tpretty = %G?\n[trailer "x"]\n\tcommand = {trap}\n'
            )
        before = listing(checkout)
        facts = facts_of(checkout)
        repository = GitRepository.open(checkout)
        files = dict(facts.files(repository, facts.decisions.landed))
        pairs = [(world.sha(1), world.sha("main"))]
        assert list(repository.line_counts(pairs)) and repository.missing([world.sha(1)]) == set()
        assert sorted(change.status for change in files[1]) == ["M", "R"]
        assert not evil.exists()
        assert listing(checkout) == before

    @pytest.mark.parametrize("known", [True, False], ids=["this git", "a git that does not know GIT_NO_LAZY_FETCH"])
    def test_a_partial_clone_fetches_nothing(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
    ) -> None:
        if not known:
            monkeypatch.delitem(environment.ENVIRONMENT, "GIT_NO_LAZY_FETCH")
        evil = tmp_path / "evil"
        new = world.commit("main", {"a.py": None, "moved.py": lines("a") + "x\n"})
        world.save()
        blob = git(world.path, "rev-parse", "main:moved.py").strip()
        remove_object(world, blob)
        with (world.path / "config").open("a") as config:
            config.write(
                f'[remote "origin"]\n\turl = {world.path}\n\tpromisor = true\n\tuploadpack = "touch {evil}; x"\n'
                '[protocol]\n\tallow = always\n[protocol "file"]\n\tallow = always\n'
            )
        repository = GitRepository.open(world.path)
        assert repository.is_partial()
        assert repository.missing([blob]) == {blob}
        with pytest.raises(IncompleteRepository):
            list(repository.changes([(world.sha(1), world.sha(new))], renames=True))
        assert not evil.exists()

    def test_a_broken_configuration_is_one_line_that_says_so(self, world: World) -> None:
        (world.save() / "config").write_text("[core\n")
        with pytest.raises(NotARepository, match="bad config line 1") as caught:
            GitRepository.open(world.path)
        assert "\n" not in str(caught.value)


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every file below a folder with its size, mode and time of change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        found[str(path)] = (state.st_size, state.st_mode, state.st_mtime_ns)
    return found


class TestStreams:
    def test_leaving_a_stream_early_ends_git_and_raises_nothing(self, world: World) -> None:
        for number in range(50):
            world.commit("main", {"x": str(number)}, "x" * 20_000)
        repository = GitRepository.open(world.save())
        threads = threading.active_count()
        commits = repository.commits([world.sha("main")])
        assert next(commits).sha == world.sha("main")
        del commits
        assert threading.active_count() == threads
        stream = repository.stream("log", "--format=%B", "main", named=True)
        with pytest.raises(KeyError), stream as output:
            output.read(10)
            raise KeyError
        assert stream._process.poll() is not None

    def test_errors_hold_no_credentials(self, world: World) -> None:
        repository = GitRepository.open(world.save())
        with pytest.raises(GitError) as caught:
            repository.run("rev-parse", "--verify", "https://user:hunter2@example.org/x")
        assert "hunter2" not in str(caught.value)


class TestMirror:
    @pytest.fixture
    def upstream(self, world: World) -> World:
        head = world.propose(1, {"a.py": lines("a", 2)})
        world.branch("old", "main")
        world.commit("main", {"pushed": "x"})
        world.squash("main", head, "Fix (#1)")
        world.save()
        return world

    def refs(self, repository: GitRepository) -> dict[str, str]:
        return repository.refs("refs/heads", "refs/pull")

    def test_clones_then_fetches_what_is_new_and_drops_what_is_gone(self, upstream: World, tmp_path: Path) -> None:
        url, path = f"file://{upstream.path}", tmp_path / "mirrors" / "o" / "r.git"
        assert self.refs(update_mirror(url, path, refs=[GITHUB.pull_heads])) == self.refs(
            GitRepository.open(upstream.path)
        )
        upstream.drop("old")
        upstream.commit("old/nested", {"n": "n"}, "a branch where a branch of that name was")
        upstream.branch("main", 1)
        upstream.commit("main", {"forced": "x"}, "force-pushed")
        upstream.propose(2, {"b.py": lines("b", 2)})
        upstream.save()
        assert self.refs(update_mirror(url, path, refs=[GITHUB.pull_heads])) == self.refs(
            GitRepository.open(upstream.path)
        )
        assert read_refs(GitRepository.open(path), GITHUB.pull_heads).default_branch == "main"

    def test_follows_the_default_branch(self, upstream: World, tmp_path: Path) -> None:
        url, path = f"file://{upstream.path}", tmp_path / "r2.git"
        assert update_mirror(url, path).default_branch() == "main"
        upstream.branch("trunk", "main")
        upstream.drop("main")
        upstream.save(head="trunk")
        assert update_mirror(url, path).default_branch() == "trunk"

    def test_an_unchanged_remote_changes_no_ref(self, upstream: World, tmp_path: Path) -> None:
        url, path = f"file://{upstream.path}", tmp_path / "r2.git"
        update_mirror(url, path)
        before = {name: state for name, state in listing(path).items() if "/refs/" in name or "/objects/" in name}
        update_mirror(url, path)
        assert {
            name: state for name, state in listing(path).items() if "/refs/" in name or "/objects/" in name
        } == before

    def test_a_mirror_that_was_cut_off_while_made_is_mended_inside_another_repository(
        self, upstream: World, tmp_path: Path
    ) -> None:
        outer = tmp_path / "outer"
        git(tmp_path, "clone", "-q", str(upstream.path), str(outer))
        git(outer, "checkout", "-q", "-b", "work")
        git(outer, "branch", "precious")
        path = outer / "data" / "mirrors" / "r.git"
        path.mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n")
        mirror = update_mirror(f"file://{upstream.path}", path, refs=[GITHUB.pull_heads])
        assert self.refs(mirror) == self.refs(GitRepository.open(upstream.path))
        assert set(GitRepository.open(outer).refs("refs/heads")) == {
            "refs/heads/main",
            "refs/heads/precious",
            "refs/heads/work",
        }

    def test_a_git_hook_around_it_keeps_its_own_repository(
        self, upstream: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git(tmp_path, "clone", "-q", "--bare", str(upstream.path), "own.git")
        git(tmp_path / "own.git", "branch", "precious", "main")
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "own.git"))
        mirror = update_mirror(f"file://{upstream.path}", tmp_path / "m.git", refs=[GITHUB.pull_heads])
        monkeypatch.delenv("GIT_DIR")
        assert set(self.refs(mirror)) == set(self.refs(GitRepository.open(upstream.path)))
        assert "refs/heads/precious" in GitRepository.open(tmp_path / "own.git").refs("refs/heads")

    @pytest.mark.parametrize("where", ["missing", "not a repository"])
    def test_a_remote_that_cannot_be_read(self, tmp_path: Path, where: str) -> None:
        (tmp_path / "not a repository").mkdir()
        with pytest.raises(CloneFailed) as caught:
            update_mirror(f"file://{tmp_path / where}", tmp_path / "m.git")
        assert "\n" not in str(caught.value)

    def test_a_folder_that_cannot_be_written(self, upstream: World, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(CloneFailed):
            update_mirror(f"file://{upstream.path}", tmp_path / "file" / "m.git")

    def test_the_token_is_in_the_environment_of_https_alone(
        self, upstream: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = "ghp_" + "x" * 36
        calls: list[tuple[list[str], dict[str, str]]] = []
        real = process._start

        def start(command: list[str], variables: dict[str, str], *others: Any) -> Any:
            calls.append((command, variables))
            local = [part.replace("https://example.org/r.git", f"file://{upstream.path}") for part in command]
            return real(local, variables, *others)

        monkeypatch.setattr(process, "_start", start)
        update_mirror("https://example.org/r.git", tmp_path / "m.git", credentials=f"x:{token}")
        update_mirror(f"file://{upstream.path}", tmp_path / "n.git", credentials=f"x:{token}")
        sent = [
            any("Basic" in value for value in variables.values()) for command, variables in calls if "fetch" in command
        ]
        assert sent == [True, False]
        assert not any(token in part or "Basic" in part for command, _ in calls for part in command)
        for path in (tmp_path / "m.git").rglob("*"):
            assert path.is_dir() or (token.encode() not in path.read_bytes() and b"Basic" not in path.read_bytes())

    def test_the_token_is_not_in_the_error(self, tmp_path: Path) -> None:
        token = "secret-of-no-known-shape"
        with pytest.raises(CloneFailed) as caught:
            update_mirror(f"https://x:{token}@localhost:1/r.git", tmp_path / "m.git", credentials=f"x:{token}")
        assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("https://github.com/o/r.git", True),
        ("ssh://git@host/o/r", True),
        ("git@github.com:o/r.git", True),
        ("file:///a/b", True),
        ("ext::sh -c true", False),
        ("ext://x", False),
        ("https://-oProxyCommand=x/y", False),
        ("git@-oProxyCommand=x:y", False),
        ("git@host:-x", False),
        ("--upload-pack=x", False),
        ("fd::17", False),
        ("https://a b", False),
        ("/a/path", False),
    ],
)
def test_urls_that_may_be_handed_to_git(text: str, allowed: bool) -> None:
    assert is_clone_url(text) is allowed


def test_locks_that_a_killed_fetch_left_do_not_stop_the_next(tmp_path: Path) -> None:
    upstream = World(tmp_path / "up.git")
    upstream.commit("main", {"a": "1\n"}, "start")
    upstream.save()
    mirror = tmp_path / "m.git"
    update_mirror(f"file://{upstream.path}", mirror)
    for stale_lock in ("packed-refs.lock", "HEAD.lock", "refs/heads/main.lock"):
        (mirror / stale_lock).parent.mkdir(parents=True, exist_ok=True)
        (mirror / stale_lock).touch()
    upstream.commit("main", {"a": "2\n"}, "more")
    upstream.save()
    assert update_mirror(f"file://{upstream.path}", mirror).refs("refs/heads") == {
        "refs/heads/main": upstream.sha("main")
    }


@pytest.mark.parametrize("password", ["p%40ss", "secret-of-no-known-shape"])
def test_credentials_in_a_url_reach_neither_arguments_nor_errors(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    real = process._start

    def start(command: list[str], *others: Any) -> Any:
        calls.append(command)
        return real(command, *others)

    monkeypatch.setattr(process, "_start", start)
    with pytest.raises(CloneFailed) as caught:
        update_mirror(f"https://me:{password}@127.0.0.1:1/r.git", tmp_path / "m.git")
    assert calls and not any(password in part or "p@ss" in part for command in calls for part in command)
    assert password not in str(caught.value) and "p@ss" not in str(caught.value)


def test_a_full_disk_has_one_name_whoever_meets_it() -> None:
    stderr = "fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output"
    error = process.git_failure("fetch", stderr, 128)
    assert isinstance(error, DiskFull) and error.name == "disk_full" and "make room" in str(error)
