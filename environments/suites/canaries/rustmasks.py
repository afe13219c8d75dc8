"""Masks of tests of Rust (`environments.suites.canaries.masks`). Pure.

What is compared with has a type that a mask has to have, too, so it is a literal of the same form that is the same for
all: nothing, one, or false. ``assert_eq!`` is another macro in the file, and in the modules that it names: in a
comparison that holds masks it tells what the other side is, by `Debug`, and goes on as if both were equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from environments.suites.canaries.masks import UNWRITTEN, Masked, Masking
from environments.suites.canaries.rustasked import LEFT, RIGHT, SAME, UNORDERED, AskedFile, RustAsked, RustSequences
from environments.suites.canaries.rusttokens import RustToken, without_comments

_INTEGER = re.compile(r"(?:0x[0-9a-fA-F_]+?|0b[01_]+|0o[0-7_]+|[0-9][0-9_]*)((?:[iu](?:8|16|32|64|128|size))?)")
_FLOAT = re.compile(r"[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][0-9_]+)?((?:f(?:32|64))?)")
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|\r?\n\s*|.)", re.S)
_PLACE = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_MODULE = "__masks"
_OTHER_MACRO = "__masked_eq"
_HELPERS = r"""#[allow(warnings)] mod __masks {
use ::std::io::Write;
type Text = ::std::string::String;
type Now = (&'static [u32], u8, u8);
const BY_NAME: &'static [(&'static str, Now)] = &[BY_NAME_HERE];
::std::thread_local! {
static NOW: ::std::cell::Cell<Now> = ::std::cell::Cell::new((&[], 0, 0));
static TOLD: ::std::cell::RefCell<::std::collections::BTreeMap<u32, ::std::collections::BTreeSet<Text>>>
 = ::std::cell::RefCell::new(::std::collections::BTreeMap::new());
}
pub struct Of(Now);
impl ::std::ops::Drop for Of { fn drop(&mut self) { let before = self.0; let _ = NOW.try_with(|it| it.set(before)); } }
pub fn of(numbers: &'static [u32], side: u8, known: u8) -> Of {
 Of(NOW.with(|it| it.replace((numbers, side, known))))
}
fn now() -> Now {
 let now = NOW.with(|it| it.get());
 if !now.0.is_empty() || BY_NAME.is_empty() { return now; }
 let thread = ::std::thread::current();
 let name = thread.name().unwrap_or("").rsplit("::").next().unwrap_or("");
 BY_NAME.iter().find(|it| it.0 == name).map(|it| it.1).unwrap_or(now)
}
fn is_std(name: &str) -> bool {
 name.split(|it: char| !(it.is_alphanumeric() || "_:'".contains(it))).all(|it| {
  it.is_empty() || it.starts_with(|it: char| it.is_ascii_digit() || it == '\'')
  || ["core::", "alloc::", "std::"].iter().any(|root| it.starts_with(root))
  || ["i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "f32", "f64", "bool",
   "char", "str", "mut", "dyn"].contains(&it)
 })
}
fn shown<T: ?Sized + ::std::fmt::Debug>(it: &T, known: u8) -> Text {
 let mut text = ::std::format!("{:?}", it);
 let name = ::std::any::type_name::<T>();
 if known == UNORDERED_HERE || name.contains("HashMap<") || name.contains("HashSet<") {
  let parts = text.split(|it: char| "{}[](), ".contains(it)).filter(|it| !it.is_empty());
  let mut parts = parts.collect::<::std::vec::Vec<&str>>();
  parts.sort();
  text = parts.join(" ");
 }
 let mut line = Text::new();
 for it in text.chars() {
  let ends_lines = it.is_control() || it == '\u{2028}' || it == '\u{2029}';
  if ends_lines { line.extend(it.escape_default()); } else { line.push(it); }
 }
 if line.len() > 2000 {
  use ::std::hash::{Hash, Hasher};
  let mut hash = ::std::collections::hash_map::DefaultHasher::new();
  line.hash(&mut hash);
  line = ::std::format!("{} {:x}", line.chars().take(1000).collect::<Text>(), hash.finish());
 }
 line
}
fn tell(numbers: &[u32], text: &str) {
 for number in numbers {
  let is_new = TOLD.with(|it| {
   let mut told = it.borrow_mut();
   let told = told.entry(*number).or_insert_with(::std::collections::BTreeSet::new);
   told.len() < 1000 && told.insert(Text::from(text))
  });
  if is_new {
   let opened = ::std::fs::OpenOptions::new().append(true).create(true).open(REPORT_HERE);
   if let ::std::result::Result::Ok(mut file) = opened {
    let _ = file.write_all(::std::format!("{} ={}\n", number, text).as_bytes());
   }
  }
 }
}
pub fn alike<A, B, F>(number: u32, left: A, right: B, same: F) -> bool
where A: ::std::iter::IntoIterator, B: ::std::iter::IntoIterator, A::Item: ::std::fmt::Debug,
 F: FnMut((A::Item, B::Item)) -> bool {
 let right = right.into_iter().collect::<::std::vec::Vec<_>>();
 let left = left.into_iter().take(right.len()).collect::<::std::vec::Vec<_>>();
 if is_std(::std::any::type_name::<A::Item>()) { tell(&[number], &shown(&left, 0)); }
 left.into_iter().zip(right).all(same)
}
pub fn told<A: ?Sized + ::std::fmt::Debug, B: ?Sized + ::std::fmt::Debug>(left: &A, right: &B) -> bool {
 let (numbers, side, known) = now();
 if numbers.is_empty() { return false; }
 let names = (::std::any::type_name::<A>(), ::std::any::type_name::<B>());
 let bare = |it: &'static str| it.trim_start_matches('&');
 let is_same = known == SAME_HERE && bare(names.0) == bare(names.1);
 if known > SAME_HERE || is_same || (is_std(names.0) && is_std(names.1)) {
  let _own = of(&[], 0, 0);
  if side != LEFT_HERE { tell(numbers, &shown(left, known)); }
  if side != RIGHT_HERE { tell(numbers, &shown(right, known)); }
 }
 true
}
}
"""
_MACRO = (
    "#[allow(unused_macros)] macro_rules! NAME_HERE { "
    "($left:expr, $right:expr $(,)?) => { match (&$left, &$right) { (left, right) => "
    "if !PATH_HERE::told(left, right) { ::std::assert_eq!(*left, *right) } } }; "
    "($left:expr, $right:expr, $($words:tt)+) => { match (&$left, &$right) { (left, right) => "
    "if !PATH_HERE::told(left, right) { ::std::assert_eq!(*left, *right, $($words)+) } } }; } "
)


def mask_rust(text: str, masking: Masking) -> Masked:
    """`Masker` of Rust.

    What a test compares that a macro makes is told by all of its masks. They are known by the name of the test's
    thread, which libtest before Rust 1.67 does not make where it runs one test at a time: then such a test fails.
    """
    file = AskedFile(text)
    asked = [(test.name, list(file.asked(test))) for test in file.tests]
    masks = {
        number: new
        for _, found in asked
        for it in found
        for number in it.literals
        if (new := _mask(file, number)) is not None
    }
    sequences = [[*file.sequences(test)] for test in file.tests]
    by_test: dict[str, list[int]] = {}
    for (name, found), alike in zip(asked, sequences, strict=True):
        places_of = {it.call.first for it in alike}
        literals = sorted({number for it in found for number in it.literals if number in masks} | places_of)
        if literals:
            by_test.setdefault(name, []).extend(literals)
    told = dict[int, int]()
    first = masking.first
    for name, literals in by_test.items():
        places = masking.places(name)
        told.update((it, first + place) for place, it in enumerate(literals) if places is None or place in places)
        first += len(literals)
    all_literals = {
        name: [file.found[it].text if it in masks else UNWRITTEN for it in literals]
        for name, literals in by_test.items()
    }
    if not told:
        return Masked(text, all_literals)
    edits = [(file.found[it].begin, file.found[it].end, masks[it]) for it in told if it in masks]
    edits.extend(_told_of(file, text, [it for alike in sequences for it in alike], told))
    edits.extend(_guards(file, [it for _, found in asked for it in found], told))
    edits.extend(_macros(file))
    for begin, end, new in sorted(edits, reverse=True):
        text = f"{text[:begin]}{new}{text[end:]}"
    text = without_comments(text)
    last = "" if text.endswith("\n") else "\n"
    return Masked(f"{text}{last}{_helpers(masking.report, _by_name(asked, told))}", all_literals)


def _guards(file: AskedFile, asked: list[RustAsked], told: Mapping[int, int]) -> Iterator[tuple[int, int, str]]:
    """What says around a call which masks it compares."""
    calls: dict[int, list[RustAsked]] = {}
    for it in asked:
        if it.call is not None and any(number in told for number in it.literals):
            calls.setdefault(it.call.first, []).append(it)
    for found in calls.values():
        call = found[0].call
        assert call is not None
        begin = f"{{ let _masks = {_MODULE}::of({_numbers(found, told)}); "
        yield file.found[call.first].begin, file.found[call.first].begin, begin
        # A macro may be several statements.
        end = "; }" if file.is_one_of(call.closes + 1, ";") else " }"
        yield file.found[call.closes].end, file.found[call.closes].end, end
        # What would be said of a failure may say what was asked for.
        message = file.found[call.parts[2][0]] if call.name == "assert_eq" and len(call.parts) > 2 else None
        if message is not None and message.kind in ("text", "raw"):
            yield message.begin, message.end, _format(message.text)


def _told_of(
    file: AskedFile, text: str, sequences: list[RustSequences], told: Mapping[int, int]
) -> Iterator[tuple[int, int, str]]:
    """What tells the items of sequences, and compares them by means that no type has of its own."""
    found = file.found
    for it in sequences:
        if it.call.first in told:
            begins = found[it.left[0]].begin
            yield begins, begins, f"{_MODULE}::alike({told[it.call.first]}, "
            for before, after in ((it.left, it.right), (it.right, it.same)):
                ends, next_begins = found[before[1] - 1].end, found[after[0]].begin
                yield ends, next_begins, ", " + "\n" * text.count("\n", ends, next_begins)


def _numbers(found: list[RustAsked], told: Mapping[int, int]) -> str:
    """The numbers of the masks, their side, if they have one, and what is known of the types that are compared."""
    with_masks = [it for it in found if any(number in told for number in it.literals)]
    numbers = sorted({told[number] for it in with_masks for number in it.literals if number in told})
    sides = {it.side for it in with_masks}
    side = sides.pop() if len(sides) == 1 else 0
    return f"&[{', '.join(map(str, numbers))}], {side}, {max(it.known for it in with_masks)}"


def _by_name(asked: list[tuple[str, list[RustAsked]]], told: Mapping[int, int]) -> str:
    """The masks of tests that macros make, by their names: a test's thread has its name."""
    made: dict[str, list[RustAsked]] = {}
    for name, found in asked:
        made.setdefault(name, []).extend(it for it in found if it.call is None)
    return ", ".join(
        f'("{name}", ({_numbers(found, told)}))'
        for name, found in made.items()
        if any(number in told for it in found for number in it.literals)
    )


