"""Projects of Python in folders of a tree whose root is none, as where one repository holds several languages."""

from __future__ import annotations

import re
from collections.abc import Iterable

OF_PROJECT = ("setup.py", "setup.cfg", "pyproject.toml")
"""The manifests of a project."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_MOST_NESTED = 6
_NO_PROJECTS = re.compile(
    r"^(?:[._].*|tests?|testing|docs?|examples?|samples?|benchmarks?|bench|vendor|third_party|tools?|scripts?|ci"
    r"|templates?|fixtures|data|contrib|build|dist|integration.*|node_modules)$"
)


def nested_folders(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders of a tree that look like projects of Python, at most two deep and some few: for a tree whose root is
    none. Those for tests, docs and tools are none."""
    found = {path.rpartition("/")[0] for path in paths if path.endswith(("/setup.py", "/pyproject.toml"))}
    plain = [it for it in found if _PLAIN.fullmatch(it)]
    own = [it for it in plain if not any(_NO_PROJECTS.match(part.lower()) for part in it.split("/"))]
    outer = [it for it in own if it.partition("/")[0] == it or it.partition("/")[0] not in own]
    return tuple(sorted(outer, key=lambda it: (it.count("/"), it))[:_MOST_NESTED])


def nested_manifests(paths: Iterable[str]) -> tuple[str, ...]:
    """The manifests in these folders."""
    known = set(paths)
    names = (f"{folder}/{name}" for folder in nested_folders(known) for name in OF_PROJECT)
    return tuple(name for name in names if name in known)
