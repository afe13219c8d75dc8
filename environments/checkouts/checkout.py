"""Put a tree into a sandbox, change it into another, and read the tree that an agent left there.

In goes the tree with a new repository, which has one commit (and, if requested, a history cut from the base's) and no
other object, ref or reflog. Out come the files alone: by then the repository inside belongs to the agent, and it is not
trusted.
"""

from __future__ import annotations

import io
import os
import shlex
import tarfile
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from environments.checkouts.extraction import Extraction, extract_tree, folders_above
from environments.checkouts.tarball import copy_owned
from prchain.core.errors import IncompleteRepository, PlacementFailed, SandboxFileError
from prchain.core.git.output import path_text
from prchain.core.git.trees import (
    EXECUTABLE,
    FILE,
    LINK,
    RAW_ATTRIBUTES,
    SUBMODULE,
    TreeChange,
    TreeEntry,
    TreeStore,
    commit_body,
    is_storable,
)

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

__all__ = [
    "CHECK_OUT",
    "Extraction",
    "extract_tree",
    "linear_history",
    "move_tree",
    "place_by_git",
    "place_repository",
    "place_tree",
    "start_commit",
    "write_repository",
]

_PATIENCE = 600.0
"""Seconds for emptying a folder, or for git to read every file of it once."""

_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
\tcheckStat = minimal
{extension}[user]
\tname = agent
\temail = agent@localhost
"""
"""With checkStat git knows a file by its size and the second of its last change, which copies of a sandbox keep; by
default it would read all files there once more."""

_EMPTY = 'mkdir -p -- {0} && cd -P -- {0} && chown "$(id -u):$(id -g)" . && shopt -s dotglob nullglob && rm -rf -- ./*'
"""The folder itself must belong to our user: git refuses to work in another user's."""

CHECK_OUT = (
    "umask 022; GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent "
    "git -c core.protectNTFS=false -c core.protectHFS=false -c core.symlinks=true -c checkout.workers=2 "
    "read-tree --reset -u HEAD"
)
"""No configuration of the image decides what lies there, and the repository's attributes outrank the tree's. With the
name of another commit behind it what differs between both is written, and nothing else is looked at. Two processes
write where there are many files: 0.7 s in place of 0.9 to 1.3 for 9,000."""

_FORGET = "if [ -d .git ]; then find .git -mindepth 1 -maxdepth 1 ! -name info -exec rm -rf {} +; fi"
"""The folder info stays: it lists the files that the refresh made."""

# An agent may have put programs of its own into a folder of PATH.
_CLEAN = "export LC_ALL=C PATH=/usr/bin:/bin\n"
_REMOVE = "xargs -0 rm -rf --"
_MAKE_WAY = 'while IFS= read -rd "" path; do [[ -d $path && ! -L $path ]] || rm -rf -- "$path" || exit; done'
"""Removes what is no folder and stands where one has to be: a file that the tree's rules ignore, say."""
_REMOVE_EMPTY = "xargs -0 rmdir -- 2>/dev/null; true"
_LINK = 'while IFS= read -rd "" path && IFS= read -rd "" target; do ln -s -- "${target#./}" "$path" || exit; done'


def place_tree(
    sandbox: Sandbox, store: TreeStore, tree: str, *, workdir: str | None = None, history: Sequence[str] = ()
) -> str:
    """Make the sandbox's `workdir` hold exactly `tree`, as the work tree of a new repository; returns its commit.

    Files are exactly the blobs: no attribute of the tree changes an end of line. `history` are commits, newest first,
    that become a straight line before the tree's commit; they must be ancestors of the base. The sandbox needs git.
    Raises `PlacementFailed`, `IncompleteRepository`, `GitError` for names that git refuses, `SandboxError`.
    """
    workdir = workdir or sandbox.config.workdir
    commit = start_commit(store, tree, history)
    owner = owner_of(sandbox)
    # Two files: an engine's client has to know the length of what it sends.
    with tempfile.TemporaryFile() as repository, tempfile.TemporaryFile() as files:
        write_repository(store, commit, repository, owner)
        with store.to_tar(commit) as output:
            copy_owned(output, files, owner)
        emptied = sandbox.exec(_EMPTY.format(shlex.quote(workdir)), cwd="/", timeout=_PATIENCE)
        if emptied.exit_code != 0:
            raise PlacementFailed(f"{workdir} cannot be emptied: {emptied.text.strip()[:300]}")
        for archive in (files, repository):
            archive.seek(0)
            sandbox.put(workdir, archive)
    # Stores the files' times in the index, or the agent's first git command would; and compares all files.
    checked = sandbox.exec("git update-index --refresh", cwd=workdir, timeout=_PATIENCE)
    if checked.exit_code != 0:
        raise PlacementFailed(f"{workdir} does not hold what was put there: {checked.text.strip()[:300]}")
    return commit


