"""Patches that change how a program is written, not what it does: white space, comments, the order of imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from prchain.core.code.kinds import language_of
from prchain.core.git import FilePatch
from prchain.core.git.patches import Hunk

_HASH_COMMENTS = {
    "python",
    "cython",
    "ruby",
    "shell",
    "perl",
    "r",
    "julia",
    "elixir",
    "nix",
    "terraform",
    "powershell",
    "nim",
}
_SLASH_COMMENTS = {
    "typescript",
    "javascript",
    "vue",
    "svelte",
    "astro",
    "rust",
    "go",
    "java",
    "kotlin",
    "scala",
    "groovy",
    "cuda",
    "objective-c",
    "c++",
    "c",
    "c#",
    "f#",
    "swift",
    "dart",
    "zig",
    "solidity",
    "protobuf",
    "php",
    "grammar",
}
_DASH_COMMENTS = {"sql", "lua", "haskell"}
_STARRED_COMMENTS = {"typescript", "javascript", "java", "kotlin", "scala", "groovy", "php", "dart", "swift", "c#"}
"""Languages whose block comments begin each line with a star, and in which no statement does."""
_INDENTED = {"python", "cython", "nim", "haskell", "f#"}
"""Languages in which indentation says what belongs to what."""

_JOINS_STRINGS = {"python", "cython", "c", "c++"}
"""Languages in which a literal may be written in parts, one behind the other."""
_PARTED = re.compile(r"(?<=[\w\s.,:;!?-])([\"'])\1(?=[\w\s.,:;!?-])")

_STRING = r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`"
IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|(?:pub(?:\([^)]*\))?\s+)?use\s|#\s*include\b|using\s|require(?:_relative)?\b"
    r"|(?:const|let|var)\s.+=\s*require\()"
)
"""A line that begins an import."""


def is_cosmetic(files: Iterable[FilePatch]) -> bool:
    """Whether the files' patches change lines, but only white space, comments and the order of imports.

    False in doubt: trailing code, contents of strings, docstrings and, where it has a meaning, indentation count. How a
    literal is parted does not.
    """
    changed = [file for file in files if file.added or file.removed]
    return bool(changed) and all(map(_is_cosmetic, changed))


def _is_cosmetic(file: FilePatch) -> bool:
    language = language_of(file.path)
    if language is None or file.binary or file.status not in "MRC":
        return False
    return all(_same_sides(hunk, language) for hunk in file.hunks) or _reorders_imports(file, language)


def _same_sides(hunk: Hunk, language: str) -> bool:
    """Whether a hunk's two sides say the same. A line that moves to another hunk is work: it runs at another time."""
    old, new = (_bare_lines([line[1:] for line in hunk.lines if line[0] == mark], language) for mark in ("-", "+"))
    if [text for _, text in old] == [text for _, text in new]:
        return language not in _INDENTED or [indent for indent, _ in old] == [indent for indent, _ in new]
    first, second = ("".join(text for _, text in side) for side in (old, new))
    if language in _JOINS_STRINGS:
        first, second = _PARTED.sub("", first), _PARTED.sub("", second)
    return first == second


def _reorders_imports(file: FilePatch, language: str) -> bool:
    if not all(IMPORT.match(line) for line in (*file.removed, *file.added) if line.strip()):
        return False
    return sorted(_bare_lines(file.removed, language)) == sorted(_bare_lines(file.added, language))


def _bare_lines(lines: Sequence[str], language: str) -> list[tuple[str, str]]:
    """(indentation, text without comments and without white space outside strings) of each line that has such text."""
    bare = []
    for line in lines:
        body = line.lstrip()
        if language in _STARRED_COMMENTS and (body.startswith(("* ", "*/")) or body.rstrip() == "*"):
            continue
        text = "".join(_words(body, language))
        if text:
            bare.append((line[: len(line) - len(body)], text))
    return bare


def _words(line: str, language: str) -> Iterable[str]:
    for match in _reader(language).finditer(line):
        if match.lastgroup == "line_comment":
            return
        if match.lastgroup == "words":
            yield match["words"] + " "
        elif match.lastgroup != "comment":
            yield match[0]


@lru_cache
def _reader(language: str) -> re.Pattern[str]:
    comments = []
    if language in _HASH_COMMENTS:
        comments.append(r"(?P<line_comment>(?<!\S)#.*)")
    elif language in _SLASH_COMMENTS:
        comments.append(r"(?P<line_comment>(?<![:\w])//.*|/\*(?!.*\*/).*)|(?P<comment>/\*.*?\*/)")
    elif language in _DASH_COMMENTS:
        comments.append(r"(?P<line_comment>--.*)")
    return re.compile("|".join([_STRING, *comments, r"(?P<words>\w+)\s+(?=\w)|\w+|\S"]))
