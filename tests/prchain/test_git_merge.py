"""Three-way merges of trees: our side wins, what it costs is recorded, and clean merges are git's own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.errors import IncompleteRepository, MergeUnsupported
from prchain.core.git.merge import Conflict, ConflictKind, Merge, merge3
from prchain.core.git.trees import EXECUTABLE, LINK, SUBMODULE, TreeStore
from tests.miner.gitworld import git
from tests.prchain.treeworld import Content, harvest, new_store, plant

TEXT = "".join(f"line {number}\n" for number in range(12))
KEEP: dict[str | bytes, Content] = {"keep": "as it is\n"}
OLD, OURS, THEIRS = "1" * 40, "2" * 40, "3" * 40


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def merged(
    store: TreeStore,
    base: Mapping[str | bytes, Content],
    ours: Mapping[str | bytes, Content],
    theirs: Mapping[str | bytes, Content],
) -> tuple[dict[str, str | tuple[str, str]], tuple[Conflict, ...]]:
    """What the merge of three trees holds besides `KEEP`, and its conflicts."""
    found = merge3(store, *(plant(store, {**KEEP, **side}) for side in (base, ours, theirs)))
    files = harvest(store, found.tree)
    assert files.pop("keep") == "as it is\n"
    return files, found.conflicts


def changed(*places: int, to: str) -> str:
    """`TEXT` with some lines replaced."""
    return "".join(f"{to} {number}\n" if number in places else f"line {number}\n" for number in range(12))


class TestClean:
    def test_both_sides_changes_come_together(self, store: TreeStore) -> None:
        assert merged(store, {"a": TEXT}, {"a": changed(1, to="ours"), "new": "o"}, {"a": changed(9, to="theirs")}) == (
            {"a": changed(1, to="ours").replace("line 9", "theirs 9"), "new": "o"},
            (),
        )

    def test_a_file_they_renamed_takes_our_changes_along(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {"a": TEXT}, {"a": changed(1, to="ours")}, {"b/c": changed(9, to="theirs")})
        assert files == {"b/c": changed(1, to="ours").replace("line 9", "theirs 9")}
        assert conflicts == ()

    def test_a_file_we_renamed_takes_their_changes_along(self, store: TreeStore) -> None:
        assert merged(store, {"a": TEXT}, {"b": TEXT}, {"a": changed(9, to="theirs")}) == (
            {"b": changed(9, to="theirs")},
            (),
        )

    def test_our_new_file_stays_where_it_is_though_they_renamed_its_folder(self, store: TreeStore) -> None:
        base: dict[str | bytes, Content] = {f"old/{name}": f"{name}\n{TEXT}" for name in "abc"}
        theirs: dict[str | bytes, Content] = {f"new/{name}": f"{name}\n{TEXT}" for name in "abc"}
        files, conflicts = merged(store, base, {**base, "old/d": "ours"}, theirs)
        assert (set(files), conflicts) == ({"new/a", "new/b", "new/c", "old/d"}, ())

    def test_mode_and_content_changed_on_one_side_each(self, store: TreeStore) -> None:
        assert merged(store, {"a": TEXT}, {"a": (EXECUTABLE, TEXT)}, {"a": changed(1, to="t")}) == (
            {"a": (EXECUTABLE, changed(1, to="t"))},
            (),
        )

    def test_submodules_changed_on_one_side(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {"s": (SUBMODULE, OLD)}, {"s": (SUBMODULE, OLD)}, {"s": (SUBMODULE, THEIRS)})
        assert (files, conflicts) == ({"s": (SUBMODULE, THEIRS)}, ())

    def test_attributes_and_settings_have_no_say(self, store: TreeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "merge.renames")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "false")
        rules: dict[str | bytes, Content] = {".gitattributes": "* merge=union -diff\n"}
        files, conflicts = merged(
            store,
            {**rules, "a": "old\n", "b": TEXT},
            {**rules, "a": "ours\n", "b": changed(1, to="o")},
            {**rules, "a": "theirs\n", "c": TEXT},
        )
        assert (files["a"], files["c"]) == ("ours\n", changed(1, to="o"))
        assert [conflict.path for conflict in conflicts] == [b"a"]


class TestConflicts:
    def test_text_takes_our_hunk_and_keeps_theirs_elsewhere(self, store: TreeStore) -> None:
        ours, theirs = changed(1, 6, to="ours"), changed(1, 2, 9, to="theirs")
        files, conflicts = merged(store, {"a": TEXT}, {"a": ours}, {"a": theirs})
        assert files == {"a": changed(1, 6, to="ours").replace("line 9", "theirs 9")}
        assert conflicts == (Conflict(b"a", ConflictKind.CONTENT, 1, ("theirs 1", "theirs 2")),)

    def test_every_hunk_is_counted(self, store: TreeStore) -> None:
        _, conflicts = merged(store, {"a": TEXT}, {"a": changed(1, 6, 11, to="o")}, {"a": changed(1, 6, 11, to="t")})
        assert (conflicts[0].hunks, conflicts[0].lost_lines) == (3, ("t 1", "t 6", "t 11"))

    def test_lines_that_look_like_conflict_markers_are_text(self, store: TreeStore) -> None:
        markers = "<<<<<<< HEAD\n=======\n>>>>>>> x\n"
        files, conflicts = merged(
            store, {"a": markers + TEXT}, {"a": markers + changed(5, to="o")}, {"a": markers + changed(5, to="t")}
        )
        assert (files["a"], conflicts[0].hunks) == (markers + changed(5, to="o"), 1)

    def test_texts_without_a_newline_at_the_end_or_in_no_encoding(self, store: TreeStore) -> None:
        found = merge3(store, *(plant(store, {"a": text}) for text in (b"\xe4 old", b"\xe4 ours", b"\xe4 theirs\r\n")))
        assert store.blobs([store.entries(found.tree)[b"a"].blob]) == [b"\xe4 ours"]
        assert found.conflicts[0].lost_lines == ("\\xe4 theirs\r",)

    def test_both_added_a_file(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {}, {"a": "one\nours\n"}, {"a": (EXECUTABLE, "one\ntheirs\n")})
        assert files == {"a": "one\nours\n"}
        assert conflicts == (Conflict(b"a", ConflictKind.CONTENT, 1, ("theirs",)),)

    def test_both_added_a_file_with_two_modes(self, store: TreeStore) -> None:
        assert merged(store, {}, {"a": (EXECUTABLE, "x")}, {"a": "x"}) == (
            {"a": (EXECUTABLE, "x")},
            (Conflict(b"a", ConflictKind.MODE),),
        )

    def test_their_mode_counts_where_only_they_changed_it(self, store: TreeStore) -> None:
        files, conflicts = merged(
            store, {"a": TEXT}, {"a": changed(1, to="o")}, {"a": (EXECUTABLE, changed(1, to="t"))}
        )
        assert files == {"a": (EXECUTABLE, changed(1, to="o"))}
        assert conflicts[0].kind is ConflictKind.CONTENT

    def test_we_deleted_what_they_changed(self, store: TreeStore) -> None:
        assert merged(store, {"a": TEXT}, {}, {"a": changed(3, to="t")}) == (
            {},
            (Conflict(b"a", ConflictKind.DELETE_MODIFY, 0, ("t 3",)),),
        )

    def test_they_deleted_what_we_changed(self, store: TreeStore) -> None:
        assert merged(store, {"a": TEXT}, {"a": changed(3, to="o")}, {}) == (
            {"a": changed(3, to="o")},
            (Conflict(b"a", ConflictKind.DELETE_MODIFY),),
        )

    def test_binary_files_take_our_side(self, store: TreeStore) -> None:
        assert merged(store, {"a": "\0old"}, {"a": "\0ours"}, {"a": "\0theirs"}) == (
            {"a": "\0ours"},
            (Conflict(b"a", ConflictKind.BINARY),),
        )

    def test_symbolic_links_take_our_side(self, store: TreeStore) -> None:
        assert merged(store, {"a": (LINK, "x")}, {"a": (LINK, "ours")}, {"a": (LINK, "theirs")}) == (
            {"a": (LINK, "ours")},
            (Conflict(b"a", ConflictKind.SYMLINK, 0, ("theirs",)),),
        )

    @pytest.mark.parametrize("ours", [(LINK, "target"), changed(1, to="o")])
    def test_a_file_here_and_a_link_there(self, store: TreeStore, ours: Content) -> None:
        theirs: Content = changed(1, to="t") if isinstance(ours, tuple) else (LINK, "target")
        files, conflicts = merged(store, {"a": TEXT}, {"a": ours}, {"a": theirs})
        assert files == {"a": ours}
        assert [(conflict.path, conflict.kind) for conflict in conflicts] == [(b"a", ConflictKind.TYPE)]

    def test_a_file_renamed_to_two_names_has_ours(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {"a": TEXT}, {"b": changed(1, to="o")}, {"c": changed(9, to="t")})
        assert files == {"b": changed(1, to="o").replace("line 9", "t 9")}
        assert conflicts == (Conflict(b"b", ConflictKind.RENAME),)

    def test_what_we_deleted_does_not_come_back_under_another_name(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {"a": TEXT}, {}, {"c": changed(9, to="t")})
        assert files == {}
        assert [(conflict.kind, conflict.lost_lines) for conflict in conflicts] == [(ConflictKind.RENAME, ("t 9",))]

    def test_what_we_renamed_stays_though_they_deleted_it(self, store: TreeStore) -> None:
        files, conflicts = merged(store, {"a": TEXT}, {"c": changed(9, to="o")}, {})
        assert files == {"c": changed(9, to="o")}
        assert [conflict.kind for conflict in conflicts] == [ConflictKind.RENAME]

    def test_their_rename_onto_a_file_of_ours(self, store: TreeStore) -> None:
        files, conflicts = merged(
            store, {"a": TEXT}, {"a": changed(1, to="o"), "b": "ours\n"}, {"b": changed(1, to="t")}
        )
        assert files == {"a": changed(1, to="o"), "b": "ours\n"}
        assert {conflict.kind for conflict in conflicts} == {ConflictKind.RENAME}

    def test_several_paths_are_listed_in_order_under_their_names(self, store: TreeStore) -> None:
        names: list[str | bytes] = [b"new\nline", b"bad\xff", "\u00e4", "z"]
        sides = [dict.fromkeys(names, text) for text in ("old\n", "ours\n", "theirs\n")]
        files, conflicts = merged(store, *sides)
        assert [conflict.path for conflict in conflicts] == sorted(
            n if isinstance(n, bytes) else n.encode() for n in names
        )
        assert set(files.values()) == {"ours\n"}


class TestUnsupported:
    def test_submodules_in_conflict(self, store: TreeStore) -> None:
        with pytest.raises(MergeUnsupported, match="submodule s "):
            merged(store, {"s": (SUBMODULE, OLD)}, {"s": (SUBMODULE, OURS)}, {"s": (SUBMODULE, THEIRS)})

    def test_a_submodule_against_a_file(self, store: TreeStore) -> None:
        with pytest.raises(MergeUnsupported, match="submodule s"):
            merged(store, {}, {"s": "file"}, {"s": (SUBMODULE, THEIRS)})

    @pytest.mark.parametrize(
        ("base", "ours", "theirs"),
        [
            ({}, {"a": "1"}, {"a/b": "2"}),
            ({}, {"a/b": "1"}, {"a": "2"}),
            ({"a": TEXT}, {"a": changed(1, to="o")}, {"a/b": "2"}),
            ({"a/b": "1"}, {"a/b": "2"}, {"a": "3"}),
        ],
    )
    def test_a_file_against_a_folder(
        self,
        store: TreeStore,
        base: Mapping[str | bytes, Content],
        ours: Mapping[str | bytes, Content],
        theirs: Mapping[str | bytes, Content],
    ) -> None:
        with pytest.raises(MergeUnsupported, match="a is a file on one side and a folder on the other"):
            merged(store, base, ours, theirs)

    def test_a_missing_blob_has_a_name(self, store: TreeStore) -> None:
        trees = [plant(store, {"a": text}) for text in ("1\n", "2\n", "3\n")]
        lost = store.entries(trees[1])[b"a"].blob
        (store.path / "objects" / lost[:2] / lost[2:]).unlink()
        with pytest.raises(IncompleteRepository):
            merge3(store, *trees)


_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n", "end"]), max_size=8).map("".join)


def _can_be_checked_out(content: tuple[str, str]) -> bool:
    return content[0] != LINK or "\0" not in content[1]


_LINKS_AND_PROGRAMS = st.tuples(st.sampled_from([EXECUTABLE, LINK]), st.sampled_from(["x", "y", "\0z"]))
_CONTENT = st.one_of(_LINES, _LINKS_AND_PROGRAMS.filter(_can_be_checked_out))
# No name is a folder of another: those conflicts have no side to take.
_TREES = st.dictionaries(st.sampled_from(["a", "b", "dir/c", "dir/d", "dir/e/f", "\u00e4\n"]), _CONTENT, max_size=5)


@pytest.fixture(scope="module")
def shared() -> Iterator[TreeStore]:
    with tempfile.TemporaryDirectory() as folder:
        yield new_store(Path(folder))


class TestLaws:
    def test_a_rename_that_collides_leaves_no_marker_though_git_calls_it_clean(self, shared: TreeStore) -> None:
        sides: list[dict[str | bytes, Content]] = [{"a": "a\na\n"}, {"b": "a\n"}, {"a": "", "b": ""}]
        found = merge3(shared, *(plant(shared, side) for side in sides))
        assert harvest(shared, found.tree) == {"b": "a\n"}
        assert [conflict.kind for conflict in found.conflicts] == [ConflictKind.RENAME]

    @settings(max_examples=10, deadline=None)
    @given(base=_TREES, other=_TREES)
    def test_who_changed_nothing_gives_way(
        self, shared: TreeStore, base: dict[str | bytes, Content], other: dict[str | bytes, Content]
    ) -> None:
        first, second = plant(shared, base), plant(shared, other)
        for ours, theirs in ((first, second), (second, first), (second, second)):
            assert merge3(shared, first, ours, theirs) == Merge(second)

    @settings(max_examples=15, deadline=None)
    @given(base=_TREES, ours=_TREES, theirs=_TREES)
    def test_every_path_of_a_merge_is_somebodys_and_no_marker_is_left(
        self,
        shared: TreeStore,
        base: dict[str | bytes, Content],
        ours: dict[str | bytes, Content],
        theirs: dict[str | bytes, Content],
    ) -> None:
        trees = [plant(shared, side) for side in (base, ours, theirs)]
        found = merge3(shared, *trees)
        files = harvest(shared, found.tree)
        assert files.keys() <= base.keys() | ours.keys() | theirs.keys()
        assert not any("<<<<<<<" in str(content) for content in files.values())
        assert merge3(shared, *trees) == found
        conflicting = {conflict.path.decode() for conflict in found.conflicts}
        assert conflicting <= base.keys() | ours.keys() | theirs.keys()

    @settings(max_examples=10, deadline=None)
    @given(base=_TREES, ours=_TREES, theirs=_TREES)
    def test_clean_merges_are_those_of_git_in_a_work_tree(
        self,
        shared: TreeStore,
        base: dict[str | bytes, Content],
        ours: dict[str | bytes, Content],
        theirs: dict[str | bytes, Content],
    ) -> None:
        trees = [plant(shared, side) for side in (base, ours, theirs)]
        found = merge3(shared, *trees)
        root = shared.commit(trees[0])
        first, second = (shared.commit(tree, [root]) for tree in trees[1:])
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            git(folder, "init", "--quiet", "--template=")
            (folder / ".git/objects/info").mkdir(exist_ok=True)
            (folder / ".git/objects/info/alternates").write_text(f"{shared.path / 'objects'}\n")
            git(folder, "checkout", "--quiet", first)
            process = subprocess.run(
                [
                    "git",
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "-c",
                    "merge.directoryRenames=false",
                    "merge",
                    "--no-ff",
                    "-m",
                    "merge",
                    second,
                ],
                cwd=folder,
                capture_output=True,
                check=False,
            )
            if b"CONFLICT" in process.stdout:  # also where git exits with 0
                assert found.conflicts
            elif process.returncode == 0:
                assert found == Merge(git(folder, "rev-parse", "HEAD^{tree}").strip())
            else:
                assert found.conflicts
