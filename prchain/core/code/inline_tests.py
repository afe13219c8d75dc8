"""Tests that stand inside source files, as Rust has them: lines of program text that are no work of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prchain.core.code.kinds import language_of
from prchain.core.code.rust_items import Attributes, RustText
from prchain.core.git.patches import FilePatch, Hunk

_TEST_ATTRIBUTE = re.compile(
    r"\s*(?:\w+\s*::\s*)*(?:(?:\w+_)?test(?:_\w+)?|rstest|proptest|quickcheck|bench)\s*(?:\(|$)"
)
_CONDITION = re.compile(r"\s*cfg\s*\(")
_PART = re.compile(r"(?P<open>\w+)\s*\(|(?P<word>\w+)|(?P<close>\))")
_WHOLE_FILE = re.compile(r"#!\s*\[\s*cfg\s*\(\s*test\s*,?\s*\)\s*\]")
_TEST_WORD = re.compile(r"test|assert")
_WORD = re.compile(r"\w+")


class InlineTest(NamedTuple):
    """A function of the inline tests of the file at `path`. `name`: its own behind the modules that it is in there."""

    path: str
    name: tuple[str, ...]


def may_be_inline_tests(files: Sequence[FilePatch]) -> bool:
    """Whether a patch may change tests inside source files only, by its lines: a cheap first check."""
    return bool(files) and all(
        language_of(file.path) == "rust" and not file.binary and all(map(_shows_tests, file.hunks)) for file in files
    )


def inline_test_lines(text: str) -> frozenset[int]:
    """The numbers, from 1, of the lines of a Rust file that stand in what is compiled for tests only: modules,
    functions, and whatever else has such an attribute."""
    found, line, at = set[int](), 1, 0
    for start, end in _inline_tests(RustText(text)):
        line += text.count("\n", at, start)
        last = line + text.count("\n", start, end)
        found.update(range(line, last + 1))
        line, at = last, end
    return frozenset(found)


def changes_inline_tests_only(file: FilePatch, before: str, after: str) -> bool:
    """Whether every line with content that a patch adds or removes is one of inline tests, given the file's text on
    both sides."""
    old, new = inline_test_lines(before), inline_test_lines(after)
    return all(number in (new if mark == "+" else old) for mark, number, _ in changed_lines(file))


def changed_inline_tests(before: str, after: str) -> frozenset[tuple[str, ...]]:
    """The functions of the inline tests of a Rust file that differ between its two sides, by their names behind those
    of their modules: those that one side alone has, those whose attributes or text differ, and those that use what
    differs or is gone of the other items of its tests. Helpers count as tests do: the name tells nothing."""
    old, new = _items(before), _items(after)
    differ = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    users = defaultdict[str, set[tuple[str, ...]]](set)
    for name, item in new.items():
        for word in {*_WORD.findall(item.text)} - {name[-1]}:
            users[word].add(name)
    left = [name[-1] for name in differ if name in old and not old[name].is_test]
    while left:
        more = users.pop(left.pop(), set()) - differ
        differ |= more
        left += [name[-1] for name in more if not new[name].is_test]
    return frozenset(name for name in differ if any(name in side and side[name].is_function for side in (old, new)))


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


class _TestItem(NamedTuple):
    """What items of one name come to. Whether one of them is a function, and whether one is a test."""

    text: str
    is_function: bool
    is_test: bool


def _items(text: str) -> dict[tuple[str, ...], _TestItem]:
    """The items of the inline tests of a Rust file, by their names behind those of their modules."""
    rust, found = RustText(text), dict[tuple[str, ...], _TestItem]()
    tests = {run.start for run in rust.attributes if any(map(_TEST_ATTRIBUTE.match, run.bodies))}
    spans = _inline_tests(rust)
    span = next(spans, None)
    for item in rust.items():
        while span is not None and span[1] <= item.start:
            span = next(spans, None)
        if span is None:
            break
        if item.start < span[0]:
            continue
        name = (*item.modules, item.name)
        same = found.get(name, _TestItem("", False, False))
        found[name] = _TestItem(
            same.text + text[item.start : item.end],
            same.is_function or item.kind == "fn",
            same.is_test or item.start in tests,
        )
    return found


def _inline_tests(rust: RustText) -> Iterator[tuple[int, int]]:
    """The offsets of each outermost part that is for tests, in order."""
    if _WHOLE_FILE.search(rust.code):
        yield 0, len(rust.code)
        return
    done = 0
    for run in rust.attributes:
        if run.start >= done and _is_for_tests(run):
            done = rust.end_of(run.end)
            yield run.start, done


def _is_for_tests(run: Attributes) -> bool:
    return any(
        _TEST_ATTRIBUTE.match(body) or ((match := _CONDITION.match(body)) and _needs_test(body[match.end() :]))
        for body in run.bodies
    )


def _needs_test(condition: str) -> bool:
    """Whether a condition of ``cfg(``, with its last bracket, holds in builds of tests alone."""
    stack: list[tuple[str, list[bool]]] = [("all", [])]
    for part in _PART.finditer(condition):
        if part["open"] is not None:
            stack.append((part["open"], []))
        elif part["word"] is not None:
            stack[-1][1].append(part["word"] == "test")
        elif len(stack) > 1:
            name, parts = stack.pop()
            stack[-1][1].append(any(parts) if name == "all" else name == "any" and bool(parts) and all(parts))
    return any(stack[0][1])


def _shows_tests(hunk: Hunk) -> bool:
    return any(map(_TEST_WORD.search, (hunk.section, *hunk.lines)))
