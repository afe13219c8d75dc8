"""A tree in a sandbox becomes another: what differs is written and removed, and all else stays as it is.

The sandbox is a folder of this machine.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environments.checkouts.checkout import extract_tree, move_tree, place_tree
from environments.checkouts.extraction import folders_above
from prchain.core.errors import IncompleteRepository, PlacementFailed
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, SUBMODULE, TreeEntry, TreeStore
from tests.environments.folder_sandbox import FolderSandbox
from tests.prchain.treeworld import Content, new_store, plant

COMMIT = "1" * 40
WORDS = (b"a", b"b", b"-rf", b"new\nline", b"\xff\xfe", b" ", b"*", b"~", b"back\\slash", b".hidden")
IGNORED = ("x.log", "a/x.log", "b/a/x.log", "c/x.log")
"""Files that stay. No tree holds their names."""

PATHS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(b"/".join)
CONTENTS = st.one_of(
    st.tuples(st.sampled_from([FILE, EXECUTABLE]), st.sampled_from(["", "one\n", "two\n", "\0\r\n"])),
    st.tuples(st.just(LINK), st.sampled_from(["a", "/etc", "../up", "no\nwhere"])),
    st.tuples(st.just(SUBMODULE), st.sampled_from([COMMIT, "2" * 40])),
)
TREES = st.dictionaries(PATHS, CONTENTS, max_size=8).map(
    lambda files: {path: files[path] for path in files if not any(above in files for above in folders_above(path))}
)


class MovedFolder:
    """A folder that holds a tree, beside the store that has it."""

    def __init__(self, folder: Path, before: Mapping[str | bytes, Content]) -> None:
        (folder / "testbed").mkdir()
        self.sandbox = FolderSandbox(folder / "testbed")
        self.store = new_store(folder)
        self.before = plant(self.store, {".gitignore": "*.log\n", **before})
        place_tree(self.sandbox, self.store, self.before)

    def write(self, path: str, text: str = "kept\n") -> Path:
        place = self.sandbox.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def move(self, after: Mapping[str | bytes, Content]) -> str:
        """Make it hold another tree, which comes out again; returns that."""
        tree = plant(self.store, {".gitignore": "*.log\n", **after})
        move_tree(self.sandbox, self.store, self.before, tree)
        found = extract_tree(self.sandbox, self.store, start_tree=tree, ignore_rules_from=tree)
        assert found.tree == tree
        self.before = tree
        return tree

    def repository(self) -> dict[str, str]:
        """Every file of the repository inside, by its hash."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((self.sandbox.folder / ".git").rglob("*"))
            if path.is_file()
        }

    def folders(self) -> set[bytes]:
        """The folders in the work folder, the repository apart."""
        top = os.fsencode(self.sandbox.folder)
        found = {os.path.relpath(path, top) for path, _, _ in os.walk(top)}
        return {path for path in found if path.split(b"/")[0] not in (b".git", b".")}


@given(TREES, TREES, st.sets(st.sampled_from(IGNORED)))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_tree_becomes_any_other(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str | bytes, Content],
    after: dict[str | bytes, Content],
    ignored: set[str],
) -> None:
    moved = MovedFolder(tmp_path_factory.mktemp("moved"), before)
    in_the_way = before.keys() | after.keys()
    kept = {path for path in ignored if not any(above in in_the_way for above in folders_above(path.encode()))}
    files = [moved.write(path) for path in sorted(kept)]
    repository = moved.repository()
    tree = moved.move(after)
    assert moved.repository() == repository
    assert [path.read_text() for path in files] == ["kept\n"] * len(files)
    held = {*moved.store.entries(tree), *(path.encode() for path in kept)}
    modules = {path for path, entry in moved.store.entries(tree).items() if entry.mode == SUBMODULE}
    assert moved.folders() == {above for path in held for above in folders_above(path)} | modules


def test_what_is_the_same_in_both_trees_is_not_touched(tmp_path: Path) -> None:
    moved = MovedFolder(tmp_path, {"d/same": "same\n", "d/other": "1\n", "e/gone": "x\n"})
    same = (moved.sandbox.folder / "d/same").stat()
    moved.move({"d/same": "same\n", "d/other": "2\n"})
    assert (moved.sandbox.folder / "d/same").stat() == same
    inode = (moved.sandbox.folder / "d").stat().st_ino
    moved.move({"d/same": (EXECUTABLE, "same\n"), "d/other": "2\n"})
    assert (moved.sandbox.folder / "d").stat().st_ino == inode
    assert (moved.sandbox.folder / "d/same").stat().st_mode & 0o777 == 0o755


def test_a_file_that_has_two_names_changes_under_one_of_them(tmp_path: Path) -> None:
    moved = MovedFolder(tmp_path, {"a": "1\n"})
    (moved.sandbox.folder / "other.log").hardlink_to(moved.sandbox.folder / "a")
    moved.move({"a": "2\n"})
    assert (moved.sandbox.folder / "other.log").read_text() == "1\n"