def _helpers(report: str, by_name: str) -> str:
    values = {"BY_NAME_HERE": by_name, "REPORT_HERE": json.dumps(report, ensure_ascii=False)}
    numbers = {"LEFT_HERE": LEFT, "RIGHT_HERE": RIGHT, "SAME_HERE": SAME, "UNORDERED_HERE": UNORDERED}
    return re.sub(r"\w+_HERE", lambda it: str({**numbers, **values}[it[0]]), _HELPERS)


def _macros(file: AskedFile) -> Iterator[tuple[int, int, str]]:
    """The macro before all items, and how modules name the helpers.

    A file that names other files as modules is taken for the root of its crate, which those can name, unless it says
    that it is none. Where something is imported as ``assert_eq``, a macro of this name is ambiguous. In both cases only
    this file's calls can be others.
    """
    found = file.found
    has_files = any(
        it.text == "mod" and file.is_one_of(number + 2, ";") and found[number + 1].kind == "word"
        for number, it in enumerate(found)
    )
    calls = [number for number, it in enumerate(found) if it.text == "assert_eq" and file.is_one_of(number + 1, "!")]
    is_imported = len(calls) < sum(it.text == "assert_eq" for it in found) or _imports_all(found)
    is_own = is_imported or (has_files and _is_inner(file))
    name = _OTHER_MACRO if is_own else "assert_eq"
    path = f"$crate::{_MODULE}" if has_files and not is_own else _MODULE
    begin = _behind_attributes(file, 0)
    if begin < len(found):
        macro = _MACRO.replace("NAME_HERE", name).replace("PATH_HERE", path)
        yield found[begin].begin, found[begin].begin, macro
    for number in calls if is_own else ():
        if not file.is_one_of(number - 1, "::", "."):
            yield found[number].begin, found[number].end, name
    for number, it in enumerate(found):
        if it.text == "mod" and file.is_one_of(number + 2, "{") and found[number + 1].kind == "word":
            inside = _behind_attributes(file, number + 3)
            if inside < len(found):
                use = f"#[allow(unused_imports)] use super::{_MODULE}; "
                yield found[inside].begin, found[inside].begin, use


