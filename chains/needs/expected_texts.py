"""What hidden tests expect: the literals of their added lines that a solver may have to be told."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from re import _constants, _parser  # type: ignore[attr-defined]  # the standard library's own reading of a pattern
from typing import Literal

from chains.needs.literals import LONGEST_READ, python_literals, sayable
from chains.needs.python_source import Reader, Scopes, parsed
from chains.needs.python_tests import added_lines
from prchain.core.code.identifiers import is_code_name
from prchain.core.code.lexing import family_of, lex
from prchain.core.git.patches import FilePatch

_SHORTEST = 3
_ASSERTING = re.compile(
    r"(?i)\b(?:assert\w*|expect\w*|should\w*|require\w*|check\w*|panic\w*|t\.(?:error|fatal)\w*|to(?:be|equal|throw|"
    r"match|contain|have)\w*|equals?|contains|want(?:ed)?|is_err)\b|\.message\b|\bmessage\s*[:}]"
    r"|\bt\.(?:true|is|deepEqual|regex|like|throws)\w*\("
)
_CONSTANT = re.compile(r"\s*(?:export\s+)?(?:const|let|var|static)\s+(?:mut\s+)?([^\W\d]\w*)\b[^=\n]{0,80}=\s*[\"'`]")
"""A line that gives a literal a name."""
_NAME = re.compile(r"\w+")
_JS_PATTERN = re.compile(r"(?:[(,:=]|\breturn)\s*/((?:\\.|\[(?:\\.|[^]\\\n])*\]|[^/\\\n[])+)/[dgimsuvy]*")
_KEY = re.compile(r"(?=.{4,80}$)[-_]{0,2}[^\W\d_][^\W_]*[-_.:/][\w.:/-]*\w=?|--[^\W\d_]\w{2,80}|[A-Z]{4,80}")
_OPTION_SET = re.compile(r"\s*(--[^\W\d_][\w-]*)=")
"""An option with what stands between it and its value, which is no part of its name."""
_DATA_KEY = re.compile(r"[\s-]*[\"']?([^\W\d][\w-]{0,79})[\"']?\s*(?::(?:\s|$)|=)")
"""A line of YAML, JSON or TOML that begins with a key."""
_IMPORTING = re.compile(
    r"\s*(?:import\b.*?[\"']|export\b.*\bfrom\s*[\"']|\}\s*from\s*[\"'])|.*\b(?:require|import)\(\s*[\"'`]"
)
"""A line of JavaScript or Go that names a module."""
_GO_IMPORTED = re.compile(r"\s*(?:[\w.]+\s+)?[\"`][^\"`\s]+[\"`]\s*(?://.*)?$")
"""A literal alone on its line without a comma: in Go, part of an import."""
WORD = re.compile(r"[^\W\d_]{2,}")
SIGN = re.compile(r"[^\x00-\x7f]")
"""A sign that nobody guesses, as of a prompt."""
_TITLE = re.compile(r"\s*(?:test|it|describe|context|suite|(?:t|b|tap)\.(?:Run|test))(?:\.\w+)*\(")
"""A line of JavaScript or Go that begins with what a test is called."""
_RAISING = frozenset({"raises", "warns", "match", "fnmatch_lines", "RaisesGroup", "RaisesExc"})
_JS_PLACEHOLDER = re.compile(r"\$\{[^{}\n]{0,200}\}")

Use = Literal["assertion", "argument", "key", "whole"]
"""What a literal of a test is: of an assertion; any, one that a helper or a table may be given; any that is shaped as a
key, or any at all, for one of the source patch as a whole."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What one assertion compares with: a literal as a whole, or the fixed parts of a pattern."""

    text: str
    parts: tuple[str, ...]
    tests: tuple[str, ...]
    use: Use

    @property
    def spellings(self) -> tuple[str, ...] | None:
        """What a literal of the source patch has to be as a whole; nothing where a part of one may meet it."""
        if self.use == "key":
            return self.parts
        return (self.text,) if self.use == "whole" else None


