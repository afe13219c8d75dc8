"""Masks for tests of Python (`environments.suites.canaries.masks`). Pure.

Masked is what an assertion asks for: in ``assert a == [1, "x"]`` each literal of the list, also where it stands in
``assertEqual``, in a call that asserts, in a name that assertions alone read, or among the parameters of pytest's
``parametrize`` or the rows that a loop walks through; ``"x" in a``, ``a.startswith("x")``, ``a is None``; the class of
an exception, or its ``match``. What literals alone make (``dedent("x")``, ``"x" + "y"``, a set) has one mask, and so
has a text that is woven from masked values (``"-" + a``). What a condition says by itself (``assert a``) cannot be
masked.
"""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from environments.suites.canaries.falsify import OPPOSITE_METHODS, lines_of
from environments.suites.canaries.masks import MOST_MASKS, UNWRITTEN, Masked, Masking
from environments.suites.canaries.pythontests import Function, called, statements, tests_of
from prchain.core.code.syntax_trees import syntax_tree

_FIRST_LINES = 2
"""https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations"""
_BOM = "\ufeff"
_EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSequenceEqual"}
)
_HOLDING = frozenset({"assertIn"})
_FINDING = frozenset({"assertRegex", "assertRegexpMatches"})
_RAISING = frozenset({"raises", "assertRaisesRegex", "assertRaisesRegexp"})
_CATCHING = frozenset({"raises", "assertRaises"})
_NO_EXCEPTIONS = frozenset({"Exception", "BaseException", "SystemExit", "KeyboardInterrupt", "GeneratorExit"})
"""Caught with `Exception` each, or not at all."""
_BEGINNING = frozenset({"startswith", "endswith"})
_ASSERTING = ("assert", "check", "expect")
"""Begin the names of helpers that assert."""
_EXPECTED = ("expect", "want")
"""Begin the names of arguments that say what a helper asks for."""
_MAKERS = frozenset({"dedent", "cleandoc", "set", "frozenset", "tuple", "list", "dict", "bytes", "str", "int", "float"})
"""Called with literals alone these make the same value in every run."""
_MAKING = frozenset({"encode", "decode", "format", "join", "strip", "lstrip", "rstrip", "replace", "lower", "upper"})
"""Methods of texts that make texts."""
_MOST_EXACT = 1e15
"""A whole number below it is written as it is, an int or a float."""
_NAME = "_PrchainMask"
_SHOWN = "prchainmask"
"""Begins what pytest shows of a mask in ids."""

