"""The assertions of test code: of Python by its syntax, of other languages by their usual lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from trajectories.audit.python_text import dotted, nodes_of, unparsed

_LONGEST_LINE = 240


class Assertion(NamedTuple):
    """What a line of a test checks."""

    subject: str
    """What is looked at."""
    check: str
    """``==``, ``raises``, ``truth`` ..."""
    expected: str
    """What it is compared with; empty where it is not."""
    line: str


WEAK = frozenset({"truth", "is not", "isinstance", "!=", ">=", ">", "<=", "<", "not in"})
"""Checks that hold for many values."""

_METHODS = {
    "assertEqual": "==",
    "assertEquals": "==",
    "assertListEqual": "==",
    "assertDictEqual": "==",
    "assertSetEqual": "==",
    "assertSequenceEqual": "==",
    "assertAlmostEqual": "==",
    "assertIs": "is",
    "assertIn": "in",
    "assertTrue": "truth",
    "assertFalse": "falsity",
    "assertIsNone": "is",
    "assertIsNotNone": "is not",
    "assertIsInstance": "isinstance",
    "assertNotEqual": "!=",
    "assertGreater": ">",
    "assertGreaterEqual": ">=",
    "assertRaises": "raises",
    "assertRaisesRegex": "raises",
}
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
}
_LINES = (
    (re.compile(r"expect\((.{1,300}?)\)(?:\.resolves|\.rejects)?\.(to\w+)\((.{0,300})\)"), 1, 3, 2),
    (re.compile(r"assert(?:\.\w*|_eq!|_ne!|Equals?|_equal)?\s*\(?\s*(.{1,300}?),\s*(.{0,300}?)\)?;?$"), 1, 2, None),
    (re.compile(r"(?:expect|assert|t\.(?:Error|Fatal)f?|require\.\w+)\b(.{0,300})"), 1, None, None),
)
_MARK = re.compile(
    r"pytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b|@?unittest\.(?:skip\w*|expectedFailure)\b|self\.skipTest\b"
    r"|raise (?:unittest\.)?SkipTest|\b(?:it|test|describe)\.(?:skip|todo|failing)\b|\bx(?:it|describe|test)\("
    r"|\bt\.Skip(?:f|Now)?\(|#\[ignore\b|@(?:Disabled|Ignore)\b|__test__\s*=\s*False|collect_ignore"
)
_TEST = re.compile(
    r"(?m)^[ \t]*(?:async )?def (test\w*)|^[ \t]*(?:it|test)\(\s*['\"`](.{1,200}?)['\"`]|^func (Test\w+)"
)
_SWALLOWED = re.compile(r"except(?: \(?[^\n:]{0,80}\b(?:AssertionError|Exception|BaseException))?[^\n:]{0,80}:")


def assertions(text: str) -> Iterator[Assertion]:
    """The assertions in a piece of test code."""
    nodes = nodes_of(text)
    if nodes:
        for node in nodes:
            yield from _of_node(node)
        return
    for raw in text.split("\n"):
        line = raw.strip()[:_LONGEST_LINE]
        if not line or line.startswith(("#", "//", "*")):
            continue
        if found := [it for node in nodes_of(line) for it in _of_node(node)]:
            yield from found
            continue
        for pattern, subject, expected, check in _LINES:
            if match := pattern.search(line):
                value = match[expected] if expected else ""
                yield Assertion(match[subject], match[check] if check else "==" if value else "truth", value, line)
                break


def _of_node(node: ast.AST) -> Iterator[Assertion]:
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[operator], comparators=[right])):
            yield Assertion(
                unparsed(left),
                _OPERATORS.get(type(operator), "truth"),
                unparsed(right),
                f"assert {unparsed(node.test)}",
            )
        case ast.Assert(test=ast.Call(func=ast.Name(id="isinstance"), args=[value, kind])):
            yield Assertion(unparsed(value), "isinstance", unparsed(kind), f"assert {unparsed(node.test)}")
        case ast.Assert(test=test):
            yield Assertion(unparsed(test), "truth", "", f"assert {unparsed(test)}")
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in _METHODS and args:
            expected = unparsed(args[1]) if len(args) > 1 else ""
            yield Assertion(unparsed(args[0]), _METHODS[attr], expected, unparsed(node))
        case ast.Call(args=[value, right, *_]) if dotted(node.func).rpartition(".")[2].startswith("assert_"):
            yield Assertion(unparsed(value), "==", unparsed(right), unparsed(node))
        case ast.Call(args=[kind, *_], keywords=keywords) if dotted(node.func) in {"pytest.raises", "raises"}:
            match_ = next((unparsed(word.value) for word in keywords if word.arg == "match"), "")
            yield Assertion(unparsed(kind), "raises", match_, unparsed(node))


def marks(text: str) -> list[str]:
    """Marks by which tests are not run, or may fail."""
    return [match[0] for match in _MARK.finditer(text)]


def test_names(text: str) -> list[str]:
    """The names of the tests in a text."""
    return [match[1] or match[2] or match[3] for match in _TEST.finditer(text)]


def swallowed(text: str) -> int:
    """How many clauses of a text catch failed assertions."""
    return sum("Assert" in match[0] or match[0] == "except:" for match in _SWALLOWED.finditer(text))