def expected_texts(patches: Sequence[FilePatch], landed: Reader) -> Iterator[Expected]:
    """What the added lines of tests expect; Python is parsed, of other languages lines are read. `landed` reads M_t."""
    for patch in patches:
        if family_of(patch.path) is None:
            continue
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is not None:
            yield from _python_expected(tree, patch)
            continue
        asserting = {word for line in filter(_ASSERTING.search, patch.added) for word in _NAME.findall(line)}
        for value in lex(patch.added, patch.path).strings:
            for line in value.split("\n") if "\n" in value else ():
                if counts(line, "argument"):
                    yield Expected(line.strip(), (line.strip(),), (patch.path,), "argument")
        for line in patch.added:
            if (
                _TITLE.match(line)
                or _IMPORTING.match(line)
                or (patch.path.endswith(".go") and _GO_IMPORTED.match(line))
            ):
                continue
            named = _CONSTANT.match(line)
            is_asserted = _ASSERTING.search(line) or (named and named[1] in asserting)
            uses: tuple[Use, ...] = ("assertion",) if is_asserted else ("whole", "argument")
            for value in lex([line], patch.path).strings:
                # A placeholder of a template, as in `${name}: not found`, parts it.
                parts = tuple(part for part in _JS_PLACEHOLDER.split(value) if part.strip())
                for use in uses:
                    if parts and counts(value, use):
                        yield Expected(value, parts, (patch.path,), use)
            if is_asserted and family_of(patch.path) == "javascript":
                yield from _js_patterns(line, patch.path)


def data_keys(records: Iterable[FilePatch]) -> Iterator[Expected]:
    """The keys that files of test data add."""
    for patch in records:
        yield from _keys_of(patch.added, (patch.path,))


def _keys_of(lines: Iterable[str], tests: tuple[str, ...]) -> Iterator[Expected]:
    """The keys that lines of data begin with, each with its name without leading underscores."""
    for key in dict.fromkeys(found[1] for line in lines if (found := _DATA_KEY.match(line))):
        if counts(key, "key"):
            yield Expected(key, tuple(dict.fromkeys((key, key.lstrip("_")))), tests, "key")


def _js_patterns(line: str, path: str) -> Iterator[Expected]:
    """The regular expressions of a line in JavaScript, each as its runs of plain characters."""
    for found in _JS_PATTERN.finditer(line):
        pieces = tuple(piece for piece in _literal_runs(found[1].replace("\\/", "/")) if piece.strip())
        text = " ... ".join(piece.strip() for piece in pieces)
        if pieces and counts(text, "assertion"):
            yield Expected(text, pieces, (path,), "assertion")


def _python_expected(tree: ast.Module, patch: FilePatch) -> Iterator[Expected]:
    added, scopes = added_lines(patch), Scopes(tree, patch.path)
    yield from _keywords(tree, added, scopes)
    for found in _python_literals_used(tree, added, scopes):
        if not any(_names_test(found.text, test) for test in found.tests):
            yield found


def _names_test(text: str, test: str) -> bool:
    """Whether a text tells of a test by its own name: that is the test's work."""
    name = test.rpartition("::")[2]
    return "::" in test and "_" in name and name in text


def _keywords(tree: ast.Module, added: Collection[int], scopes: Scopes) -> Iterator[Expected]:
    """The names of arguments that the source may read from a mapping, as in `options.pop("_anchor")`."""
    for node in ast.walk(tree):
        for it in node.keywords if isinstance(node, ast.Call) else ():
            if it.arg is not None and "_" in it.arg and it.value.lineno in added:
                yield Expected(it.arg, (it.arg,), tuple(sorted(scopes([it.value.lineno]))), "key")


