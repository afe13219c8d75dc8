"""Put a tree into a sandbox, and read the tree that an agent left there.

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
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from environments.checkouts.extraction import Extraction, extract_tree
from environments.checkouts.tarball import copy_owned
from prchain.errors import PlacementFailed
from prchain.git.trees import RAW_ATTRIBUTES, TreeStore, commit_body

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

__all__ = ["Extraction", "extract_tree", "linear_history", "place_repository", "place_tree"]

_PATIENCE = 600.0
"""Seconds for emptying a folder, or for git to read every file of it once."""

_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
{extension}[user]
\tname = agent
\temail = agent@localhost
"""

_EMPTY = 'mkdir -p -- {0} && cd -P -- {0} && chown "$(id -u):$(id -g)" . && shopt -s dotglob nullglob && rm -rf -- ./*'
"""The folder itself must belong to our user: git refuses to work in another user's."""

_FORGET = "if [ -d .git ]; then find .git -mindepth 1 -maxdepth 1 ! -name info -exec rm -rf {} +; fi"
"""The folder info stays: it lists the files that the refresh made."""


def place_tree(
    sandbox: Sandbox, store: TreeStore, tree: str, *, workdir: str | None = None, history: Sequence[str] = ()
) -> str:
    """Make the sandbox's `workdir` hold exactly `tree`, as the work tree of a new repository; returns its commit.

    Files are exactly the blobs: no attribute of the tree changes an end of line. `history` are commits, newest first,
    that become a straight line before the tree's commit; they must be ancestors of the base. The sandbox needs git.
    Raises `PlacementFailed`, `IncompleteRepository`, `GitError` for names that git refuses, `SandboxError`.
    """
    workdir = workdir or sandbox.config.workdir
    commit = store.commit(store.tree_of(tree), linear_history(store, history), "Start of the stage\n")
    owner = _owner(sandbox)
    # Two files: an engine's client has to know the length of what it sends.
    with tempfile.TemporaryFile() as repository, tempfile.TemporaryFile() as files:
        _write_repository(store, commit, repository, owner)
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


def place_repository(
    sandbox: Sandbox, store: TreeStore, tree: str, *, workdir: str | None = None, history: Sequence[str] = ()
) -> str:
    """Replace the repository in the sandbox's `workdir` by the one that `place_tree` makes for `tree`; keep the files.

    So an agent that goes on from a later tree finds its own work as changes to the commit that the stage began with.
    Returns that commit. Raises as `place_tree`.
    """
    workdir = workdir or sandbox.config.workdir
    commit = store.commit(store.tree_of(tree), linear_history(store, history), "Start of the stage\n")
    owner = _owner(sandbox)
    with tempfile.TemporaryFile() as repository:
        _write_repository(store, commit, repository, owner)
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


def linear_history(store: TreeStore, commits: Sequence[str]) -> list[str]:
    """Rewrite commits (newest first) so that each is the only parent of the next; returns the newest, if any.

    A true history would be cut off at commits whose parents are missing. Signatures go, authors and messages stay.
    """
    parents: list[str] = []
    with store.stream("cat-file", "--batch", lines=reversed(commits)) as output:
        bodies = [_raw(output) for _ in commits]
    for body in bodies:
        heads, _, message = body.partition(b"\n\n")
        lines = heads.split(b"\n")
        tree = lines[0].removeprefix(b"tree ").decode()
        kept = [line for line in lines if line.startswith((b"author ", b"committer ", b"encoding "))]
        parents = store.write("commit", [commit_body(tree, parents, message, heads=kept)])
    return parents


def _owner(sandbox: Sandbox) -> tuple[int, int]:
    """The ids of user and group that commands run as; git refuses another user's repository."""
    ids = sandbox.exec('echo "$(id -u) $(id -g)"', cwd="/").text.split()
    if len(ids) != 2 or not all(word.isdecimal() for word in ids):
        raise PlacementFailed(f"the sandbox does not say whose files are to be made: {' '.join(ids)[:100]}")
    return int(ids[0]), int(ids[1])


def _raw(output: IO[bytes]) -> bytes:
    header = output.readline().split()
    if len(header) != 3 or header[1] != b"commit":
        raise PlacementFailed("a commit of the history is missing")
    body = output.read(int(header[2]))
    output.read(1)
    return body


def _write_repository(store: TreeStore, commit: str, out: IO[bytes], owner: tuple[int, int]) -> None:
    """Write a tar of a .git folder that holds the commit, on the branch main, and what it reaches."""
    extension = "" if store.object_format == "sha1" else f"[extensions]\n\tobjectFormat = {store.object_format}\n"
    config = _CONFIG.format(version=1 if extension else 0, extension=extension)
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, tarfile.open(fileobj=out, mode="w") as archive:
        place = Path(folder)
        name = store.pack(commit, place)
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
        for path in ("index", *(f"pack-{name}.{ending}" for ending in ("pack", "idx"))):
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
