"""Names in code: their shapes, what is left of code without strings and comments, and what a hunk defines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.identifiers import (
    code_identifiers,
    defined_names,
    definitions,
    identifiers,
    is_code_name,
    name_parts,
    spellings,
)
from prchain.core.code.lexing import is_prose, lex
from tests.growth import assert_linear


def test_identifiers_come_in_order_and_do_not_begin_with_digits() -> None:
    assert identifiers("x1 = 2nd + naïve(x1)") == ["x1", "naïve", "x1"]


@pytest.mark.parametrize(
    "word", ["max_retries", "_private", "__init__", "maxRetries", "HTMLParser", "Int8Array", "MAX_X"]
)
def test_a_code_name_has_an_underscore_or_a_capital_inside(word: str) -> None:
    assert is_code_name(word)


@pytest.mark.parametrize("word", ["retries", "Retries", "API", "APIs", "URLs", "_", "utf8", "I"])
def test_words_and_abbreviations_are_no_code_names(word: str) -> None:
    assert not is_code_name(word)


@pytest.mark.parametrize("name", ["max_retries", "maxRetries", "MaxRetries", "MAX_RETRIES", "_max_retries_"])
def test_every_spelling_of_a_name_has_the_same_parts(name: str) -> None:
    assert name_parts(name) == ("max", "retries")
    assert spellings(name) == {"max_retries", "maxRetries", "MaxRetries", "MAX_RETRIES"}


def test_a_name_of_one_word_has_no_other_spelling() -> None:
    assert spellings("retries") == set()


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("a.py", ["keep(\"drop one\", 'drop two')  # drop three", '"""drop', 'drop four"""', "keep"]),
        ("a.ts", ["keep(`drop", "${drop}`) // drop", "/* drop", " * drop */ keep", " * drop of a comment"]),
        ("a.rs", ['keep::<\'keep>(\'d\', "drop", r#"drop "drop" drop"#); /// drop']),
        ("a.go", ["keep(`drop", "drop`, 'd') // drop"]),
        ("A.java", ['keep("drop \\" drop"); /* drop */ // drop']),
        ("a.rb", ["keep 'drop' # drop"]),
    ],
)
def test_strings_and_comments_are_no_code(path: str, lines: list[str]) -> None:
    assert code_identifiers(lines, path) == {"keep"}


def test_strings_are_found_without_their_marks() -> None:
    assert lex(["f(\"one\", 'two', '''three\nfour''')"], "a.py").strings == ("one", "two", "three\nfour")


@pytest.mark.parametrize(
    "lines",
    [
        ["    These words close a docstring of the unchanged part.", '    """', "    keep()"],
        ["    keep()", '    """These words open a docstring that goes on.'],
        ['    """One whole docstring stands here."""', "    keep()"],
    ],
)
def test_a_docstring_cut_in_two_hides_no_code_and_is_none(lines: list[str]) -> None:
    assert code_identifiers(lines, "a.py") == {"keep"}


def test_of_a_sentence_only_names_in_the_shape_of_code_count() -> None:
    assert is_prose("Return the old value unless max_retries is zero")
    assert code_identifiers(["Return the old value unless max_retries is zero"], "a.py") == {"max_retries"}
    assert not is_prose("return value if found else default")


@pytest.mark.parametrize("path", ["notes.md", "data.json", "Makefile", "x.snap"])
def test_a_file_that_is_no_code_has_no_names(path: str) -> None:
    assert code_identifiers(["some = words"], path) == set()
    assert defined_names(["def f(): pass"], path) == set()


