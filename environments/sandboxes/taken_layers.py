"""The layer of a container that runs, taken from it as a layer of ours: however much it holds, that is a rename.

Its processes are stopped first and killed before they could go on, so that nobody writes to the layer afterwards. The
container itself can only be removed. That takes longer, since the engine waits until all that was written is on the
disk, and is left to the caller.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.sandboxes.control_groups import kill_all, processes_of
from environments.sandboxes.engine import engine_failures, pause
from environments.sandboxes.own_layers import OwnLayer, has_room, new_layer
from environments.sandboxes.sandbox import LaidFolder
from prchain.core.errors import ImageError, ImageMissing

log = logging.getLogger(__name__)


def take_layer(api: Any, container: str, root: Path, laid: Collection[LaidFolder]) -> OwnLayer | None:
    """The upper layer `root` of a container, given by its whole id, into which these folders are `laid`. None where
    that is not possible: it runs on then. Raises `EngineUnavailable`."""
    layer = None
    try:
        with engine_failures():
            described = api.inspect_container(container)
            if not has_room(root) or not _is_in_layers(described, laid):
                return None
            layer = new_layer(root.parent.parent)
            pause(api, container)
            processes = processes_of(described["State"]["Pid"], container)
            try:
                if processes is None:
                    raise OSError(errno.ENOTSUP, "its processes are not this machine's")
                root.rename(layer.root)
            except OSError:
                api.unpause(container)
                raise
    except (OSError, ImageError, ImageMissing) as error:
        log.debug("the layer of a container cannot be taken: %s", error)
        return None
    finally:
        if layer is not None and not layer.root.exists():
            layer.remove()
    kill_all(processes)
    return layer


def _is_in_layers(described: Mapping[str, Any], laid: Collection[LaidFolder]) -> bool:
    """Whether all that a running container may have written is in its layer, its memory aside: in no volume but those
    that are `laid` into it, and in no file that the engine has mounted. Raises `OSError`."""
    sources = {folder.source for folder in laid}
    if any(mount.get("Name") not in sources for mount in described.get("Mounts") or ()):
        return False
    began = datetime.fromisoformat(described["State"]["StartedAt"][:26].rstrip("Z")).replace(tzinfo=UTC).timestamp()
    files = filter(None, (described.get(key) for key in ("HostsPath", "HostnamePath", "ResolvConfPath")))
    return all(os.stat(file).st_mtime <= began for file in files)
