"""Layers of ours beside an engine's own, and places that are kept as such: what a container is made to stand on, who
holds a place, and which ones go."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from environments.sandboxes import kept_layers, leftovers
from environments.sandboxes.control_groups import processes_of
from environments.sandboxes.kept_layers import KeptLayer, bound_layers, drop_layers, find_layer, keep_layer
from environments.sandboxes.own_layers import (
    OwnLayer,
    area,
    engine_layers,
    has_room,
    layers_here,
    new_layer,
    stand_on,
)


@pytest.fixture
def layers_at(tmp_path: Path) -> Path:
    """An engine's folder of layers, as overlay2 makes it, with one container's."""
    folder = tmp_path / "overlay2"
    for name, link in (("c0-init", "INIT"), ("c0", "UPPER"), ("i0", "IMAGE")):
        (folder / name / "diff").mkdir(parents=True)
        (folder / "l").mkdir(exist_ok=True)
        (folder / "l" / link).symlink_to(f"../{name}/diff")
    (folder / "c0/lower").write_text("l/INIT:l/IMAGE")
    return folder


def _filled(layers_at: Path, text: str = "text") -> OwnLayer:
    layer = new_layer(layers_at)
    layer.root.mkdir()
    (layer.root / "file").write_text(text)
    return layer


# ---- what a container stands on


def test_a_container_stands_on_layers_of_ours_above_those_of_its_image(layers_at: Path) -> None:
    layers = [_filled(layers_at, "above"), _filled(layers_at, "below")]
    stand_on(layers_at / "c0/diff", layers)
    lower = (layers_at / "c0/lower").read_text().split(":")
    assert (lower[2:], len(lower)) == (["l/INIT", "l/IMAGE"], 4)
    assert [(layers_at / name / "file").read_text() for name in lower[:2]] == ["above", "below"]
    # As the engine tells it: the link's own words, read from the folder of its links.
    told = [os.path.normpath(layers_at / "l" / os.readlink(layers_at / name)) for name in lower[:2]]
    assert told == [str(layer.root) for layer in layers]


def test_the_root_is_that_of_the_uppermost_layer(layers_at: Path) -> None:
    layer = _filled(layers_at)
    os.chown(layer.root, 12, 34)
    layer.root.chmod(0o1711)
    os.utime(layer.root, ns=(1, 981_173_106_789_000_001))
    stand_on(layers_at / "c0/diff", [layer])
    found, expected = ((path).stat() for path in (layers_at / "c0/diff", layer.root))
    for it in ("st_mode", "st_uid", "st_gid", "st_mtime_ns"):
        assert getattr(found, it) == getattr(expected, it)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda at: (at / "c0/lower").write_text("l/IMAGE"), errno.ENOTSUP),
        (lambda at: (at / "c0/lower").unlink(), errno.ENOENT),
        (lambda at: next(area(at).iterdir()).rename(at / "gone"), errno.ENOENT),
    ],
)
def test_a_container_that_is_made_in_another_way_is_left_as_it_is(
    layers_at: Path, damage: Callable[[Path], object], code: int
) -> None:
    layer = _filled(layers_at)
    damage(layers_at)
    before = [path.read_text() for path in layers_at.glob("c0/lower*")]
    with pytest.raises(OSError) as caught:
        stand_on(layers_at / "c0/diff", [layer])
    assert caught.value.errno == code and [path.read_text() for path in layers_at.glob("c0/lower*")] == before


def test_no_more_layers_than_the_kernel_takes(layers_at: Path) -> None:
    layers: list[OwnLayer] = []
    while has_room(layers_at / "c0/diff"):
        layers.append(_filled(layers_at))
        (layers_at / "c0/lower").write_text("l/INIT:l/IMAGE")
        stand_on(layers_at / "c0/diff", layers)
    assert 50 < len(layers) < 100
    lower = (layers_at / "c0/lower").read_text()
    options = f"index=off,userxattr,lowerdir={lower},upperdir={'0' * 64}/diff,workdir={'0' * 64}/work"
    assert len(options) < os.sysconf("SC_PAGE_SIZE")


def test_only_an_engine_whose_layers_are_here_has_any(layers_at: Path) -> None:
    def told(name: str, root: Path) -> dict[str, Any]:
        return {"GraphDriver": {"Name": name, "Data": {"UpperDir": str(root)}}}

    assert layers_here(told("overlay2", layers_at / "i0/diff")) == layers_at
    assert layers_here(told("overlay2", layers_at / "elsewhere/diff")) is None
    for told_nothing in ({}, {"GraphDriver": {"Name": "overlayfs", "Data": None}}, told("overlay2", layers_at)):
        told_nothing.get("GraphDriver", {}).pop("Data", None)
        assert layers_here(told_nothing) is None
    described = {
        "bare": {"GraphDriver": {"Name": "overlay2", "Data": None}},
        "i": told("overlay2", layers_at / "i0/diff"),
    }
    api = SimpleNamespace(images=lambda quiet: ["bare", "i"], inspect_image=described.get)
    assert engine_layers(SimpleNamespace(api=api)) == layers_at
    api.images = lambda quiet: ["bare"]
    assert engine_layers(SimpleNamespace(api=api)) is None


def test_a_disk_of_its_own_holds_no_layer_of_ours(layers_at: Path, tmp_path: Path) -> None:
    area(layers_at).symlink_to("/proc")
    with pytest.raises(OSError, match="disk") as caught:
        new_layer(layers_at)
    assert caught.value.errno == errno.EXDEV


def test_what_a_killed_process_was_filling_is_found(layers_at: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom environments.sandboxes.own_layers import new_layer\n"
        "new_layer(Path(sys.argv[1])).root.mkdir()\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(layers_at)], capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    own = _filled(layers_at)
    assert list(leftovers.clear_local(area(layers_at)).values()) == [True]
    assert list(area(layers_at).iterdir()) == [own.folder]
    assert leftovers.clear_local(area(layers_at), everybody=True) == {own.folder: True}


def _deepen(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "import os\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')"], cwd=folder, check=True
    )


def test_folders_of_any_depth_are_removed(layers_at: Path) -> None:
    one, two = _filled(layers_at), _filled(layers_at)
    for layer in (one, two):
        _deepen(layer.root)
    one.remove()
    assert list(area(layers_at).iterdir()) == [two.folder]
    assert leftovers.clear_local(area(layers_at), everybody=True) == {two.folder: True}


def test_what_a_removal_left_that_was_cut_off_is_found(layers_at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = _filled(layers_at)

    def cut_off(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(leftovers, "remove_folder", cut_off)
        with pytest.raises(KeyboardInterrupt):
            layer.remove()
    assert leftovers.clear_local(area(layers_at), everybody=True) == {layer.folder: True}


@pytest.mark.parametrize("version", [1, 2])
def test_the_processes_of_a_control_group_are_found_by_one_of_them(tmp_path: Path, version: int) -> None:
    groups, processes = tmp_path / "groups", tmp_path / "proc"
    line = "7:freezer:/docker/c0ffee\n3:cpu,cpuacct:/docker/c0ffee" if version == 1 else "0::/docker/c0ffee"
    (processes / "12").mkdir(parents=True)
    (processes / "12/cgroup").write_text(f"1:name=systemd:/\n{line}\n")
    group = groups / ("freezer" if version == 1 else "") / "docker/c0ffee"
    (group / "inner").mkdir(parents=True)
    (group / "cgroup.procs").write_text("12\n15\n")
    (group / "inner/cgroup.procs").write_text("99\n")
    assert sorted(processes_of(12, "c0ffee", groups, processes) or ()) == [12, 15, 99]
    assert processes_of(12, "decaf", groups, processes) is None
    assert processes_of(13, "c0ffee", groups, processes) is None
    (group / "cgroup.procs").write_text("4\n")  # another machine's numbers
    assert processes_of(12, "c0ffee", groups, processes) is None


# ---- places


def _keep(layers_at: Path, name: str, used: float = 0.0, below: str = "image") -> OwnLayer:
    kept = keep_layer(_filled(layers_at, name), name, below)
    assert kept is not None
    kept.lock.close()
    if used:
        os.utime(kept.layer.folder / kept_layers._FACTS, (used, used))
    return kept.layer


def _found(layers_at: Path, name: str) -> KeptLayer:
    found = find_layer(layers_at, name)
    assert found is not None
    return found


def test_a_place_is_found_by_its_name_and_stands_under_a_container(layers_at: Path) -> None:
    _keep(layers_at, "a")
    assert find_layer(layers_at, "b") is None
    with (found := _found(layers_at, "a")).lock:
        stand_on(layers_at / "c0/diff", [found.layer])
    assert (layers_at / (layers_at / "c0/lower").read_text().split(":")[0] / "file").read_text() == "a"
    assert leftovers.clear_local(area(layers_at), everybody=True) == {}


def test_who_makes_a_place_holds_it(layers_at: Path) -> None:
    kept = keep_layer(_filled(layers_at), "a", "image")
    assert kept is not None and drop_layers(layers_at) == {"a": False}
    kept.lock.close()
    assert drop_layers(layers_at) == {"a": True}


def test_who_comes_second_goes_on_upon_a_layer_of_its_own(layers_at: Path) -> None:
    _keep(layers_at, "a")
    second = _filled(layers_at, "the second's")
    assert keep_layer(second, "a", "image") is None
    stand_on(layers_at / "c0/diff", [second])
    assert (layers_at / (layers_at / "c0/lower").read_text().split(":")[0] / "file").read_text() == "the second's"
    with (found := _found(layers_at, "a")).lock:
        assert (found.layer.root / "file").read_text() == "a"
    assert leftovers.clear_local(area(layers_at), own=True) == {second.folder: True}


def test_the_place_that_was_longest_not_used_goes_first(layers_at: Path) -> None:
    size = _keep(layers_at, "a", time.time() - 2000).used
    for name, age in (("b", 4000), ("c", 3000)):
        _keep(layers_at, name, time.time() - age)
    assert bound_layers(layers_at, 3 * size) == []
    _found(layers_at, "b").lock.close()  # a use
    assert bound_layers(layers_at, 2 * size) == ["c"]
    assert bound_layers(layers_at, size) == ["a"]
    assert bound_layers(layers_at, 0) == ["b"]
    assert list(area(layers_at).iterdir()) == []


def test_a_place_in_use_stays_until_who_uses_it_ends(layers_at: Path) -> None:
    _keep(layers_at, "a")
    with _found(layers_at, "a").lock:
        assert bound_layers(layers_at, 0) == []
        assert drop_layers(layers_at) == {"a": False}
        _found(layers_at, "a").lock.close()
    assert drop_layers(layers_at) == {"a": True}
    assert find_layer(layers_at, "a") is None


def test_places_go_with_their_image_and_by_their_name(layers_at: Path) -> None:
    for name, below in (("a", "one"), ("b", "two"), ("c", "two"), ("d", "three")):
        _keep(layers_at, name, below=below)
    assert bound_layers(layers_at, 1 << 40, {"one", "two"}) == ["d"]
    assert drop_layers(layers_at, named="b") == {"b": True}
    assert drop_layers(layers_at, "two") == {"c": True}
    assert drop_layers(layers_at) == {"a": True}


def test_a_place_that_goes_while_it_is_looked_for_is_none(layers_at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _keep(layers_at, "a")
    lock = fcntl.flock

    def too_late(file: int, how: int) -> None:
        monkeypatch.undo()
        assert drop_layers(layers_at) == {"a": True}
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    assert find_layer(layers_at, "a") is None


def test_what_cannot_be_kept_is_as_it_was(layers_at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = _filled(layers_at)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "symlink", full)
        with pytest.raises(OSError, match="no space"):
            keep_layer(layer, "a", "image")
    stand_on(layers_at / "c0/diff", [layer])
    assert find_layer(layers_at, "a") is None
