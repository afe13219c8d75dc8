"""The index of a copied sandbox: which files git has to read in it, and which it must."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from environments.checkouts.checkout import place_tree
from environments.checkouts.index_times import tell_times, vouched
from environments.checkouts.placed import settle
from prchain.core.errors import PlacementFailed
from prchain.core.git.trees import EXECUTABLE, LINK
from tests.environments.folder_sandbox import FolderSandbox
from tests.prchain.treeworld import new_store, plant

OLD = 1_700_000_000_123_456_789
LATER = OLD + 60 * 10**9
NAMES = ("a", "d/run", "link", "odd\n \udcff", "long/" + "x" * 200)


@pytest.fixture
def copy(tmp_path: Path) -> FolderSandbox:
    """A placed tree whose files have been copied: other inodes, and whole seconds."""
    store = new_store(tmp_path)
    tree = plant(
        store,
        {
            "a": "one\n",
            "d/run": (EXECUTABLE, "#!/bin/sh\n"),
            "link": (LINK, "a"),
            os.fsencode(NAMES[3]): "odd\n",
            NAMES[4]: "long\n",
        },
    )
    box = FolderSandbox(tmp_path / "testbed")
    place_tree(box, store, tree)
    for name in NAMES:
        os.utime(box.folder / name, ns=(OLD, OLD), follow_symlinks=False)
    assert box.exec("git update-index --refresh").exit_code == 0
    os.utime(box.folder / ".git/index", ns=(LATER, LATER))
    subprocess.run(["cp", "-a", box.folder, tmp_path / "copy"], check=True)
    made = FolderSandbox(tmp_path / "copy")
    for name in NAMES:
        os.utime(made.folder / name, ns=(OLD // 10**9 * 10**9,) * 2, follow_symlinks=False)
    return made


def _unread(box: FolderSandbox) -> list[str]:
    """The files that git takes for those of the index without reading them."""
    shown = box.exec("git diff-files --raw -z --no-renames").output.split(b"\0")
    return sorted(name for name in NAMES if os.fsencode(name) not in shown)


def test_git_reads_no_file_of_a_copy(copy: FolderSandbox) -> None:
    assert _unread(copy) == []
    assert tell_times(copy, str(copy.folder))
    assert _unread(copy) == sorted(NAMES)
    assert copy.exec("git status --porcelain; git fsck").output == b""
    index = (copy.folder / ".git/index").read_bytes()
    settle(copy)
    assert (copy.folder / ".git/index").read_bytes() == index


def _swap_for_a_link(file: Path) -> None:
    """One as long as the file and as old."""
    file.unlink()
    file.symlink_to("abcd")
    os.utime(file, ns=(OLD, OLD), follow_symlinks=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("longer\n"),
        lambda file: os.utime(file, ns=(LATER - 10**9,) * 2),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: file.unlink(),
        lambda file: file.chmod(0o755),
        _swap_for_a_link,
    ],
)
def test_what_differs_from_what_git_knows_is_left_to_git(copy: FolderSandbox, change: Callable[[Path], object]) -> None:
    change(copy.folder / "a")
    assert not tell_times(copy, str(copy.folder))
    assert _unread(copy) == sorted(set(NAMES) - {"a"})


def test_a_file_that_does_not_hold_what_was_put_there_is_noticed(copy: FolderSandbox) -> None:
    (copy.folder / "a").write_text("two\n")
    with pytest.raises(PlacementFailed, match="a: needs update"):
        settle(copy)


def test_a_second_that_was_not_over_when_the_index_was_written_tells_nothing(copy: FolderSandbox) -> None:
    os.utime(copy.folder / ".git/index", ns=(OLD, OLD))
    assert not tell_times(copy, str(copy.folder))
    assert _unread(copy) == []


@pytest.mark.parametrize("changed", [None, "a", "untracked", "no index"])
def test_the_second_of_the_index_counts_as_over_where_no_file_has_changed_since(
    copy: FolderSandbox, changed: str | None
) -> None:
    """A copy of a sandbox that was set up within that second."""
    index = copy.folder / ".git/index"
    os.utime(index, ns=(OLD, OLD))
    tracked = {os.fsencode(name) for name in NAMES}
    now = time.time_ns()
    os.utime(index, ns=(now, now))
    for name in NAMES:
        os.utime(copy.folder / name, ns=(now, now), follow_symlinks=False)
    copy.exec("git update-index --refresh")
    time.sleep(0.05)
    match changed:
        case "no index":
            index.unlink()
        case str(name):
            (copy.folder / name).write_text("ONE\n")
    before = index.stat().st_mtime_ns if index.exists() else 0
    with vouched(copy, str(copy.folder), tracked):
        during = index.stat().st_mtime if index.exists() else 0
    assert (during > time.time()) == (changed in (None, "untracked"))
    assert (index.stat().st_mtime_ns if index.exists() else 0) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda index: index.write_bytes(index.read_bytes()[:-1] + b"\0"),
        lambda index: index.write_bytes(b"DIRC\0\0\0\4" + index.read_bytes()[8:]),
        lambda index: index.write_bytes(b""),
        lambda index: index.unlink(),
    ],
)
def test_an_index_of_another_kind_stays_as_it_is(copy: FolderSandbox, damage: Callable[[Path], object]) -> None:
    index = copy.folder / ".git/index"
    damage(index)
    before = index.read_bytes() if index.exists() else None
    os.utime(copy.folder / "a", (time.time(),) * 2)
    assert not tell_times(copy, str(copy.folder))
    assert (index.read_bytes() if index.exists() else None) == before