_RECORDER = r"""
class _PrchainMask(object):
    def __init__(self, number):
        self.number = number
        self.__name__ = "prchainmask%dx" % number

    def __eq__(self, other, _one=isinstance):
        if not _one(other, _PrchainMask):
            self.tell("=", self.text_of(other, 0))
        return True

    def __ne__(self, other):
        return not _PrchainMask.__eq__(self, other)

    def __hash__(self):
        return self.number

    def tell(self, kind, text, _open=open, _str=str):
        with _open(REPORT, "a") as report:
            report.write(_str(self.number) + " " + kind + text + "\n")

    def text_of(self, value, depth, _json=__import__("json"), _one=isinstance, _map=map):
        if value is None or value is True or value is False:
            return repr(value)
        if _one(value, str):
            return _json.dumps(str.__str__(value))
        if _one(value, int):
            return int.__repr__(value)
        if _one(value, float):
            return int.__repr__(int(value)) if abs(value) < 2**53 and value == int(value) else float.__repr__(value)
        if _one(value, (bytes, bytearray)):
            return "b" + _json.dumps(bytes(value).decode("latin-1"))
        parts = [self.text_of(it, depth + 1) for it in self.parts_of(value)] if depth < 5 else []
        kind = next((it.__name__ for it in (list, tuple, set, frozenset, dict) if _one(value, it)), "")
        if not kind:
            shown = str(value)
            return "object[]" if " at 0x" in shown else "object " + type(value).__name__ + " " + _json.dumps(shown)
        return kind + _json.dumps(sorted(parts) if kind in ("set", "frozenset", "dict") else parts)

    @classmethod
    def holds(cls, wanted, depth=0):
        if isinstance(wanted, cls):
            return True
        parts = wanted.values() if type(wanted) is dict else wanted if type(wanted) in (list, tuple) else ()
        return depth < 9 and any([cls.holds(it, depth + 1) for it in parts])

    @classmethod
    def compare(cls, one, other):
        return cls.fits(other, one) if cls.holds(one) else cls.fits(one, other)

    @classmethod
    def compared(cls, one, other, *message, **more):
        if not cls.compare(one, other):
            raise AssertionError("they differ")

    @classmethod
    def fits(cls, value, wanted):
        # The tested code's own == is not asked: it may know no masks.
        if isinstance(wanted, cls):
            return wanted.same(value)
        if not cls.holds(wanted) or not isinstance(value, type(wanted)) or len(value) != len(wanted):
            return value == wanted
        if type(wanted) is dict:
            return all([it in value and cls.fits(value[it], wanted[it]) for it in wanted])
        return all([cls.fits(*it) for it in zip(list(value), wanted)])

    def parts_of(self, value):
        if isinstance(value, dict):
            return list(dict.items(value))[:1000]
        return list(value)[:1000] if isinstance(value, (list, tuple, set, frozenset)) else []

    def same(self, value):
        self.tell("=", self.text_of(value, 0))
        return True

    def inside(self, value, _json=__import__("json")):
        if isinstance(value, str):
            self.tell("~", _json.dumps(str.__str__(value)))
        elif isinstance(value, (bytes, bytearray)):
            self.tell("~", _json.dumps(bytes(value).decode("latin-1")))
        else:
            self.tell("~", _json.dumps([it for it in list(value)[:1000] if isinstance(it, (str, int, float))]))
        return True

    def found(self, value, _json=__import__("json")):
        self.tell("%", _json.dumps(str(value)))
        return True

    def raised(self, waiting):
        self.waiting = waiting
        self.is_class = False
        return self

    def caught(self, waiting):
        self.waiting = waiting
        self.is_class = True
        return self

    def calls(self, waiting, run, *args, **more):
        with self.caught(waiting(Exception)):
            run(*args, **more)

    def __enter__(self):
        return self.waiting.__enter__()

    def __exit__(self, kind, error, trace):
        taken = self.waiting.__exit__(kind, error, trace)
        if error is not None and self.is_class:
            self.tell("~", __import__("json").dumps([it.__name__ for it in type(error).__mro__]))
        elif error is not None:
            self.found(error)
        return taken


class _PrchainMaskStr(_PrchainMask, str):
    def __new__(cls, number):
        return str.__new__(cls, "prchainmask%dx" % number)


class _PrchainMaskBytes(_PrchainMask, bytes):
    def __new__(cls, number):
        return bytes.__new__(cls, b"prchainmask%dx" % number)
"""


class _MaskedPlace(NamedTuple):
    """A literal that an assertion asks for: what is replaced begins and ends there, by a text with the mask's number
    in the place of ``{}``. Offsets in bytes."""

    begin: int
    end: int
    text: str
    literal: str
    is_parameter: bool = False


