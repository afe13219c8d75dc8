"""The reference of a stage as files: an archive of what it changes, for the oracle."""

from __future__ import annotations

import io
import shlex
import tarfile

from prchain.core.errors import UsageError
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, SUBMODULE, TreeStore

ARCHIVE, GONE = "reference.tar", "gone"


def reference_files(trees: TreeStore, base: str, landed: str) -> dict[str, bytes]:
    """The archive of what `landed` has otherwise than `base`, and the names of what it lacks, with a NUL behind each.

    Raises `UsageError` where a submodule changes, which is no file; `IncompleteRepository`.
    """
    changes = trees.diff(base, landed)
    if any(entry and entry.mode == SUBMODULE for change in changes for entry in (change.old, change.new)):
        raise UsageError("its reference changes a submodule, which no archive of files can hold")
    kept = [(path, new) for path, _, new in changes if new is not None and new.mode in (FILE, EXECUTABLE, LINK)]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for (path, entry), content in zip(kept, trees.blobs(entry.blob for _, entry in kept), strict=True):
            header = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
            header.mode = 0o755 if entry.mode == EXECUTABLE else 0o644
            if entry.mode == LINK:
                header.type, header.linkname = tarfile.SYMTYPE, content.decode("utf-8", "surrogateescape")
                archive.addfile(header)
            else:
                header.size = len(content)
                archive.addfile(header, io.BytesIO(content))
    gone = b"".join(path + b"\0" for path, _, new in changes if new is None)
    return {ARCHIVE: out.getvalue(), GONE: gone}


def solve_script(workdir: str, canary: str) -> str:
    """``solve.sh``: it lays the reference over the step's tree."""
    return (
        "#!/bin/bash\n"
        f"# {canary}\n"
        "set -eu\n"
        'here=$(cd -- "$(dirname -- "$0")" && pwd)\n'
        f"cd -- {shlex.quote(workdir)}\n"
        f'xargs -0 -r rm -rf -- <"$here/{GONE}"\n'
        # Files get the time of now: a compiled module of an older source would be taken for current.
        f'tar -x -m --no-same-owner -f "$here/{ARCHIVE}"\n'
    )
