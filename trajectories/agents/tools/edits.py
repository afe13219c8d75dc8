"""The edits of an attempt that can be taken back.

A file's content before an edit is stored in the details of the edit's observation, so that a run that was killed can
still take the edit back. A content that is too large for that is not remembered.
"""

from __future__ import annotations

import base64
import posixpath
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from trajectories.model import Entry

EDITOR = "str_replace_editor"
"""The name of the tool whose edits these are."""

UNDO = "undo_edit"
"""Its command that takes an edit back."""

_COMMANDS = ("create", "str_replace", "insert")
_MOST = 20
"""Edits of a file that can be taken back."""

_LARGEST = 256 << 10
"""Characters of what a file held, packed: about a megabyte of code."""


class Edits:
    """Path to the file's contents before each edit, None where there was no file; the last edit is last."""

    def __init__(self) -> None:
        self._before: dict[str, list[bytes | None]] = {}

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Edits:
        """The edits in the entries of an attempt."""
        edits = cls()
        for entry in entries:
            details = entry.details
            if entry.tool_name != EDITOR or entry.error is not None or "path" not in details:
                continue
            if details["command"] == UNDO:
                edits.take_back(details["path"])
            elif details["command"] in _COMMANDS:
                edits._add(details["path"], details)
        return edits

    def remember(self, path: str, before: bytes | None) -> Mapping[str, Any]:
        """Remember an edit. Returns the details for its observation."""
        packed = None if before is None else base64.b64encode(zlib.compress(before)).decode()
        details = {} if packed is not None and len(packed) > _LARGEST else {"before": packed}
        self._add(path, details)
        return details

    def last(self, path: str) -> tuple[bytes | None] | None:
        """A tuple of the file's content before the last edit; None where no edit of it is remembered."""
        history = self._before.get(posixpath.normpath(path))
        return (history[-1],) if history else None

    def take_back(self, path: str) -> None:
        """The last edit was taken back."""
        history = self._before.get(posixpath.normpath(path))
        if history:
            history.pop()

    def _add(self, path: str, details: Mapping[str, Any]) -> None:
        history = self._before.setdefault(posixpath.normpath(path), [])
        if "before" not in details:
            # Earlier edits cannot be taken back either: the content in between is not known.
            history.clear()
            return
        packed = details["before"]
        history.append(None if packed is None else zlib.decompress(base64.b64decode(packed)))
        del history[:-_MOST]
