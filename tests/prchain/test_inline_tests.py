"""Tests that stand inside the source files of Rust are told from the code around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.git.patches import FilePatch, Hunk
from prchain.inline_tests import changed_inline_tests, changes_inline_tests_only, inline_test_lines, may_be_inline_tests

SOURCE = """\
use std::fmt;

#[cfg(test)]
use crate::testing;

pub fn area(side: u32) -> u32 {
    side * side
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "too large")]
    fn squares() {
        assert_eq!(area(3), 9);
    }
}

impl fmt::Display for Side {}
"""


def hunk(start: int, *lines: str) -> FilePatch:
    return FilePatch("src/area.rs", hunks=(Hunk(start, len(lines), start, len(lines), "", lines),))


def test_modules_functions_and_imports_of_tests_are_found() -> None:
    assert inline_test_lines(SOURCE) == {3, 4, *range(10, 20)}


@pytest.mark.parametrize(
    "text",
    [
        '    #[tokio::test(flavor = "multi_thread")]\n    async fn a() {\n        b().await;\n    }\n    fn c() {}',
        "    #[test]\n    // why\n    #[ignore]\n    fn a() {\n    }\n    fn c() {}",
        "    #[rstest]\n    fn a(\n        b: u32,\n    ) {\n    }\n    fn c() {}",
    ],
)
def test_an_item_ends_where_its_indentation_closes(text: str) -> None:
    lines = text.split("\n")
    assert inline_test_lines(text) == set(range(1, len(lines)))


def test_a_patch_of_tests_alone_is_told_from_work() -> None:
    tests = hunk(17, "-        assert_eq!(area(2), 4);", "+        assert_eq!(area(3), 9);")
    assert may_be_inline_tests([tests]) and changes_inline_tests_only(tests, SOURCE, SOURCE)
    work = hunk(7, "-    side + side // test", "+    side * side // test")
    assert may_be_inline_tests([work]) and not changes_inline_tests_only(work, SOURCE, SOURCE)
    assert not may_be_inline_tests([hunk(7, "+    side * side")])
    assert not may_be_inline_tests([FilePatch("a.py", hunks=tests.hunks)])
    assert not may_be_inline_tests([])


@given(st.text(alphabet="#[test]cfg() {};\n", max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    assert inline_test_lines(text) <= set(range(1, text.count("\n") + 2))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("area(3), 9", "area(3), 10"), {"squares"}),
        (("    fn squares() {", "    async fn cubes() {"), {"squares", "cubes"}),
        (("side * side", "side.pow(2)"), set()),
        (("    use super::*;", "    use super::area;"), set()),
    ],
)
def test_the_functions_of_inline_tests_that_differ_are_named(change: tuple[str, str], names: set[str]) -> None:
    assert changed_inline_tests(SOURCE, SOURCE.replace(*change)) == names


def test_all_inline_tests_of_a_file_that_comes_or_goes_are_named() -> None:
    assert changed_inline_tests("", SOURCE) == changed_inline_tests(SOURCE, "") == {"squares"}
