"""What a process graph has to lead to: a stage's reference patch, as it applies to the tree that the stage starts on.

On S_t = B_t that is M_t. Where the stage starts on an agent's work, it is what git merges of both:
merge3(base = B_t, ours = S_t, theirs = M_t).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from environments.stages import Stage
from prchain.core.code.needs import Need
from prchain.core.code.reference import split
from prchain.core.errors import AlreadyDone, Inexpressible, ReferenceConflicts
from prchain.core.git.merge import merge3
from prchain.core.git.output import path_text
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import EXECUTABLE, FILE, TreeChange, TreeEntry, TreeStore
from prchain.core.leaks import StageFacts, candidate_names, stage_facts
from trajectories.agents.steps.entities import normalized_path
from trajectories.curation.graphs.edits import EditedTree

_MOST_LISTED = 5


@dataclass(frozen=True)
class TargetPatch:
    """The reference patch of a stage on S_t, whose tree is `start`; `target` is the tree after it."""

    start: str
    target: str
    source: tuple[TreeChange, ...]
    """What it changes of source, configuration and data: what the edits of a graph have to make."""
    other_paths: frozenset[bytes]
    """What else it changes, besides tests: an edit may make it, and need not."""
    source_text: bytes
    """The patch of `source`, as git prints it."""
    test_text: bytes
    """The patch of its tests."""
    facts: StageFacts
    """What of it must not be said; names that stand in S_t are not of it."""
    hidden_paths: frozenset[str]
    """Paths of its tests, and new paths, that S_t does not have."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of `source`."""
        return tuple(path_text(change.path) for change in self.source)


def target_patch(
    git: GitRepository, trees: TreeStore, stage: Stage, start: str, interface: Collection[Need] = ()
) -> TargetPatch:
    """The reference patch of a stage on the tree `start`. `interface` is what the agent is told beside the query.

    Raises `ReferenceConflicts` where it does not apply there, `AlreadyDone` where the tree holds it already,
    `Inexpressible` where actions that write text cannot make it, and `GitError`.
    """
    merged = merge3(trees, stage.base, start, stage.landed)
    changes = trees.diff(start, merged.tree)
    [patch] = git.patches([(stage.base, stage.landed)])
    parts = split(patch)
    sources, tests = (
        {name for file in files for name in (file.path, file.old_path) if name} for files in (parts.source, parts.test)
    )
    source = tuple(
        change for change in changes if path_text(change.path) in sources and path_text(change.path) not in tests
    )
    conflicts = [path_text(conflict.path) for conflict in merged.conflicts if path_text(conflict.path) not in tests]
    if conflicts:
        raise ReferenceConflicts(
            f"the reference of stage {stage.position} does not apply to the tree: {', '.join(conflicts[:_MOST_LISTED])}"
        )
    if not source:
        raise AlreadyDone(f"the tree of stage {stage.position} holds all of its reference already")
    require_expressible(trees, source)
    entries = trees.entries(start)
    here = {path_text(path) for path in entries}
    names = trees.words_at(start, candidate_names(parts.source, parts.test))
    test_changes = [change for change in changes if path_text(change.path) in tests]
    taken = {change.path for change in (*source, *test_changes)}
    return TargetPatch(
        start,
        merged.tree,
        source,
        frozenset(change.path for change in changes if change.path not in taken),
        patch_of(trees, start, merged.tree, source),
        patch_of(trees, start, merged.tree, test_changes),
        stage_facts(stage.number, (stage.landed, stage.base), parts.source, parts.test, names, interface),
        frozenset(path for path in (*sources, *tests) if path not in here),
    )


def patch_of(trees: TreeStore, start: str, target: str, changes: Collection[TreeChange]) -> bytes:
    """The patch of these paths alone, of the changes between two trees."""
    return trees.patch_text(start, target, [path_text(change.path) for change in changes]) if changes else b""


def require_expressible(trees: TreeStore, changes: Iterable[TreeChange]) -> None:
    """Check that actions can make these changes: texts with names, without changes of mode. Raises `Inexpressible`."""
    for path, old, new in changes:
        name = path_text(path)
        if not _is_named(path):
            raise Inexpressible(f"the reference changes a file whose name is no text: {name}")
        if {entry.mode for entry in (old, new) if entry} - {FILE, EXECUTABLE}:
            raise Inexpressible(f"the reference changes a link or a submodule: {name}")
        if new is not None and new.mode != (old.mode if old else FILE):
            raise Inexpressible(f"the reference changes the mode of {name}")
        if new is not None and not _is_text(trees, new):
            raise Inexpressible(f"the reference changes a file that is no text: {name}")


def _is_named(path: bytes) -> bool:
    """Whether an answer in JSON can name a path, and it would stay as it is when it is made one from the root."""
    try:
        name = path.decode()
    except UnicodeDecodeError:
        return False
    return normalized_path(name) == name


def _is_text(trees: TreeStore, entry: TreeEntry) -> bool:
    content = trees.blob(entry.blob)
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def unlike(edits: EditedTree, target: TargetPatch) -> dict[str, str]:
    """Path to what is wrong with it after the edits, where they are not the reference; empty where they are (H6)."""
    wrong: dict[str, str] = {}
    needed: Mapping[bytes, TreeEntry | None] = {change.path: change.new for change in target.source}
    for path, new in needed.items():
        blob = edits.blob(path)
        if blob != (None if new is None else new.blob):
            wrong[path_text(path)] = _difference(edits, path, new)
        elif new is not None and new.mode != FILE and path_text(path) in edits.made:
            wrong[path_text(path)] = "it was made anew, and is not executable any more; replace texts in it instead"
    start = edits.entries
    for name in edits.changed:
        path = name.encode("utf-8", "surrogateescape")
        before = start.get(path)
        if path in needed or path in target.other_paths or edits.blob(path) == (before.blob if before else None):
            continue
        wrong[name] = "the reference does not change it"
    return wrong


def _difference(edits: EditedTree, path: bytes, new: TreeEntry | None) -> str:
    name = path_text(path)
    before, after = edits.entries.get(path), edits.read(name)
    if new is None:
        return "the reference removes it"
    if after is None:
        return "the reference has this file"
    if before is not None and edits.blob(path) == before.blob:
        return "no edit changes it"
    mine, theirs = after.split(b"\n"), edits.trees.blob(new.blob).split(b"\n")
    pairs = zip(mine, theirs, strict=False)
    line = next((number for number, (own, other) in enumerate(pairs, 1) if own != other), min(len(mine), len(theirs)))
    return f"after the edits it differs from the reference, first in line {line}"
