"""Landed pull requests of a mirror, as git alone tells them, and a draw of those that change product code."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeStore

_NUMBER = re.compile(r"^Merge pull request #(\d+) |\(#(\d+)\)$")


class LandedPatch(NamedTuple):
    """A pull request's patch: from the first parent of the commit that landed it to that commit."""

    repository: str
    number: int
    base: str
    landed: str


def landed(repository: str, trees: TreeStore, head: str) -> Iterator[LandedPatch]:
    """Those whose commit on the main line names them and has a parent, newest first."""
    with trees.stream("log", "--first-parent", "--format=%H %P%x09%s", head) as output:
        rows = output.read().decode("utf-8", "replace").splitlines()
    for row in rows:
        commits, _, subject = row.partition("\t")
        names = commits.split()
        if len(names) > 1 and (match := _NUMBER.search(subject)):
            yield LandedPatch(repository, int(match[1] or match[2]), names[1], names[0])


def changes_product(trees: TreeStore, patch: LandedPatch, touching: re.Pattern[str] | None = None) -> bool:
    """Whether program text of the product is in the patch, or in a file whose path holds what `touching` finds."""
    paths = [path_text(change.path) for change in trees.diff(patch.base, patch.landed) if change.new is not None]
    return any(
        language_of(path) is not None
        and (kind_of(path) is FileKind.SOURCE if touching is None else touching.search(path) is not None)
        for path in paths
    )


def halves(
    repository: str, trees: TreeStore, head: str, seed: int, each: int, touching: re.Pattern[str] | None = None
) -> tuple[list[LandedPatch], ...]:
    """Two draws of `each` patches without a common one; fewer where the repository has not so many that change product
    code, or files whose path holds what `touching` finds."""
    pool = sorted(landed(repository, trees, head), key=lambda it: (it.number, it.landed))
    random.Random(f"{seed} {repository}").shuffle(pool)
    kept: list[LandedPatch] = []
    for patch in pool:
        if len(kept) == 2 * each:
            break
        if changes_product(trees, patch, touching):
            kept.append(patch)
    return kept[0::2], kept[1::2]


def open_mirror(folder: Path, scratch: Path) -> TreeStore:
    """The objects of a mirror, to be read only."""
    return TreeStore.open(scratch, [folder])
