"""The reference's test files over a tree: which blobs a test run replaces before it starts.

Pure: from trees to a mapping path -> entry or None (the path goes). Files are whole blobs of M_t. The agent's own
changes to those paths do not count, and neither do its changes to files that do nothing but steer a test runner.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prchain.git.trees import Entry

_STEERING = re.compile(
    rb"(?i)(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|(?:site|user)customize\.py|jest\.(?:config|setup)\.\w+"
    rb"|vitest\.(?:config|workspace|setup)\.\w+|\.mocharc(?:\.\w+)?|mocha\.opts|\.?nycrc(?:\.\w+)?|\.nextest\.toml)$"
    rb"|(?:^|/)(?:\.mvn|\.cargo|\.config)/[^/]*(?:config|nextest|extensions)[^/]*$"
)
_MIXED = re.compile(
    rb"(?i)(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini|package\.json|cargo\.toml|pom\.xml|build\.rs|vite\.config\.\w+"
    rb"|babel\.config\.\w+|\.babelrc(?:\.\w+)?|tsconfig[^/]*\.json|go\.(?:mod|work)|build\.gradle(?:\.kts)?"
    rb"|pytest\.py|_?pytest/__init__\.py|unittest/__init__\.py|pluggy/__init__\.py)$"
    rb"|(?:^|/)node_modules/"
)


def is_steering(path: bytes) -> bool:
    """Whether a file does nothing but tell a runner what to run and how to judge it."""
    return bool(_STEERING.search(path))


@dataclass(frozen=True, slots=True)
class Overlay:
    """What to lay over a tree, for `TreeStore.edit`, and what of the tree's own it takes away."""

    changes: dict[bytes, Entry | None]
    overridden: tuple[bytes, ...]
    """Test files of the overlay where the tree had something else."""
    steering: tuple[bytes, ...]
    """Runner files that the tree had changed, added or taken away; M_t's stand in their place."""


def overlay(
    tree: Mapping[bytes, Entry],
    landed: Mapping[bytes, Entry],
    test_paths: Collection[bytes],
    earlier_test_paths: Collection[bytes] = (),
) -> Overlay:
    """What makes a tree (B_t, S_t or A_t, by its `TreeStore.entries`) ready for stage t's tests.

    `landed` is M_t; `test_paths` are all paths of its test patch, old names of renames too, and `earlier_test_paths`
    those of the chain's earlier stages: each gets M_t's blob and mode, or goes where M_t has none. Besides, every
    steering file of either tree is as in M_t. `TreeStore.edit` takes away what stands in a path's way: a link where a
    folder must be, a folder where a file must be.
    """
    tests = {*test_paths, *earlier_test_paths}
    runner = {path for path in (*tree, *landed) if is_steering(path)} - tests
    changes: dict[bytes, Entry | None] = {}
    for path in tests | runner:
        if tree.get(path) != landed.get(path):
            changes[path] = landed.get(path)
    touched = sorted(path for path in changes if path in tests and path in tree)
    return Overlay(dict(sorted(changes.items())), tuple(touched), tuple(sorted(runner & changes.keys())))


def may_steer(path: bytes) -> bool:
    """Whether a file that has other work too can steer a runner: project files, transforms, the runner's own name."""
    return bool(_MIXED.search(path))


def steering_changed(path: bytes, old: bytes | None, new: bytes | None) -> tuple[str, ...]:
    """The parts of a file that steer a runner and differ between M_t (`old`) and the agent's tree (`new`).

    Project files are compared section by section (``tool.pytest``, ``scripts``, ``jest`` ...), so that a new dependency
    is no finding; one that cannot be parsed, and any other file of `may_steer`, is a finding as a whole.
    """
    if old == new or not may_steer(path):
        return ()
    name = path.rpartition(b"/")[2].lower()
    before, after = (_sections(name, text) for text in (old, new))
    if before is None or after is None:
        return ("file",)
    return tuple(sorted(part for part in {*before, *after} if before.get(part) != after.get(part)))


def _sections(name: bytes, text: bytes | None) -> dict[str, Any] | None:
    """The steering sections of a project file; None where they cannot be told from the rest."""
    try:
        shown = (text or b"").decode()
        if name == b"package.json":
            value = json.loads(shown or "{}")
            return {key: value[key] for key in ("scripts", "jest", "mocha", "vitest", "type", "babel") if key in value}
        if name in {b"pyproject.toml", b"cargo.toml"}:
            table = tomllib.loads(shown)
            if name == b"cargo.toml":
                keys = ("test", "lib", "bin", "profile", "build-dependencies")
                return {key: table[key] for key in keys if key in table}
            tools = table.get("tool", {})
            found = {f"tool.{key}": tools[key] for key in ("pytest", "coverage") if key in tools}
            plugins = table.get("project", {}).get("entry-points", {}).get("pytest11")
            return {**found, "pytest11": plugins} if plugins else found
        if name in {b"setup.cfg", b"tox.ini"}:
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(shown)
            return {part: dict(parser[part]) for part in ("tool:pytest", "pytest") if parser.has_section(part)}
    except (ValueError, TypeError, AttributeError, configparser.Error, RecursionError):
        return None
    return None
