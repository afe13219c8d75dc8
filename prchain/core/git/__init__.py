"""Git plumbing: repositories read through a few streaming processes, and mirrors kept up to date."""

from __future__ import annotations

from prchain.core.git.mirror import is_clone_url, mirror_path, open_mined, update_mirror
from prchain.core.git.output import LineCount, RawChange, RawCommit, path_text
from prchain.core.git.patches import FilePatch, Hunk, parse_patch
from prchain.core.git.repository import GitRepository

__all__ = [
    "FilePatch",
    "GitRepository",
    "Hunk",
    "LineCount",
    "RawChange",
    "RawCommit",
    "is_clone_url",
    "mirror_path",
    "open_mined",
    "parse_patch",
    "path_text",
    "update_mirror",
]
