"""The session of an agent program: the folder in which it keeps what it needs to go on. It is kept with the attempt's
last entry, and laid into the next stage's sandbox, or into one that is made anew after a kill."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import SandboxFileError
from prchain.core.git.trees import TreeStore
from trajectories.model import Entry, EntryKind

LARGEST = 128 << 20
"""Bytes of a session that is kept."""

NEW, RESUMED = "new", "resumed"
"""``session`` in the details of a query or a comment: whether it began a session of the agent, or was its next turn."""


class SessionTooLarge(Exception):
    """The agent left more than is kept."""


def session_of(entries: Sequence[Entry]) -> str | None:
    """The session that the attempt before left, whose entries end these; None where there is none to go on with."""
    return None if not entries else (entries[-1].details.get("program") or {}).get("session")


def said_in_session(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Those of the entries that belong to their last session."""
    began = next((at for at in reversed(range(len(entries))) if entries[at].details.get("session") == NEW), 0)
    position = entries[began].position
    while began and entries[began - 1].kind is EntryKind.SYSTEM and entries[began - 1].position == position:
        began -= 1
    return entries[began:]


def keep_session(sandbox: Sandbox, folder: str, trees: TreeStore) -> str | None:
    """Keep the folder; returns its blob, or None where the agent made none. Raises `SessionTooLarge`, and what a
    sandbox raises."""
    parts, size = [], 0
    try:
        stream = sandbox.get(folder)
        for part in stream:
            size += len(part)
            if size <= LARGEST:
                parts.append(part)
    except SandboxFileError:
        return None
    if size > LARGEST:
        raise SessionTooLarge
    return trees.write_blob(b"".join(parts))


def lay_session(sandbox: Sandbox, folder: str, trees: TreeStore, session: str) -> None:
    """Lay a session that was kept into a sandbox that lacks it. Raises what a sandbox and a store of trees raise."""
    if sandbox.exec(f"test -d {shlex.quote(folder)}").exit_code != 0:
        (content,) = trees.blobs([session])
        sandbox.put(folder.rpartition("/")[0], content)
