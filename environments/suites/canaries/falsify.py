"""How a copy of a test is made to fail: by a literal of what it does before its first assertion, or by that assertion.

A canary differs from a test of the file in one small place, so that neither of the two looks like the true one: an
argument is another one and the result that is asked for stays, or the same is done and another result is asked for.
Values are near those of the file.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
}
OPPOSITE_METHODS = {
    "assertEqual": "assertNotEqual",
    "assertEquals": "assertNotEqual",
    "assertNotEqual": "assertEqual",
    "assertTrue": "assertFalse",
    "assertFalse": "assertTrue",
    "assertIs": "assertIsNot",
    "assertIsNot": "assertIs",
    "assertIsNone": "assertIsNotNone",
    "assertIsNotNone": "assertIsNone",
    "assertIn": "assertNotIn",
    "assertNotIn": "assertIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual",
    "assertGreaterEqual": "assertLess",
    "assertLess": "assertGreaterEqual",
    "assertLessEqual": "assertGreater",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertCountEqual": "assertNotEqual",
    "assertListEqual": "assertNotEqual",
    "assertDictEqual": "assertNotEqual",
    "assertTupleEqual": "assertNotEqual",
    "assertSetEqual": "assertNotEqual",
    "assertSequenceEqual": "assertNotEqual",
    "assertMultiLineEqual": "assertNotEqual",
    "assertRegex": "assertNotRegex",
}
"""Methods of `unittest.TestCase` whose first argument is a value, and those that hold where they do not."""

_SIMPLE = re.compile(rb"\"[^\"\\\r\n]+\"|'[^'\\\r\n]+'|[0-9]{1,9}")
"""A literal whose text can be another value's: no escapes, prefixes or parts."""
_F_STRING = re.compile(rb"f[\"']([^\\\"']*)[\"']")
_OPERATOR = re.compile(rb"[=!<>]=|[<>]|is\s+not|not\s+in|is|in")
_BOUND = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Await)
"""What may stand before a comparison without parentheses."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
"""A line as Python parts a file."""


_Option = TypeVar("_Option")


class FormDice(Random):
    """Dice for falsehoods that look like tests of the file: values of the type that is asked for, exceptions that the
    file's tests wait for, no parentheses that nobody writes. Other dice make what proofs of before have tried."""


class ValueDice(FormDice):
    """The same for values that are asked for alone: others may hit the message of an assertion of JavaScript."""


