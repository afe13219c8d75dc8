"""The files that steer a test runner, by the paths and sections that the runners themselves name.

Pure. Every runner's files count in every tree: a repository can have tests of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from configparser import Error
from functools import cache
from typing import Any

from environments.suites.runners import RUNNERS


def is_steering(path: bytes) -> bool:
    """Whether a file does nothing but tell a runner what to run and how to judge it."""
    return path in steering_files([path])


def steering_files(paths: Iterable[bytes]) -> set[bytes]:
    """Those of the paths that `is_steering` holds for."""
    ending = _ending(tuple(pattern for runner in RUNNERS.values() for pattern in runner.steering))
    return {path for path in paths if ending.search(path)}


def may_steer(path: bytes) -> bool:
    """Whether a file that has other work too can steer a runner: project files, transforms, the runner's own name."""
    return bool(
        _ending(tuple(project_file for runner in RUNNERS.values() for project_file in runner.project_files)).search(
            path
        )
    )


def steering_changed(path: bytes, old: bytes | None, new: bytes | None) -> tuple[str, ...]:
    """The parts of a file that steer a runner and differ between M_t (`old`) and the agent's tree (`new`).

    Project files are compared section by section (``tool.pytest``, ``scripts``, ``test`` ...), so that a new dependency
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
    """The steering sections of a project file; None where it has no reader here, or does not parse."""
    try:
        file, content = name.decode(), (text or b"").decode()
        readers = [runner.sections[file] for runner in RUNNERS.values() if file in runner.sections]
        return {part: value for sections in readers for part, value in sections(content).items()} if readers else None
    except (ValueError, TypeError, AttributeError, Error, RecursionError):
        return None


@cache
def _ending(patterns: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rf"(?i)(?:^|/)(?:{'|'.join(dict.fromkeys(patterns))})$".encode())
