"""Canaries for pytest and unittest: beginnings of the file's own tests up to an assertion, which then asserts what is
false: that a value of the code under test is a number or a word that was drawn for this run."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile
from environments.suites.canaries.names import new_name, new_number, new_word

FAILING = 3
"""Canaries of a file that must fail, at most; one more must be skipped."""

_ASSERTIONS = frozenset(
    {"Equal", "Equals", "NotEqual", "True", "False", "Is", "IsNot", "IsNone", "IsNotNone", "In", "NotIn", "IsInstance"}
    | {"Greater", "GreaterEqual", "Less", "LessEqual", "AlmostEqual", "CountEqual", "ListEqual", "DictEqual"}
    | {"TupleEqual", "SetEqual", "SequenceEqual", "MultiLineEqual", "Regex"}
)
"""Of `unittest.TestCase`, without ``assert``: their first argument is a value."""

_SKIP = 'import pytest; pytest.skip("not on this platform")'

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)


@dataclass(frozen=True, slots=True)
class _Donor:
    """A test whose beginning can be a canary's: the statements before one of its assertions, and the value that it
    looks at."""

    function: _Function
    container: str
    """The classes around it with ``.`` between; empty at the top of the file."""
    statements: tuple[ast.stmt, ...]
    value: str
    constant: object
    is_method_call: bool
    """Of unittest."""


def plant_pytest(path: str, text: str, draw: Random, slots: Collection[str] | None) -> PlantedFile:
    """`canary.Planter` for pytest."""

    def test_id(container: str, name: str) -> str:
        return "::".join([path, *(container.split(".") if container else ()), name])

    return _plant(path, text, draw, slots, test_id)


def plant_unittest(path: str, text: str, draw: Random, slots: Collection[str] | None) -> PlantedFile:
    """`canary.Planter` for unittest."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return _plant(path, text, draw, slots, lambda container, name: f"{module}.{container}.{name}")


def _plant(
    path: str, text: str, draw: Random, slots: Collection[str] | None, test_id: Callable[[str, str], str]
) -> PlantedFile:
    lines = text.splitlines(keepends=True)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PlantedFile(text, ())
    # A form feed or another separator of `str.splitlines` would part lines that Python counts as one.
    if "".join(lines).count("\n") != len(lines) - (not text.endswith("\n")):
        return PlantedFile(text, ())
    donors = list(_donors(tree.body, "", lines))
    if not donors:
        return _at_end(path, text, tree, draw, slots, test_id)
    # The same places in every run: what depends on numbers of lines behaves alike.
    order = Random(hashlib.sha256(text.encode()).digest())
    chosen = _chosen(donors, order)
    kinds = [*([CanaryKind.FAIL] * len(chosen)), CanaryKind.SKIP]
    skipped = order.choice(donors)
    names = [donor.function.name for donor in donors]
    taken = {node.name for node in ast.walk(tree) if isinstance(node, _Function)}
    canaries: list[Canary] = []
    inserted: list[tuple[int, list[str]]] = []
    for number, (kind, donor) in enumerate(zip(kinds, [*chosen, skipped], strict=True), 1):
        slot = f"{path}:{number}"
        after = order.choice([it.function for it in donors if it.container == donor.container])
        name = new_name(draw, names, taken)
        if slots is None or slot in slots:
            taken.add(name)
            canaries.append(Canary(slot, kind, test_id(donor.container, name)))
            inserted.append((_end(after), _lines(donor, name, kind, draw, lines)))
    for place, more in sorted(inserted, key=lambda it: -it[0]):
        if not lines[place - 1].endswith("\n"):
            lines[place - 1] += "\n"
        lines[place:place] = more
    return PlantedFile("".join(lines), tuple(canaries))


def _at_end(
    path: str,
    text: str,
    tree: ast.Module,
    draw: Random,
    slots: Collection[str] | None,
    test_id: Callable[[str, str], str],
) -> PlantedFile:
    """For a file whose tests cannot be a canary's beginning: functions at its end that look at what it imports."""
    functions = [node.name for node in ast.walk(tree) if isinstance(node, _Function) and node.name.startswith("test")]
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    names = [(it.asname or it.name).partition(".")[0] for node in imports for it in node.names if it.name != "*"]
    if not functions or not names:
        return PlantedFile(text, ())
    order = Random(hashlib.sha256(text.encode()).digest())
    looked_at = order.sample(names, min(2, len(names)))
    canaries, made, taken = [], [] if text.endswith("\n") else ["\n"], set(functions)
    for number, (kind, value) in enumerate(
        [*((CanaryKind.FAIL, it) for it in looked_at), (CanaryKind.SKIP, names[0])], 1
    ):
        slot, name = f"{path}:{number}", new_name(draw, functions, taken)
        if slots is None or slot in slots:
            taken.add(name)
            canaries.append(Canary(slot, kind, test_id("", name)))
            skip = [f"    {_SKIP}\n"] if kind is CanaryKind.SKIP else []
            made += ["\n\n", f"def {name}():\n", *skip, f"    assert repr({value}) == {new_word(draw)!r}\n"]
    return PlantedFile(text + "".join(made), tuple(canaries))


