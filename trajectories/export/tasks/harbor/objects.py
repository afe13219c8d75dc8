"""The objects that a grader takes along: trees of the stage, and of its files those that no agent's work replaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from environments.suites.steering import is_steering, may_steer
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import SUBMODULE, TreeStore

_ANEW = ("--window=0", "--no-reuse-delta", "--no-reuse-object", "--compression=9", "--threads=1")


def graders_pack(
    trees: TreeStore, commits: Iterable[str], more_trees: Iterable[str], paths: Collection[bytes]
) -> bytes:
    """A pack of the commits, without their parents, of their trees and of `more_trees`, and of the files of the commits
    that are tests, steer a runner, say what git ignores, or are at one of `paths`. Raises `IncompleteRepository`."""
    commits = list(commits)
    names = dict.fromkeys(commits)
    for tree in dict.fromkeys([*(trees.tree_of(commit) for commit in commits), *more_trees]):
        names.update(dict.fromkeys(trees_of(trees, tree)))
    for commit in commits:
        for path, entry in trees.entries(commit).items():
            if entry.mode != SUBMODULE and (path in paths or _is_taken(path)):
                names[entry.blob] = None
    return packed(trees, names)


def packed(trees: TreeStore, names: Iterable[str]) -> bytes:
    """A pack of these objects alone, the same bytes however the store holds them. Raises `IncompleteRepository`."""
    with trees.stream("pack-objects", "--quiet", "--stdout", *_ANEW, lines=names) as output:
        return output.read()


def trees_of(trees: TreeStore, tree: str) -> list[str]:
    """A tree, and all below it."""
    with trees.stream("ls-tree", "-r", "-d", "-z", "--full-tree", tree) as output:
        lines = (line.partition(b"\t")[0].decode().split(" ") for line in output.read().split(b"\0") if line)
        return [tree, *(name for _, kind, name in lines if kind == "tree")]


def _is_taken(path: bytes) -> bool:
    is_rule = path.rpartition(b"/")[2] == b".gitignore"
    return is_rule or is_steering(path) or may_steer(path) or kind_of(path_text(path)) is FileKind.TEST
