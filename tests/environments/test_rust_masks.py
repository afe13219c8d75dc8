"""Tests of Rust whose expected values are masked."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.masks import UNWRITTEN, Masked, Masking, told
from environments.suites.canaries.rustmasks import mask_rust

RUSTC = shutil.which("rustc")

TEXT = r"""#![allow(dead_code)]
//! Prices.
use std::fmt::Debug;

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Start(&'a str, std::ops::Range<usize>),
}

#[derive(PartialEq)]
struct Price(u32);

impl Price {
    fn new(it: u32) -> Price {
        Price(it)
    }
}

impl Debug for Price {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(to, "{:p}", self)
    }
}

fn check<T: Debug + PartialEq>(given: T, wanted: T) {
    assert_eq!(given, wanted, "of {:?}", given);
}

fn roundtrip(text: &str) {
    assert_eq!(text.trim(), text);
}

macro_rules! shows {
    ($($name:ident($value:expr, $wanted:expr)),*) => {
        $(#[test] fn $name() {
            let text = $value.to_string();
            assert_eq!(text, $wanted);
        })*
    };
}

/// Halves.
#[test]
fn halves() {
    assert_eq!(16u64 / 2, 8, "halves {}", 16);
    assert_eq!(8u64, "eight ton".len() as u64 - 1);
    assert_eq!(-3.14f32, "-3.14".parse::<f32>().unwrap());
}

mod texts {
    //! Texts.
    use super::*;