def mask_python(text: str, masking: Masking) -> Masked:
    """`environments.suites.canaries.masks.Masker` for pytest and unittest; names are those of
    `environments.suites.canaries.falsehoods.falsify_python`."""
    bom, plain = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    try:
        tree = syntax_tree(plain)
        file = _MaskedFile(plain)
        nodes = dict(tests_of(tree))
        places = {name: file.places(node) for name, node in nodes.items()}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Masked(text, {})
    places = {name: found for name, found in places.items() if found}
    made: list[tuple[int, int, str]] = []
    shown: dict[str, str] = {}
    number = masking.first
    for name, found in places.items():
        wanted = masking.places(name)
        if wanted is None or not {*range(len(found))}.isdisjoint(wanted):
            made += [*file.comparisons(nodes[name]), *file.docstring(nodes[name])]
        for place, it in enumerate(found):
            if wanted is None or place in wanted:
                made.append((it.begin, it.end, it.text.replace("{}", str(number))))
                if it.is_parameter and (id_text := _in_id(it.literal)) is not None:
                    shown[f"{_SHOWN}{number}x"] = id_text
            number += 1
    literals = {name: tuple(it.literal for it in found) for name, found in places.items()}
    if not made or number - masking.first > MOST_MASKS:
        return Masked(text, literals)
    begin = file.first_statement(tree)
    made.append((begin, begin, _RECORDER.replace("REPORT", repr(masking.report)).lstrip("\n") + "\n\n"))
    return Masked(bom + _without_comments(file.edited(made)), literals, shown)


def compared_by_type(text: str, node: Function) -> list[ast.expr]:
    """The whole numbers, as ``1`` or ``1.0``, that a test of this text asks for and whose types it compares, too:
    ``type(a) == type(b)``."""
    file = _MaskedFile(text)
    simple = [it for it in statements(node.body) if isinstance(it, ast.Assert | ast.Expr)]
    compared = [it for it in simple if any(map(_is_of_types, ast.walk(it)))]
    names = {it.id for one in compared for it in ast.walk(one) if isinstance(it, ast.Name)}
    places = {(it.begin, it.end) for _, it in file.bound(node, names)} if names else set()
    found = [it for it in ast.walk(node) if isinstance(it, ast.Constant) and file.span(it) in places]
    numbers = [(it, it.value) for it in found if isinstance(it.value, int | float) and not isinstance(it.value, bool)]
    return [it for it, value in numbers if abs(value) < _MOST_EXACT and value == int(value)]


def _is_of_types(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=ast.Call() as left, ops=[ast.Eq() | ast.Is()], comparators=[ast.Call() as right]):
            return called(left) == called(right) == "type"
        case ast.Call(args=[ast.Call() as left, ast.Call() as right, *_]) if called(node) in (
            "assertIs",
            "assertEqual",
        ):
            return called(left) == called(right) == "type"
    return False


def _without_comments(text: str) -> str:
    """A text whose comments, which say why something is asked for, are left out; those of the first lines may say how
    it is to be read. A text that cannot be read stays."""
    lines = lines_of(text)
    try:
        for token in tokenize.generate_tokens(iter([*lines, ""]).__next__):
            if token.type == tokenize.COMMENT and token.start[0] > _FIRST_LINES:
                line = lines[token.start[0] - 1]
                lines[token.start[0] - 1] = f"{line[: token.start[1]].rstrip()}{line[token.end[1] :]}"
    except (tokenize.TokenError, SyntaxError):
        return text
    return "".join(lines)


def _in_id(literal: str) -> str | None:
    """How pytest shows a literal in ids, where it does."""
    value = ast.literal_eval(literal)
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    return str(value)


