"""Tests that stand inside source files, as Rust has them: lines of program text that are no work of their own.

By the layout of rustfmt, not by a parser: an item ends with the first line of its own indentation that closes a brace
or ends in a semicolon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prchain.git import FilePatch
from prchain.git.patches import Hunk
from prchain.kinds import language_of

_ATTRIBUTE = re.compile(r"( *)#\[(?:cfg\((?:all\()?test\b|(?:\w+::)*(?:test|rstest|proptest|test_case|bench)\b)")
_TEST_WORD = re.compile(r"test|assert")
_FUNCTION = re.compile(r"( *)(?:pub(?:\([^)]*\))? +)?(?:async +)?fn +(?P<name>\w+)")
_LATER_ATTRIBUTE = re.compile(r" *(?:#\[|//)")


def may_be_inline_tests(files: Sequence[FilePatch]) -> bool:
    """Whether a patch may change tests inside source files only, by its lines: a cheap first check."""
    return bool(files) and all(
        language_of(file.path) == "rust" and not file.binary and all(map(_shows_tests, file.hunks)) for file in files
    )


def inline_test_lines(text: str) -> frozenset[int]:
    """The numbers, from 1, of the lines of a Rust file that stand in test modules and test functions."""
    lines = text.split("\n")
    found: set[int] = set()
    for number, line in enumerate(lines, 1):
        attribute = _ATTRIBUTE.match(line)
        if attribute is not None and number not in found:
            found.update(range(number, _end(lines, number, attribute[1]) + 1))
    return frozenset(found)


def changes_inline_tests_only(file: FilePatch, before: str, after: str) -> bool:
    """Whether every line with content that a patch adds or removes is one of inline tests, given the file's text on
    both sides."""
    old, new = inline_test_lines(before), inline_test_lines(after)
    return all(number in (new if mark == "+" else old) for mark, number, _ in changed_lines(file))


def changed_inline_tests(before: str, after: str) -> frozenset[str]:
    """The names of functions in the inline tests of a Rust file whose text differs between its two sides, those that
    one side alone has included. Helpers count as tests do: the name tells nothing."""
    old, new = _functions(before), _functions(after)
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def changed_lines(file: FilePatch) -> Iterator[tuple[str, int, str]]:
    """The lines with content that a patch adds or removes: mark, number on its side, and the line with its mark."""
    for hunk in file.hunks:
        old, new = hunk.old_start, hunk.new_start
        for line in hunk.lines:
            mark = line[0]
            if mark != " " and line[1:].strip():
                yield mark, new if mark == "+" else old, line
            old += mark != "+"
            new += mark != "-"


def _functions(text: str) -> dict[str, list[str]]:
    """Name to the text of the inline tests' functions; of several with one name, of all."""
    lines, found = text.split("\n"), dict[str, list[str]]()
    for number in sorted(inline_test_lines(text)):
        function = _FUNCTION.match(lines[number - 1])
        if function is not None:
            end = _end(lines, number, function[1])
            found.setdefault(function["name"], []).extend(lines[number - 1 : end])
    return found


def _shows_tests(hunk: Hunk) -> bool:
    return any(map(_TEST_WORD.search, (hunk.section, *hunk.lines)))


def _end(lines: Sequence[str], start: int, indent: str) -> int:
    """The last line of the item whose first attribute is line `start`; that line itself where the text ends before."""
    closing = re.compile(rf"{indent}(?:}}|\S.*;\s*$)")
    for number, line in enumerate(lines[start:], start + 1):
        if closing.match(line) and not _LATER_ATTRIBUTE.match(line):
            return number
    return start
