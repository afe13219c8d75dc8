"""A few paths of a tree are edited as an index would do it, in less."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import IncompleteRepository
from prchain.core.git import tree_edits
from prchain.core.git.process import GitStream
from prchain.core.git.tree_edits import FolderEdits
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, TreeEntry, TreeStore
from tests.prchain.treeworld import Content, new_store, plant

NAMES = (b"a", b"a.b", b"a/b", b"a/b/c", b"a-", b"d", b"d/e", b"d/e/f/g", b"odd\xff", b"z/ /x", b"z/y")


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_edits_are_those_of_an_index(store: TreeStore, seed: int) -> None:
    rng = random.Random(seed)
    blobs = store.write("blob", [b"%d" % number for number in range(3)])
    tree = plant(store, {"a/b/c": "1", "d/e": "2", "z/y": "3", "kept/x": "4"})
    done = 0
    for _ in range(30):
        changes: dict[bytes, TreeEntry | None] = {
            path: rng.choice((None, TreeEntry(rng.choice((FILE, EXECUTABLE, LINK)), rng.choice(blobs))))
            for path in rng.sample(NAMES, rng.randrange(1, 5))
        }
        expected = store._through_index(tree, changes, ("--missing-ok",))
        edited = store._folder_edits.edited(tree, changes)
        assert edited in (None, expected), changes
        assert store.edit(tree, changes) == expected
        done += edited is not None
        tree = expected
    assert done > 15


def test_a_later_edit_of_the_same_folders_reads_nothing(store: TreeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = store.write_blob(b"new")
    edited = store.edit(plant(store, {"a/b": "1", "a/c": "2", "d": "3"}), {b"a/b": TreeEntry(FILE, blob)})
    started: list[str] = []
    stream = store.stream

    def noted(*words: str, **named: Any) -> GitStream:
        started.append(words[0])
        return stream(*words, **named)

    monkeypatch.setattr(store, "stream", noted)
    again = store.edit(edited, {b"a/c": TreeEntry(FILE, blob), b"n/x": TreeEntry(FILE, blob), b"d": None})
    assert started == ["hash-object"] and sorted(store.entries(again)) == [b"a/b", b"a/c", b"n/x"]


def test_folders_are_remembered_up_to_a_bound(store: TreeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_edits, "_KEPT", 4)
    edits, blob = FolderEdits(store), store.write_blob(b"new")
    tree = plant(store, {f"{number}/f": "1" for number in range(10)})
    for number in range(10):
        edited = edits.edited(tree, {b"%d/f" % number: TreeEntry(FILE, blob)})
        assert edited is None or len(store.entries(edited)) == 10
        assert len(edits._folders) <= 4


@pytest.mark.parametrize(
    "changes",
    [
        {b"new\nline": None},
        {b"/".join([b"d"] * 200): None},
        dict.fromkeys(b"%d" % number for number in range(300)),
        {b"a": TreeEntry(FILE, "0" * 40), b"a/b": TreeEntry(FILE, "0" * 40)},
    ],
)
def test_what_an_index_does_better_is_left_to_it(store: TreeStore, changes: dict[bytes, TreeEntry | None]) -> None:
    assert FolderEdits(store).edited(plant(store, {"a": "1"}), changes) is None


def test_old_modes_are_written_as_git_writes_them_today(store: TreeStore) -> None:
    blob = store.write_blob(b"1")
    body = b"100664 a\0%s100775 b\0%s" % (bytes.fromhex(blob), bytes.fromhex(blob))
    tree = store.write("tree", [body])[0]
    changes: dict[bytes, TreeEntry | None] = {b"c": TreeEntry(FILE, blob)}
    assert store.edit(tree, changes) == store._through_index(tree, changes, ("--missing-ok",))


def test_a_folder_that_is_missing_is_told(store: TreeStore) -> None:
    content: dict[str | bytes, Content] = {"a/b": "1", "c": "2"}
    tree = plant(store, content)
    lost = store.run("rev-parse", f"{tree}:a").strip()
    (store.path / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(IncompleteRepository):
        store.edit(tree, {b"a/b": None})
