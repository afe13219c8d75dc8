"""Tests that stand inside the source files of Rust are told from the code around them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.inline_tests import (
    changed_inline_tests,
    changes_inline_tests_only,
    inline_test_lines,
    may_be_inline_tests,
)
from prchain.core.git.patches import FilePatch, Hunk

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


@pytest.mark.parametrize(
    "text",
    [
        '    #[test]\n    fn a() {\n        let b = "\n}\n    };\n";\n    }',
        '    #[test]\n    fn a() {\n        let b = r##"\n    }\n"#;\n    "##;\n    }',
        "    #[test]\n    fn a<'a>() -> &'a str {\n        let b = ['{', '\\'', b'{', '\\u{7b}', '\"'];\n    }",
        "    #[test]\n    fn a() { /* { /* { */ {\n    */ }",
        "    #[test]\n    fn a() {\n        // it's {\n    }",
        "    #[cfg(unix)]\n    #[test]\n    fn a() {\n    }",
        '    #[test_case(\n        1, 2;\n        "one"\n    )]\n    fn a(b: u32, c: u32) {\n    }',
        '    #[cfg(all(unix, feature = "x", test))]\n    impl<T, U> A<T, U> for B {\n    }',
        "    #[cfg(any(test, all(test, unix)))] mod tests;",
        "    #[cfg(test)]\n    pub cmd: HashMap<&'a str, Option<Output>>,",
        "    #[cfg(test)]\n    Fake { a: u32 },",
        "    #[cfg(test)]\n    Kind::Fake { a } | Kind::Other if a < b => {\n        c()\n    }",
        "    #[cfg(test)]\n    Fake => b(1, 2),",
        "    #[cfg(test)]\n    let a = if b { c } else {\n        d\n    };",
        "    #[cfg(test)]\n    if a {\n        b\n    } else {\n        c\n    }",
        "    #[cfg(test)]\n    const A: [u8; 2] = [1,\n        2];",
        "    #[cfg(test)]\n    const fn a() -> [u8; 2] {\n    }",
        "    #[cfg(test)]\n    use a::{\n        b,\n        c,\n    };",
        "    #[cfg(test)]\n    macro_rules! a {\n        ($b:expr) => { $b; };\n    }",
        "    #[cfg(test)]\n    struct A<T, U>(T, U);",
        '    #[cfg(test)]\n    pub(crate) unsafe extern "C" fn a(b: u32) {\n    }',
    ],
)
def test_what_is_for_tests_is_cut_and_nothing_behind_it(text: str) -> None:
    source = f"pub mod a {{\n{text}\n    pub other: (),\n    Other => c,\n}}\n"
    assert inline_test_lines(source) == set(range(2, 2 + len(text.split("\n"))))


@pytest.mark.parametrize(
    "attribute",
    [
        "#[cfg(not(test))]",
        '#[cfg(any(test, feature = "testing"))]',
        '#[cfg(feature = "test")]',
        "#[cfg_attr(test, derive(Debug))]",
        "// #[cfg(test)]",
        'const A: &str = "#[test]";',
        "#[derive(Latest)]",
        "#![allow(test)]",
    ],
)
def test_what_stands_in_other_builds_as_well_is_source(attribute: str) -> None:
    assert not inline_test_lines(f"{attribute}\nmod a {{\n}}\n")


def test_the_last_field_ends_before_the_bracket_around_it() -> None:
    assert inline_test_lines("struct A {\n    #[cfg(test)]\n    b: u32\n}\nfn c() {}\n") == {2, 3}


def test_a_file_that_is_compiled_for_tests_alone_is_one_of_tests() -> None:
    text = "//! Helpers.\n#![cfg(test)]\npub fn a() {}\n"
    assert inline_test_lines(text) == {1, 2, 3, 4}
    assert changed_inline_tests("", text) == {("a",)}


@pytest.mark.parametrize(
    "piece", ["#[test] ", "#[test]\n\n", "#[cfg(all(test, ", "mod a { ", "fn a() { ", '"\\" ', "/* ", "<"]
)
def test_time_grows_with_the_text_alone(piece: str) -> None:
    started = time.process_time()
    changed_inline_tests(piece * 20_000, "#[test]" + piece * 20_000)
    assert time.process_time() - started < 5


def test_a_long_line_of_helpers_that_use_each_other_takes_no_time() -> None:
    helpers = "".join(f"fn f{number}() {{ f{number + 1}() }}\n" for number in range(20_000))
    text = f"#[cfg(test)]\nmod tests {{\n{helpers}fn f20000() {{ 0 }}\n}}\n"
    started = time.process_time()
    assert len(changed_inline_tests(text, text.replace("{ 0 }", "{ 1 }"))) == 20_001
    assert time.process_time() - started < 10


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
    assert changed_inline_tests(SOURCE, SOURCE.replace(*change)) == {("tests", name) for name in names}


CASES = """\
#[cfg(test)]
mod tests {
    const LIMIT: u32 = 3;

    fn limit() -> u32 {
        LIMIT
    }

    #[test_case(1)]
    fn small(a: u32) {
        assert!(a < limit());
    }

    mod more {
        #[test]
        fn small() {
            assert!(true);
        }
    }
}

fn small() {}
"""


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("#[test_case(1)]", "#[test_case(1)]\n    #[test_case(2)]"), {("tests", "small")}),
        (("= 3", "= 4"), {("tests", "limit"), ("tests", "small")}),
        (("    const LIMIT: u32 = 3;\n", ""), {("tests", "limit"), ("tests", "small")}),
        (("true", "false"), {("tests", "more", "small")}),
        (("fn small() {}", "fn small() { LIMIT }"), set()),
        (("mod more {", "fn a() {}\n\n    mod more {"), {("tests", "a")}),
    ],
)
def test_a_test_differs_with_its_cases_and_with_what_it_uses_of_the_tests(
    change: tuple[str, str], names: set[tuple[str, ...]]
) -> None:
    assert changed_inline_tests(CASES, CASES.replace(*change)) == names


def test_all_inline_tests_of_a_file_that_comes_or_goes_are_named() -> None:
    assert changed_inline_tests("", SOURCE) == changed_inline_tests(SOURCE, "") == {("tests", "squares")}
