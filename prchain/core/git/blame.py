"""What `git blame` prints in its formats for programs: commits and places of lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prchain.core.git.patch_lines import quoted_path

BLAMED = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) \d+(?: \d+)?\n")
"""The line before each line of a file, with its commit and its number there; those of the file begin with a tab."""


def read_places(output: Iterable[bytes], commit: str) -> Iterator[tuple[bytes, int] | None]:
    """Path and number of each line in the tree of the commit that it is from, from ``--line-porcelain``; None for
    lines of other commits."""
    number, path, known = 0, b"", False
    for line in output:
        if line.startswith(b"\t"):
            yield (path, number) if known else None
        elif line.startswith(b"filename "):
            path = quoted_path(line.removeprefix(b"filename ").removesuffix(b"\n"))
        elif match := BLAMED.fullmatch(line):
            known, number = match[1].decode() == commit, int(match[2])
