"""Containers and snapshots that a crash left behind: which are ours, and whether the process that made them still runs.

Everything that a sandbox makes in an engine carries labels: what it is, and which process made it. Nothing
without such a label is touched, and nothing of a process that still runs, or of another machine on the same engine.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.sandboxes.docker_stream import engine_errors
from environments.sandboxes.local_files import remove_folder
from prchain.core.errors import EngineUnavailable, SandboxError
from prchain.core.processes.alive import Process, this_process

SANDBOX = "prchain.sandbox"
SNAPSHOT = "prchain.snapshot"
OWNER = "prchain.owner"
"""Labels: a container's or a snapshot's name, and the process that made it."""

LOCAL_PREFIX = "prchain-local-"
OWNER_FILE = "owner"
"""What folders of sandboxes are called among the temporary ones, and the file in each that names its process."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing to remove: `kind` is ``container`` or ``snapshot``."""

    kind: str
    name: str
    id: str


def owned_folder(place: Path | None = None) -> Path:
    """A new folder, a temporary one or in `place`, that is found when its process is gone. Raises `OSError`."""
    return make_owned(Path(tempfile.mkdtemp(prefix="prchain-new-", dir=place)))


def make_owned(folder: Path) -> Path:
    """Rename a folder, beside where it is, to one that is found when this process is gone. Raises `OSError`."""
    (folder / OWNER_FILE).write_text(str(this_process()), encoding="utf-8")
    return folder.rename(folder.with_name(f"{LOCAL_PREFIX}{secrets.token_hex(8)}"))


def remove_owned(folder: Path) -> None:
    """Remove a folder that is found by its owner, as far as that is possible: the owner's name last. Never fails."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != OWNER_FILE:
                remove_folder(path)
        (folder / OWNER_FILE).unlink(missing_ok=True)
        folder.rmdir()


def our_labels(kind: str, name: str) -> dict[str, str]:
    """The labels of a thing that this process makes."""
    other = SNAPSHOT if kind == SANDBOX else SANDBOX
    return {kind: name, other: "", OWNER: str(this_process())}


def find(client: Any, *, everybody: bool = False) -> list[Leftover]:
    """What was left behind in the engine, in the order in which it can be removed.

    With `everybody` also what running processes and other machines have made. Raises `EngineUnavailable`.
    """
    return _find(client, lambda owner: everybody or owner.is_gone)


def find_own(client: Any) -> list[Leftover]:
    """What this process has in the engine, in the order in which it can be removed. Raises `EngineUnavailable`."""
    current = this_process()
    return _find(client, lambda owner: owner == current)


def _find(client: Any, wanted: Callable[[Process], bool]) -> list[Leftover]:
    with engine_errors("listing sandboxes"):
        containers = client.api.containers(all=True, filters={"label": SANDBOX})
        images = client.api.images(filters={"label": SNAPSHOT})
    found = [
        Leftover("container", item["Labels"][SANDBOX], item["Id"])
        for item in containers
        if item["Labels"].get(SANDBOX) and _is_of(item["Labels"], wanted)
    ]
    images.sort(key=lambda item: item["Created"], reverse=True)
    return found + [
        Leftover("snapshot", item["Labels"][SNAPSHOT], item["Id"])
        for item in images
        if item["Labels"].get(SNAPSHOT) and _is_of(item["Labels"], wanted)
    ]


def remove(client: Any, leftovers: list[Leftover]) -> list[Leftover]:
    """Remove them; returns those that could not be, e.g. a snapshot that another container stands on."""
    kept: list[Leftover] = []
    waiting = leftovers
    while waiting:
        kept = []
        for item in waiting:
            try:
                with engine_errors(f"removing {item.name}"):
                    if item.kind == "container":
                        client.api.remove_container(item.id, force=True, v=True)
                    else:
                        client.api.remove_image(item.id, force=True)
            except EngineUnavailable:
                raise
            except SandboxError:
                kept.append(item)
        if len(kept) == len(waiting):
            break
        waiting = kept
    with engine_errors("listing sandboxes"):
        present = {item["Id"] for item in client.api.containers(all=True)} | {
            item["Id"] for item in client.api.images()
        }
    return [item for item in kept if item.id in present]


def clear_local(folder: Path | None = None, *, own: bool = False, everybody: bool = False) -> dict[Path, bool]:
    """Remove the folders of sandboxes whose process is gone, or with `own` those of this process, or of `everybody`;
    returns each, and whether it is gone.

    `folder` is where they lie; None: where temporary folders do.
    """
    found = {}
    current = this_process()
    for path in sorted((folder or Path(tempfile.gettempdir())).glob(f"{LOCAL_PREFIX}*")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            owner = Process.parse((path / OWNER_FILE).read_text(encoding="utf-8"))
            if owner is not None and (owner == current if own else everybody or owner.is_gone):
                remove_owned(path)
                found[path] = not path.exists()
    return found


def _is_of(labels: dict[str, str], wanted: Callable[[Process], bool]) -> bool:
    owner = Process.parse(labels.get(OWNER, ""))
    return owner is not None and wanted(owner)
