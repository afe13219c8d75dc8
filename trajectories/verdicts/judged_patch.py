"""The patch of two trees as a judge is to read it."""

from __future__ import annotations

import os
import re

from prchain.core.code.kinds import is_text
from prchain.core.git import GitRepository
from prchain.core.git.patch_lines import shared_path
from trajectories.verdicts.patch_text import header_of, is_binary, sections

_HEAD = b"diff --git "
_ODD = re.compile(r"[^\t\n\f\r -~\u00a0-\ud7ff\ue000-\U0010ffff]")
"""What text has none of: control characters, and bytes that are not UTF-8, which decode to lone surrogates."""
_MOST_ODD = 0.1


def judged_patch(git: GitRepository, old: str, new: str) -> bytes:
    """The patch from `old` to `new` with whole functions. A NUL makes git take a file for binary; where it is one of
    text by its name, or reads as text and has a name that does not say, its lines are shown: Python and shells run such
    files, so a judge has to see them. Raises `GitError`."""
    parts = sections(git.patch_text(old, new, functions=True))
    places = {_path(part): place for place, part in enumerate(parts) if is_binary(part)}
    texts = {path: named for path in places if (named := is_text(path)) is not False}
    if texts:
        for part in sections(git.patch_text(old, new, list(texts), functions=True, text=True)):
            path = _path(part)
            if texts[path] or _reads_as_text(part):
                parts[places[path]] = part
    return b"".join(parts)


def _path(section: bytes) -> str:
    """The path of a file's part, as git takes it: nothing in it is renamed."""
    line = section[len(_HEAD) :].partition(b"\n")[0]
    return os.fsdecode(shared_path(line))


def _reads_as_text(section: bytes) -> bool:
    content = section[len(header_of(section)) :].decode("utf-8", "surrogateescape")
    return len(_ODD.findall(content)) <= _MOST_ODD * len(content)
