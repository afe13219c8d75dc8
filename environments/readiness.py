"""What has to be done to a stage's base that is placed and made ready, once its files are those of another tree.

What a refresh makes depends on files that nobody can list: a build may read any. So a refresh is left out only for
changes that an editable install of Python shows as they lie, and what stands on changed manifests is made anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from environments.images.globs import matches
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeChange, TreeStore

_MANIFESTS = ("**/pyproject.toml", "**/setup.py", "**/setup.cfg", "**/MANIFEST.in", "**/package.json")
_READ = (b"pyproject.toml", b"setup.py", b"setup.cfg")
_COMPILES = re.compile(
    r"mypyc|cython|ext_modules|\bExtension\(|cffi_modules|maturin|meson|scikit[-_.]build|setuptools[-_]rust|nuitka",
    re.I,
)
"""Signs in manifests that source may be compiled: then a change of it shows only after another build."""


class Readiness(StrEnum):
    """What is left to do."""

    READY = "ready"
    REFRESH = "refresh"
    """Refresh again, without what the first one made in the work folder."""
    ANEW = "anew"
    """Begin with the image: what the base's refresh made elsewhere may not be this tree's."""


def readiness(trees: TreeStore, base: str, tree: str, *, scripts: Sequence[str], manifests: Sequence[str]) -> Readiness:
    """What is to be done after a change from `base`, which the refresh `scripts` have made ready, to `tree`.

    `manifests` are the recipe's globs. Raises `GitError`, `IncompleteRepository`.
    """
    changes = trees.diff(trees.tree_of(base), trees.tree_of(tree))
    if not changes or not scripts:
        return Readiness.READY
    if any(matches(path_text(change.path), (*_MANIFESTS, *manifests)) for change in changes):
        return Readiness.ANEW
    if not all("--editable" in script for script in scripts):
        return Readiness.REFRESH
    text = _manifest_text(trees, base)
    compiles = _COMPILES.search(text) is not None
    return Readiness.READY if all(_shows(change, text, compiles) for change in changes) else Readiness.REFRESH


def _manifest_text(trees: TreeStore, base: str) -> str:
    entries = trees.entries(trees.tree_of(base))
    names = [
        entry.blob
        for path, entry in entries.items()
        if path.rpartition(b"/")[2] in _READ and entry.mode in (FILE, EXECUTABLE)
    ]
    return "\n".join(blob.decode("utf-8", "replace") for blob in trees.blobs(names))


def _shows(change: TreeChange, manifest_text: str, compiles: bool) -> bool:
    """Whether an editable install shows the change as it lies, and its metadata cannot come from the file."""
    path = path_text(change.path)
    if any(entry is not None and entry.mode not in (FILE, EXECUTABLE) for entry in (change.old, change.new)):
        return False
    folder, _, name = path.rpartition("/")
    if not folder or name.startswith(".git"):
        return False
    stem = name.partition(".")[0]
    word = folder.rpartition("/")[2] if stem == "__init__" else stem
    if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", manifest_text) or "version" in name.lower():
        return False
    if kind_of(path) is FileKind.TEST:
        return name != "__init__.py" or change.old is not None
    return path.endswith(".py") and not compiles and change.old is not None and change.new is not None
