"""Copies of an overlay's upper layer: what they hold, what they share, and what is no copy."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from environments.sandboxes import frozen_layers, upper_layers
from environments.sandboxes.frozen_layers import FrozenLayer, freeze, thaw
from environments.sandboxes.upper_layers import TooMuchWritten

OWN = "trusted.overlay."

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root reads and writes an engine's layers")


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    (tmp_path / "layer").mkdir()
    return tmp_path / "layer"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path / "other"


def _frozen(layer: Path, name: str = "copy", known: Mapping[frozen_layers.Facts, Path] | None = None) -> FrozenLayer:
    return freeze(layer, OWN, layer.parent / name, known or {})


def _whiteout(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR, 0)


def _seen(root: Path) -> dict[str, tuple[object, ...]]:
    """All that a sandbox sees of a layer."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted((root, *root.rglob("*"))):
        status = path.lstat()
        mode = status.st_mode
        content: object = None
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(mode):
            content = os.readlink(os.fsencode(path))
        attributes = {} if stat.S_ISLNK(mode) else {name: os.getxattr(path, name) for name in os.listxattr(path)}
        links = 0 if stat.S_ISDIR(mode) else status.st_nlink
        owner = status.st_uid, status.st_gid
        found[str(path.relative_to(root))] = (mode, *owner, links, status.st_mtime_ns, content, attributes)
    return found


def test_a_copy_has_all_that_is_seen_of_a_layer(layer: Path, other: Path) -> None:
    for name in ("d/e", "emptied", "shut"):
        (layer / name).mkdir(parents=True)
    (layer / "empty").touch()
    (layer / "d/run").write_bytes(b"\0\xff" * 70_000)
    os.chown(layer / "d/run", 12, 34)
    (layer / "d/run").chmod(0o6751)
    os.setxattr(layer / "d/run", "user.note", b"x")
    os.setxattr(layer / "d/run", "security.capability", b"\1\0\0\2\0\x20" + bytes(14))
    (layer / "d/run").chmod(0o6751)
    os.link(layer / "d/run", layer / "again")
    os.symlink("/etc/none", os.fsencode(layer) + b"/d/odd\xff\n")
    os.lchown(layer / os.fsdecode(b"d/odd\xff\n"), 5, 6)
    os.mkfifo(layer / "pipe")
    _whiteout(layer / "d/e/gone")
    os.setxattr(layer / "emptied", f"{OWN}opaque", b"y")
    (layer / "shut/file").write_text("hidden")
    (layer / "shut").chmod(0o1000)
    for name in ("d/run", "d/e", "d", "."):
        os.utime(layer / name, ns=(1, 981_173_106_789_000_001))
    expected = _seen(layer)
    thaw(_frozen(layer), other)
    assert _seen(other) == expected
    assert (other / "again").stat().st_ino == (other / "d/run").stat().st_ino


def test_what_tells_nothing_of_what_is_seen_is_left_out(layer: Path, other: Path) -> None:
    (layer / "d").mkdir()
    (layer / "f").write_text("text")
    os.setxattr(layer / "d", f"{OWN}impure", b"y")
    os.setxattr(layer / "f", f"{OWN}origin", b"\0\xfb")
    os.setxattr(layer / "f", "trusted.other", b"x")
    os.mknod(layer / "socket", stat.S_IFSOCK | 0o600)  # bind(2) takes paths of up to 107 bytes
    thaw(_frozen(layer), other)
    assert sorted(os.listdir(other)) == ["d", "f"]
    assert not os.listxattr(other / "d") and not os.listxattr(other / "f")


def test_what_an_engine_has_made_there_gives_way(layer: Path, other: Path) -> None:
    (layer / "kept").mkdir()
    (layer / "kept/f").write_text("text")
    _whiteout(layer / "folder")
    os.symlink("/etc", layer / "file")
    for name in ("kept", "folder"):
        (other / name).mkdir()
    (other / "file").write_text("the engine's")
    (other / "kept/f").symlink_to("/etc/passwd")
    expected = _seen(layer)
    thaw(_frozen(layer), other)
    assert _seen(other) == expected


# ---- contents that copies share


def _grown_old() -> None:
    """The kernel's clock for files has ticked since."""
    time.sleep(upper_layers.TICK + 0.03)


def _inodes(frozen: FrozenLayer) -> dict[bytes, int]:
    return {name.path: (frozen.folder / name.content).stat().st_ino for name in frozen.names if name.content}


