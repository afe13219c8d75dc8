"""The paths that somebody else's patch names, in whatever spelling: git's, with other prefixes or none, in quotes, or
with the times of diff(1).

Hunks are not counted, so a damaged patch is read, too. Lines of git's content begin with a mark: only a removed line
next to an added one can look like a pair of ``---`` and ``+++``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prchain.core.git.output import path_text
from prchain.core.git.patch_lines import quoted_path

_LINE = re.compile(
    rb"^(?:diff --git ([^\n]+)|(?:rename|copy) (?:from|to) ([^\n]+)|--- ([^\n]+)\n\+\+\+ ([^\n]+))", re.M
)
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TIME = re.compile(rb" [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:., +-]*\Z")
_LONG_TIME = 64
_PREFIXES = frozenset({b"a", b"b", b"c", b"i", b"o", b"w"})
"""Of git's own (git-config(1), ``diff.mnemonicPrefix``)."""

_LONGEST = 4096
"""Bytes of a path; longer ones no system has."""

_LONGEST_LINE = 10 * _LONGEST
"""Of two paths, with four signs for a byte."""


def named_paths(patch: str) -> Iterator[str]:
    """The paths (`path_text`) that a patch names, as they come; some may be named more than once."""
    for line in _LINE.finditer(patch.encode("utf-8", "replace")):
        if len(line[0]) > _LONGEST_LINE:
            continue
        both, one, old, new = (rest.removesuffix(b"\r") if rest else b"" for rest in line.groups())
        names = _both(both) if both else [_unquoted(one)] if one else [*_side(old), *_side(new)]
        for name in names:
            if 0 < len(name) <= _LONGEST and b"\0" not in name:
                yield path_text(name)


def _side(rest: bytes) -> list[bytes]:
    """The paths that a ``---`` or ``+++`` line may mean: with its first folder, unless that is a prefix of git's, and
    without it; with what looks like a time, and without."""
    if (found := _QUOTED.match(rest)) is not None:
        names = [_unquoted(found[0])]
    else:
        names = [rest.partition(b"\t")[0]]
        if time := _TIME.search(names[0], max(0, len(names[0]) - _LONG_TIME)):
            names.append(names[0][: time.start()])
    return [path for name in names if name != b"/dev/null" for path in _meant(name)]


def _both(rest: bytes) -> list[bytes]:
    """The paths of a ``diff --git`` line. Two different ones with blanks in them nobody can part: other lines tell."""
    if (first := _QUOTED.match(rest)) is not None:
        names = [first[0], rest[first.end() + 1 :]]
    elif rest.endswith(b'"') and (begin := rest.find(b' "')) > 0:
        names = [rest[:begin], rest[begin + 1 :]]
    else:
        middle = len(rest) // 2
        halves = [rest[:middle], rest[middle + 1 :]]
        names = halves if rest[middle : middle + 1] == b" " else rest.split(b" ") if rest.count(b" ") == 1 else []
    return [path for name in names for path in _meant(_unquoted(name))]


def _meant(name: bytes) -> list[bytes]:
    prefix, slash, path = name.partition(b"/")
    if not slash:
        return [name]
    return [path] if prefix in _PREFIXES else [path, name]


def _unquoted(name: bytes) -> bytes:
    return quoted_path(name) if len(name) > 1 and _QUOTED.fullmatch(name) else name