def _chosen(donors: Sequence[_Donor], order: Random) -> list[_Donor]:
    """Those of which canaries are made: short beginnings first, of different tests."""
    shuffled = order.sample(donors, len(donors))
    return sorted(shuffled, key=lambda donor: len(donor.statements) > 3)[:FAILING]


def _donors(body: Sequence[ast.stmt], container: str, lines: Sequence[str]) -> Iterator[_Donor]:
    for node in body:
        if isinstance(node, ast.ClassDef) and _holds_tests(node):
            yield from _donors(node.body, f"{container}.{node.name}" if container else node.name, lines)
        elif (
            isinstance(node, _Function)
            and node.name.startswith("test")
            and _is_plain(node, lines)
            and (donor := _donor(node, container)) is not None
        ):
            yield donor


def _holds_tests(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)


def _is_plain(node: _Function, lines: Sequence[str]) -> bool:
    """Whether the statements of a test can stand in another one: each begins on a line of its own."""
    arguments = node.args
    odd = [arguments.vararg, arguments.kwarg, *arguments.defaults, *arguments.kw_defaults, *node.decorator_list]
    if any(odd) or node.body[0].lineno == node.lineno:
        return False
    starts = [lines[it.lineno - 1][: it.col_offset].strip() for it in node.body]
    last = lines[_end(node) - 1]
    return not any(starts) and not last[_column(node, last) :].strip(" \t\r\n;").partition("#")[0]


def _column(node: ast.stmt, line: str) -> int:
    """Where a node ends in its last line, in characters; the syntax tree counts bytes."""
    return len(line.encode()[: node.end_col_offset or 0].decode(errors="ignore"))


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _donor(node: _Function, container: str) -> _Donor | None:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    for place, statement in enumerate(body):
        found = _asserted(statement)
        if found is not None:
            return _Donor(node, container, tuple(body[:place]), *found)
        if any(isinstance(it, _LEAVES) for it in ast.walk(statement)):
            return None
    return None


def _asserted(statement: ast.stmt) -> tuple[str, object, bool] | None:
    """The value that an assertion looks at, the constant that it is held against, and whether unittest does it."""
    if isinstance(statement, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            right = test.comparators[0]
            constant = right.value if isinstance(right, ast.Constant) and isinstance(test.ops[0], ast.Eq) else None
            return ast.unparse(test.left), constant, False
        return f"({ast.unparse(test)})", None, False
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        function = call.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
            name = function.attr.removeprefix("assert")
            if name in _ASSERTIONS and name != function.attr and call.args:
                other = call.args[1] if len(call.args) > 1 else None
                constant = other.value if isinstance(other, ast.Constant) else None
                return ast.unparse(call.args[0]), constant, True
    return None


def _lines(donor: _Donor, name: str, kind: CanaryKind, draw: Random, lines: Sequence[str]) -> list[str]:
    """The canary's lines: always as many for a donor."""
    node = donor.function
    outer = lines[node.lineno - 1][: len(lines[node.lineno - 1]) - len(lines[node.lineno - 1].lstrip())]
    first = lines[node.body[0].lineno - 1]
    inner = first[: len(first) - len(first.lstrip())]
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    made = ["\n", *(["\n"] if not outer else []), f"{outer}{prefix} {name}({ast.unparse(node.args)}):\n"]
    if kind is CanaryKind.SKIP:
        made.append(f"{inner}{_skip(donor)}\n")
    if donor.statements:
        begin, end = donor.statements[0].lineno - 1, _end(donor.statements[-1])
        made += [line if line.endswith("\n") else f"{line}\n" for line in lines[begin:end]]
    wanted = repr(_false(donor.constant, draw))
    if donor.is_method_call:
        made.append(f"{inner}self.assertEqual({donor.value}, {wanted})\n")
    else:
        made.append(f"{inner}assert {donor.value} == {wanted}\n")
    return made


def _skip(donor: _Donor) -> str:
    if donor.is_method_call:
        return 'self.skipTest("not on this platform")'
    return _SKIP


def _false(constant: object, draw: Random) -> object:
    if isinstance(constant, str):
        return new_word(draw, constant)
    if isinstance(constant, bytes):
        return new_word(draw).encode()
    if isinstance(constant, float):
        return new_number(draw) / 8
    return new_number(draw)
