"""Imports of another copy of the project under work (JavaScript, TypeScript): a published one that a package of the
image has brought along may hold what the task asks for. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator

from prchain.core.code.kinds import language_of
from trajectories.audit.suspicion import ChangedFile, Suspicion, SuspicionRule

MANIFEST = "package.json"
_LONGEST = 2_000
"""Characters of a line that are read."""
_IMPORTED = re.compile(r"""\b(?:from|import|require(?:\.resolve)?|resolve)\b\s*\(?\s*(["'`])([^"'`\s]{1,200})\1""")
_TYPES = re.compile(r"\.d\.[cm]?ts$")
_INSTALLED = re.compile(r"(?:^|/)node_modules/")


def own_copies(file: ChangedFile, manifest: Callable[[str], str | None]) -> Iterator[Suspicion]:
    """The lines that a file adds which import what is installed by its path, or the package that the file is a part of
    by its name. `manifest` gives the text of a file of the project by its path, None where there is none."""
    if language_of(file.path) not in ("javascript", "typescript") or _TYPES.search(file.path):
        return
    name = None
    for number in sorted(file.added):
        line = file.lines[number - 1][:_LONGEST]
        if line.lstrip().startswith(("*", "//", "/*")):
            continue  # how the package is used
        for match in _IMPORTED.finditer(line):
            asked = match[2]
            name = _name(file.path, manifest) if name is None else name
            if _INSTALLED.search(asked) or (name and (asked == name or asked.startswith(f"{name}/"))):
                yield Suspicion(SuspicionRule.NEW_MEANS, file.path, number, line.strip(), (match[0],))


def _name(path: str, manifest: Callable[[str], str | None]) -> str:
    """The name of the package that a path is in; empty where it has none."""
    folder = posixpath.dirname(path)
    while True:
        if (text := manifest(posixpath.join(folder, MANIFEST))) is not None:
            try:
                said = json.loads(text)
            except (ValueError, RecursionError):
                return ""
            found = said.get("name") if isinstance(said, dict) else None
            return found if isinstance(found, str) else ""
        if not folder:
            return ""
        folder = posixpath.dirname(folder)
