"""Patches that carry program text from one file to another and do nothing else."""

from __future__ import annotations

import pytest

from chains.stages.moves import is_move_only
from prchain.core.git.patches import FilePatch, Hunk

BODY = [f"def name_{at}(value):\n    return value * {at}" for at in range(8)]
LINES = tuple("\n".join(BODY).split("\n"))


def patch(path: str, removed: tuple[str, ...] = (), added: tuple[str, ...] = ()) -> FilePatch:
    lines = (*(f"-{line}" for line in removed), *(f"+{line}" for line in added))
    return FilePatch(path, hunks=(Hunk(1, len(removed), 1, len(added), "", lines),))


@pytest.mark.parametrize(
    "files",
    [
        [patch("a.py", removed=LINES), patch("b.py", added=LINES)],
        [
            patch("a.py", removed=LINES, added=("from b import (", "    name_1,", ")")),
            patch("b.py", added=("import os", *LINES)),
        ],
        [patch("a.py", removed=LINES * 2), patch("b.py", added=("class A:", *(f"    {line}" for line in LINES * 2)))],
        [patch("a.py", removed=LINES), patch("b.py", added=LINES[:8]), patch("c.py", added=LINES[8:])],
    ],
    ids=["whole", "with imports", "into a class", "into two"],
)
def test_a_move_is_seen(files: list[FilePatch]) -> None:
    assert is_move_only(files)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [patch("a.py", added=LINES)],
        [patch("a.py", removed=LINES)],
        [patch("a.py", removed=LINES, added=LINES[::-1])],
        [patch("a.py", removed=LINES), patch("b.py", added=(*LINES, "def more():", "    return 1"))],
        [patch("a.py", removed=LINES[:8]), patch("b.py", added=LINES[:8])],
    ],
    ids=["nothing", "new", "gone", "in the same file", "with work", "too few"],
)
def test_what_does_more_is_work(files: list[FilePatch]) -> None:
    assert not is_move_only(files)