def place_by_git(sandbox: Sandbox, store: TreeStore, tree: str, *, history: Sequence[str] = ()) -> str:
    """As `place_tree`, in less time, where nobody but us has used the sandbox: its git writes the files, from the pack.

    What its git does not take, `place_tree` places.
    """
    workdir = sandbox.config.workdir
    commit = start_commit(store, tree, history)
    with tempfile.TemporaryFile() as repository:
        write_repository(store, commit, repository, owner_of(sandbox))
        repository.seek(0)
        emptied = sandbox.exec(_EMPTY.format(shlex.quote(workdir)), cwd="/", timeout=_PATIENCE)
        if emptied.exit_code == 0:
            sandbox.put(workdir, repository)
            if sandbox.exec(CHECK_OUT, cwd=workdir, timeout=_PATIENCE).exit_code == 0:
                return commit
    return place_tree(sandbox, store, tree, history=history)


def place_repository(
    sandbox: Sandbox, store: TreeStore, tree: str, *, workdir: str | None = None, history: Sequence[str] = ()
) -> str:
    """Replace the repository in the sandbox's `workdir` by the one that `place_tree` makes for `tree`; keep the files.

    So an agent that goes on from a later tree finds its own work as changes to the commit that the stage began with.
    Returns that commit. Raises as `place_tree`.
    """
    workdir = workdir or sandbox.config.workdir
    commit = start_commit(store, tree, history)
    owner = owner_of(sandbox)
    with tempfile.TemporaryFile() as repository:
        write_repository(store, commit, repository, owner)
        repository.seek(0)
        forgotten = sandbox.exec(_FORGET, cwd=workdir, timeout=_PATIENCE)
        if forgotten.exit_code != 0:
            raise PlacementFailed(f"{workdir}/.git cannot be emptied: {forgotten.text.strip()[:300]}")
        sandbox.put(workdir, repository)
    # Exits with 1 where files differ from the commit, as they should here.
    checked = sandbox.exec("git update-index --refresh >/dev/null; git rev-parse HEAD", cwd=workdir, timeout=_PATIENCE)
    if checked.text.strip() != commit:
        raise PlacementFailed(f"{workdir} has no repository of ours: {checked.text.strip()[:300]}")
    return commit


def move_tree(sandbox: Sandbox, store: TreeStore, before: str, after: str, *, workdir: str | None = None) -> None:
    """Change the files in the sandbox's `workdir` from the tree `before`, which it holds, to the tree `after`.

    Only paths that differ are written or removed, and folders that this leaves empty go. Files that neither tree holds
    stay, unless a path of `after` needs their place; so do the folder's repository and what is in submodules' folders.
    Raises `PlacementFailed`, `IncompleteRepository`, `GitError`, `SandboxError`.
    """
    workdir = workdir or sandbox.config.workdir
    changes = store.diff(store.tree_of(before), store.tree_of(after))
    if not changes:
        return
    _check_names(changes)
    old_folders, new_folders = (
        {above for path in store.entries(tree) for above in folders_above(path)} for tree in (before, after)
    )
    files = {path: new for path, _, new in changes if new and new.mode in (FILE, EXECUTABLE)}
    links = {path: new.blob for path, _, new in changes if new and new.mode == LINK}
    modules = {path for path, old, new in changes if new and new.mode == SUBMODULE and not _is_module(old)}
    folders = {
        above for path in files.keys() | links | modules for above in folders_above(path)
    } - old_folders | modules
    removed = {path for path, old, _ in changes if old and not _is_module(old)} | files.keys() | links.keys()
    left = {above for path, _, _ in changes for above in folders_above(path)} - new_folders
    left |= {path for path, old, new in changes if _is_module(old) and not new}
    targets = dict(zip(links, store.blobs(links.values()), strict=True))
    for path, target in targets.items():
        if not target or b"\0" in target:
            raise PlacementFailed(f"{path_text(path)!r} is a link to a name that cannot be")
    with tempfile.TemporaryFile() as archive:
        _write_files(store, files, sorted(folders), archive, owner_of(sandbox))
        archive.seek(0)
        _feed(sandbox, workdir, _REMOVE, sorted(removed))
        _feed(sandbox, workdir, _MAKE_WAY, sorted(folders))
        _feed(sandbox, workdir, _REMOVE_EMPTY, sorted(left, reverse=True))
        try:
            if files or folders:
                sandbox.put(workdir, archive)
        except SandboxFileError as error:
            raise PlacementFailed(f"{workdir} cannot be made to hold the tree: {error}") from None
    # Not in the archive: an engine refuses links that lead out of the folder.
    _feed(sandbox, workdir, _LINK, [name for path, target in targets.items() for name in (path, target)])


def start_commit(store: TreeStore, tree: str, history: Sequence[str] = ()) -> str:
    """The commit that a stage's repository begins with; `history` as in `place_tree`."""
    return store.commit(store.tree_of(tree), linear_history(store, history), "Start of the stage\n")


