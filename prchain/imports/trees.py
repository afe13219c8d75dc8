"""What imported tasks begin on, out of the images that their publishers name."""

from __future__ import annotations

from typing import Any

from chains.imports.instance import Instance
from environments.images.published.said import WORKDIR, Published, changed_paths
from environments.images.published.trees import take_base
from prchain.core.git.trees import TreeStore


class ImageTrees:
    """Takes trees out of images (`chains.imports.importing.ImageTrees`); `engine` is a `docker.DockerClient`."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def take(self, instance: Instance, store: TreeStore) -> str:
        """See `chains.imports.importing.ImageTrees`."""
        changed = changed_paths(instance.patch, instance.test_patch)
        workdir = instance.workdir or WORKDIR
        said = Published(str(instance.image), instance.base_commit, workdir, changed=changed)
        return take_base(self._engine, instance.repository, said, store)
