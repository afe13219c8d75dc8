"""Globs over the paths of a tree, as recipes and workspaces of projects write them."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache


def matches(path: str, patterns: Collection[str]) -> bool:
    """Whether a path of a tree is one of the globs; ``*`` stops at slashes, ``**/`` at the front means any folder."""
    return bool(patterns) and _globs(tuple(patterns)).fullmatch(path) is not None


@cache
def _globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_glob(pattern) for pattern in patterns))


def _glob(pattern: str) -> str:
    anywhere = pattern.startswith("**/")
    parts = re.split(r"(\*+|\?|\[[^\]/]+\])", pattern.removeprefix("**/"))
    wild = {"?": "[^/]"}
    pieces = [
        wild.get(part, part if part[0] == "[" else "[^/]*" if part[0] == "*" else re.escape(part))
        for part in parts
        if part
    ]
    return ("(?:.*/)?" if anywhere else "") + "".join(pieces)