    #[test]
    fn joins() {
        let wanted = vec!["a", "b
c"];
        assert_eq!("a|b\nc".split('|').collect::<Vec<_>>(), wanted);
        assert_eq!(b"tea".to_vec(), b"t\x65a");
        assert_eq!("tea".chars().next(), Some('t'));
        match 4 {
            4 => assert_eq!("x".repeat(3), format!("xx{}", "x")),
            _ => panic!(),
        }
    }
}

#[test]
fn asks_helpers() {
    check("tea".to_uppercase(), "TEA".to_string());
    check(Token::Start("pot", 0..3), Token::Start("pot", 0..3));
    roundtrip("cup");
    check(7, 7)
}

#[test]
fn asks_of_a_table() {
    for (text, size) in &[("one", 3), ("seven", 5)] {
        assert_eq!(text.len(), *size);
    }
    let cases = [("one", "ONE")];
    for (text, upper) in cases.iter() {
        assert_eq!(text.to_uppercase(), *upper);
    }
}

#[test]
fn hides_what_no_one_wrote() {
    assert_eq!(Price::new(4), Price::new(4));
    let same = "both";
    assert_eq!(same.to_lowercase(), same);
}

#[test]
fn walks() {
    for wanted in [&["a", "b"][..], &["a"][..]].iter() {
        assert!("a b c".split(' ')
            .zip(wanted.iter().cloned())
            .all(|(a, b)| a == b), "no {}", 1);
    }
}

#[test]
fn takes_any_order() {
    let found: std::collections::HashMap<_, _> = vec![(11, "a"), (22, "b")].into_iter().collect();
    assert_eq!(found, vec![(11, "a"), (22, "b")].into_iter().collect());
}

shows! {
    shows_tea("tea", "tea"),
    shows_some(17u8, r#"17"#)
}

macro_rules! found {
    ($given:expr, $wanted:expr) => {
        let found: Result<_, Price> = $given;
        assert_eq!(found, $wanted);
    };
}

#[test]
fn finds() {
    found!(Ok("tea".len()), Ok(3));
    let it: Result<_, Price> = Ok("tea".parse::<f32>().is_ok() as u8 + 22);
    assert_eq!(it, Ok(22));
    assert_eq!(Some(Price::new(5)), Some(5).map(Price::new));
}
"""
LITERALS = {
    "halves": ["8", "8u64", "3.14f32"],
    "joins": ['"a"', '"b\nc"', r'b"t\x65a"', "'t'", '"xx{}"', '"x"'],
    "asks_helpers": ['"TEA"', '"pot"', "0", "3", "7"],
    "asks_of_a_table": ["3", "5", '"ONE"'],
    "hides_what_no_one_wrote": ["4"],
    "walks": [UNWRITTEN],
    "takes_any_order": ["11", '"a"', "22", '"b"'],
    "shows_tea": ['"tea"'],
    "shows_some": ['r#"17"#'],
    "finds": ["3", "22", "5"],
}


def masked(text: str, report: str = "/r", first: int = 0, names: Collection[str] | None = None) -> Masked:
    return mask_rust(text, Masking(report, first, lambda name: None if names is None or name in names else ()))


def made(body: str, before: str = "") -> str:
    """The body of a test of one line that is masked, with the guards left out."""
    text = f"{before}#[test]\nfn it() {{\n    {body}\n}}\n"
    line = masked(text).text.splitlines()[before.count("\n") + 2].strip()
    return re.sub(r"\{ let _masks = __masks::of\([^)]*\); (.*?\));? \}(?=[;,] | *;$)", r"\1", line)


def test_the_literals_that_are_asked_for_are_found() -> None:
    new = masked(TEXT)
    assert new.literals == LITERALS
    assert masked(TEXT, names=()) == Masked(TEXT, LITERALS)
    lines, others = TEXT.splitlines(), new.text.splitlines()
    changed = [it for it, (old, line) in enumerate(zip(lines, others, strict=False)) if old != line]
    assert len(changed) < len(lines) / 3
    assert lines.index("}", 40) == others.index("}", 40)
    only = masked(TEXT, names=["joins"], first=5).text
    assert only.count("__masks::of(&[") == 4 and "__masks::of(&[8, 9], 2, 1)" in only


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("assert_eq!(a(), 0xffu8);", "assert_eq!(a(), 1u8);"),
        ("assert_eq!(a(), 1_000i64);", "assert_eq!(a(), 1i64);"),
        ("assert_eq!(a(), 2.5);", "assert_eq!(a(), 1.0);"),
        ("assert_eq!(a(), 1e3f64);", "assert_eq!(a(), 1.0f64);"),
        ("assert_eq!(a(), 1 << 7);", "assert_eq!(a(), 1 << 7);"),
        ("assert_eq!(a(), [5; 4]);", "assert_eq!(a(), [1; 4]);"),
        ("assert_eq!(a(), B::<3>::new(8));", "assert_eq!(a(), B::<3>::new(1));"),
        ("assert_eq!(a().3, Some(true));", "assert_eq!(a().3, Some(false));"),
        (r'assert_eq!(a(), b"a\n\"\x00");', 'assert_eq!(a(), b"----");'),
        ('assert_eq!(a(), br#"a"b"#);', 'assert_eq!(a(), b"---");'),
        ('assert_eq!(a(), r#"a"b"#);', 'assert_eq!(a(), "-");'),
        ("assert_eq!(a(), b'x');", "assert_eq!(a(), b'-');"),
        ('assert_eq!(a(), format!("{{x {it:?} {}", 3));', 'assert_eq!(a(), format!("-{it:?}{}", 1));'),
        ('assert_eq!(a(), concat!("x", 3));', 'assert_eq!(a(), concat!("-", 1));'),
        ('assert_eq!(a(), Some(env!("x")));', 'assert_eq!(a(), Some(env!("x")));'),
        ('assert_eq!(a(), json!({"x": [3]}));', 'assert_eq!(a(), json!({"-": [1]}));'),
        ("assert_eq!(a(), Duration::from_secs(3));", "assert_eq!(a(), Duration::from_secs(1));"),
        ('assert_eq!(a(), b("x"));', 'assert_eq!(a(), b("x"));'),
        ('util::check(a("x"), "x");', 'util::check(a("x"), "-");'),
        ('assert_ne!(a(), "x");', 'assert_ne!(a(), "x");'),
        ('std::assert_eq!(a(), "x");', 'std::assert_eq!(a(), "x");'),
        ('let x = "a"; assert_eq!(a(), x);', 'let x = "-"; assert_eq!(a(), x);'),
        ('let x = "a"; assert_eq!(a(x), x);', 'let x = "a"; assert_eq!(a(x), x);'),
        ("let x = 4; let y = x; assert_eq!(a(), x);", "let x = 4; let y = x; assert_eq!(a(), x);"),
        ("for (x, y) in [(2, 4)] { assert_eq!(a(x), y); }", "for (x, y) in [(2, 1)] { assert_eq!(a(x), y); }"),
        (
            "for (n, (x, y)) in [(2, 4)].iter().enumerate() { assert_eq!(a(x, n), *y); }",
            "for (n, (x, y)) in [(2, 1)].iter().enumerate() { assert_eq!(a(x, n), *y); }",
        ),
        (
            "for it in &[Case { given: 2, wanted: 4 }] { assert_eq!(a(it.given), it.wanted); }",
            "for it in &[Case { given: 2, wanted: 1 }] { assert_eq!(a(it.given), it.wanted); }",
        ),
        ("let it = B { c: 4 }; assert_eq!(a(&it), it.c);", "let it = B { c: 4 }; assert_eq!(a(&it), it.c);"),
        ('assert_eq!(a(), 4, "4 {} x", b());', 'assert_eq!(a(), 1, "-{}", b());'),
        ('assert_eq!("x", B::of("y").c());', 'assert_eq!("-", B::of("y").c());'),
        ("assert_eq!(B::new(4), B::new(5));", "assert_eq!(B::new(4), B::new(1));"),
        ('let b = B::new(4); assert_eq!(b.to_string(), "x");', 'let b = B::new(4); assert_eq!(b.to_string(), "-");'),
        ("assert_eq!(B::SIZE, Some(4));", "assert_eq!(B::SIZE, Some(1));"),
        ('assert_eq!(a(b"x"), Ok((rest, &b"y"[1..])));', 'assert_eq!(a(b"x"), Ok((rest, &b"-"[1..])));'),
        ("assert_eq!(found[3], a(4));", "assert_eq!(found[3], a(4));"),
        ("assert_eq!(B::<u8, 3>::of(&[7]).c(), [7]);", "assert_eq!(B::<u8, 3>::of(&[7]).c(), [1]);"),
        ("assert_eq!(a(), smallvec![3, 4]);", "assert_eq!(a(), smallvec![1, 1]);"),
        ('assert_approx_eq!(a(), "x");', 'assert_approx_eq!(a(), "x");'),
    ],
)
def test_a_mask_has_the_form_of_its_literal(body: str, new: str) -> None:
    assert made(body) == new


def test_what_a_helper_compares_is_masked_and_nothing_else_that_it_is_given() -> None:
    helper = "fn same(size: usize, want: &str) {\n    assert_eq!(a(size), want.len());\n}\n"
    assert made('same(4, "tea");', helper) == 'same(4, "-");'
    tested = "fn same(it: &str, want: usize) {\n    assert!(a(it) == want);\n}\n"
    assert made('same("x", 4);', tested) == 'same("x", 4);'
    both = "fn same(it: &str) {\n    assert_eq!(a(it), it);\n}\n"
    assert made('same("x");', both) == 'same("x");'


def test_a_test_that_a_macro_makes_may_hold_assertions() -> None:
    made = "macro_rules! req {\n    ($name:ident, $text:expr, $size:expr, $more:expr) => {\n        #[test]\n"
    made += "        fn $name() {\n            assert_eq!(a($text), $size);\n            $more\n        }\n    };\n}\n"
    new = masked(f'{made}req!(one, "tea", 3, {{\n    assert_eq!(b(), "pot");\n}});\n')
    assert new.literals == {"one": ["3", '"pot"']}
    assert '("one", (&[0], 0, 1))' in new.text and '__masks::of(&[1], 2, 1); assert_eq!(b(), "-")' in new.text


def test_a_macro_may_take_any_number_of_what_is_asked_for() -> None:
    rule = "macro_rules! reads {\n    ($name:ident, $text:expr, $(PART$it:expr),*) => {\n        #[test]\n"
    rule += (
        "        fn $name() {\n            let mut all = a($text);\n            $( assert_eq!(all.next(), $it); )*\n"
    )
    rule += "        }\n    };\n}\n"
    new = masked(rule.replace("PART", "") + 'reads!(one, "a b c", "a", "b", "c");\n')
    assert new.literals == {"one": ['"a"', '"b"', '"c"']}
    new = masked(rule.replace("PART", "$method:ident = ") + 'reads!(one, "a b c", x = "a", y = "b");\n')
    assert new.literals == {"one": ['"a"', '"b"']}


def test_where_another_assertion_is_imported_the_calls_are_others() -> None:
    text = "use pretty_assertions::assert_eq;\n#[test]\nfn it() {\n    assert_eq!(a(), 4);\n}\n"
    new = masked(text).text
    assert "macro_rules! __masked_eq" in new and "; __masked_eq!(a(), 1); };" in new
    assert "use pretty_assertions::assert_eq;" in new


def test_only_the_root_of_a_crate_is_named_by_its_place() -> None:
    text = "#[test]\nfn it() {\n    assert_eq!(a(), 4);\n}\n"
    assert "$crate" not in masked(text).text
    assert "$crate::__masks::told" in masked(f"mod util;\n{text}").text
    inner = masked(f"use super::*;\nmod util;\n{text}").text
    assert "$crate" not in inner and "; __masked_eq!(a(), 1); }" in inner


@pytest.mark.skipif(RUSTC is None, reason="there is no Rust")
@pytest.mark.parametrize("edition", ["2015", "2021"])
def test_masked_tests_pass_and_tell_what_is_given(tmp_path: Path, edition: str) -> None:
    report = tmp_path / "told"
    new = masked(TEXT, str(report), 3)
    (tmp_path / "it.rs").write_text(new.text)
    compiler = [str(RUSTC), "--test", "--edition", edition, "-C", "debuginfo=0", "it.rs"]
    subprocess.run(compiler, cwd=tmp_path, check=True, capture_output=True)
    run = subprocess.run([tmp_path / "it"], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    found = {place: told(report.read_text()).get(number) for number, place in new.numbers(3).items()}
    assert found == {
        ("halves", 0): {"=8"},
        ("halves", 1): {"=8"},
        ("halves", 2): {"=-3.14"},
        ("joins", 0): {r'=["a", "b\nc"]'},
        ("joins", 1): {r'=["a", "b\nc"]'},
        ("joins", 2): {"=[116, 101, 97]"},
        ("joins", 3): {"=Some('t')"},
        ("joins", 4): {'="xxx"'},
        ("joins", 5): {'="xxx"'},
        ("asks_helpers", 0): {'="TEA"', '="-"'},
        **{("asks_helpers", place): {'=Start("pot", 0..3)', '=Start("-", 1..1)'} for place in (1, 2, 3)},
        ("asks_helpers", 4): {"=7", "=1"},
        ("asks_of_a_table", 0): {"=3", "=5"},
        ("asks_of_a_table", 1): {"=3", "=5"},
        ("asks_of_a_table", 2): {'="ONE"'},
        ("hides_what_no_one_wrote", 0): None,
        ("walks", 0): {'=["a", "b"]', '=["a"]'},
        **{("takes_any_order", place): {'="a" "b" 11: 22:'} for place in range(4)},
        ("shows_tea", 0): {'="tea"', '="-"'},
        ("shows_some", 0): {'="17"', '="-"'},
        ("finds", 0): {"=Ok(3)", "=Ok(1)"},
        ("finds", 1): {"=Ok(22)"},
        ("finds", 2): None,
    }


ODD = """struct Odd(std::vec::IntoIter<u8>);
struct Agreed;
impl Iterator for Odd { type Item = u8; fn next(&mut self) -> Option<u8> { self.0.next() } }
impl Odd { fn zip<T>(self, _: T) -> Agreed { Agreed } }
impl Agreed { fn all<F: Fn((u8, u8)) -> bool>(self, _: F) -> bool { true } }
#[test]
fn it() {
    assert!(Odd(vec![1, 3].into_iter()).zip(vec![1, 2, 3]).all(|(a, b)| a == b));
}
"""


@pytest.mark.skipif(RUSTC is None, reason="there is no Rust")
def test_sequences_are_compared_by_no_means_of_the_tested_code(tmp_path: Path) -> None:
    passed = []
    for name, text in {"plain": ODD, "masked": masked(ODD, str(tmp_path / "told")).text}.items():
        (tmp_path / "it.rs").write_text(text)
        subprocess.run([str(RUSTC), "--test", "it.rs", "-o", name], cwd=tmp_path, check=True, capture_output=True)
        passed.append(subprocess.run([tmp_path / name], check=False, capture_output=True).returncode == 0)
    assert passed == [True, False] and told((tmp_path / "told").read_text()) == {0: {"=[1, 3]"}}


@pytest.mark.parametrize(
    "body",
    [
        "assert!(!a.zip(b).all(|(x, y)| x == y));",
        "assert!(c && a.zip(b).all(|(x, y)| x == y));",
        "assert!(a.zip(b).all(|(x, y)| x < y));",
        "assert!(a.zip(b).any(|(x, y)| x == y));",
        "assert!(a.zip(b).all(|(x, _)| x == c));",
        "assert!(zip(a, b).all(|(x, y)| x == y));",
    ],
)
def test_what_compares_no_sequences_stays(body: str) -> None:
    assert masked(f"#[test]\nfn it() {{ {body} }}\n").literals == {}


@given(st.text() | st.text(alphabet="#[test]fn a(){}\"'/*r!assert_eq,;b1\\ \nmodlet=for in&$:"))
def test_any_text_can_be_masked(text: str) -> None:
    for whole in (text, f"#[test]\nfn a() {{ assert_eq!(b(), {text}); }}", f"#[test]\nfn a() {{ {text}"):
        new = masked(whole)
        assert masked(whole, names=()) == Masked(whole, new.literals)
        assert (new.text == whole) == (not new.literals)


def test_comments_of_a_masked_file_are_left_out() -> None:
    text = '#[test]\nfn it() {\n    // seven\n    assert_eq!(f(1), "seven"); /* six\n    */\n    g("// none");\n}\n'
    made = masked(text).text
    own = made[: made.rindex("mod ")]
    assert '"// none"' in own and "six" not in own and "seven" not in own
    assert own.splitlines()[5].strip() == 'g("// none");'
