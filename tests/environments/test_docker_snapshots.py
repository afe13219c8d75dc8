"""Which snapshots of a family an engine can remove, and the image that holds all files of a container, without one."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from environments.sandboxes.docker_snapshots import Ground, SnapshotFamily
from environments.sandboxes.docker_stream import ExecStream
from environments.sandboxes.flat_image import make_flat
from environments.sandboxes.frozen_layers import FrozenLayer
from environments.sandboxes.own_layers import OwnLayer
from prchain.core.errors import SnapshotUnknown


def removed_by(family: SnapshotFamily) -> list[str]:
    """Remove all that nobody needs; returns the images in that order."""
    found = []
    while image := family.unneeded(set()):
        found.append(image)
        family.removed(image)
    return found


class TestNeeded:
    @pytest.fixture
    def family(self) -> SnapshotFamily:
        """A sandbox that took the snapshot a, began with it, and took b and c."""
        family = SnapshotFamily()
        family.join()
        family.add("a", "image-a", "base")
        family.begin("a")
        family.add("b", "image-b", "image-a")
        family.add("c", "image-c", "image-a")
        return family

    def test_what_has_a_name_is_needed(self, family: SnapshotFamily) -> None:
        assert removed_by(family) == []
        family.forget("c")
        assert removed_by(family) == ["image-c"]
        with pytest.raises(SnapshotUnknown):
            family.begin("c")

    def test_what_others_stand_on_goes_after_them(self, family: SnapshotFamily) -> None:
        family.leave(Ground("image-a"))
        family.forget("a")
        family.forget("b")
        assert removed_by(family) == ["image-b"]
        family.forget("c")
        assert removed_by(family) == ["image-c", "image-a"]

    def test_what_a_sandbox_began_with_stays_until_all_have_left(self, family: SnapshotFamily) -> None:
        family.join()
        family.begin("a")
        for name in "abc":
            family.forget(name)
        assert removed_by(family) == ["image-b", "image-c"]
        family.leave(Ground("image-a"))
        family.leave(Ground("base"))
        assert removed_by(family) == []
        family.leave(Ground("image-a"))
        assert removed_by(family) == ["image-a"]

    def test_the_last_sandbox_takes_all_with_it(self, family: SnapshotFamily) -> None:
        family.join()
        family.part()
        family.leave(Ground("image-a"))
        assert removed_by(family) == []
        family.part()
        assert removed_by(family) == ["image-b", "image-c", "image-a"]

    def test_what_was_written_stands_on_its_image_and_its_copy_goes_with_its_name(self, family: SnapshotFamily) -> None:
        folders = [family.folder(name) for name in ("d", "e")]
        for name, folder in zip("de", folders, strict=True):
            folder.mkdir()
            family.add_written(name, Ground("image-c"), FrozenLayer(folder, (), {}))
        family.forget("c")
        assert removed_by(family) == []
        assert family.begin("d").written is not None
        family.forget("d")
        assert [folder.exists() for folder in folders] == [False, True]
        family.forget("e")
        assert removed_by(family) == []
        family.leave(Ground("image-c"))
        assert removed_by(family) == ["image-c"]
        family.part()
        assert not folders[0].parent.exists()

    def test_a_layer_goes_when_no_snapshot_and_no_sandbox_stands_on_it(self, family: SnapshotFamily) -> None:
        first, second = OwnLayer(Path("/first")), OwnLayer(Path("/second"))
        family.leave(Ground("image-a"))
        ground = family.go_on(Ground("image-a"), first, "f")
        family.leave(ground)
        upper = family.go_on(ground, second)
        assert upper == Ground("image-a", (second, first))
        for name in "abc":
            family.forget(name)
        assert (removed_by(family), family.take_unneeded()) == (["image-b", "image-c"], [])
        assert family.begin("f").ground == ground
        family.leave(upper)
        assert family.take_unneeded() == [second]
        family.forget("f")
        assert family.take_unneeded() == []
        family.leave(ground)
        assert (family.take_unneeded(), removed_by(family)) == ([first], ["image-a"])

    def test_what_could_not_be_removed_is_not_asked_for_twice_in_a_turn(self, family: SnapshotFamily) -> None:
        family.forget("b")
        assert family.unneeded(set()) == "image-b"
        assert family.unneeded({"image-b"}) is None


class _LoadedImages:
    """An engine's client that gives a container's files, and keeps the archive that it is given."""

    def __init__(self, layer: list[bytes], fault: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.archive = b""
        self._layer, self._fault = layer, fault
        self.api = SimpleNamespace(
            inspect_container=lambda name: {"Image": "below", "Config": {"Env": ["A=b c"], "Labels": {"old": "1"}}},
            inspect_image=lambda name: {"Id": f"id of {name}", "Architecture": "arm64", "Os": "linux"},
            pause=lambda name: self.calls.append("pause"),
            unpause=lambda name: self.calls.append("unpause"),
            export=self._export,
        )
        self.images = SimpleNamespace(load=self._load)

    def _export(self, name: str, chunk_size: int) -> Iterator[bytes]:
        self.calls.append("export")
        yield from self._layer
        if self._fault:
            raise self._fault

    def _load(self, archive: IO[bytes]) -> None:
        self.calls.append("load")
        self.archive = archive.read()


class TestFlat:
    CONTAINER = SimpleNamespace(id="container")

    @pytest.mark.parametrize("layer", [[b"x" * 1000, b"y" * 24], [b"z" * 1025], [b"q" * 512] * 100, []])
    def test_the_image_has_one_layer_and_the_containers_configuration(self, layer: list[bytes]) -> None:
        client = _LoadedImages(layer)
        assert make_flat(client, self.CONTAINER, "name:tag", {"new": "2"}) == "id of name:tag"
        assert client.calls == ["pause", "export", "unpause", "load"]
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(client.archive)) as archive:
            for member in archive:
                content: Any = archive.extractfile(member)
                files[member.name] = content.read()
        (manifest,) = json.loads(files["manifest.json"])
        assert manifest["RepoTags"] == ["name:tag"]
        (place,) = manifest["Layers"]
        assert files[place] == b"".join(layer)
        image = json.loads(files[manifest["Config"]])
        assert image["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files[place]).hexdigest()}"]
        assert image["config"] == {"Env": ["A=b c"], "Labels": {"old": "1", "new": "2"}}
        assert (image["architecture"], image["os"]) == ("arm64", "linux")

    def test_a_container_goes_on_where_its_files_could_not_be_read(self) -> None:
        client = _LoadedImages([b"x"], ConnectionError("planted"))
        with pytest.raises(ConnectionError):
            make_flat(client, self.CONTAINER, "name:tag", {})
        assert client.calls == ["pause", "export", "unpause"]


def test_a_snapshot_waits_until_the_engine_has_started_a_stream() -> None:
    """A container that was paused while the engine began a command in it stayed so, and could not be removed."""
    states = [{"Pid": 0, "ExitCode": None}, {"Pid": 0, "ExitCode": None}, {"Pid": 7, "ExitCode": None}]

    class Api:
        def exec_inspect(self, execution: str) -> dict[str, Any]:
            return states.pop(0)

    stream = object.__new__(ExecStream)
    stream._api, stream._execution = Api(), "it"
    stream.settle()
    assert not states
    states.append({"Pid": 0, "ExitCode": 0})
    stream.settle()
    assert not states, "one that has ended is none to wait for"
