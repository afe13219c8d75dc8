"""Canaries for pytest and unittest: beginnings of the file's own tests up to an assertion, which then asserts what is
false: that a value of the code under test is a number or a word that was drawn for this run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting
from environments.suites.canaries.names import REASONS, false_value, new_name, new_word

FAILING = 6
"""Canaries of a file that must fail, at most, of as many functions under test as there are; one more is skipped."""

_ASSERTIONS = frozenset(
    {"Equal", "Equals", "NotEqual", "True", "False", "Is", "IsNot", "IsNone", "IsNotNone", "In", "NotIn", "IsInstance"}
    | {"Greater", "GreaterEqual", "Less", "LessEqual", "AlmostEqual", "CountEqual", "ListEqual", "DictEqual"}
    | {"TupleEqual", "SetEqual", "SequenceEqual", "MultiLineEqual", "Regex"}
)
"""Of `unittest.TestCase`, without ``assert``: their first argument is a value."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
_SWALLOWING = re.compile(r"raises|warns|suppress|assertRaises|assertWarns|assertLogs|subTest|deprecated_call")
"""In the head of a ``with``: an assertion below it may go unseen, or be reported otherwise."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
"""A line as Python parts a file."""
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class _Asserted:
    """An assertion in a test: the value that it looks at, what that is held against, and where it stands."""

    statement: ast.stmt
    value: str
    constant: object
    is_method_call: bool
    """Of unittest."""
    looked_at: str
    """The name of the function under test, or what is most like one."""


@dataclass(frozen=True, slots=True)
class _Donor:
    """A test whose beginning can be a canary's."""

    function: _Function
    container: tuple[str, ...]
    """The classes around it."""
    asserted: _Asserted


def plant_python(path: str, text: str, planting: Planting) -> PlantedFile:
    """`canary.Planter` for pytest and unittest."""
    try:
        return _plant(path, text, planting)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PlantedFile(text, ())


def _plant(path: str, text: str, planting: Planting) -> PlantedFile:
    bom, plain = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    lines = _LINE.findall(plain)
    tree = ast.parse(plain)
    planting.taken.update(_names(tree))
    donors = list(_donors(tree.body, (), lines))
    order = Random(f"{planting.places} {path} {len(text)}")
    found = (
        _among(path, donors, lines, tree, order, planting) if donors else _at_end(path, lines, tree, order, planting)
    )
    return PlantedFile(bom + found.text, found.canaries) if found.canaries else PlantedFile(text, ())


def _among(
    path: str, donors: Sequence[_Donor], lines: list[str], tree: ast.Module, order: Random, planting: Planting
) -> PlantedFile:
    chosen = _chosen(donors, order)
    kinds = [*([CanaryKind.FAIL] * len(chosen)), CanaryKind.SKIP]
    has_pytest = any(isinstance(it, ast.Import) and any(name.name == "pytest" for name in it.names) for it in tree.body)
    tests = [donor.function.name for donor in donors]
    canaries: list[Canary] = []
    inserted: list[tuple[int, int, list[str]]] = []
    for number, (kind, donor) in enumerate(zip(kinds, [*chosen, order.choice(donors)], strict=True), 1):
        slot = f"{path}:{number}"
        # Behind its donor: what the test does first, it does when others have been.
        behind = [it.function for it in donors if it.container == donor.container]
        after = order.choice(behind[behind.index(donor.function) :])
        if planting.slots is None or slot in planting.slots:
            name = new_name(planting.draw, tests, planting.taken)
            planting.taken.add(name)
            canaries.append(Canary(slot, kind, path, name))
            inserted.append(
                (_end(after), number, _lines(donor, name, kind, planting.draw, lines, has_pytest=has_pytest))
            )
    for place, _, more in sorted(inserted, key=lambda it: (-it[0], it[1])):
        if not lines[place - 1].endswith(("\n", "\r")):
            lines[place - 1] += "\n"
        lines[place:place] = more
    return PlantedFile("".join(lines), tuple(canaries))


