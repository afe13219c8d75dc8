"""Which test files a stage's runs hold: those that show the stage's work, and a bounded number that guard the rest.

The rule, in order of rank; within a rank by path, and at most `limit` files in all (the first rank is never cut):

1. test files of the stage's own test patch, as M_t has them;
2. test files of the chain's earlier stages: their F2P tests must still pass;
3. test files named for a changed source file: ``cart.py`` and ``test_cart.py``, ``cart.spec.ts``, ``CartTest.java``;
4. test files in the folder of a changed source file, in a ``tests`` folder beside it, or in the folder that mirrors it
   (``src/till/cart.py`` and ``tests/till/``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable

from environments.suites.runners import RUNNERS

_AFFIX = re.compile(r"(?i)^test[_-]?|[._-]?(?:tests?|spec|testcase|it)$")
_TEST_FOLDERS = {"test", "tests", "__tests__", "spec", "specs", "unit", "unit_tests", "java", "main"}
_SOURCE_FOLDERS = {"src", "lib", "source", "main", "java"}

LIMIT = 40
"""Test files of one run. Runs are repeated three times on two trees, each within its time limit."""


def is_test_file(path: str, runner: str, patterns: tuple[str, ...] = ()) -> bool:
    """Whether a runner takes this file for tests by its default naming rules; ``conftest.py`` and fixtures are none.

    `patterns` are the repository's own, which hold instead where the runner knows such (`Runner.own_names`).
    """
    known_runner = RUNNERS[runner]
    if patterns and known_runner.own_names:
        return known_runner.own_names.takes(path, patterns)
    return bool(re.search(known_runner.files, path))


def choose(
    runner: str,
    tree: Collection[str],
    *,
    test_patch: Iterable[str],
    source_patch: Iterable[str],
    earlier: Iterable[str] = (),
    patterns: tuple[str, ...] = (),
    limit: int = LIMIT,
) -> tuple[str, ...]:
    """The test files to run on B_t, M_t, S_t and A_t alike, by the rule above.

    `tree` holds the paths of M_t; only what is there is chosen. The other arguments are paths that the stage's test
    patch, its source patch and the test patches of the chain's earlier stages touch; `patterns` are as in
    `is_test_file`.
    """
    test_files = {path for path in tree if is_test_file(path, runner, patterns)}
    source = sorted({path for path in source_patch if not is_test_file(path, runner, patterns)})
    stems = _stems(source)
    near = {folder for path in source for folder in _folders_of(path)}
    own = sorted(test_files & set(test_patch))
    ranks = [
        sorted(test_files & set(earlier)),
        sorted(path for path in test_files if _stem(path) in stems),
        sorted(path for path in test_files if _place(path) in near),
    ]
    chosen = dict.fromkeys(own)
    for path in (path for rank in ranks for path in rank):
        if len(chosen) >= limit:
            break
        chosen[path] = None
    return tuple(chosen)


def named_for(files: Iterable[str], source_patch: Iterable[str]) -> frozenset[str]:
    """The test files that are named for a changed source file: rank 3 of the rule above."""
    stems = _stems(source_patch)
    return frozenset(path for path in files if _stem(path) in stems)


def _stems(source: Iterable[str]) -> set[str]:
    return {_stem(path) for path in source} - {"", "__init__", "index", "mod", "lib", "main"}


def _stem(path: str) -> str:
    """The name less its endings and what marks a test, in lower case."""
    name = posixpath.basename(path).split(".")[0]
    return _AFFIX.sub("", _AFFIX.sub("", name)).lower().strip("_-")


def _place(path: str) -> str:
    """The folder of a test file without the folders that hold tests."""
    folders = posixpath.dirname(path).split("/")
    return "/".join(folder for folder in folders if folder.lower() not in _TEST_FOLDERS | _SOURCE_FOLDERS)


def _folders_of(path: str) -> set[str]:
    """The places where tests of a source file can be: its folder, without the folders that hold source; the root is
    none, for a whole suite lies there."""
    place = _place(path)
    inner = place.partition("/")[2]
    return {part for part in (place, inner) if part}
