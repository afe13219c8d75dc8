"""Modules of Python that are called like tests and are source: ``measures/test_text.py``, which ``measures`` imports.

Pure. By its name alone a file outside of folders of tests is taken for a test (`prchain.core.code.kinds`), as pytest
would collect it. Work of an agent must not be lost for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from prchain.core.code.kinds import FileKind, kind_of, language_of, named_like_test
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeEntry

_HOLDS_TESTS = re.compile(rb"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+test|^class[ \t]+Test|\bTestCase\b")
_IMPORT = (
    rb"(?m)^[ \t]*(?:from[ \t]+[\w.]*\b%b[ \t]+import"
    rb"|from[ \t]+[\w.]+[ \t]+import(?:[ \t]*\([^)]*|[^#\n]*)\b%b\b|import[^#\n]*\b%b\b)"
)


def source_modules(
    paths: Iterable[bytes],
    tree: Mapping[bytes, TreeEntry],
    landed: Mapping[bytes, TreeEntry],
    read: Callable[[Iterable[str]], list[bytes]],
) -> set[bytes]:
    """Those of the paths that are source: a file of `tree` outside of folders of tests that a source file of it
    imports. One that M_t (`landed`) has too must hold no tests there, for these may be run."""
    named = [path for path in paths if path in tree and named_like_test(path_text(path))]
    known = [path for path in named if path in landed]
    tests = {
        path
        for path, text in zip(known, read([landed[path].blob for path in known]) if known else [], strict=True)
        if _HOLDS_TESTS.search(text)
    }
    named = [path for path in named if path not in tests]
    if not named:
        return set()
    sources = [
        entry.blob
        for path, entry in tree.items()
        if language_of(path_text(path)) == "python" and kind_of(path_text(path)) is FileKind.SOURCE
    ]
    texts = read(sources)
    return {path for path in named if any(map(_importing(path).search, texts))}


def _importing(path: bytes) -> re.Pattern[bytes]:
    stem = re.escape(path.rpartition(b"/")[2].rpartition(b".")[0])
    return re.compile(_IMPORT.replace(b"%b", stem))