def _at_end(path: str, lines: list[str], tree: ast.Module, order: Random, planting: Planting) -> PlantedFile:
    """For a file whose tests cannot be a canary's beginning: functions at its end that look at what it imports."""
    functions = [node.name for node in ast.walk(tree) if isinstance(node, _Function) and node.name.startswith("test")]
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    names = [(it.asname or it.name).partition(".")[0] for node in imports for it in node.names if it.name != "*"]
    canaries: list[Canary] = []
    made = [] if not lines or lines[-1].endswith(("\n", "\r")) else ["\n"]
    if functions and names:
        looked_at = order.sample(names, min(2, len(names)))
        kinds = [*((CanaryKind.FAIL, it) for it in looked_at), (CanaryKind.SKIP, names[0])]
        for number, (kind, value) in enumerate(kinds, 1):
            slot, name = f"{path}:{number}", new_name(planting.draw, functions, planting.taken)
            if planting.slots is None or slot in planting.slots:
                planting.taken.add(name)
                canaries.append(Canary(slot, kind, path, name))
                skip = [f"    {line}\n" for line in _skip(planting.draw)] if kind is CanaryKind.SKIP else []
                wanted = repr(f"<{value} {new_word(planting.draw)}>")
                made += ["\n\n", f"def {name}():\n", *skip, f"    assert repr({value}) == {wanted}\n"]
    return PlantedFile("".join([*lines, *made]), tuple(canaries))


def _names(tree: ast.Module) -> Iterator[str]:
    """Every name in a file."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (name, other or name)


def _chosen(donors: Sequence[_Donor], order: Random) -> list[_Donor]:
    """Those of which canaries are made: of each function under test one first."""
    shuffled = order.sample(donors, len(donors))
    first = {donor.asserted.looked_at: donor for donor in reversed(shuffled)}
    distinct = [donor for donor in shuffled if first[donor.asserted.looked_at] is donor]
    return [*distinct, *(donor for donor in shuffled if donor not in distinct)][:FAILING]


def _donors(body: Sequence[ast.stmt], container: tuple[str, ...], lines: Sequence[str]) -> Iterator[_Donor]:
    for node in body:
        if isinstance(node, ast.ClassDef) and _holds_tests(node):
            yield from _donors(node.body, (*container, node.name), lines)
        elif (
            isinstance(node, _Function)
            and node.name.startswith("test")
            and _is_plain(node, lines)
            and (asserted := _first_assertion(node, lines)) is not None
        ):
            yield _Donor(node, container, asserted)


def _holds_tests(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)


def _is_plain(node: _Function, lines: Sequence[str]) -> bool:
    """Whether the statements of a test can stand in another one: each begins on a line of its own."""
    arguments = node.args
    if any([arguments.vararg, arguments.kwarg, *arguments.defaults, *arguments.kw_defaults]):
        return False
    starts = [lines[it.lineno - 1][: it.col_offset].strip() for it in node.body]
    last = lines[_end(node) - 1]
    rest = last.encode()[node.end_col_offset or 0 :].decode(errors="ignore")
    return not any(starts) and not rest.strip(" \t\r\n;").partition("#")[0]


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _begin(node: ast.stmt) -> int:
    """The line on which a statement begins, decorators included."""
    decorators = node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []
    return min([node.lineno, *(it.lineno for it in decorators)])


def _body(node: _Function) -> list[ast.stmt]:
    """A test's statements without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _first_assertion(node: _Function, lines: Sequence[str]) -> _Asserted | None:
    """The first assertion of a test that is reached in any case, also in a loop over what stands there and below a
    ``with``; it begins its line."""
    statements = list(_body(node))
    while statements:
        statement = statements.pop(0)
        found = _asserted(statement)
        if found is not None:
            is_alone = not lines[statement.lineno - 1].encode()[: statement.col_offset].strip()
            return found if is_alone else None
        entered = _always_entered(statement)
        if not entered and _may_leave(statement):
            return None
        statements[:0] = entered
    return None