class PlausibleDice(ValueDice):
    """The same for values that are as plausible as the true one (`environments.suites.canaries.plausible`). All dice of
    one `place` ask for another value in the same place of a test, and those with another `turn` for another one: of
    falsehoods that differ in different places the true test would be the middle. With `signs` the letters that are no
    ASCII are looked at, too, and of a text of several words one value has its letters. Lines that are `known` (without
    blanks around) stand in B_t, too, where everybody reads how they are when they are true. With `turns` a comparison
    that is asked for is turned round. With `news` a test is changed in other lines than these, if it has one. With
    `by_kind` a test is changed only in what no other dice change: of Python the types of numbers, where types are
    compared, of JavaScript which of two opposed lists a value stands in.
    """

    def __init__(
        self,
        secret: str,
        turn: int,
        *,
        signs: bool = False,
        turns: bool = False,
        news: bool = False,
        by_kind: bool = False,
        known: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(f"{secret} {turn}")
        self.place = Random(secret)
        self.turn = turn
        self.signs = signs
        self.turns = turns
        self.news = news
        self.by_kind = by_kind
        self.known = known

    def taken(self, found: Sequence[_Option]) -> _Option:
        """That of some whose turn it is."""
        return found[self.turn % len(found)]


@dataclass(frozen=True, slots=True)
class FirstAssertion:
    """The first assertion of a test. `value` is what it looks at, and `wanted` what that is held against, if anything.
    `method` is unittest's method, else the statement is an ``assert``."""

    statement: ast.stmt
    value: ast.expr
    wanted: ast.expr | None
    method: ast.Attribute | None

    @property
    def is_equality(self) -> bool:
        """Whether a value has to equal another."""
        match self.statement:
            case ast.Assert(test=ast.Compare(ops=[ast.Eq()])):
                return True
        return self.method is not None and self.method.attr in ("assertEqual", "assertEquals")


@dataclass(frozen=True, slots=True)
class Patch:
    """New text for a part of one line; columns in bytes, as `ast` counts them."""

    line: int
    begin: int
    end: int
    text: str


def assertion(statement: ast.stmt) -> FirstAssertion | None:
    """What a statement asserts of a value; None where it asserts nothing that can be made false."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[_], comparators=[wanted])):
            return FirstAssertion(statement, left, wanted, None)
        case ast.Assert(test=test):
            return FirstAssertion(statement, test, None, None)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name) as method, args=[first, *more])
        ) if name in OPPOSITE_METHODS:
            return FirstAssertion(statement, first, more[0] if more else None, method)
    return None


def falsified(
    asserted: FirstAssertion,
    body: Iterable[ast.stmt],
    lines: Sequence[str],
    values: Sequence[object],
    order: Random,
    *,
    by_value: bool,
    arguments: bool = True,
) -> tuple[list[Patch], bool]:
    """The patches that make a copy of a test with this body fail, and whether they change an argument.

    `lines` are those of the file, and `values` its strings and numbers. With `by_value` an assertion asks for another
    value and is not just turned round: what equals everything is caught by that alone. Without `arguments` what is done
    stays, and only what is asked for is another.
    """
    source = LiteralText(lines)
    if asserted.is_equality and asserted.wanted is not None and _is_telling(asserted.wanted):
        before = [it for it in _inner(body) if it.lineno < asserted.statement.lineno]
        literals = [it for it in [*before, *constants(asserted.value)] if source.is_simple(it)]
        if arguments and literals and order.random() < 0.7:
            literal = order.choice(literals)
            return [source.with_value(literal, near(literal.value, order))], True
        wanted = [it for it in constants(asserted.wanted) if source.is_simple(it)]
        if wanted:
            literal = order.choice(wanted)
            others = [it for it in values if type(it) is type(literal.value) and it != literal.value]
            if isinstance(order, FormDice):
                others = [it for it in others if _is_of_size(it, literal.value)]
            is_near = asserted.wanted is not literal or not others or order.random() < 0.5
            return [source.with_value(literal, near(literal.value, order) if is_near else order.choice(others))], False
    if asserted.is_equality and isinstance(asserted.wanted, ast.JoinedStr):
        letter = source.with_other_letter(asserted.wanted, order)
        if letter is not None:
            return [letter], False
    return _opposite(asserted, source, values, order, by_value=by_value), False


def near(value: object, order: Random) -> object:
    """A text with one other letter or digit, or another number of the same size."""
    if isinstance(value, str):
        places = [place for place, letter in enumerate(value) if letter.isalnum() and letter.isascii()]
        if not places:
            return value + order.choice(_LETTERS)
        place = order.choice(places)
        pool = "0123456789" if value[place].isdigit() else _LETTERS
        pool = pool.upper() if value[place].isupper() else pool
        letter = order.choice([it for it in pool if it != value[place]])
        return value[:place] + letter + value[place + 1 :]
    number = value if isinstance(value, int) else 3
    return order.choice([it for it in range(max(0, number - 5), number + 9) if it != number])


def lines_of(text: str) -> list[str]:
    """The lines of a file, as Python parts it."""
    return _LINE.findall(text)


def patched(lines: Sequence[str], first: int, last: int, patches: Iterable[Patch]) -> list[str]:
    """These lines (from 1, the last one included) with the patches in them."""
    found = {number: lines[number - 1].encode() for number in range(first, last + 1)}
    for patch in sorted(patches, key=lambda it: (it.line, -it.begin)):
        line = found[patch.line]
        found[patch.line] = line[: patch.begin] + patch.text.encode() + line[patch.end :]
    return [line.decode() for line in found.values()]


def file_values(tree: ast.AST) -> list[object]:
    """The strings of one short line and the numbers in a file."""
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [it for it in found if type(it) is int or (isinstance(it, str) and 0 < len(it) < 40 and it.isprintable())]


class LiteralText:
    """The text of a file's nodes."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        text = "".join(lines)
        self._quote = '"' if text.count('"') >= text.count("'") else "'"

    def is_simple(self, node: ast.expr) -> bool:
        """Whether a node is one literal on one line, whose text can be replaced."""
        if not isinstance(node, ast.Constant) or node.lineno != node.end_lineno:
            return False
        return (
            _SIMPLE.fullmatch(self._lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset]) is not None
        )

    def line(self, node: ast.expr | ast.stmt) -> str:
        """The line on which a node begins, without what surrounds it."""
        return self._lines[node.lineno - 1].strip()

    def counted(self) -> Counter[str]:
        """How often each line stands in the file."""
        return Counter(it.strip() for it in self._lines)

    def text(self, node: ast.expr) -> str:
        """The text of a node that is on one line."""
        return self._lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()

    def with_value(self, node: ast.Constant, value: object) -> Patch:
        """The patch that puts a value in a literal's place."""
        return Patch(node.lineno, node.col_offset, node.end_col_offset or 0, self.literal(value))

    def with_other_letter(self, node: ast.JoinedStr, order: Random) -> Patch | None:
        """The patch that changes one letter of an f-string's text; None where it has none on one line."""
        line = self._lines[node.lineno - 1].encode()
        text = line[node.col_offset : node.end_col_offset]
        if node.lineno != node.end_lineno or not (found := _F_STRING.fullmatch(text)):
            return None
        parts = [part for part in re.finditer(rb"\{[^{}]*\}|([^{}]+)", found[1]) if part[1]]
        places = [place for part in parts for place in range(*part.span()) if found[1][place : place + 1].isalnum()]
        if not places:
            return None
        place = node.col_offset + found.start(1) + order.choice(places)
        return Patch(node.lineno, place, place + 1, str(near(chr(line[place]), order)))

    def operator(self, left: ast.expr, right: ast.expr) -> tuple[int, int]:
        """The columns of what stands between two operands on one line, without their parentheses."""
        begin = left.end_col_offset or 0
        between = self._lines[right.lineno - 1].encode()[begin : right.col_offset]
        found = _OPERATOR.search(between)
        return (begin + found.start(), begin + found.end()) if found else (begin, right.col_offset)

    def literal(self, value: object) -> str:
        """A value in the file's quotes."""
        text = repr(value)
        if isinstance(value, str) and self._quote not in value and "\\" not in text:
            return f"{self._quote}{value}{self._quote}"
        return text