def _python_literals_used(tree: ast.Module, added: set[int], scopes: Scopes) -> Iterator[Expected]:
    for node, use in _asserting(tree):
        patterns = {id(it) for it in _patterns(node)}
        for literal, parts in python_literals(node):
            if added.isdisjoint(range(literal.lineno, (literal.end_lineno or literal.lineno) + 1)):
                continue
            tests = tuple(sorted(scopes([literal.lineno])))
            if use == "key":
                yield from _keys_of((line for part in parts for line in part.split("\n")), tests)
            if id(literal) in patterns:
                pieces = tuple(piece for part in parts for piece in _literal_runs(part))
                text = " ... ".join(piece.strip() for piece in pieces)
                if pieces and counts(text, use):
                    yield Expected(text, pieces, tests, use)
            elif len(parts) == 1:
                text = parts[0][:LONGEST_READ]
                for piece in text.split("\n") if use == "argument" else (text,):
                    told = piece.strip() if use == "argument" else piece
                    told = found[1] if (found := _OPTION_SET.fullmatch(told)) else told
                    if counts(told, use):
                        yield Expected(told, (told.strip(),), tests, use)


def counts(text: str, use: Use) -> bool:
    """Whether a literal can be one that a solver must be told: no number, no sign alone; of those outside of
    assertions, which are mostly input, several words."""
    if use == "key":
        return _KEY.fullmatch(text) is not None and WORD.search(text) is not None
    if SIGN.search(text):
        return True
    words = WORD.findall(text)
    if len(text.strip()) < _SHORTEST or not words:
        return False
    return use in ("assertion", "whole") or (len(words) > 1 and not is_code_name(text))


def _asserting(tree: ast.Module) -> Iterator[tuple[ast.AST, Use]]:
    """The parts of a test file whose literals may be needed, and what these are."""
    yield tree, "key"
    yield tree, "argument"
    operands = set(_operands(tree))
    compared = operands | {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for name in ast.walk(node.test)
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield test, "assertion"
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Dict() | ast.List() | ast.Tuple() | ast.Set() as value
            ) if name in operands:
                # An expected value with a name of its own.
                yield value, "assertion"
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | bytes()) as value):
                # An expected text with a name of its own.
                if name in compared:
                    yield value, "assertion"
            case ast.Call(func=ast.Attribute(attr=name)) if name.startswith("assert") or name in _RAISING:
                yield node, "assertion"
            case ast.Call(func=ast.Name(id=name)) if name.startswith("assert") or name in _RAISING:
                yield node, "assertion"


def _operands(tree: ast.Module) -> Iterator[str]:
    """The variables that assertions compare with something, each as a whole."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=ast.Compare(left=left, comparators=right)):
                yield from (it.id for it in (left, *right) if isinstance(it, ast.Name))
            case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name.startswith("assert"):
                yield from (it.id for it in arguments if isinstance(it, ast.Name))


def _patterns(node: ast.AST) -> Iterator[ast.expr]:
    """The regular expressions among the arguments of an assertion."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            yield from (it.value for it in call.keywords if it.arg in ("match", "expected_regex", "msg_regex"))
            if name in ("match", "search", "fullmatch", "compile") and call.args:
                yield call.args[0]
            elif name in ("assertRaisesRegex", "assertWarnsRegex", "assertRegex") and len(call.args) > 1:
                yield call.args[1]


def _literal_runs(pattern: str) -> Iterator[str]:
    """The runs of plain characters in a regular expression, at any depth of its groups; the whole where it is none."""
    yield from map(sayable, _plain_runs(pattern))


def _plain_runs(pattern: str) -> Iterator[str]:
    try:
        tokens = _parser.parse(pattern)
    except (re.error, ValueError, OverflowError, RecursionError):  # ValueError: flags at odds, a number of 5,000 digits
        yield pattern
        return
    run: list[str] = []
    for part in _flat(tokens):
        if part is not None:
            run.append(part)
        elif run:
            yield "".join(run)
            run = []
    if run:
        yield "".join(run)


def _flat(tokens: Iterable[tuple[object, object]]) -> Iterator[str | None]:
    for name, value in tokens:
        if name is _constants.LITERAL:
            yield chr(value)  # type: ignore[arg-type]
        elif name is _constants.SUBPATTERN:
            yield from _flat(value[3])  # type: ignore[index]
        elif name is not _constants.AT:
            yield None