def _imports_all(found: list[RustToken]) -> bool:
    texts = [it.text for it in found]
    return any(
        texts[number : number + 3] == [name, "::", "*"]
        for name in ("pretty_assertions", "similar_asserts")
        for number, it in enumerate(texts)
        if it == name
    )


def _is_inner(file: AskedFile) -> bool:
    """Whether a file uses what is in the module around it."""
    place = 0
    while place < len(file.found):
        if file.is_one_of(place, "super"):
            return True
        place = file.pairs.get(place, place) + 1
    return False


def _behind_attributes(file: AskedFile, number: int) -> int:
    """The first token behind inner attributes."""
    while file.is_one_of(number, "#") and file.is_one_of(number + 1, "!") and number + 2 in file.pairs:
        number = file.pairs[number + 2] + 1
    return number


def _mask(file: AskedFile, number: int) -> str | None:
    """What stands for a literal; None where nothing can."""
    token = file.found[number]
    if token.kind == "number":
        if whole := _INTEGER.fullmatch(token.text):
            return f"1{whole[1]}"
        return f"1.0{part[1]}" if (part := _FLOAT.fullmatch(token.text)) else None
    if token.kind == "letter":
        return "b'-'" if token.text[0] == "b" else "'-'"
    if token.kind == "word":
        return "false"
    begin, end = token.text.index('"') + 1, token.text.rindex('"')
    content, prefix = token.text[begin:end], token.text[: begin - 1].rstrip("r#")
    is_raw = "r" in token.text[: begin - 1]
    lines = "\n" * token.text.count("\n")
    if file.is_format(number):
        return _format(token.text)
    if prefix != "b":
        # A text without any may be asked for by its emptiness.
        return f'{prefix}"-{lines}"'
    content = content.replace("\r\n", "\n")
    size = len(content)
    if not is_raw:
        size = sum(it.group(0)[1] not in "\r\n" for it in _ESCAPE.finditer(content)) + len(_ESCAPE.sub("", content))
    return f'b"{"-" * (size - len(lines))}{lines}"' if size >= len(lines) else None


def _format(literal: str) -> str:
    """A text of which the places stay for what else is given."""
    kept = "".join(it[0] for it in _PLACE.finditer(literal) if it[0] not in ("{{", "}}"))
    lines = literal.count("\n") - kept.count("\n")
    return f'"-{kept}{chr(10) * lines}"'
