"""A store of trees: what is written reads back the same, mirrors stay untouched, and nobody's settings count."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from prchain.core.errors import GitError, IncompleteRepository, NotARepository
from prchain.core.git.spool import BlobSpool
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, SUBMODULE, TreeChange, TreeEntry, TreeStore
from tests.miner.gitworld import World, git
from tests.prchain.treeworld import Content, harvest, new_store, plant

COMMIT = "1" * 40
ODD_NAMES = [
    b"plain",
    b"with space",
    b"new\nline",
    b"tab\there",
    b'quo"te',
    b"back\\slash",
    b"bad\xff\xfebytes",
    b":(top)x",
    b"*",
    b"-dash",
    b"100644 blob x",
    b"git~1",
    b".git~",
    b"dir/.gitignore",
    "\u00fcml\u00e4ut/\u4e2d".encode(),
]


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    created = World(tmp_path / "mirror.git")
    created.commit("main", {"a": "1\n", "dir/b": "2\n", "run": (EXECUTABLE, b"#!\n"), "to": (LINK, b"a")}, "start")
    created.commit("main", {"a": "one\n"}, "next")
    created.save()
    return created


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its size and time of change."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


class TestStore:
    def test_reads_what_the_mirror_has_and_writes_beside_it(self, world: World, tmp_path: Path) -> None:
        before = snapshot(world.path)
        store = TreeStore.open(tmp_path / "store", [world.path])
        tree = store.tree_of(world.sha("main"))
        assert harvest(store, tree) == {"a": "one\n", "dir/b": "2\n", "run": (EXECUTABLE, "#!\n"), "to": (LINK, "a")}
        edited = store.edit(tree, {b"a": TreeEntry(FILE, store.write_blob(b"mine\n"))})
        store.commit(edited, [world.sha("main")])
        assert harvest(store, edited)["a"] == "mine\n"
        assert snapshot(world.path) == before

    def test_is_the_same_when_opened_again_with_or_without_alternates(self, world: World, tmp_path: Path) -> None:
        TreeStore.open(tmp_path / "store", [world.path])
        for again in (TreeStore.open(tmp_path / "store"), TreeStore.open(tmp_path / "store", [world.path])):
            assert again.tree_of(world.sha("main"))

    def test_keeps_what_it_borrowed_from_as_long_as_that_is_there(self, world: World, tmp_path: Path) -> None:
        other = World(tmp_path / 'an"oth\\er.git')
        other.commit("main", {"a": "1"})
        TreeStore.open(tmp_path / "store", [other.save()])
        both = TreeStore.open(tmp_path / "store", [world.path])
        assert both.tree_of(world.sha("main")) and both.tree_of(other.sha("main"))
        shutil.rmtree(other.path)
        TreeStore.open(tmp_path / "store", [world.path])
        assert len((tmp_path / "store" / "objects" / "info" / "alternates").read_text().splitlines()) == 1

    @pytest.mark.parametrize("name", ['quo"te', "back\\slash", "new\nline", "#hash"])
    def test_finds_mirrors_whatever_their_folder_is_called(self, name: str, world: World, tmp_path: Path) -> None:
        moved = world.path.rename(tmp_path / name)
        assert TreeStore.open(tmp_path / "store", [moved]).tree_of(world.sha("main"))

    def test_borrows_from_a_repository_with_a_work_tree(self, world: World, tmp_path: Path) -> None:
        git(tmp_path, "clone", "--quiet", str(world.path), "clone")
        assert TreeStore.open(tmp_path / "store", [tmp_path / "clone"]).tree_of(world.sha("main"))

    def test_takes_on_the_object_format(self, tmp_path: Path) -> None:
        world = World(tmp_path / "r.git", objects="sha256")
        world.commit("main", {"a": "1"})
        store = TreeStore.open(tmp_path / "store", [world.save()])
        tree = store.edit(store.tree_of(world.sha("main")), {b"b": TreeEntry(FILE, store.write_blob(b"2"))})
        assert (len(tree), harvest(store, tree)) == (64, {"a": "1", "b": "2"})
        assert store.name_of("blob", b"2") == store.entries(tree)[b"b"].blob

    def test_refuses_to_mix_object_formats(self, world: World, tmp_path: Path) -> None:
        other = World(tmp_path / "r.git", objects="sha256")
        other.commit("main", {"a": "1"})
        with pytest.raises(GitError, match="different object formats"):
            TreeStore.open(tmp_path / "store", [world.path, other.save()])
        TreeStore.open(tmp_path / "store", [world.path])
        with pytest.raises(GitError, match="another object format"):
            TreeStore.open(tmp_path / "store", [other.path])

    def test_refuses_alternates_that_are_no_repository(self, tmp_path: Path) -> None:
        with pytest.raises(NotARepository):
            TreeStore.open(tmp_path / "store", [tmp_path])

    def test_a_place_that_cannot_be_made_is_named(self) -> None:
        with pytest.raises(GitError, match="/dev/null/store cannot be made"):
            TreeStore.open(Path("/dev/null/store"))

    def test_says_what_is_missing(self, store: TreeStore) -> None:
        with pytest.raises(IncompleteRepository, match="no tree 1111"):
            store.tree_of(COMMIT)
        with pytest.raises(IncompleteRepository, match="blob 1111"):
            store.blobs([COMMIT])

    def test_heeds_no_git_variable_of_its_caller(
        self, store: TreeStore, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
            monkeypatch.setenv(name, str(world.path))
        monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(world.path / "objects"))
        before = snapshot(world.path)
        tree = plant(TreeStore.open(tmp_path / "other"), {"a": "mine"})
        assert snapshot(world.path) == before
        assert (tmp_path / "other" / "objects" / tree[:2] / tree[2:]).exists()
        with pytest.raises(IncompleteRepository):
            store.tree_of(world.sha("main"))


class TestTrees:
    def test_every_name_and_mode_reads_back(self, store: TreeStore) -> None:
        blob = store.write_blob(b"x")
        entries = {name: TreeEntry(FILE, blob) for name in ODD_NAMES}
        entries |= {
            b"x": TreeEntry(EXECUTABLE, blob),
            b"l": TreeEntry(LINK, blob),
            b"sub": TreeEntry(SUBMODULE, COMMIT),
        }
        assert store.entries(store.write_tree(entries)) == entries

    def test_what_a_tree_holds_is_asked_of_git_once_and_is_the_callers_to_change(
        self, store: TreeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree = plant(store, {"a": "1", "dir/b": "2"})
        first = store.entries(tree)
        assert (store.tree_of(tree), sorted(first)) == (tree, [b"a", b"dir/b"])
        first.clear()
        monkeypatch.setattr(store, "stream", None)
        assert sorted(store.entries(tree)) == [b"a", b"dir/b"]
        assert store.trees_of([tree, tree]) == [tree, tree]

    @pytest.mark.parametrize(
        "name", [b".git/config", b"a/.git/x", b"../x", b"/x", b"a//b", b"a/./b", b".GIT/x", b"", b"a\0b"]
    )
    def test_names_that_lead_astray_are_refused(self, store: TreeStore, name: bytes) -> None:
        with pytest.raises(GitError, match="no name that a tree can hold"):
            store.write_tree({name: TreeEntry(FILE, store.write_blob(b"x"))})

    def test_a_link_called_gitmodules_is_refused(self, store: TreeStore) -> None:
        with pytest.raises(GitError, match="no name that a tree can hold"):
            store.write_tree({b".gitmodules": TreeEntry(LINK, store.write_blob(b"x"))})

    def test_edit_sets_and_removes(self, store: TreeStore) -> None:
        tree = plant(store, {"a": "1", "dir/b": "2", "dir/c": "3"})
        blob = store.write_blob(b"new")
        edited = store.edit(
            tree, {b"a": None, b"dir/b": TreeEntry(EXECUTABLE, blob), b"z": TreeEntry(FILE, blob), b"no": None}
        )
        assert harvest(store, edited) == {"dir/b": (EXECUTABLE, "new"), "dir/c": "3", "z": "new"}
        assert store.edit(tree, {}) == tree

    def test_edit_puts_files_where_folders_were_and_folders_where_files_were(self, store: TreeStore) -> None:
        tree = plant(store, {"a": "1", "dir/b": "2", "dir/c": "3"})
        blob = store.write_blob(b"new")
        edited = store.edit(tree, {b"dir": TreeEntry(FILE, blob), b"a/deep/x": TreeEntry(FILE, blob)})
        assert harvest(store, edited) == {"a/deep/x": "new", "dir": "new"}

    def test_a_tree_can_be_edited_though_a_blob_of_it_is_missing(self, store: TreeStore) -> None:
        tree = plant(store, {"a": "1", "big": "2"})
        lost = store.entries(tree)[b"big"].blob
        (store.path / "objects" / lost[:2] / lost[2:]).unlink()
        edited = store.edit(tree, {b"a": None})
        assert store.entries(edited) == {b"big": TreeEntry(FILE, lost)}

    def test_the_empty_tree(self, store: TreeStore) -> None:
        tree = store.write_tree({})
        assert (store.entries(tree), store.edit(plant(store, {"a": "1"}), {b"a": None})) == ({}, tree)

    def test_diff_names_paths_by_their_bytes(self, store: TreeStore) -> None:
        old = plant(store, {b"bad\xff": "1", "gone": "2", "mode": "3", "moved": "a long text\n" * 20})
        new = plant(store, {b"bad\xff": "one", "new\nline": "2", "mode": (EXECUTABLE, "3"), "to": "a long text\n" * 20})
        before, after = store.entries(old), store.entries(new)
        paths = [b"bad\xff", b"gone", b"mode", b"moved", b"new\nline", b"to"]
        assert store.diff(old, new) == [TreeChange(path, before.get(path), after.get(path)) for path in paths]

    def test_commits_depend_on_nothing_but_what_they_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commits = []
        for name, author in (("one", "ada"), ("two", "bob")):
            monkeypatch.setenv("GIT_AUTHOR_NAME", author)
            monkeypatch.setenv("GIT_COMMITTER_DATE", f"2020-01-0{len(name)}T00:00:00Z")
            store = TreeStore.open(tmp_path / name)
            tree = plant(store, {"a": "1"})
            commits.append(store.commit(tree, [store.commit(tree)], "Message"))
        assert commits[0] == commits[1]
        log = store.run("log", "--format=%an %ae %at %cn %ct %s", commits[0])
        assert (
            log
            == "prchain prchain@localhost 946684800 prchain 946684800 Message\n"
            + "prchain prchain@localhost 946684800 prchain 946684800 State\n"
        )


class TestTar:
    def test_holds_the_blobs_whatever_the_trees_attributes_ask_for(self, store: TreeStore) -> None:
        attributes = (
            "*.txt text eol=crlf\nhidden export-ignore\n*.id ident export-subst\n*.u working-tree-encoding=UTF-16\n"
        )
        texts: dict[str | bytes, Content] = {
            ".gitattributes": attributes,
            "a.txt": "one\ntwo\n",
            "hidden": "seen",
            "b.id": "$Id$ $Format:%H$",
            "c.u": "x",
            "d/x": "x",
            "n" * 200: "long",
        }
        odd: dict[str | bytes, Content] = {
            "d/x": (EXECUTABLE, "x"),
            "link": (LINK, "../out"),
            "sub": (SUBMODULE, COMMIT),
        }
        tree = plant(store, {**texts, **odd})
        found, contents = {}, {}
        with store.to_tar(tree) as output, tarfile.open(fileobj=output, mode="r|") as archive:
            for member in archive:
                found[member.name] = member
                if content := archive.extractfile(member) if member.isreg() else None:
                    contents[member.name] = content.read().decode()
            output.read()
        assert contents == texts
        assert found["link"].linkname == "../out"
        assert found["sub"].isdir()
        assert {found["d/x"].mode, found["d"].mode, found["a.txt"].mode} == {0o755, 0o644}

    def test_a_missing_blob_has_a_name(self, store: TreeStore) -> None:
        tree = plant(store, {"a": "1"})
        lost = store.entries(tree)[b"a"].blob
        (store.path / "objects" / lost[:2] / lost[2:]).unlink()
        with pytest.raises(IncompleteRepository), store.to_tar(tree) as output:
            output.read()


class TestPack:
    def test_holds_what_the_commit_reaches_and_nothing_else(self, world: World, tmp_path: Path) -> None:
        store = TreeStore.open(tmp_path / "store", [world.path])
        commit = store.commit(store.tree_of(world.sha("main")))
        (name,) = store.pack(commit, tmp_path)
        listed = subprocess.run(
            ["git", "verify-pack", "-v", str(tmp_path / f"pack-{name}.idx")], capture_output=True, check=True, text=True
        ).stdout
        names = {line.split()[0] for line in listed.splitlines() if len(line.split()[0]) == 40}
        reachable = store.run("rev-list", "--objects", "--no-object-names", commit).split()
        assert names == set(reachable)

    def test_is_written_in_parts_of_which_there_are_never_many(self, tmp_path: Path) -> None:
        store = TreeStore.open(tmp_path / "store", [World(tmp_path / "r.git").path])
        texts = [random.Random(number).randbytes(1_100_000) for number in range(7)]
        for more in (b"", b"longer"):
            files: dict[str | bytes, Content] = {f"{number}.txt": text + more for number, text in enumerate(texts)}
            store.run("update-ref", f"refs/heads/x{more.decode()}", store.commit(plant(store, files)))
        # The shorter of two versions is kept as the difference to the longer one, and takes next to nothing.
        store.run("repack", "-a", "-d", "-f", "-q", "--window=2")
        commit = store.run("rev-parse", "refs/heads/x").strip()
        assert int(store.run("rev-list", "--objects", "--disk-usage", commit)) < 10_000
        (tmp_path / "out").mkdir()
        names = store.pack(commit, tmp_path / "out", parts=2)
        assert 2 <= len(names) <= 5
        assert len([*(tmp_path / "out").iterdir()]) == 2 * len(names)

    def test_what_one_commit_has_beyond_a_tree_is_named(self, store: TreeStore) -> None:
        old, new = (plant(store, {"d/a": text, "e/b": "same", "c": "one"}) for text in ("one", "two"))
        commit = store.commit(old)
        folder = store.run("rev-parse", f"{old}:d").strip()
        assert set(store.reached(commit, without=store.commit(new))) == {commit, old, folder}
        assert store.reached(commit, without=old) == [commit]

    def test_is_written_to_another_file_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        store = TreeStore.open(Path("store"))
        commit = store.commit(plant(store, {"a": "1"}))
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            (name,) = store.pack(commit, Path(folder))
            assert {path.name for path in Path(folder).iterdir()} == {f"pack-{name}.pack", f"pack-{name}.idx"}
        assert not list(store.path.glob("pack-*"))


class TestSpool:
    @pytest.mark.parametrize("count", [0, 1, 3, 300])
    def test_writes_what_it_was_given_under_gits_names(self, store: TreeStore, count: int) -> None:
        contents = [b"content %d\n\0\xff" % number for number in range(count)]
        with BlobSpool(store, ()) as spool:
            names = [spool.add(io.BytesIO(content), len(content)) for content in contents + contents[:1]]
            spool.save()
        assert store.blobs(names) == contents + contents[:1]
        assert names == [store.name_of("blob", content) for content in contents + contents[:1]]

    def test_writes_nothing_that_is_known(self, store: TreeStore) -> None:
        with BlobSpool(store, {store.name_of("blob", b"known")}) as spool:
            known, new = spool.add(io.BytesIO(b"known"), 5), spool.add(io.BytesIO(b"new"), 3)
            spool.save()
        assert store.missing([known, new]) == {known}

    def test_takes_large_files_in_pieces(self, store: TreeStore) -> None:
        content = os.urandom(1 << 20) * 10
        with BlobSpool(store, ()) as spool:
            name = spool.add(io.BytesIO(content), len(content))
            spool.save()
        assert store.blobs([name]) == [content]

    def test_a_stream_that_ends_early_is_no_file(self, store: TreeStore) -> None:
        with pytest.raises(EOFError), BlobSpool(store, ()) as spool:
            spool.add(io.BytesIO(b"short"), 6)