def linear_history(store: TreeStore, commits: Sequence[str]) -> list[str]:
    """Rewrite commits (newest first) so that each is the only parent of the next; returns the newest, if any.

    A true history would be cut off at commits whose parents are missing. Signatures go, authors and messages stay.
    """
    parents: list[str] = []
    if not commits:
        return parents
    with store.stream("cat-file", "--batch", lines=reversed(commits)) as output:
        bodies = [_raw(output) for _ in commits]
    for body in bodies:
        heads, _, message = body.partition(b"\n\n")
        lines = heads.split(b"\n")
        tree = lines[0].removeprefix(b"tree ").decode()
        kept = [line for line in lines if line.startswith((b"author ", b"committer ", b"encoding "))]
        parents = store.write("commit", [commit_body(tree, parents, message, heads=kept)])
    return parents


def owner_of(sandbox: Sandbox) -> tuple[int, int]:
    """The ids of user and group that commands run as; git refuses another user's repository."""
    ids = sandbox.exec('echo "$(id -u) $(id -g)"', cwd="/").text.split()
    if len(ids) != 2 or not all(word.isdecimal() for word in ids):
        raise PlacementFailed(f"the sandbox does not say whose files are to be made: {' '.join(ids)[:100]}")
    return int(ids[0]), int(ids[1])


def _is_module(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == SUBMODULE


def _check_names(changes: Iterable[TreeChange]) -> None:
    """Raise `PlacementFailed` for a path that leads out of the folder or into its repository."""
    for path, old, new in changes:
        if not all(is_storable(path, entry.mode) for entry in (old, new) if entry):
            raise PlacementFailed(f"{path_text(path)!r} is no name that a folder can be made to hold")


def _feed(sandbox: Sandbox, workdir: str, command: str, paths: Sequence[bytes]) -> None:
    """Run a command in the work folder that reads names from its input, each with ``./`` before it and a NUL after."""
    if not paths:
        return
    names = b"".join(b"./%s\0" % path for path in paths)
    result = sandbox.exec(_CLEAN + command, cwd=workdir, timeout=_PATIENCE, stdin=names)
    if result.exit_code != 0:
        raise PlacementFailed(f"{workdir} cannot be made to hold the tree: {result.text.strip()[:300]}")


def _write_files(
    store: TreeStore,
    files: Mapping[bytes, TreeEntry],
    folders: Iterable[bytes],
    out: IO[bytes],
    owner: tuple[int, int],
) -> None:
    """Write a tar of the folders, then of the files."""
    # Not a fixed time: Python takes a compiled file for current whose source has the same time and size.
    now = int(time.time())
    with (
        tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive,
        store.stream("cat-file", "--batch", lines=[entry.blob for entry in files.values()]) as blobs,
    ):
        for path in folders:
            archive.addfile(_header(path, tarfile.DIRTYPE, 0o755, now, owner))
        for path, entry in files.items():
            size = _size(blobs, entry.blob)
            header = _header(path, tarfile.REGTYPE, 0o755 if entry.mode == EXECUTABLE else 0o644, now, owner)
            header.size = size
            archive.addfile(header, blobs)
            blobs.read(1)


def _header(path: bytes, kind: bytes, mode: int, seconds: int, owner: tuple[int, int]) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
    header.type, header.mode, header.mtime = kind, mode, seconds
    header.uid, header.gid = owner
    return header


def _size(blobs: IO[bytes], name: str) -> int:
    header = blobs.readline().split()
    if len(header) != 3:
        raise IncompleteRepository(f"blob {name} is missing; fetch the repository anew")
    return int(header[2])


def _raw(output: IO[bytes]) -> bytes:
    header = output.readline().split()
    if len(header) != 3 or header[1] != b"commit":
        raise PlacementFailed("a commit of the history is missing")
    body = output.read(int(header[2]))
    output.read(1)
    return body


def write_repository(store: TreeStore, commit: str, out: IO[bytes], owner: tuple[int, int]) -> None:
    """Write a tar of a .git folder that holds the commit, on the branch main, and what it reaches."""
    extension = "" if store.object_format == "sha1" else f"[extensions]\n\tobjectFormat = {store.object_format}\n"
    config = _CONFIG.format(version=1 if extension else 0, extension=extension)
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tarfile.open(fileobj=out, mode="w") as archive:
        place = Path(folder)
        (name,) = store.pack(commit, place)
        store.write_index(commit, place / "index")
        for path in ("", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"):
            _add(archive, path, None, owner)
        for path, text in (
            ("HEAD", "ref: refs/heads/main\n"),
            ("config", config),
            ("info/attributes", RAW_ATTRIBUTES),
            ("refs/heads/main", f"{commit}\n"),
        ):
            _add(archive, path, io.BytesIO(text.encode()), owner)
        for path in ("index", f"pack-{name}.pack", f"pack-{name}.idx"):
            with (place / path).open("rb") as file:
                _add(archive, f"objects/pack/{path}" if path != "index" else path, file, owner)


def _add(archive: tarfile.TarFile, path: str, content: IO[bytes] | None, owner: tuple[int, int]) -> None:
    header = tarfile.TarInfo(f".git/{path}".rstrip("/"))
    header.uid, header.gid = owner
    if content is None:
        header.type, header.mode = tarfile.DIRTYPE, 0o755
    else:
        header.size = content.seek(0, os.SEEK_END)
        content.seek(0)
    archive.addfile(header, content)