def _may_leave(statement: ast.stmt) -> bool:
    """Whether a test may end within a statement; what a function of its own does is not yet done."""
    if isinstance(statement, _Function | ast.ClassDef):
        return False
    parts = [
        it for it in ast.iter_child_nodes(statement) if isinstance(it, ast.stmt | ast.ExceptHandler | ast.match_case)
    ]
    inner = [it for part in parts for it in ([part] if isinstance(part, ast.stmt) else part.body)]
    if isinstance(statement, _LEAVES) or any(map(_may_leave, inner)):
        return True
    expressions = (it for it in ast.iter_child_nodes(statement) if isinstance(it, ast.expr))
    return any(isinstance(it, _LEAVES) for expression in expressions for it in ast.walk(expression))


def _always_entered(statement: ast.stmt) -> list[ast.stmt]:
    """The statements below one that run in any case; none where that is not sure."""
    match statement:
        case ast.For(iter=ast.List(elts=[_, *_]) | ast.Tuple(elts=[_, *_]), body=body):
            return body
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            swallows = any(_SWALLOWING.search(ast.unparse(item.context_expr)) for item in items)
            return [] if swallows else body
    return []


def _asserted(statement: ast.stmt) -> _Asserted | None:
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=constant)])):
            return _Asserted(statement, ast.unparse(left), constant, False, _looked_at(left))
        case ast.Assert(test=ast.Compare(left=left, ops=[_])):
            return _Asserted(statement, ast.unparse(left), None, False, _looked_at(left))
        case ast.Assert(test=test):
            return _Asserted(statement, f"({ast.unparse(test)})", None, False, _looked_at(test))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name), args=[first, *more])):
            if name.startswith("assert") and name.removeprefix("assert") in _ASSERTIONS:
                constant = more[0].value if more and isinstance(more[0], ast.Constant) else None
                return _Asserted(statement, ast.unparse(first), constant, True, _looked_at(first))
    return None


def _looked_at(value: ast.expr) -> str:
    calls = [ast.unparse(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)]
    return calls[0] if calls else ast.unparse(value)


def _lines(
    donor: _Donor, name: str, kind: CanaryKind, draw: Random, lines: Sequence[str], *, has_pytest: bool
) -> list[str]:
    """The canary's lines: always as many for a donor."""
    node, asserted = donor.function, donor.asserted
    outer, inner = _indent(lines[node.lineno - 1]), _indent(lines[_body(node)[0].lineno - 1])
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    made = ["\n", *(["\n"] if not outer else [])]
    made += [_ended(line) for line in lines[_begin(node) - 1 : node.lineno - 1]]
    made.append(f"{outer}{prefix} {name}({ast.unparse(node.args)}):\n")
    if kind is CanaryKind.SKIP:
        skip = _skip(draw, has_pytest=has_pytest, in_case=asserted.is_method_call)
        made += [f"{inner}{line}\n" for line in skip]
    first, last = _begin(_body(node)[0]), asserted.statement.lineno
    made += [_ended(line) for line in lines[first - 1 : last - 1]]
    indent, wanted = _indent(lines[last - 1]), repr(false_value(draw, asserted.constant))
    if asserted.is_method_call:
        made.append(f"{indent}self.assertEqual({asserted.value}, {wanted})\n")
    else:
        made.append(f"{indent}assert {asserted.value} == {wanted}\n")
    return made


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\x0c"))]


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else f"{line}\n"


def _skip(draw: Random, *, has_pytest: bool = False, in_case: bool = False) -> list[str]:
    reason = draw.choice(REASONS)
    if in_case:
        return [f'self.skipTest("{reason}")']
    return [*([] if has_pytest else ["import pytest"]), f'pytest.skip("{reason}")']