@pytest.mark.parametrize(
    ("path", "line", "strong", "weak"),
    [
        ("a.py", "async def fetch(url, *, retries: int = 3, **more):", {"fetch"}, {"url", "retries", "more"}),
        ("a.py", "class Pool(Base):", {"Pool"}, set()),
        ("a.py", "LIMIT: int = 3", {"LIMIT"}, set()),
        ("a.py", "        self.count = 0", set(), {"count"}),
        ("a.py", "        self.count: dict[str, int] = {}", set(), {"count"}),
        ("a.py", "    limit: int", set(), {"limit"}),
        ("a.js", "function * walk() {", {"walk"}, set()),
        ("a.py", "call(limit) == 3", set(), set()),
        ("a.ts", "export function parse(text) {", {"parse"}, set()),
        ("a.ts", "export interface Options {", {"Options"}, set()),
        ("a.ts", "  tabWidth?: number;", set(), {"tabWidth"}),
        ("a.js", "  print(path) {", set(), {"print"}),
        ("a.js", "export { first, second };", {"first", "second"}, set()),
        ("a.js", "const helper = 1;", {"helper"}, set()),
        ("a.rs", "pub(crate) async fn run<T>(x: T) {", {"run"}, set()),
        ("a.rs", "    pub limit: usize,", set(), {"limit"}),
        ("a.rs", "    Forward(Option<u8>),", set(), {"Forward"}),
        ("a.rs", "pub const MAX: u8 = 1;", {"MAX"}, set()),
        ("a.go", "func (s *Server) Serve(x int) error {", {"Serve"}, set()),
        ("a.go", "type Server struct {", {"Server"}, set()),
        ("A.java", "    public static int size(int x) {", {"size"}, set()),
        ("A.java", "class Node<T> {", {"Node"}, set()),
        ("a.c", "#define LIMIT 3", {"LIMIT"}, set()),
        ("a.c", "static int *lookup(const char *key)", {"lookup"}, set()),
        ("a.rb", "  def self.build(x)", {"build"}, set()),
    ],
)
def test_what_a_line_defines(path: str, line: str, strong: set[str], weak: set[str]) -> None:
    found = definitions([line], path)
    assert strong <= found.strong
    assert weak <= found.weak
    assert defined_names([line], path) == found.strong | found.weak
    if not strong and not weak:
        assert not found.strong | found.weak


def test_parameters_on_lines_of_their_own_are_defined() -> None:
    assert {"first", "second"} <= defined_names(["def f(", "    first,", "    second=g(1, x=2),", "):"], "a.py")


@given(st.text(), st.sampled_from(["a.py", "a.js", "a.rs", "a.go", "a.java", "a.c", "a.sh", "a.md"]))
def test_any_text_is_taken_apart(text: str, path: str) -> None:
    lexed = lex(text.split("\n"), path)
    assert isinstance(lexed.code, str)
    defined_names(text.split("\n"), path)


HOSTILE = [
    "/*",
    '"',
    "'",
    "`",
    '"""',
    'r#"',
    "def f(",
    "public a ",
    "export {",
    " ",
    "\t",
    "a",
    "a ",
    "\n",
    "(",
    "x = ",
    "a: ",
    "self.a: ",
    "self.a:",
    "get set ",
    "function ",
    "function*",
    "const mut",
    "struct ",
    "a*",
    "a<",
    "@a ",
    "a(",
    "{ ",
    "func (",
    "#define ",
    "[a",
    "readonly ",
    "this.a ",
    "a,",
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.rs", "a.go", "a.java", "a.c", "a.sh"])
@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_for_hostile_code_grows_as_it_does(path: str, piece: str) -> None:
    """One long line, and many that are just short enough to be read whole, once with blanks alone behind the piece.

    How short a line must be to be read whole does not grow, so what is quadratic in a line is seen in the line's own
    growth, up to that length.
    """

    def work(lines: list[str]) -> None:
        code_identifiers(lines, path)
        defined_names(lines, path)

    assert_linear(lambda size: [piece * (size // len(piece))], work, 25_000)
    assert_linear(lambda size: [piece * (size // len(piece))] * 50, work, 440)
    assert_linear(lambda size: [piece + " " * size] * 50, work, 440)


def test_of_a_long_line_the_beginning_is_read_and_no_name_is_cut_in_two() -> None:
    line = "function first() {} " + "x = 1; " * 300 + "function second() {} " + "x;" * 2000
    assert definitions([line], "a.js").strong == {"first"}
    assert definitions(["function " + "a" * 3000], "a.js").strong == set()