def _is_telling(wanted: ast.expr) -> bool:
    """Whether work that is right gives this value for few arguments."""
    match wanted:
        case ast.Constant(value=str(text)):
            return len(text) > 1
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number > 1
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Set():
            return any(map(_is_telling, constants(wanted)))
    return False


def _inner(statements: Iterable[ast.stmt]) -> Iterator[ast.Constant]:
    """The constants of what statements do; a string that stands alone is a comment."""
    for statement in statements:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield from constants(statement)


def constants(node: ast.AST) -> Iterator[ast.Constant]:
    """The strings and numbers below a node, none of an f-string or of a type."""
    if isinstance(node, ast.Constant):
        if type(node.value) in (str, int):
            yield node
    elif not isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        for inner in ast.iter_child_nodes(node):
            yield from constants(inner)


def _opposite(
    asserted: FirstAssertion, source: LiteralText, values: Sequence[object], order: Random, *, by_value: bool
) -> list[Patch]:
    """The assertion turned round, or about another value."""
    value, wanted = asserted.value, asserted.wanted
    other = _like(wanted, source, values, order) or source.literal(_other(wanted, values, order))
    if asserted.method is not None:
        if by_value and asserted.is_equality and wanted is not None and wanted.lineno == wanted.end_lineno:
            return [Patch(wanted.lineno, wanted.col_offset, wanted.end_col_offset or 0, other)]
        end, name = asserted.method.end_col_offset or 0, asserted.method.attr
        line = asserted.method.end_lineno or 0
        return [Patch(line, end - len(name), end, OPPOSITE_METHODS[name])]
    test = asserted.statement.test if isinstance(asserted.statement, ast.Assert) else value
    match test:
        case ast.Compare(ops=[op]) if wanted is not None and value.end_lineno == wanted.lineno == wanted.end_lineno:
            if by_value and isinstance(op, ast.Eq):
                return [Patch(wanted.lineno, wanted.col_offset, wanted.end_col_offset or 0, other)]
            begin, end = source.operator(value, wanted)
            return [Patch(wanted.lineno, begin, end, OPPOSITES[type(op)])]
        case ast.UnaryOp(op=ast.Not(), operand=inner) if inner.lineno == test.lineno:
            return [Patch(test.lineno, test.col_offset, inner.col_offset, "")]
    last = test.end_lineno or test.lineno
    before, after = ("(", f") == {other}") if by_value else ("not (", ")")
    if by_value and isinstance(order, FormDice) and isinstance(test, _BOUND):
        before, after = "", f" == {other}"
    return [
        Patch(test.lineno, test.col_offset, test.col_offset, before),
        Patch(last, test.end_col_offset or 0, test.end_col_offset or 0, after),
    ]


def _like(wanted: ast.expr | None, source: LiteralText, values: Sequence[object], order: Random) -> str:
    """A literal of the type of what is wanted and not equal to it, by dice of forms; empty where none is known."""
    if not isinstance(order, FormDice):
        return ""
    some = source.literal(order.choice(values or [order.randint(2, 9)]))
    match wanted:
        case ast.Constant(value=bool(value)):
            return repr(not value)
        case ast.Constant(value="") if isinstance(order, PlausibleDice):
            return source.literal(order.choice([it for it in values if isinstance(it, str)] or ["0"]))
        case ast.Constant(value=str() | int() as value):
            return source.literal(near(value, order))
        case ast.Constant(value=float(value)):
            return repr(value + order.randint(1, 5))
        case ast.List(elts=parts):
            return f"[{some}]" if not parts else "[]"
        case ast.Tuple(elts=parts):
            return f"({some},)" if not parts else "()"
        case ast.Dict(keys=parts):
            return f"{{{some}: {some}}}" if not parts else "{}"
    return ""


def _is_of_size(value: object, known: object) -> bool:
    """Whether a value is about as long, or as great, as one of its type."""
    sizes = [len(it) if isinstance(it, str) else it if isinstance(it, int) else 0 for it in (value, known)]
    return max(sizes) <= 2 * min(sizes) + 2


def _other(wanted: ast.expr | None, values: Sequence[object], order: Random) -> object:
    """A value of the file, or near one, and none that is wanted."""
    known = wanted.value if isinstance(wanted, ast.Constant) else None
    value = order.choice(values or [order.randint(2, 9)])
    while value == known or (order.random() < 0.5 and not isinstance(order, PlausibleDice)):
        value = near(value, order)
    return value