def test_what_is_ignored_gives_way_to_what_the_tree_holds(tmp_path: Path) -> None:
    moved = MovedFolder(tmp_path, {"d/x": "x\n", "one": "1\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    moved.write("d/ignored.log")
    moved.write("file.log")
    (moved.sandbox.folder / "link.log").symlink_to(outside)
    moved.move({"d": "a file now\n", "file.log/in": "x\n", "link.log/in": "x\n"})
    assert list(outside.iterdir()) == [], "nothing is written through a link"


def test_the_folders_of_submodules_are_left_alone(tmp_path: Path) -> None:
    moved = MovedFolder(
        tmp_path, {"lib": (SUBMODULE, COMMIT), "gone": (SUBMODULE, COMMIT), "full": (SUBMODULE, COMMIT)}
    )
    kept = [moved.write("lib/x"), moved.write("full/x.log")]
    moved.move({"lib": (SUBMODULE, "2" * 40), "new/lib": (SUBMODULE, COMMIT)})
    assert all(path.exists() for path in kept)
    assert moved.folders() == {b"lib", b"full", b"new", b"new/lib"}
    moved.move({"lib": "a file\n", "new/lib/x": "x\n"})


def test_equal_trees_ask_nothing_of_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = MovedFolder(tmp_path, {"a": "1\n"})
    monkeypatch.setattr(moved.sandbox, "exec", None)
    move_tree(moved.sandbox, moved.store, moved.before, moved.before)


def test_another_folder_than_the_workdir_can_hold_the_tree(tmp_path: Path) -> None:
    moved = MovedFolder(tmp_path, {})
    (tmp_path / "testbed/-sub").mkdir()
    empty, tree = moved.store.write_tree({}), plant(moved.store, {"a": "1\n"})
    folder = str(tmp_path / "testbed/-sub")
    move_tree(moved.sandbox, moved.store, empty, tree, workdir=folder)
    assert (tmp_path / "testbed/-sub/a").read_text() == "1\n"
    move_tree(moved.sandbox, moved.store, tree, empty, workdir=folder)
    assert os.listdir(folder) == []


class TestRefused:
    """Where the tree cannot be made, the reason is an error of ours."""

    def test_names_that_lead_astray_are_refused_before_anything_is_touched(self, tmp_path: Path) -> None:
        moved = MovedFolder(tmp_path, {"a": "1\n"})
        other = plant(moved.store, {"b": "2\n"})
        for name in (b"..", b".git"):
            bad = _literal_tree(moved.store, name, moved.store.entries(other)[b"b"].blob)
            for pair in ((moved.before, bad), (bad, moved.before)):
                with pytest.raises(PlacementFailed, match="no name"):
                    move_tree(moved.sandbox, moved.store, *pair)
        assert sorted(os.listdir(moved.sandbox.folder)) == [".git", ".gitignore", "a"]

    def test_a_link_without_a_target_and_a_missing_blob_leave_the_folder_as_it_was(self, tmp_path: Path) -> None:
        moved = MovedFolder(tmp_path, {"a": "1\n"})
        nowhere = plant(moved.store, {"a": "2\n", "l": (LINK, "")})
        missing = moved.store.edit(moved.before, {b"a": TreeEntry(FILE, "1" * 40)})
        with pytest.raises(PlacementFailed, match="link"):
            move_tree(moved.sandbox, moved.store, moved.before, nowhere)
        with pytest.raises(IncompleteRepository):
            move_tree(moved.sandbox, moved.store, moved.before, missing)
        assert (moved.sandbox.folder / "a").read_text() == "1\n"

    def test_a_name_that_no_file_system_takes(self, tmp_path: Path) -> None:
        moved = MovedFolder(tmp_path, {})
        long = plant(moved.store, {"l" * 300: "x\n"})
        with pytest.raises(PlacementFailed):
            move_tree(moved.sandbox, moved.store, moved.before, long)

    def test_a_folder_that_is_gone(self, tmp_path: Path) -> None:
        moved = MovedFolder(tmp_path, {"a": "1\n"})
        with pytest.raises(PlacementFailed):
            move_tree(moved.sandbox, moved.store, moved.before, plant(moved.store, {}), workdir=f"{tmp_path}/none")


def _literal_tree(store: TreeStore, name: bytes, blob: str) -> str:
    """A tree that git would not write."""
    with tempfile.TemporaryFile() as feed:
        feed.write(b"100644 %s\0" % name + bytes.fromhex(blob))
        with store.stream("hash-object", "-t", "tree", "-w", "--literally", "--stdin", feed=feed) as output:
            return output.read().decode().strip()