def test_a_file_that_has_not_changed_is_kept_once(layer: Path) -> None:
    for name in ("same", "written", "replaced", "touched"):
        (layer / name).write_text("text")
    _grown_old()
    first = _frozen(layer)
    times = (layer / "written").stat()
    (layer / "written").write_text("TEXT")
    os.utime(layer / "written", ns=(times.st_atime_ns, times.st_mtime_ns))
    (layer / "new").write_text("text")
    os.replace(layer / "new", layer / "replaced")
    os.utime(layer / "touched")
    second = _frozen(layer, "second", first.known)
    before, after = _inodes(first), _inodes(second)
    assert {path for path in before if before[path] == after[path]} == {b"same"}
    shutil.rmtree(first.folder)
    assert {(second.folder / name.content).read_text() for name in second.names if name.content} == {"text", "TEXT"}


def test_a_file_as_young_as_the_clocks_tick_is_read_again(layer: Path) -> None:
    (layer / "f").write_text("text")
    assert not _frozen(layer).known


def test_what_was_put_into_a_layer_is_not_copied_out_of_it_again(layer: Path, other: Path) -> None:
    (layer / "f").write_text("text")
    first = _frozen(layer)
    known = thaw(first, other)
    second = freeze(other, OWN, other.parent / "second", known)
    assert _inodes(first) == _inodes(second)
    shutil.rmtree(first.folder)
    third = freeze(other, OWN, other.parent / "third", known)
    assert _inodes(third).keys() == _inodes(second).keys() and _inodes(third) != _inodes(second)


# ---- what is no copy


def _attribute(name: str, value: bytes = b"y") -> Callable[[Path], object]:
    def plant(layer: Path) -> None:
        (layer / "d").mkdir()
        os.setxattr(layer / "d", name, value)

    return plant


def _root_for_a_link(layer: Path) -> None:
    layer.rmdir()
    layer.symlink_to("/etc")


@pytest.mark.parametrize(
    "damage",
    [
        _attribute(f"{OWN}redirect", b"/e"),
        _attribute(f"{OWN}metacopy"),
        _attribute(f"{OWN}opaque", b"x"),
        lambda layer: os.mknod(layer / "null", stat.S_IFCHR, os.makedev(1, 3)),
        lambda layer: os.mknod(layer / "disk", stat.S_IFBLK, os.makedev(7, 200)),
        _root_for_a_link,
    ],
)
def test_what_stands_for_something_else_is_no_copy(layer: Path, damage: Callable[[Path], object]) -> None:
    damage(layer)
    with pytest.raises(OSError):
        _frozen(layer)


def test_too_much_is_no_copy(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 3)
    (layer / "a").write_text("12345")
    monkeypatch.setattr(frozen_layers, "_MOST_BYTES", 9)
    assert _frozen(layer).names
    (layer / "b").write_text("67890")
    with pytest.raises(TooMuchWritten):
        _frozen(layer, "bytes")
    assert not (layer.parent / "bytes").exists(), "nothing is copied for it"
    (layer / "b").write_text("6")
    (layer / "c").touch()
    with pytest.raises(TooMuchWritten):
        _frozen(layer, "names")
    monkeypatch.undo()
    (layer / "/".join("d" * 70)).mkdir(parents=True)
    with pytest.raises(TooMuchWritten):
        _frozen(layer, "depth")


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_name_that_is_swapped_for_a_link_meanwhile_is_not_followed(
    layer: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (layer / "folder").mkdir()
    (layer / "file").write_text("text")
    look = os.stat

    def swap(path: object, **named: object) -> os.stat_result:
        found = look(path, **named)  # type: ignore[arg-type]
        if path == swapped.encode():
            os.rename(layer / swapped, layer.parent / "moved")
            (layer / swapped).symlink_to("/etc/ssl" if swapped == "folder" else "/etc/passwd")
        return found

    monkeypatch.setattr(os, "stat", swap)
    with pytest.raises(OSError):
        _frozen(layer)


def test_a_file_that_changes_while_it_is_read_is_no_copy(layer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (layer / "f").write_text("text")
    send = os.sendfile

    def write_too(*arguments: int) -> int:
        sent = send(*arguments)
        with (layer / "f").open("a") as file:
            file.write("more")
        return sent

    monkeypatch.setattr(os, "sendfile", write_too)
    with pytest.raises(OSError, match="changes"):
        _frozen(layer)


def test_a_copy_that_is_gone_is_said_to_be(layer: Path, other: Path) -> None:
    (layer / "f").write_text("text")
    frozen = _frozen(layer)
    shutil.rmtree(frozen.folder)
    with pytest.raises(FileNotFoundError):
        thaw(frozen, other)
