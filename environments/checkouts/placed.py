"""A sandbox that holds a placed tree, made to hold another: git writes the files that differ, and no object of before
stays in the repository."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from environments.checkouts.checkout import CHECK_OUT, start_commit
from prchain.core.errors import PlacementFailed

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox
    from prchain.core.git.trees import TreeStore

_PATIENCE = 600.0

_SMALL = 4 << 20
"""Bytes of an archive. What is small goes with a command: an engine takes some hundred times as long to begin."""
_UNPACK = "tar -x -p --no-same-owner -f -"
_MOST_LISTED = 64 << 20
_PACKS = ".git/objects/pack"

_PARTS = 20
"""In which a repository is kept from which others are made: packs that hold what has to go are written anew. From 51
packs on git tidies up by itself when an agent commits."""
_REMOVE = f"cd {_PACKS} && rm -f -- {{}}"

_FOLLOW = f"""set -e
{{unpack}}
{CHECK_OUT} {{commit}}
echo {{commit}} > .git/refs/heads/main
for pack in {{keep}}; do : > {_PACKS}/$pack.keep; done
git -c core.fsync=none repack -a -d -q -n --window=0
rm -f {_PACKS}/*.keep .git/ORIG_HEAD .git/FETCH_HEAD
"""
"""The index keeps what git knows of files that stay. Packs with objects that go, go as a whole."""

_INDEX = b"\xfftOc\0\0\0\2"
"""How the index of a pack begins, in the version that is read here."""
_TABLE = 8 + 256 * 4
"""Bytes before the table of ids."""


class PartedPacks:
    """The pack of a placed repository made anew in parts, while its sandbox does something else.

    Enter it to begin; leaving waits for the end of it.
    """

    def __init__(self, store: TreeStore, commit: str) -> None:
        self._store, self._commit = store, commit
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prchain-")))
            beside = stack.enter_context(ThreadPoolExecutor(1))
            self._names = beside.submit(self._store.pack, self._commit, self._folder, parts=_PARTS)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def put(self, sandbox: Sandbox) -> None:
        """Put them in place of the pack. Raises `PlacementFailed`, `GitError`, `SandboxError`."""
        old = [member for member, _ in _indexes(sandbox)]
        names = [f"pack-{name}" for name in self._names.result()]
        with tempfile.TemporaryFile() as archive:
            with tarfile.open(fileobj=archive, mode="w") as tar:
                for name in names:
                    _add_pack(tar, self._folder / name, old[0])
            archive.seek(0)
            sandbox.put(sandbox.config.workdir, archive)
        gone = [member.name.removesuffix(".idx") for member in old]
        files = " ".join(f"{name}.pack {name}.idx" for name in gone if name not in names)
        removed = sandbox.exec(_REMOVE.format(files), timeout=_PATIENCE)
        if removed.exit_code != 0:
            raise PlacementFailed(f"the repository cannot be parted: {removed.text.strip()[:300]}")


def move_placed(sandbox: Sandbox, store: TreeStore, before: str, after: str, *, history: Sequence[str] = ()) -> str:
    """Make a sandbox that `place_tree` made to hold `before`, without history, hold `after`; returns its commit.

    Nobody but us may have used the sandbox since, and its files are as in `before`. It takes less time where the
    repository has several packs (`PartedPacks`). What `place_tree` says of it holds: it has no object that its commit
    does not reach. Files that neither tree holds stay, unless a path of `after` needs their place. Raises as
    `place_tree`.
    """
    workdir = sandbox.config.workdir
    old, new = start_commit(store, before), start_commit(store, after, history)
    if new == old:
        return new
    packs = _indexes(sandbox)
    gone = {bytes.fromhex(name) for name in store.reached(old, without=new)}
    keep = " ".join(member.name.removesuffix(".idx") for member, index in packs if _lacks(index, gone))
    with tempfile.TemporaryFile() as archive:
        _write_pack(store, new, old, archive, packs[0][0])
        is_small = archive.tell() <= _SMALL
        archive.seek(0)
        if not is_small:
            sandbox.put(workdir, archive)
        script = _FOLLOW.format(unpack=_UNPACK if is_small else "", commit=new, keep=keep)
        followed = sandbox.exec(script, cwd=workdir, timeout=_PATIENCE, stdin=archive.read() if is_small else b"")
    if followed.exit_code != 0:
        raise PlacementFailed(f"{workdir} cannot be made to hold the tree: {followed.text.strip()[:300]}")
    return new


def _indexes(sandbox: Sandbox) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The indexes of the packs in the sandbox."""
    told = sandbox.exec(f"cd {_PACKS} && tar -c -f - *.idx", timeout=_PATIENCE, output_limit=_MOST_LISTED)
    if told.exit_code != 0 or told.omitted:
        raise PlacementFailed("the sandbox does not say what its repository holds")
    try:
        with tarfile.open(fileobj=io.BytesIO(told.output)) as tar:
            return [(member, file.read()) for member in tar if (file := tar.extractfile(member))]
    except tarfile.TarError as error:
        raise PlacementFailed(f"the sandbox does not say what its repository holds: {error}") from None


def _lacks(index: bytes, names: set[bytes]) -> bool:
    """Whether a pack with this index holds none of the objects. Its checksums are taken for ids, too."""
    width = len(next(iter(names)))
    held = (index[at : at + width] for at in range(_TABLE, len(index), width))
    return index.startswith(_INDEX) and names.isdisjoint(held)


def _write_pack(store: TreeStore, commit: str, known: str, out: BinaryIO, like: tarfile.TarInfo) -> None:
    """Write a tar of a pack with what the commit reaches and the tree of `known` does not hold; its files belong to
    whom `like` does."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tarfile.open(fileobj=out, mode="w") as tar:
        (name,) = store.pack(commit, Path(folder), without=[known])
        _add_pack(tar, Path(folder) / f"pack-{name}", like)


def _add_pack(tar: tarfile.TarFile, name: Path, like: tarfile.TarInfo) -> None:
    for path in (name.with_name(f"{name.name}.{ending}") for ending in ("pack", "idx")):
        header = tarfile.TarInfo(f"{_PACKS}/{path.name}")
        header.size, header.mode = path.stat().st_size, 0o644
        header.uid, header.gid = like.uid, like.gid
        with path.open("rb") as content:
            tar.addfile(header, content)