class _MaskedFile:
    """A file's text, and what in its tests can be masked."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._hidden: Collection[str] = frozenset()
        """The names of the test that is looked at whose values are masked."""
        self._starts = [0, *accumulate(map(len, self._bytes.splitlines(keepends=True)))]

    def docstring(self, node: Function) -> list[tuple[int, int, str]]:
        """What leaves a test's docstring out."""
        if ast.get_docstring(node, clean=False) is None:
            return []
        begin, end = self.span(node.body[0])
        breaks = self._bytes[begin:end].count(b"\n")
        return [(begin, end, '"""' + "\n" * breaks + '"""' if breaks else '""')]

    def edited(self, made: Sequence[tuple[int, int, str]]) -> str:
        """The text with these parts replaced; what stands inside another part is left to that one."""
        parts: list[bytes] = []
        last = 0
        for begin, end, text in sorted(made):
            if begin >= last:
                parts += [self._bytes[last:begin], text.encode("utf-8", "surrogatepass")]
                last = end
        return b"".join([*parts, self._bytes[last:]]).decode("utf-8", "surrogatepass")

    def comparisons(self, node: Function) -> Iterator[tuple[int, int, str]]:
        """What has a mask compare in the equalities of a test."""
        for statement in statements(node.body):
            for condition in _conditions(statement):
                match condition:
                    case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                        begin, end = self.span(condition)
                        first, last = self.span(left)[1], self.span(right)[0]
                        between = self._bytes[first:last]
                        if b"#" not in between and between.count(b"==") == 1:
                            sign = first + between.index(b"==")
                            yield begin, begin, f"{_NAME}.compare("
                            yield sign, sign + 2, ","
                            yield end, end, ")"
            match statement:
                case ast.Expr(value=ast.Call(func=func) as call) if called(call) in _EQUALITIES:
                    yield (*self.span(func), f"{_NAME}.compared")

    def first_statement(self, tree: ast.Module) -> int:
        """Where the first statement begins that is no docstring and no ``from __future__``."""
        for number, it in enumerate(tree.body):
            is_doc = not number and isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant)
            if not is_doc and not (isinstance(it, ast.ImportFrom) and it.module == "__future__"):
                decorators = it.decorator_list if isinstance(it, Function | ast.ClassDef) else []
                first = min([it.lineno, *(one.lineno for one in decorators)])
                return self._starts[first - 1]
        return len(self._bytes)

    def places(self, node: Function) -> list[_MaskedPlace]:
        """What can be masked in a test, in the order of the text, none inside another."""
        asked = [*_asked(node.body)]
        read = Counter(it.id for one in asked for it in _names(one))
        loads = Counter(it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load))
        names = {name for name, times in read.items() if times == loads[name]}
        woven = [{it.id for it in _names(one)} for one in asked if _is_woven(one)]
        self._hidden = frozenset()
        bound = [*self.bound(node, names)]
        given = {name for name, _ in bound}
        for parts in woven:
            # A text that is woven from what is not written out may say another thing in every run.
            if not parts <= names & given:
                names -= parts
        self._hidden = names.intersection(*[{it for one in woven for it in one}])
        found = [*self._in_body(node), *(place for name, place in bound if name in names)]
        made: list[_MaskedPlace] = []
        for it in sorted(found, key=lambda it: (it.begin, -it.end)):
            if not made or it.begin >= made[-1].end:
                made.append(it)
        return made

    def bound(self, node: Function, names: Collection[str]) -> Iterator[tuple[str, _MaskedPlace]]:
        """What can be masked of the values that names of a test are given, by the names."""
        yield from self._kept(node, names)
        yield from self._parameters(node, names)
        yield from self._walked(node, names)

    def _in_body(self, node: Function) -> Iterator[_MaskedPlace]:
        for statement in statements(node.body):
            for condition in _conditions(statement):
                yield from self._condition(condition)
            match statement:
                case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                    yield from self._call(call)
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    for item in items:
                        yield from self._raised(item.context_expr)

    def _condition(self, test: ast.expr) -> Iterator[_MaskedPlace]:
        match test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                yield from self._values(_wanted(left, right))
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant() as right]):
                yield self._asking(test, right, "same", left)
            case ast.Compare(left=ast.Constant(value=str() | bytes()) as left, ops=[ast.In()], comparators=[right]):
                yield self._asking(test, left, "inside", right)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[ast.Constant(value=str()) as first]) if (
                name in _BEGINNING
            ):
                yield self._asking(test, first, "inside", value)

    def _asking(self, test: ast.expr, literal: ast.expr, method: str, value: ast.expr) -> _MaskedPlace:
        """The place of a whole condition about a value."""
        begin, end = self.span(test)
        return _MaskedPlace(begin, end, f"{_NAME}({{}}).{method}({self._text(value)})", self._text(literal))

    def _call(self, call: ast.Call) -> Iterator[_MaskedPlace]:
        """A call that is a statement, and asserts."""
        name = called(call)
        match call.args:
            case [first, second, *_] if name in _EQUALITIES:
                yield from self._values(_wanted(first, second))
            case [ast.Name() | ast.Attribute() as kind, _, *_] if (
                name in _CATCHING and called(kind) not in _NO_EXCEPTIONS
            ):
                begin, end = self.span(call.func)[0], self.span(kind)[1]
                yield _MaskedPlace(begin, end, f"{_NAME}({{}}).calls({self._text(call.func)}", repr(called(kind)))
            case [ast.Constant(value=str() | bytes()) as first, second, *_] if name in _HOLDING:
                yield self._asking(call, first, "inside", second)
            case [first, ast.Constant(value=str()) as second, *_] if name in _FINDING:
                yield self._asking(call, second, "found", first)
            case _:
                for it in _given_to_helper(call):
                    yield from self._values(it)

    def _raised(self, waiting: ast.expr) -> Iterator[_MaskedPlace]:
        match waiting:
            case ast.Call(
                args=[kind], keywords=[ast.keyword(arg="match", value=ast.Constant(value=str()) as text)]
            ) if called(waiting) in _RAISING:
                begin, end = self.span(waiting)
                plain = f"{self._text(waiting.func)}({self._text(kind)})"
                yield _MaskedPlace(begin, end, f"{_NAME}({{}}).raised({plain})", self._text(text))
            case ast.Call(args=[ast.Name() | ast.Attribute() as kind], keywords=[]) if (
                called(waiting) in _CATCHING and called(kind) not in _NO_EXCEPTIONS
            ):
                begin, end = self.span(waiting)
                plain = f"{self._text(waiting.func)}(Exception)"
                yield _MaskedPlace(begin, end, f"{_NAME}({{}}).caught({plain})", repr(called(kind)))
            case ast.Call(args=[kind, ast.Constant(value=str()) as text], func=ast.Attribute(attr=name)) if (
                name in _RAISING and name.endswith(("Regex", "Regexp"))
            ):
                begin, end = self.span(waiting)
                method = self._text(waiting.func).removesuffix("p").removesuffix("Regex")
                yield _MaskedPlace(begin, end, f"{_NAME}({{}}).raised({method}({self._text(kind)}))", self._text(text))

    def _values(self, wanted: ast.expr, *, is_parameter: bool = False) -> Iterator[_MaskedPlace]:
        """The literals of a value that is written out, and what makes values of a class there."""
        match wanted:
            case ast.Constant(value=value) if value is not Ellipsis:
                yield self._literal(wanted, is_parameter=is_parameter)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                yield self._literal(wanted, is_parameter=is_parameter)
            # Of what is not written out a value may say another thing in every run.
            case ast.Call(args=parts, keywords=named) if called(wanted)[:1].isupper() and all(
                map(_is_made, [*parts, *(it.value for it in named)])
            ):
                # A value of a class has no text in ids, as its mask has.
                if not is_parameter:
                    yield self._literal(wanted, is_parameter=False)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for it in parts:
                    yield from self._values(it)
            case ast.Dict(values=parts):
                for it in parts:
                    yield from self._values(it)
            case ast.IfExp(body=first, orelse=second):
                yield from self._values(first)
                yield from self._values(second)
            case ast.BinOp(left=ast.List() as first, op=ast.Add(), right=ast.List() as second):
                yield from self._values(first)
                yield from self._values(second)
            case _ if _is_woven(wanted) and all(it.id in self._hidden for it in _names(wanted)):
                yield self._literal(wanted, is_parameter=False)._replace(literal=UNWRITTEN)
            # What ids of parameters say of these is not known.
            case _ if _is_made(wanted) and not is_parameter:
                yield self._literal(wanted, is_parameter=False)

    def _literal(self, node: ast.expr, *, is_parameter: bool) -> _MaskedPlace:
        begin, end = self.span(node)
        return _MaskedPlace(begin, end, f"{_NAME}{_kind(node)}({{}})", self._text(node), is_parameter)

    def _kept(self, node: Function, asked: Collection[str]) -> Iterator[tuple[str, _MaskedPlace]]:
        """Values of names that assertions alone read."""
        stores = Counter(it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store))
        for statement in statements(node.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in asked and stores[name] == 1:
                    yield from ((name, it) for it in self._values(value))

    def _parameters(self, node: Function, asked: Collection[str]) -> Iterator[tuple[str, _MaskedPlace]]:
        """What ``parametrize`` gives to parameters that assertions ask for."""
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(
                    func=ast.Attribute(attr="parametrize"), args=[names, ast.List() | ast.Tuple() as rows, *_]
                ):
                    given = _given(names)
                    for number, name in ((number, name) for number, name in enumerate(given) if name in asked):
                        for row in rows.elts:
                            if (value := _column(row, number, len(given))) is not None:
                                places = self._values(value, is_parameter=not _has_id(row))
                                yield from ((name, it) for it in places)

    def _walked(self, node: Function, asked: Collection[str]) -> Iterator[tuple[str, _MaskedPlace]]:
        """What rows that a loop walks through give to names that assertions ask for."""
        kept = {
            name: value
            for statement in statements(node.body)
            if isinstance(statement, ast.Assign)
            for name, value in [(it.id, statement.value) for it in statement.targets if isinstance(it, ast.Name)]
        }
        uses = Counter(it.id for it in ast.walk(node) if isinstance(it, ast.Name))
        for statement in statements(node.body):
            match statement:
                case ast.For(target=ast.Name() | ast.Tuple() as target, iter=rows):
                    if isinstance(rows, ast.Name) and uses[rows.id] == 2:
                        rows = kept.get(rows.id, rows)
                    names = [target] if isinstance(target, ast.Name) else target.elts
                    given = [it.id if isinstance(it, ast.Name) else "" for it in names]
                    if isinstance(rows, ast.List | ast.Tuple):
                        yield from self._columns(rows.elts, given, asked)

    def _columns(
        self, rows: Sequence[ast.expr], given: Sequence[str], asked: Collection[str]
    ) -> Iterator[tuple[str, _MaskedPlace]]:
        for number, name in ((number, name) for number, name in enumerate(given) if name in asked):
            for row in rows:
                if (value := _column(row, number, len(given))) is not None:
                    yield from ((name, it) for it in self._values(value))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _text(self, node: ast.expr) -> str:
        begin, end = self.span(node)
        return self._bytes[begin:end].decode("utf-8", "surrogatepass")


def _wanted(left: ast.expr, right: ast.expr) -> ast.expr:
    """Which side of an equality is made of literals."""
    return left if _is_made(left) and not _is_made(right) else right


def _is_made(node: ast.expr) -> bool:
    """Whether literals alone make a value, the same in every run."""
    match node:
        case ast.Constant(value=value):
            return value is not Ellipsis
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(map(_is_made, parts))
        case ast.Dict(keys=keys, values=values):
            return all(it is not None and _is_made(it) for it in [*keys, *values])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=value):
            return _is_made(value)
        case ast.BinOp(left=left, right=right):
            return _is_made(left) and _is_made(right)
        case ast.Call(func=func, args=parts, keywords=named) if (
            isinstance(func, ast.Attribute) and _kind(func.value) and _is_made(func.value)
        ) or (called(node) in _MAKERS and parts):
            return all(map(_is_made, [*parts, *(it.value for it in named)]))
    return False


