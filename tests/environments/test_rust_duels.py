"""Tests of Rust that are held true and false in processes of their own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments import held_tests
from environments.duel_runs import RanSide
from environments.suites.canaries.duels import Side, dice
from environments.suites.canaries.falsify import ValueDice
from environments.suites.canaries.rustduels import RUST_FALSIFIER, falsify_rust
from environments.suites.canaries.rusttokens import closings, rust_tests, tokens
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun

TEXT = """//! Prices: "not a" test.
use till::{halved, label, parts};

#[test]
fn halves_a_price() {
    assert_eq!(halved(8), 4, "halves {}", 8);
}

#[test]
#[should_panic(expected = "below zero")]
fn refuses() {
    halved(-1);
}

mod texts {
    use super::*;

    #[test]
    fn parts_a_text() -> Result<(), String> {
        // One brace: {
        assert_eq!(
            parts("a } b"),
            vec!["a", "b"],
        );
        Ok(())
    }

    #[test]
    fn knows_nothing() {
        assert!(label("").is_none());
    }
}

#[cfg(unix)]
#[test]
fn asks_a_helper() {
    check(label("tea"), r#"a "tea""#);
}

#[test]
fn does_nothing() {
    let it = 5;
}

reads!(reads_a_tag, "<a/>", Token::Start("a", 0..2));

shows! {
    shows_none(0u64, "0"),
    shows_some(17u8, "17"),
}
"""
NAMES = frozenset(
    {
        *("halves_a_price", "refuses", "parts_a_text", "knows_nothing", "asks_a_helper", "reads_a_tag"),
        *("shows_none", "shows_some"),
    }
)


def changed(text: str, made: str) -> list[tuple[str, str]]:
    """The parts that are others."""
    words, others = re.findall(r"\w+|.", text, re.S), re.findall(r"\w+|.", made, re.S)
    found = difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    return [("".join(words[a:b]), "".join(others[c:d])) for kind, a, b, c, d in found if kind != "equal"]


def made(body: str, seed: int = 7, before: str = "") -> str:
    """The body of a test that is made false."""
    text = f"#[test]\n{before}fn it() {{\n    {body}\n}}\n"
    new, can = falsify_rust(text, partial(dice, "m", "f", seed=seed))
    assert can in ({"it"}, set())
    return "".join(line.strip() for line in new.splitlines()[:-1] if not line.startswith("fn") and line != "#[test]")


def test_one_place_of_a_test_is_another_and_all_else_stays() -> None:
    for seed in RUST_FALSIFIER.seeds:
        text, can = falsify_rust(TEXT, partial(dice, "m", "f", seed=seed))
        assert can == NAMES
        assert len(changed(TEXT, text)) == len(NAMES)
        alone, _ = falsify_rust(TEXT, lambda name: ValueDice(1) if name == "parts_a_text" else None)
        ((old, new),) = changed(TEXT, alone)
        assert old in ("a", "b") and new not in (old, "")
    assert falsify_rust(TEXT, lambda name: None) == (TEXT, NAMES)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("assert_eq!(halved(8), 4);", r"assert_eq!\(halved\(8\), (?!4\))\d+\);"),
        ("assert_eq!(200u8, halved(8));", r"assert_eq!\((?!200)(?:1\d\d|2[0-5]\d)u8, halved\(8\)\);"),
        ("assert_eq!(halved(8), 1.5);", r"assert_eq!\(halved\(8\), 1\.(?!5)\d\);"),
        ("assert_eq!(a(), Some(true));", r"assert_eq!\(a\(\), Some\(false\)\);"),
        ('assert_eq!(a(), b"ab");', r'assert_eq!\(a\(\), b"(?!ab)\w\w"\);'),
        ("assert_eq!(a(), 'x');", r"assert_eq!\(a\(\), '(?!x)\w'\);"),
        (r'assert_eq!(a(), "\n\x41");', r'assert_eq!\(a\(\), "\\n\\x41\w"\);'),
        ("assert_eq!(a(), [0; 2]);", r"assert_eq!\(a\(\), \[[1-9]; 2\]\);"),
        ("assert_eq!(a(), 1 << 7);", r"assert_eq!\(a\(\), (?!1 )\d+ << 7\);"),
        ("assert_eq!(a().0, it);", r"assert_eq!\(a\(\)\.0, it\);"),
        ("assert!(a().is_ok());", r"assert!\(a\(\)\.is_err\(\)\);"),
        ("assert!(!a());", r"assert!\(a\(\)\);"),
        ("assert!(a() < b());", r"assert!\(a\(\) >= b\(\)\);"),
        ("assert!(a() && b());", r"assert!\(!\(a\(\) && b\(\)\)\);"),
        ("assert!(matches!(a(), B));", r"assert!\(!matches!\(a\(\), B\)\);"),
        ("assert!(a::<T>());", r"assert!\(!\(?a::<T>\(\)\)?\);"),
    ],
)
def test_what_is_false_has_the_type_of_what_is_true(body: str, form: str) -> None:
    if form.endswith("it\\);"):
        assert made(body) == body
    else:
        assert re.fullmatch(form, made(body)), made(body)


def test_the_last_seed_asks_for_the_opposite() -> None:
    (last,) = RUST_FALSIFIER.last_seeds
    assert made("assert_eq!(a(), b());", last) == "assert_ne!(a(), b());"
    assert made("assert_ne!(a(), 4);", last) == "assert_eq!(a(), 4);"
    assert made("a();", last, "#[should_panic]\n") == "a();"


def test_of_tests_of_one_name_all_are_false_or_none_can_be() -> None:
    block = "    #[test]\n    fn holds() {\n        assert_eq!(a(), 1);\n    }\n"
    text = f"mod a {{\n{block}}}\nmod b {{\n{block}}}\n"
    new, can = falsify_rust(text, ValueDice)
    assert can == {"holds"} and "assert_eq!(a(), 1)" not in new
    assert falsify_rust(text.replace("a(), 1", "a(), b()", 1), ValueDice)[1] == set()


def test_a_falsehood_that_does_not_compile_spares_the_others_of_its_side() -> None:
    ids = {("tests/till.rs", name): [f"till tests/till.rs {name}"] for name in "abcdef"}
    asked: list[int] = []

    class Duel:
        """A tree on which one falsehood does not compile: then no test is run."""

        def run_all(self, forms: Sequence[Side], *_: object, at_once: bool) -> list[RanSide]:
            return [self._run(side) for side in forms]

        def close_lent(self) -> None:
            """Nothing was lent."""

        def _run(self, side: Side) -> RanSide:
            asked.append(len(side.false))
            if ("tests/till.rs", "c") in side.false:
                return RanSide.of(TestRun({}, "", 0.0, 101), {})
            ends = {it: Status.failed if test in side.false else Status.passed for test in ids for it in ids[test]}
            return RanSide.of(TestRun(ends, "", 0.0, 0), {})

    fit = held_tests._fit(Duel(), Duel(), ids, 7, Random(1), lambda words: None)  # type: ignore[arg-type]
    assert fit == ids.keys() - {("tests/till.rs", "c")}
    assert len(asked) < 4 * len(ids)


@given(st.text() | st.text(alphabet="#[test]fn a(){}\"'/*r!assert_eq,;b1\\ \n"))
def test_any_text_of_rust_can_be_asked(text: str) -> None:
    assert falsify_rust(text, lambda name: None)[0] == text
    falsify_rust(text, ValueDice)
    falsify_rust(text, Random)
    found = tokens(text)
    assert all(text[it.begin : it.end] == it.text for it in found)
    assert all(it.body[0] <= it.body[1] for it in rust_tests(found, closings(found)))


@pytest.mark.parametrize(
    ("test", "file"),
    [
        ("prices tests/prices.rs halves", "tests/prices.rs"),
        ("it tests/it/main.rs prices::halves", "tests/it/prices.rs"),
        ("it tests/it/main.rs prices::of_one::halves", "tests/it/prices.rs"),
        ("till src/lib.rs tests::halves", "src/tests.rs"),
        ("till src/lib.rs sums::tests::halves", "src/sums/tests/mod.rs"),
        ("other tests/other.rs prices::halves", None),
        ("till src/lib.rs inner::halves", None),
        ("till doc src/lib.rs - halved (line 1)", None),
    ],
)
def test_a_test_of_a_module_stands_in_its_file(test: str, file: str | None) -> None:
    """A module in a target of one file is no other target's."""
    files = ("tests/prices.rs", "tests/it/prices.rs", "src/tests.rs", "src/sums/tests/mod.rs")
    falsifier = RUNNERS["cargo"].falsify
    assert falsifier is not None and falsifier.file_of is not None
    assert falsifier.file_of(test, files) == file
