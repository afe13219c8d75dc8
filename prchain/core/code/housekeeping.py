"""Housekeeping pull requests: releases and dependency updates, recognised by their subjects and files together."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from prchain.core.code.paths import is_housekeeping, is_prose

_DEPENDENCY = re.compile(
    r"(?:build|chore|fix)\(deps[^)\n]{0,40}\)!?: ?(?:bump|update|upgrade|pin|lock)"
    r"|(?:[a-z]+(?:\([^)\n]{1,60}\))?!?: ?|\[[^\]\n]{1,40}\] ?)?"
    r"(?:(?:bump|upgrade|update) (?:the )?\S{1,100}(?: \S{1,60}){0,4}? (?:from \S{1,60} )?to [`v^~>=]*[0-9]"
    r"|(?:bump|update) (?:the |[0-9]+ )?\S{0,60} ?"
    r"(?:group|dependency|dependencies|requirements?|lock ?files?|module|digest|packages)\b"
    r"|(?:bump|update) \S{1,100} (?:related )?(?:requirement|deps\b|dependenc)"
    r"|update (?:github[- ]actions?|dev|all non-major|rust crate) dependenc"
    r"|pin dependenc|lock ?file maintenance|pre-commit autoupdate)",
    re.I,
)
_RELEASE = re.compile(
    r"(?i)^\W*(?:\[?(?:chore|build|ci|docs?|release|rel|maint)\]?(?:\([^)\n]{0,60}\))?!?: ?)?"
    r"(?:(?:prepare|prep|cut|make|bump|update|new|preparing|publish|tag)\b.{0,40}\b)?"
    r"(?:release|releasing|version|changelog|release notes|whatsnew|v?\d+\.\d+(?:\.\w+)*)\b"
)


def is_dependency_bump(subject: str) -> bool:
    """Whether a subject or title updates a dependency, as Dependabot, Renovate, pre-commit and people write it."""
    return _DEPENDENCY.match(subject) is not None


def is_release(subject: str) -> bool:
    """Whether a subject or title makes a release, bumps the project's version or writes its release notes."""
    return _RELEASE.match(subject) is not None


def housekeeping_of(subject: str, paths: Collection[str]) -> Literal["dependency_bump", "release"] | None:
    """Whether a pull request is only a release or a bump, by its subject and the files it changes; None for other work.

    The subject alone is not enough: adapting code to a new version, or changing the release process, is work. Without
    `paths` only the subject counts.
    """
    if is_dependency_bump(subject) and all(map(is_housekeeping, paths)):
        return "dependency_bump"
    if is_release(subject) and all(is_housekeeping(path) or is_prose(path) for path in paths):
        return "release"
    return None