def _kind(node: ast.expr) -> str:
    """How the mask's class ends: of the value's own kind where code may look at that."""
    match node:
        case ast.Constant(value=str()):
            return "Str"
        case ast.Constant(value=bytes()):
            return "Bytes"
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Mod()):
            return _kind(left)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if kind := _kind(value):
            return {"encode": "Bytes", "decode": "Str"}.get(name, kind) if name in _MAKING else ""
        case ast.Call() if called(node) in ("dedent", "cleandoc", "str"):
            return "Str"
    return ""


def _asked(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """What the equalities of a test ask for."""
    for statement in statements(body):
        for condition in _conditions(statement):
            match condition:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    yield from _asked_by(left, right)
        match statement:
            case ast.Expr(value=ast.Call(args=[first, second, *_]) as call) if called(call) in _EQUALITIES:
                yield from _asked_by(first, second)

            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                yield from _given_to_helper(call)


def _asked_by(left: ast.expr, right: ast.expr) -> Iterator[ast.expr]:
    yield _wanted(left, right)
    if isinstance(left, ast.Name) and not _is_made(right):
        yield left


def _given_to_helper(call: ast.Call) -> Iterator[ast.expr]:
    """What a helper that asserts may ask for."""
    name = called(call)
    if name.lower().startswith(_ASSERTING) and name not in {*OPPOSITE_METHODS, *_RAISING, *_CATCHING}:
        yield from call.args[1:]
        yield from (it.value for it in call.keywords if (it.arg or "").startswith(_EXPECTED))


def _is_woven(node: ast.expr) -> bool:
    """Whether a text is made of literals and of names: ``"x" + a``, ``f"{a}x"``, ``"{}x".format(a)``, ``"%s" % a``."""

    def is_part(part: ast.AST) -> bool:
        match part:
            case ast.Constant(value=value):
                return value is not Ellipsis
            case ast.Name() | ast.JoinedStr():
                return True
            case ast.FormattedValue(value=value, format_spec=spec):
                return is_part(value) and (spec is None or is_part(spec))
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod() | ast.Mult(), right=right):
                return is_part(left) and is_part(right)
            case ast.Tuple(elts=parts):
                return all(map(is_part, parts))
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=parts, keywords=[]):
                return name in _MAKING and all(map(is_part, [value, *parts]))
        return False

    is_whole = isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call) and any(
        isinstance(it, ast.Name) for it in ast.walk(node)
    )
    parts = [it for it in ast.walk(node) if isinstance(it, ast.JoinedStr)]
    return is_whole and is_part(node) and all(is_part(it) for one in parts for it in one.values)


