"""Masks for tests of Python (`environments.suites.canaries.masks`). Pure.

Masked is what an assertion asks for: in ``assert a == [1, "x"]`` each literal of the list, also where it stands in
``assertEqual``, in a call that asserts, in a name that assertions alone read, or among the parameters of pytest's
``parametrize`` or the rows that a loop walks through; ``"x" in a``, ``a.startswith("x")``, ``a is None``; the class of
an exception, or its ``match``; a class in ``isinstance(a, B)`` or ``type(a) is B``; what a value has to be near
(`environments.suites.canaries.pythonnearness`), or has all items of. What literals alone make (``dedent("x")``,
``"x" + "y"``, a set) has one mask, and so has a text that is woven from masked values (``"-" + a``). What a condition
says by itself (``assert a``) cannot be masked.
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
from environments.suites.canaries.pythonnearness import NEAR_NAMES, NearAsked, NearNames
from environments.suites.canaries.pythonrecorder import recorder
from environments.suites.canaries.pythontests import Function, called, statements, tests_of
from environments.suites.canaries.pythonvalues import is_made, is_woven, kind_of_text, wanted_side
from prchain.core.code.syntax_trees import syntax_tree

_FIRST_LINES = 2
"""https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations"""
_BOM = "\ufeff"
_EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSequenceEqual"}
) | {"assertSetEqual", "assertMultiLineEqual"}
_COUNTING = frozenset({"assertCountEqual", "assertItemsEqual"})
_CALLED = frozenset(
    {"assert_called_with", "assert_called_once_with", "assert_awaited_with", "assert_awaited_once_with"}
)
"""Of mocks: all that these are given is asked for."""
_OF_CONSTANTS = frozenset({"assertIs", "assertIsNone", "assertIsInstance"})
_SEARCHING = {"re.search": "{}", "re.match": r"\A(?:{})", "re.fullmatch": r"\A(?:{})\Z"}
"""How these look for a pattern, as one that is searched for."""
_ABSTRACT = ("abc.", "collections.", "contextlib.", "io.", "numbers.", "os.", "types.", "typing.", "typing_extensions.")
"""Hold classes of which values are that do not come from them."""
_BUILT_IN = frozenset(
    {
        "bool",
        "bytearray",
        "bytes",
        "complex",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "set",
        "slice",
        "str",
        "tuple",
    }
)
"""Classes whose names begin with a small letter."""
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
_MOST_EXACT = 1e15
"""A whole number below it is written as it is, an int or a float."""
_NO_HELPERS = {*OPPOSITE_METHODS, *_RAISING, *_CATCHING, *_COUNTING, *_OF_CONSTANTS, *NEAR_NAMES}
_NAME = "_PrchainMask"
_SHOWN = "prchainmask"
"""Begins what pytest shows of a mask in ids."""


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
        file = _MaskedFile(plain, tree)
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
                made.append((it.begin, it.end, it.text.replace("{}", str(number), 1)))
                if it.is_parameter and (id_text := _in_id(it.literal)) is not None:
                    shown[f"{_SHOWN}{number}x"] = id_text
            number += 1
    literals = {name: tuple(it.literal for it in found) for name, found in places.items()}
    if not made or number - masking.first > MOST_MASKS:
        return Masked(text, literals)
    begin = file.first_statement(tree)
    made.append((begin, begin, recorder(masking.report) + "\n\n"))
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

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        self._near = NearNames(tree)
        self._whole: Collection[str] = frozenset()
        """The names of that test that are asked for as a whole, each by a rule of its own."""
        self._inside: Collection[str] = frozenset()
        """Those that have to be in something."""
        self._local: Collection[str] = frozenset()
        """The names that have a value in that test."""
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
            yield from self._near_calls(statement)
            for condition in _conditions(statement):
                match condition:
                    case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if not _own_kind(condition):
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
                    method = "in_order" if called(call) == "assertSequenceEqual" else "compared"
                    yield (*self.span(func), f"{_NAME}.{method}")
                case ast.Expr(value=ast.Call(func=func) as call) if called(call) in _COUNTING:
                    yield (*self.span(func), f"{_NAME}.counted({self._text(func)})")

    def _in_sign(self, condition: ast.expr) -> tuple[int, int] | None:
        """Where ``in`` stands behind a name, if nothing else stands there."""
        match condition:
            case ast.Compare(left=ast.Name() as left, ops=[ast.In()], comparators=[right]):
                begin, end = self.span(left)[1], self.span(right)[0]
                return (begin, end) if self._bytes[begin:end].strip() == b"in" else None
        return None

    def _near_calls(self, statement: ast.stmt) -> Iterator[tuple[int, int, str]]:
        """What has a mask tell by the rule of the function that it is given to."""
        if not isinstance(statement, ast.Assert | ast.Expr):
            return
        for condition in _conditions(statement):
            if (sign := self._in_sign(condition)) is not None:
                begin, end = self.span(condition)
                yield from ((begin, begin, f"{_NAME}.held("), (*sign, ", "), (end, end, ")"))
        asked = [self._near.condition(it) for it in _conditions(statement)]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            asked.append(self._near.stated(statement.value))
        for it in asked:
            if it is not None:
                yield (*self.span(it.func), f'{_NAME}.nearly("{it.rule}", {self._text(it.func)})')
        for near in self._approximate(statement):
            if near.by_name:
                yield (*self.span(near.func), f'{_NAME}.approx("{near.rule}", {self._text(near.func)})')

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
        asked = [*self._asked(node.body)]
        whole, inside = [*self._asked_whole(node.body)], [*self._asked_inside(node.body)]
        by_rule = {id(it) for it in whole}
        plain = [it for one in asked for it in _names(one) if id(it) not in by_rule]
        equal = {it.id for it in plain}
        near, held = {it.id for it in whole}, {it.id for it in inside}
        self._whole, self._inside = near - equal - held, held - equal - near
        self._local = {it.arg for it in ast.walk(node) if isinstance(it, ast.arg)} | {
            it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
        }
        read = Counter(it.id for it in [*plain, *whole, *inside])
        loads = Counter(it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load))
        # What is asked for by two rules has no text that both would tell.
        several = (near | held) - self._whole - self._inside
        names = {it for it, times in read.items() if times == loads[it] and it not in several}
        woven = [{it.id for it in _names(one)} for one in asked if is_woven(one)]
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

    def _asked(self, body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
        """What the equalities of a test ask for."""
        for statement in statements(body):
            for condition in _conditions(statement):
                match condition:
                    case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                        yield from self._asked_by(left, right)
            match statement:
                case ast.Expr(value=ast.Call(args=[first, second, *_]) as call) if called(call) in _EQUALITIES:
                    yield from self._asked_by(first, second)
                case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                    yield from _given_to_helper(call)

    def _asked_by(self, left: ast.expr, right: ast.expr) -> Iterator[ast.expr]:
        yield self._wanted(left, right)
        if isinstance(left, ast.Name) and not is_made(right) and not self._near.has_approx(right):
            yield left

    def _asked_whole(self, body: Sequence[ast.stmt]) -> Iterator[ast.Name]:
        """The names that are asked for by what compares in a way of its own."""
        for statement in statements(body):
            if not isinstance(statement, ast.Assert | ast.Expr):
                continue
            near = [self._near.condition(it) for it in _conditions(statement)]
            if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
                near.append(self._near.stated(call))
                if called(call) in _COUNTING:
                    yield from (it for it in call.args[:2] if isinstance(it, ast.Name))
            near += self._approximate(statement)
            for asked in near:
                yield from asked.by_name if asked is not None else ()

    def _approximate(self, statement: ast.stmt) -> Iterator[NearAsked]:
        """What ``pytest.approx`` asks for in the equalities of a statement."""
        sides: list[ast.expr] = []
        for condition in _conditions(statement):
            match condition:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    sides += [left, right]
        match statement:
            case ast.Expr(value=ast.Call(args=[first, second, *_]) as call) if called(call) in _EQUALITIES:
                sides += [first, second]
        calls = (it for side in sides for it in ast.walk(side) if isinstance(it, ast.Call))
        yield from (it for it in map(self._near.approx, calls) if it is not None)

    def _asked_inside(self, body: Sequence[ast.stmt]) -> Iterator[ast.Name]:
        """The names that have to be in something."""
        for condition in (it for statement in statements(body) for it in _conditions(statement)):
            if self._in_sign(condition) is not None and isinstance(condition, ast.Compare):
                yield from (it for it in [condition.left] if isinstance(it, ast.Name))

    def _wanted(self, left: ast.expr, right: ast.expr) -> ast.expr:
        """Which side of an equality says what is asked for."""
        near = [it for it in (right, left) if self._near.has_approx(it)]
        return near[0] if near else wanted_side(left, right)

    def _near_place(self, asked: NearAsked | None) -> Iterator[_MaskedPlace]:
        """The place of what a call that compares by a rule asks for, if that is written out."""
        if asked is not None and asked.wanted is not None and asked.literal is not None:
            yield _MaskedPlace(*self.span(asked.wanted), f"{_NAME}({{}})", self._text(asked.literal))

    def _kinds(self, test: ast.expr) -> Iterator[_MaskedPlace]:
        """The class that a condition asks for."""
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[value, kind], keywords=[]):
                yield from self._kind_of(test, value, kind)
            case ast.Compare() if (asked := _own_kind(test)) is not None and self._is_class(asked[1]):
                value, kind = asked
                yield self._asking(test, kind, "own_kind", value)._replace(literal=repr(called(kind)))

    def _kind_of(self, test: ast.expr, value: ast.expr, kind: ast.expr) -> Iterator[_MaskedPlace]:
        if self._is_class(kind) and not self._near.whole(kind).startswith(_ABSTRACT):
            yield self._asking(test, kind, "is_kind", value)._replace(literal=repr(called(kind)))

    def _is_class(self, kind: ast.expr) -> bool:
        """Whether a name is a class's own, as far as that can be seen."""
        name = called(kind) if isinstance(kind, ast.Name | ast.Attribute) else ""
        is_local = isinstance(kind, ast.Name) and kind.id in self._local
        return (name in _BUILT_IN or name[:1].isupper()) and not is_local

    def _condition(self, test: ast.expr) -> Iterator[_MaskedPlace]:
        yield from self._kinds(test)
        yield from self._near_place(self._near.condition(test))
        match test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                yield from self._values(self._wanted(left, right))
            case ast.Call(func=func, args=[ast.Constant(value=str(pattern)) as first, value], keywords=[]) if (
                form := _SEARCHING.get(self._near.whole(func))
            ):
                sought = repr(form.replace("{}", pattern))
                yield self._asking(test, first, "sought", value)._replace(literal=sought)
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
        yield from self._near_place(self._near.stated(call))
        match call.args:
            case [first, second, *_] if name in _EQUALITIES:
                yield from self._values(self._wanted(first, second))
            case [first, second, *_] if name in _COUNTING and is_made(wanted := wanted_side(first, second)):
                yield self._literal(wanted, is_parameter=False)
            case [first, ast.Constant(value=None | bool()) as second, *_] if name == "assertIs":
                yield self._asking(call, second, "same", first)
            case [first, *_] if name == "assertIsNone":
                yield self._asking(call, first, "same", first)._replace(literal="None")
            case [first, second, *_] if name == "assertIsInstance":
                yield from self._kind_of(call, first, second)
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
            case ast.Call() if (near := self._near.approx(wanted)) is not None:
                if near.literal is not None:
                    text = f'{_NAME}({{}}).near("{near.rule}")'
                    yield _MaskedPlace(*self.span(wanted), text, self._text(near.literal))
            case ast.Constant(value=value) if value is not Ellipsis:
                yield self._literal(wanted, is_parameter=is_parameter)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                yield self._literal(wanted, is_parameter=is_parameter)
            # Of what is not written out a value may say another thing in every run.
            case ast.Call(args=parts, keywords=named) if called(wanted)[:1].isupper() and all(
                map(is_made, [*parts, *(it.value for it in named)])
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
            case _ if is_woven(wanted) and all(it.id in self._hidden for it in _names(wanted)):
                yield self._literal(wanted, is_parameter=False)._replace(literal=UNWRITTEN)
            # What ids of parameters say of these is not known.
            case _ if is_made(wanted) and not is_parameter:
                yield self._literal(wanted, is_parameter=False)

    def _literal(self, node: ast.expr, *, is_parameter: bool) -> _MaskedPlace:
        begin, end = self.span(node)
        return _MaskedPlace(begin, end, f"{_NAME}{kind_of_text(node)}({{}})", self._text(node), is_parameter)

    def _given(self, name: str, value: ast.expr, *, is_parameter: bool = False) -> Iterator[_MaskedPlace]:
        """What can be masked of a value that a name is given."""
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str | bytes)
        if name in self._inside and not is_text:
            return
        is_number = isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)
        if name not in self._whole or is_number or isinstance(value, ast.Constant):
            yield from self._values(value, is_parameter=is_parameter)
        # Ids have no text of a list.
        elif is_made(value) and not (is_parameter and not isinstance(value, ast.List | ast.Tuple | ast.Dict)):
            yield self._literal(value, is_parameter=False)._replace(text=f"{_NAME}({{}}).unnamed()")

    def _kept(self, node: Function, asked: Collection[str]) -> Iterator[tuple[str, _MaskedPlace]]:
        """Values of names that assertions alone read."""
        stores = Counter(it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store))
        for statement in statements(node.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in asked and stores[name] == 1:
                    yield from ((name, it) for it in self._given(name, value))

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
                                places = self._given(name, value, is_parameter=not _has_id(row))
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
                    yield from ((name, it) for it in self._given(name, value))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _text(self, node: ast.expr) -> str:
        begin, end = self.span(node)
        return self._bytes[begin:end].decode("utf-8", "surrogatepass")


def _own_kind(test: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The value and the class of ``type(value) is Class``."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[value], keywords=[]),
            ops=[ast.Is() | ast.Eq()],
            comparators=[ast.Name() | ast.Attribute() as kind],
        ):
            return value, kind
    return None


def _given_to_helper(call: ast.Call) -> Iterator[ast.expr]:
    """What a helper that asserts may ask for."""
    name = called(call)
    if name in _CALLED:
        yield from (it for it in [*call.args, *(one.value for one in call.keywords)] if not isinstance(it, ast.Starred))
    elif name.lower().startswith(_ASSERTING) and name not in _NO_HELPERS:
        yield from call.args[1:]
        yield from (it.value for it in call.keywords if (it.arg or "").startswith(_EXPECTED))


def _names(node: ast.expr) -> Iterator[ast.Name]:
    """The names in a value that is written out."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.List | ast.Tuple | ast.Dict) or is_woven(node):
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
