"""Patches that only rename: work that a search and replace does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prchain.core.git import FilePatch

MAX_NAMES = 6
"""A patch that only renames changes at most so many different names; a rewrite changes more."""

_TOKEN = re.compile(r"[^\W\d]\w*|\d+|\S")
_NAME = re.compile(r"[^\W\d]\w*")


def is_rename_only(files: Sequence[FilePatch]) -> bool:
    """Whether every hunk has the same tokens on both sides, with some names replaced, each always by the same one."""
    names: dict[str, str] = {}
    hunks = [hunk for file in files for hunk in file.hunks]
    return bool(hunks) and all(_renames(hunk.lines, names) for hunk in hunks) and 0 < len(names) <= MAX_NAMES


def _renames(lines: Sequence[str], names: dict[str, str]) -> bool:
    removed = _TOKEN.findall("\n".join(line[1:] for line in lines if line[0] == "-"))
    added = _TOKEN.findall("\n".join(line[1:] for line in lines if line[0] == "+"))
    if len(removed) != len(added):
        return False
    for old, new in zip(removed, added, strict=True):
        if old != new and not (_NAME.fullmatch(old) and _NAME.fullmatch(new) and names.setdefault(old, new) == new):
            return False
    return True
