"""The folders of sandboxes on this machine: copied, and counted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

from prchain.core.errors import SandboxError

_BLOCK = 4096


def copy_folder(source: Path, target: Path) -> None:
    """A copy of a folder, made with reflinks where possible. Raises `SandboxError`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cp", "-a", "--reflink=auto", "--", str(source), str(target)]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode != 0:
        raise SandboxError(f"a snapshot cannot be copied: {result.stderr.decode('utf-8', 'replace')[-200:].strip()}")


def remove_folder(folder: Path) -> None:
    """Remove a file, or a folder with what commands locked in it, of any depth, as far as that is possible."""
    remove = ["rm", "-rf", "--", str(folder)]
    subprocess.run(remove, capture_output=True, check=False)
    if os.path.lexists(folder):
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], capture_output=True, check=False)
        subprocess.run(remove, capture_output=True, check=False)


def used_bytes(folder: Path) -> int:
    """Bytes on disk below a folder; links are not followed, what vanishes meanwhile does not count.

    Each name counts as a block at least: file systems run out of inodes, too.
    """
    total, waiting = 0, [str(folder)]
    until = time.monotonic() + 60
    while waiting and time.monotonic() < until:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += max(entry.stat(follow_symlinks=False).st_blocks * 512, _BLOCK)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total


def is_open_to_all(folder: Path) -> bool:
    """Whether any user may enter a folder."""
    try:
        return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))
    except OSError:
        return False