def _names(node: ast.expr) -> Iterator[ast.Name]:
    """The names in a value that is written out."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.List | ast.Tuple | ast.Dict) or _is_woven(node):
        yield from (it for it in ast.walk(node) if isinstance(it, ast.Name))


def _conditions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The conditions that a statement asserts, all of which have to hold."""
    match statement:
        case ast.Assert(test=ast.BoolOp(op=ast.And(), values=values)):
            yield from values
        case ast.Assert(test=test):
            yield test
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="assertTrue"), args=[test, *_])):
            yield test


def _given(names: ast.expr) -> list[str]:
    """The parameters that ``parametrize`` names."""
    match names:
        case ast.Constant(value=str(text)):
            return [it.strip() for it in text.split(",") if it.strip()]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [it.value if isinstance(it, ast.Constant) and isinstance(it.value, str) else "" for it in parts]
    return []


def _column(row: ast.expr, number: int, columns: int) -> ast.expr | None:
    match row:
        case ast.Call(args=parts) if called(row) == "param":
            return parts[number] if number < len(parts) else None
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if columns > 1:
            return parts[number] if number < len(parts) else None
    return row if columns == 1 else None


def _has_id(row: ast.expr) -> bool:
    return isinstance(row, ast.Call) and any(it.arg == "id" for it in row.keywords)
