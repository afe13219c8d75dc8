"""A sandbox that holds a placed tree, made to hold another: changed files move, and the repository follows."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from environments.checkouts.checkout import move_tree, owner_of, start_commit
from prchain.core.errors import PlacementFailed

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox
    from prchain.core.git.trees import TreeStore

_PATIENCE = 600.0

_SMALL = 4 << 20
"""Bytes of an archive."""
_UNPACK = "tar -x -p --no-same-owner -f -"

_FOLLOW = """set -e
echo {commit} > .git/refs/heads/main
git read-tree -i -m {commit}
git update-index --refresh
git -c core.fsync=none repack -a -d -q -n --window=0
rm -f .git/ORIG_HEAD .git/FETCH_HEAD
"""
"""The index keeps what git knows of files that stay. Packs with the objects of before go, as a whole."""


def move_placed(sandbox: Sandbox, store: TreeStore, before: str, after: str, *, history: Sequence[str] = ()) -> str:
    """Make a sandbox that `place_tree` made to hold `before`, without history, hold `after`; returns its commit.

    Nobody but us may have used the sandbox since. What `place_tree` says of the repository holds: it has no object that
    its commit does not reach. Other files stay, as in `move_tree`. Raises as `place_tree`.
    """
    workdir = sandbox.config.workdir
    old, new = start_commit(store, before), start_commit(store, after, history)
    if new == old:
        return new
    put = partial(_put, sandbox)
    move_tree(sandbox, store, before, after, put=put)
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tempfile.TemporaryFile() as archive:
        name = store.pack(new, Path(folder), without=[old])
        uid, gid = owner_of(sandbox)
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for ending in ("pack", "idx"):
                header = tarfile.TarInfo(f".git/objects/pack/pack-{name}.{ending}")
                content = (Path(folder) / f"pack-{name}.{ending}").read_bytes()
                header.size, header.mode, header.uid, header.gid = len(content), 0o644, uid, gid
                tar.addfile(header, io.BytesIO(content))
        archive.seek(0)
        put(workdir, archive)
    followed = sandbox.exec(_FOLLOW.format(commit=new), cwd=workdir, timeout=_PATIENCE)
    if followed.exit_code != 0:
        raise PlacementFailed(f"{workdir} cannot be made to hold the tree: {followed.text.strip()[:300]}")
    return new


def _put(sandbox: Sandbox, folder: str, archive: BinaryIO) -> None:
    """Unpack a tar whose files are all our user's. What is small goes by a command: an engine takes some hundred times
    as long to begin."""
    if archive.seek(0, os.SEEK_END) <= _SMALL:
        archive.seek(0)
        if sandbox.exec(_UNPACK, cwd=folder, timeout=_PATIENCE, stdin=archive.read()).exit_code == 0:
            return
    archive.seek(0)
    sandbox.put(folder, archive)
