"""Layers of ours, on which containers of an engine on this machine stand: what another container wrote, as a folder
beside the engine's own layers.

Docker's overlay2 reads from a file ``lower`` in the folder of a container's layer, whenever it starts the container,
what that stands on: paths from the folder of all layers, uppermost first, each a symbolic link; the first is the layer
of what the engine mounts (moby, daemon/graphdriver/overlay2/overlay.go: Get, getLowerDirs; tried with 20.10). Such a
layer takes a rename to make, however much it holds, where an image takes as long as to write all of it twice. The
engine knows nothing of it: what it tells of a container on layers of ours, its size or an image of it, is not used.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.sandboxes.leftovers import owned_folder, remove_owned
from environments.sandboxes.local_files import used_bytes

_AREA = "prchain"
_DIFF, _LINK, _LOWER = "diff", "link", "lower"

_SOME = 20
"""Images of which one at least has a layer."""

_LONGEST = 3_000
"""Bytes of all names in ``lower``: the kernel takes a page for these and the rest of a mount's options."""


@dataclass(frozen=True, slots=True)
class OwnLayer:
    """A folder that holds a layer, which nobody writes to."""

    folder: Path

    @property
    def root(self) -> Path:
        """What is seen of it from the sandbox's root on."""
        return self.folder / _DIFF

    @property
    def name(self) -> str:
        """Its link, from the engine's folder of layers."""
        return f"../{_AREA}/{self.folder.name}/{_LINK}"

    @property
    def used(self) -> int:
        """Bytes on disk."""
        return used_bytes(self.root)

    def renamed(self, name: str) -> OwnLayer:
        """The layer under another name, while nothing stands on it. Raises `OSError`, with ENOTEMPTY or EEXIST where
        the name is taken; then it is as it was."""
        layer = OwnLayer(self.folder.with_name(name))
        # As seen from the layer's folder, and as the engine reads it: from the folder of its own links.
        fresh = self.folder / f"{_LINK}.new"
        os.symlink(f"../../{_AREA}/{name}/{_DIFF}", fresh)
        fresh.replace(self.folder / _LINK)
        self.folder.rename(layer.folder)
        return layer

    def remove(self) -> None:
        """Never fails; what cannot be removed goes as a leftover."""
        remove_owned(self.folder)


def layers_here(described: Mapping[str, Any]) -> Path | None:
    """The folder of the layers of an engine with overlay2 on this machine, which has described an image or a container
    of its own; None for any other engine. What it names is nowhere else: engines draw it by chance."""
    driver = described.get("GraphDriver") or {}
    root = (driver.get("Data") or {}).get("UpperDir")  # an image without a layer has none
    if driver.get("Name") != "overlay2" or not root or not os.path.isdir(root):  # others than root may not look
        return None
    return Path(root).parent.parent


def engine_layers(client: Any) -> Path | None:
    """As `layers_here`, of the engine of a client; None, too, where it has no image. Raises what the SDK raises."""
    found = (layers_here(client.api.inspect_image(image)) for image in client.api.images(quiet=True)[:_SOME])
    return next(filter(None, found), None)


def area(layers_at: Path) -> Path:
    """Where the layers of ours are, of an engine whose own are in this folder."""
    return layers_at.parent / _AREA


def new_layer(layers_at: Path) -> OwnLayer:
    """A layer that is to be filled: it has no root yet. It is found when this process is gone. Raises `OSError`."""
    place = area(layers_at)
    place.mkdir(mode=0o700, exist_ok=True)
    if place.stat().st_dev != layers_at.stat().st_dev:
        raise OSError(errno.EXDEV, "the engine's layers are on a disk of their own")
    layer = OwnLayer(owned_folder(place))
    return layer.renamed(layer.folder.name)


def stand_on(root: Path, layers: Sequence[OwnLayer]) -> None:
    """Have a container that has not started, with the upper layer `root`, stand on layers of ours, uppermost first,
    above those of its image and of what the engine mounts. Raises `FileNotFoundError` where one of these is gone,
    `OSError`."""
    first, *_ = [layer.root.stat() for layer in layers]
    lower = root.parent / _LOWER
    names = lower.read_text(encoding="ascii").split(":")
    if (root.parent.parent / names[0]).resolve() != root.parent.with_name(f"{root.parent.name}-init") / _DIFF:
        raise OSError(errno.ENOTSUP, "the engine names its layers in another way")
    fresh = lower.with_name(f"{_LOWER}.{_AREA}")
    # Above what the engine makes for each container: that is as it was when the layers were written.
    fresh.write_text(":".join([*(layer.name for layer in layers), *names]), encoding="ascii")
    fresh.replace(lower)
    os.chown(root, first.st_uid, first.st_gid)
    root.chmod(stat.S_IMODE(first.st_mode))
    os.utime(root, ns=(first.st_atime_ns, first.st_mtime_ns))


def has_room(root: Path) -> bool:
    """Whether the kernel takes one more layer under a container that is like the one with this upper layer. Raises
    `OSError`."""
    return (root.parent / _LOWER).stat().st_size <= _LONGEST
