"""The reference's test files over a tree: which blobs a test run replaces before it starts.

Pure: from trees to a mapping path -> entry or None (the path is removed). Files are whole blobs of M_t. The agent's own
changes to those paths do not count, and neither do its changes to files that do nothing but steer a test runner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from environments.suites.steering import steering_files

if TYPE_CHECKING:
    from prchain.git.trees import TreeEntry


@dataclass(frozen=True, slots=True)
class Overlay:
    """What to lay over a tree, for `TreeStore.edit`, and which of the tree's own files it replaces."""

    changes: dict[bytes, TreeEntry | None]
    overridden: tuple[bytes, ...]
    """Test files of the overlay where the tree had something else."""
    steering: tuple[bytes, ...]
    """Runner files that the tree had changed, added or removed; M_t's replace them."""


def overlay(
    tree: Mapping[bytes, TreeEntry],
    landed: Mapping[bytes, TreeEntry],
    test_paths: Collection[bytes],
    earlier_test_paths: Collection[bytes] = (),
) -> Overlay:
    """What makes a tree (B_t, S_t or A_t, by its `TreeStore.entries`) ready for stage t's tests.

    `landed` is M_t; `test_paths` are all paths of its test patch, old names of renames too, and `earlier_test_paths`
    those of the chain's earlier stages: each gets M_t's blob and mode, or is removed where M_t has none. Also, every
    steering file of either tree is as in M_t. `TreeStore.edit` removes what blocks a path: a link where a folder must
    be, a folder where a file must be.
    """
    tests = {*test_paths, *earlier_test_paths}
    runner = steering_files({*tree, *landed}) - tests
    changes: dict[bytes, TreeEntry | None] = {}
    for path in tests | runner:
        if tree.get(path) != landed.get(path):
            changes[path] = landed.get(path)
    touched = sorted(path for path in changes if path in tests and path in tree)
    return Overlay(dict(sorted(changes.items())), tuple(touched), tuple(sorted(runner & changes.keys())))
