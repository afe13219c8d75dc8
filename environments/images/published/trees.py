"""What stands in a publisher's image where no git repository of ours holds the commit: taken out once, as a tree."""

from __future__ import annotations

from typing import Any

from environments.checkouts.extraction import extract_tree
from environments.images.published.images import make_published
from environments.images.published.said import Published
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import SandboxConfig
from prchain.core.errors import ExtractionFailed, ImageError, SandboxFileError
from prchain.core.git.trees import TreeStore

_MESSAGE = "Begin"


def take_base(engine: Any, repository: str, said: Published, store: TreeStore) -> str:
    """The id of a commit without parents whose tree is what the publisher's image holds at the beginning: the files
    that its repository knows, as they stand in the work folder.

    The commit's id follows from the tree alone. Raises `ImageMissing`, `ImageError` for an image that holds no tree,
    `SandboxError`, `GitError`.
    """
    image = make_published(engine, repository, said)
    nothing = store.write_tree({})
    config = SandboxConfig(image.name, workdir=said.workdir, user="0")
    with DockerSandbox(config, client=engine) as sandbox:
        try:
            found = extract_tree(sandbox, store, start_tree=nothing, ignore_rules_from=nothing)
        except (ExtractionFailed, SandboxFileError) as error:
            raise ImageError(f"no tree can be taken from {said.image}: {error}") from None
    if found.tree == nothing:
        raise ImageError(f"{said.image} holds no file at {said.workdir}")
    return store.commit(found.tree, [], _MESSAGE)
