"""Which lines of which files a conversation has shown: a view may widen what was seen, and go on reading where it ended
(P2T, appendix H, J2)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from trajectories.agents.steps.entities import EntityKind, entities, places
from trajectories.agents.tools.edits import EDITOR

_NEAR = 40
"""Lines: a view that begins or ends so near to a line that was shown widens what was seen (J2)."""
_PAGE = 100
"""Lines that are read on, or back, from a line near what was shown."""
_LOW = 100
"""Numbers below tell nothing (appendix H counts from three digits on)."""
_ROUND = 50
"""Of its multiples developers take the ends of what they read: `head -200`."""

_NUMBERED = re.compile(r"(?m)^[ \t]*([0-9]{1,7})(?=[:\t-])")
"""Lines of an editor, of ``cat -n`` and of ``grep -n`` in one file."""
_READ = re.compile(r"\b([0-9]{1,7}),[ \t]?([0-9]{1,7})p")
"""The lines that sed prints."""

_WHOLE = re.compile(r"\s*cat\s+[^\s|;&]+\s*\Z")
"""A command that prints a file from its first line on."""
_LONGEST = 20_000
"""Lines of one reading that are taken."""


class LinesByFile:
    """Lines by file. What was said of no file counts for each."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}

    def add(self, path: str, lines: Iterable[int]) -> None:
        """Take lines of a file; those of no file have an empty path."""
        self._lines.setdefault(path, set()).update(lines)

    def far(self, numbers: Collection[int], paths: Collection[str]) -> Iterator[int]:
        """Those of some numbers that are far from the lines shown of `paths`, of which low and round ones tell nothing;
        without paths from the lines of any file."""
        asked = [*paths, ""] if paths else list(self._lines)
        near = sorted(number for number in set(numbers) if any(self._near(path, number) for path in asked))
        for number in numbers:
            at = bisect_left(near, number - _PAGE)
            if number >= _LOW and number % _ROUND and not (at < len(near) and near[at] <= number + _PAGE):
                yield number

    def away(self, lines: str) -> bool:
        """Whether of lines, as an entity has them (``12``, ``10-20``), any is far from what was shown of each file."""
        return any(not any(self._near(path, int(line)) for path in self._lines) for line in lines.split("-"))

    def _near(self, path: str, number: int) -> bool:
        lines = self._lines.get(path, set())
        return any(line in lines for line in range(number - _NEAR, number + _NEAR + 1))


def lines_shown(arguments: Any, content: str, roots: Collection[str]) -> Iterator[tuple[str, list[int]]]:
    """Files and their lines in what a call with these arguments showed."""
    for place in places(content, roots):
        yield place.path, [place.first, place.last]
    paths = paths_of(arguments, roots)
    if len(paths) != 1:
        return
    command = str(arguments.get("command", ""))
    numbers = [int(number) for number in _NUMBERED.findall(content)]
    for first, last in _READ.findall(command):
        numbers += [int(first), int(last), *range(int(first), min(int(last), int(first) + _LONGEST), _NEAR)]
    if _WHOLE.match(command):
        numbers += range(1, min(content.count("\n"), _LONGEST), _NEAR)
    yield next(iter(paths)), numbers


def paths_of(arguments: Any, roots: Collection[str]) -> frozenset[str]:
    """The files that a call is about."""
    texts = [arguments.get(name) for name in ("path", "command")]
    found = entities("\n".join(filter(_is_text, texts)), roots=roots, kinds=frozenset({EntityKind.PATH}))
    return frozenset(entity.text for entity in found)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_FOLDER = re.compile(r"(?:^|[;&|\n])[ \t]*ls((?:[ \t]+[^\s;&|<>]+)+)")
_HEAD = re.compile(r"(\S+):")


def listed(tool: str, arguments: Any, content: str) -> Iterator[str]:
    """The paths in what a call has listed: names stand there without the folder that they lie in."""
    if tool == EDITOR:
        folder = str(arguments.get("path"))
        if arguments.get("command") == "view" and " holds, two levels deep" in content[: len(folder) + 40]:
            yield from (f"{folder.rstrip('/')}/{row}" for row in content.split("\n")[1:] if _is_entry(row))
        return
    match = _FOLDER.search(str(arguments.get("command", "")))
    folders = [word for word in match[1].split() if not word.startswith("-")] if match else []
    folder = folders[0] if len(folders) == 1 else ""
    for row in content.split("\n") if folders else ():
        if len(folders) > 1 and (head := _HEAD.fullmatch(row)) is not None:
            folder = head[1]
        elif folder and _is_entry(name := row.rpartition(" ")[2]):
            yield f"{folder.rstrip('/')}/{name}"


def _is_entry(name: str) -> bool:
    return 0 < len(name) <= 200 and not name.startswith(("<", "["))
