"""An image of one layer that holds all files of a container: engines bound how many layers an image may have."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from environments.sandboxes.engine import paused

MOST_LAYERS = 100
"""An image of so many layers or more is made flat. Docker's overlay2 refuses more than 125, and each costs a little."""

_LAYER = "layer.tar"


def would_have_layers(client: Any, container: Any) -> int:
    """How many layers an image has that the engine makes of a container by a commit."""
    return len(client.api.inspect_image(container.attrs["Image"])["RootFS"]["Layers"]) + 1


def make_flat(client: Any, container: Any, tag: str, labels: Mapping[str, str]) -> str:
    """Make an image of a container's files, with the container's configuration and these labels; returns its id.

    It takes as much disk as the files, here in a temporary file and in the engine for good. As in a commit, the
    container stands still meanwhile. Raises what the SDK raises.
    """
    api = client.api
    found = api.inspect_container(container.id)
    below = api.inspect_image(found["Image"])
    config = found["Config"]
    now = datetime.now(UTC).isoformat()
    described = {
        "created": now,
        "architecture": below["Architecture"],
        "os": below["Os"],
        "config": {**config, "Labels": {**(config.get("Labels") or {}), **labels}},
        "history": [{"created": now, "comment": "all layers in one"}],
    }
    with tempfile.TemporaryFile() as archive:
        with paused(api, container.id):
            _write_image(archive, tag, described, api.export(container.id, chunk_size=1 << 20))
        archive.seek(0)
        client.images.load(archive)
    return str(api.inspect_image(tag)["Id"])


def _write_image(out: IO[bytes], tag: str, described: Mapping[str, Any], layer: Iterable[bytes]) -> None:
    """Write an image as ``docker load`` takes it; the layer's size and hash are known when it has been written."""
    out.seek(tarfile.BLOCKSIZE)
    digest, size = hashlib.sha256(), 0
    for chunk in layer:
        digest.update(chunk)
        out.write(chunk)
        size += len(chunk)
    out.write(bytes(-size % tarfile.BLOCKSIZE))
    root = {"type": "layers", "diff_ids": [f"sha256:{digest.hexdigest()}"]}
    config = json.dumps({**described, "rootfs": root}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": [_LAYER]}]).encode()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in ((name, config), ("manifest.json", manifest)):
            header = tarfile.TarInfo(path)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    header = tarfile.TarInfo(_LAYER)
    header.size = size
    out.seek(0)
    out.write(header.tobuf(tarfile.GNU_FORMAT))
