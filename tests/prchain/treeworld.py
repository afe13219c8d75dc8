"""Small trees for tests: written as paths and contents, read back the same way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from prchain.core.git.trees import FILE, SUBMODULE, TreeEntry, TreeStore

Content = str | bytes | tuple[str, str | bytes]
"""Text or bytes of a file, or mode and content; a submodule's content is the commit it names."""


def plant(store: TreeStore, files: Mapping[str | bytes, Content]) -> str:
    """Write a tree; returns its id."""
    chosen = {
        path.encode() if isinstance(path, str) else path: content if isinstance(content, tuple) else (FILE, content)
        for path, content in files.items()
    }
    bodies = {path: body.encode() if isinstance(body, str) else body for path, (_, body) in chosen.items()}
    blob_paths = [path for path, (mode, _) in chosen.items() if mode != SUBMODULE]
    blobs = dict(zip(blob_paths, store.write("blob", [bodies[path] for path in blob_paths]), strict=True))
    entries = {path: TreeEntry(mode, blobs.get(path) or bodies[path].decode()) for path, (mode, _) in chosen.items()}
    return store.write_tree(entries)


def harvest(store: TreeStore, tree: str) -> dict[str, str | tuple[str, str]]:
    """Paths and contents of a tree, as `plant` takes them."""
    found: dict[str, str | tuple[str, str]] = {}
    for path, entry in store.entries(tree).items():
        if entry.mode == SUBMODULE:
            content = entry.blob
        else:
            content = store.blobs([entry.blob])[0].decode("utf-8", "surrogateescape")
        name = path.decode("utf-8", "surrogateescape")
        found[name] = content if entry.mode == FILE else (entry.mode, content)
    return found


def new_store(folder: Path) -> TreeStore:
    """An empty store."""
    return TreeStore.open(folder / "store")
