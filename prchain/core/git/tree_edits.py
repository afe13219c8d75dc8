"""A few paths of a tree changed: only the folders that lead to them are read and written, whatever else the tree holds.

The same is done through an index (`TreeStore.edit`), which goes through all paths; this is for the few.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prchain.core.errors import GitError

if TYPE_CHECKING:
    from prchain.core.git.trees import TreeEntry, TreeStore

_MOST = 200
"""Paths that are changed, beyond which an index takes less."""

_DEEPEST = 100
"""Folders above a path."""

_KEPT = 2_000
"""Folders that are remembered."""

_TREE = b"40000"

_Folder = Mapping[bytes, tuple[bytes, str]]
"""Mode and id by name."""


@dataclass(slots=True)
class _Changes:
    """What is to be done in a folder."""

    here: dict[bytes, TreeEntry | None] = field(default_factory=dict)
    below: dict[bytes, _Changes] = field(default_factory=dict)


class _UnknownError(Exception):
    """The index knows what to do, or what to say."""


class FolderEdits:
    """Edits trees of a store, and remembers their folders. For several threads."""

    def __init__(self, store: TreeStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._folders: dict[str, _Folder] = {}

    def edited(self, tree: str, changes: Mapping[bytes, TreeEntry | None]) -> str | None:
        """The id of the tree with these paths set or removed, as `TreeStore.edit`; None for what is not done here.

        All paths must be such that a tree can hold them. Raises `GitError`.
        """
        kept = [path for path, entry in changes.items() if entry is not None]
        if len(changes) > _MOST or any(b"\n" in path or path.count(b"/") > _DEEPEST for path in changes):
            return None
        if any(path.startswith(other + b"/") for other in kept for path in kept):
            return None
        try:
            self._read(tree, {b"/".join(words[:end]) for words in map(_words, changes) for end in range(len(words))})
            new: dict[str, bytes] = {}
            edited = self._edit(tree, _sorted_in(changes), new)
        except _UnknownError:
            return None
        if edited is None:
            edited = self._noted({}, new)
        if list(new) != self._store.write("tree", new.values()):
            raise GitError(f"git gives trees of {self._store.path} other names than their contents have")
        return edited

    def _read(self, tree: str, paths: Iterable[bytes]) -> None:
        """Get to know the folders of these paths by one process, where any is unknown."""
        unknown = [path for path in sorted(paths) if not self._is_known(tree, path)]
        if not unknown:
            return
        with tempfile.TemporaryFile() as names:
            names.write(b"".join(b"%s:%s\n" % (tree.encode(), path) for path in unknown))
            with self._store.stream("cat-file", "--batch", feed=names) as output:
                for _ in unknown:
                    header = output.readline()
                    if header.endswith(b" missing\n"):
                        continue
                    words = header.split()
                    if len(words) != 3:
                        raise _UnknownError
                    body = output.read(int(words[2]))
                    output.read(1)
                    if words[1] == b"tree":
                        self._remember(words[0].decode(), _parsed(body, len(words[0]) // 2))

    def _is_known(self, tree: str, path: bytes) -> bool:
        """Whether all folders on the way are remembered, as far as there are any."""
        at: str | None = tree
        for word in _words(path) if path else ():
            folder = self._folders.get(at or "")
            if folder is None:
                return False
            mode, at = folder.get(word, (b"", ""))
            if mode != _TREE:
                return True
        return at in self._folders

    def _edit(self, tree: str | None, changes: _Changes, new: dict[str, bytes]) -> str | None:
        """The id of a folder after its changes, None where nothing is left of it; notes what is to be written."""
        before = self._folders.get(tree) if tree is not None else {}
        if before is None:
            raise _UnknownError
        names = dict(before)
        for name, entry in changes.here.items():
            if entry is not None:
                names[name] = (entry.mode.encode(), entry.blob)
            elif name in names and names[name][0] != _TREE:
                del names[name]
        for name, below in changes.below.items():
            mode, at = names.get(name, (b"", ""))
            if mode and mode != _TREE and changes.here.get(name):
                continue  # it takes the folder's place
            edited = self._edit(at if mode == _TREE else None, below, new)
            if edited is not None:
                names[name] = (_TREE, edited)
            elif mode == _TREE:
                del names[name]
        if tree is not None and names == before:
            return tree
        return self._noted(names, new) if names else None

    def _noted(self, names: _Folder, new: dict[str, bytes]) -> str:
        ordered = sorted(names.items(), key=lambda item: item[0] + b"/" if item[1][0] == _TREE else item[0])
        body = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(at)) for name, (mode, at) in ordered)
        tree = str(self._store.hasher("tree", len(body), body).hexdigest())
        new[tree] = body
        self._remember(tree, names)
        return tree

    def _remember(self, tree: str, folder: _Folder) -> None:
        with self._lock:
            if len(self._folders) >= _KEPT:
                self._folders = dict(list(self._folders.items())[_KEPT // 2 :])
            self._folders[tree] = folder


def _words(path: bytes) -> list[bytes]:
    return path.split(b"/")


def _sorted_in(changes: Mapping[bytes, TreeEntry | None]) -> _Changes:
    top = _Changes()
    for path, entry in changes.items():
        *above, name = _words(path)
        at = top
        for word in above:
            at = at.below.setdefault(word, _Changes())
        at.here[name] = entry
    return top


def _parsed(body: bytes, size: int) -> _Folder:
    """The names of a tree object, with modes as git writes them today."""
    found, at = {}, 0
    while at < len(body):
        space, end = body.index(b" ", at), body.index(b"\0", at)
        mode = body[at:space].lstrip(b"0")
        if mode.startswith(b"100"):
            mode = b"100755" if int(mode, 8) & 0o100 else b"100644"
        found[body[space + 1 : end]] = (mode, body[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
    return found
