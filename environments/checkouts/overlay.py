"""The graded copy of a tree: what is laid over it before the stage's tests run, so that only its source counts.

Pure: from trees to a mapping path -> entry or None (the path is removed). Files are whole blobs of M_t, but for project
files, whose sections that steer a runner are M_t's and whose others stay. The agent's own tree is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from environments.checkouts.named_modules import source_modules
from environments.suites.steering import (
    WHOLE,
    may_steer,
    shadows_runner,
    steering_changed,
    steering_files,
    with_steering_of,
)
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry


@dataclass(frozen=True, slots=True)
class Overlay:
    """What to lay over a tree, for `TreeStore.edit`, and what does not count of its own."""

    changes: dict[bytes, TreeEntry | None]
    taken_back: tuple[str, ...] = ()
    """What the tree has neither from B_t nor from M_t and does not count: paths, with the section of a project file."""


@dataclass(frozen=True, slots=True)
class Blobs:
    """Reading and writing contents of a `TreeStore`."""

    read: Callable[[Iterable[str]], list[bytes]]
    write: Callable[[bytes], str]


def overlay(
    tree: Mapping[bytes, TreeEntry],
    landed: Mapping[bytes, TreeEntry],
    test_paths: Collection[bytes],
    earlier_test_paths: Collection[bytes] = (),
    *,
    base: Mapping[bytes, TreeEntry],
    blobs: Blobs,
) -> Overlay:
    """What makes a tree (B_t, S_t or A_t, by its `TreeStore.entries`) ready for stage t's tests.

    `base` is B_t, `landed` is M_t; `test_paths` are all paths of its test patch, old names of renames too, and
    `earlier_test_paths` those of the chain's earlier stages: each gets M_t's blob and mode, or is removed where M_t has
    none. So does every other file of tests (`prchain.core.code.kinds`; not one that is only called so,
    `environments.checkouts.named_modules`), a new ``__init__.py`` of a folder that tests
    lie below, which is imported before them, every steering file of either tree, and what steers a
    runner in project files that are neither B_t's nor M_t's. `TreeStore.edit` removes what blocks a path: a link where
    a folder must be, a folder where a file must be.
    """
    tests = {*test_paths, *earlier_test_paths}
    differing = {path for path in {*tree, *landed} if tree.get(path) != landed.get(path)}
    runner = steering_files(differing) - tests
    others = {path for path in differing if kind_of(path_text(path)) is FileKind.TEST} - tests - runner
    others -= source_modules((it for it in others if tree.get(it) != base.get(it)), tree, landed, blobs.read)
    others |= _packages_of(tests) & (tree.keys() - landed.keys() - base.keys())
    changes: dict[bytes, TreeEntry | None] = {
        path: landed.get(path) for path in tests | runner | others if tree.get(path) != landed.get(path)
    }
    back = [path_text(path) for path in changes if tree.get(path) != base.get(path)]
    own = {path for path in differing - changes.keys() if tree.get(path) != base.get(path) and may_steer(path)}
    for path in sorted(own):
        entry, parts = _project_file(path, tree.get(path), landed.get(path), base.get(path), blobs)
        if parts:
            changes[path] = entry
            back += [f"{path_text(path)}: {part}" for part in parts]
    return Overlay(dict(sorted(changes.items())), tuple(sorted(back)))


def _packages_of(tests: Iterable[bytes]) -> set[bytes]:
    """The ``__init__.py`` of every folder above these files, whether it is there or not."""
    parts = [path.split(b"/")[:-1] for path in tests]
    return {b"/".join([*folders[:depth], b"__init__.py"]) for folders in parts for depth in range(len(folders) + 1)}


def _project_file(
    path: bytes, own: TreeEntry | None, landed: TreeEntry | None, base: TreeEntry | None, blobs: Blobs
) -> tuple[TreeEntry | None, tuple[str, ...]]:
    """The entry of a project file in the graded copy, and the parts that are taken back; none where it may stay."""
    if shadows_runner(path):
        # A project that is the runner has such files itself; there they are source.
        return (own, ()) if landed is not None or base is not None else (None, ("the runner's name",))
    if own is not None and own.mode not in (FILE, EXECUTABLE):
        # A link is read as the path that it leads to.
        return landed, (WHOLE,)
    texts = [None if entry is None else blobs.read([entry.blob])[0] for entry in (own, landed, base)]
    parts = set(steering_changed(path, texts[1], texts[0])) & set(steering_changed(path, texts[2], texts[0]))
    if not parts:
        return own, ()
    text = None if own is None or texts[0] is None else with_steering_of(path, texts[0], texts[1])
    if own is None or text is None:
        return landed, tuple(sorted(parts))
    return own._replace(blob=blobs.write(text)), tuple(sorted(parts))
