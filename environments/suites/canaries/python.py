"""Canaries for pytest and unittest: copies of the file's own tests that are false in one place
(`environments.suites.canaries.falsify`), in front of or behind the tests proper."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from environments.suites.canaries import awaiting
from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting
from environments.suites.canaries.falsify import (
    FirstAssertion,
    LiteralText,
    Patch,
    assertion,
    falsified,
    file_values,
    lines_of,
    near,
    patched,
)
from environments.suites.canaries.names import REASONS, NewNames, unused_word
from environments.suites.canaries.renames import renamed_python
from prchain.core.code.syntax_trees import syntax_tree

FAILING = 6
"""Canaries of a file that must fail, at most, of as many functions under test as there are; one more is skipped."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
_SWALLOWING = re.compile(r"raises|warns|suppress|assertRaises|assertWarns|assertLogs|subTest|deprecated_call")
"""In the head of a ``with``: an assertion below it may go unseen, or be reported otherwise."""
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class _Donor:
    """A test of which a copy can be a canary."""

    function: _Function
    container: tuple[str, ...]
    """The classes around it."""
    asserted: FirstAssertion

    @property
    def has_self(self) -> bool:
        """Whether it is a method."""
        return bool(self.container) and [it.arg for it in self.function.args.args[:1]] == ["self"]

    @property
    def looked_at(self) -> str:
        """The name of the function under test, or what is most like one."""
        value = self.asserted.value
        calls = [ast.unparse(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)]
        return calls[0] if calls else ast.unparse(value)


def plant_python(path: str, text: str, planting: Planting) -> PlantedFile:
    """`canary.Planter` for pytest and unittest."""
    try:
        return _plant(path, text, planting)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return PlantedFile(text, ())


def _plant(path: str, text: str, planting: Planting) -> PlantedFile:
    bom, plain = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    lines = lines_of(plain)
    tree = syntax_tree(plain)
    # A class may inherit from another file's: a canary would stand in the place of the test of its name.
    identifiers = {*_names(tree)}
    planting.taken.update(identifiers, planting.named)
    donors = list(_donors(tree.body, (), lines))
    order = Random(f"{planting.places} {path} {len(text)}")
    found = (
        _among(path, donors, lines, tree, order, planting, identifiers)
        if donors
        else _at_end(path, lines, tree, order, planting, identifiers)
    )
    if not found.canaries:
        return PlantedFile(text, ())
    found = renamed_python(path, plain, tree, found, planting)
    return PlantedFile(bom + found.text, found.canaries)


def _among(
    path: str,
    donors: Sequence[_Donor],
    lines: list[str],
    tree: ast.Module,
    order: Random,
    planting: Planting,
    identifiers: Collection[str],
) -> PlantedFile:
    chosen = _chosen(donors, order)
    kinds = [*([CanaryKind.FAIL] * len(chosen)), CanaryKind.SKIP]
    has_pytest = any(isinstance(it, ast.Import) and any(name.name == "pytest" for name in it.names) for it in tree.body)
    names = NewNames.of_functions([donor.function.name for donor in donors], planting.named, identifiers)
    values = file_values(tree)
    canaries: list[Canary] = []
    inserted: list[tuple[int, int, list[str]]] = []
    for number, (kind, donor) in enumerate(zip(kinds, [*chosen, order.choice(donors)], strict=True), 1):
        slot = f"{path}:{number}"
        place = _placed(donor, donors, order)
        patches, is_argument = falsified(
            donor.asserted, _body(donor.function), lines, values, order, by_value=number % 2 == 1
        )
        if planting.slots is None or slot in planting.slots:
            name = names.draw(planting.draw, planting.taken)
            planting.taken.add(name)
            is_copy = kind is CanaryKind.FAIL and is_argument
            canary = Canary(slot, CanaryKind.ARGUMENT if is_copy else kind, path, name, donor.function.name)
            canaries.append(canary)
            skip = _skip(planting.draw, has_pytest=has_pytest, in_case=donor.asserted.method is not None)
            copy = _copy(donor, name, lines, patches, skip if kind is CanaryKind.SKIP else ())
            inserted.append(place.inserted(number, copy))
    for number, (donor, way, place) in enumerate(_awaiting(donors, tree, f"{planting.places} {path}"), FAILING + 2):
        slot = f"{path}:{number}"
        if planting.slots is None or slot in planting.slots:
            name = names.draw(planting.draw, planting.taken)
            planting.taken.add(name)
            canaries.append(Canary(slot, CanaryKind.FAIL, path, name, donor.function.name))
            made, body = _copy(donor, name, lines, (), ()), _body(donor.function)
            first, last = _begin(body[0]) - _begin(donor.function), len(made)
            indent, outer = _indent(made[first]), _indent(lines[donor.function.lineno - 1])
            word = unused_word("".join(lines), planting.draw)
            made[first:last] = way.around(made[first:last], indent, indent.removeprefix(outer), word)
            inserted.append(place.inserted(number, made))
    raising = _raising(tree, lines)
    order = Random(f"{planting.places} {path} raising")
    first = FAILING + 2 + awaiting.MOST
    for number, test in enumerate(order.sample(raising, min(awaiting.MOST, len(raising))), first):
        slot = f"{path}:{number}"
        if planting.slots is None or slot in planting.slots:
            name = names.draw(planting.draw, planting.taken)
            planting.taken.add(name)
            canaries.append(Canary(slot, CanaryKind.PLAIN, path, name, test.function.name))
            made = [line.replace(_RaisingTest.NAME, name) for line in test.lines]
            inserted.append(_CanaryPlace(test.function, True, test.gap).inserted(number, made))
    for at, _, more in sorted(inserted, key=lambda it: (-it[0], it[1])):
        if at and not lines[at - 1].endswith(("\n", "\r")):
            lines[at - 1] += "\n"
        lines[at:at] = more
    return PlantedFile("".join(lines), tuple(canaries))


class _CanaryPlace(NamedTuple):
    """Where a canary stands: behind or before a test, as far apart from it as tests are."""

    peer: _Function
    is_behind: bool
    gap: int

    def inserted(self, number: int, copy: list[str]) -> tuple[int, int, list[str]]:
        """The line behind which lines stand, the canary's number, and these lines."""
        gap = ["\n"] * self.gap
        if self.is_behind:
            return _end(self.peer), number, [*gap, *copy]
        return _begin(self.peer) - 1, number, [*copy, *gap]


def _placed(donor: _Donor, donors: Sequence[_Donor], order: Random) -> _CanaryPlace:
    peers = [it.function for it in donors if it.container == donor.container]
    place = peers.index(donor.function)
    is_behind = order.random() < 0.5
    # What decorators and annotations name may be made between two tests.
    earliest = place if _names_at_definition(donor.function) else 0
    peer = order.choice(peers[place:] if is_behind else peers[earliest : place + 1])
    return _CanaryPlace(peer, is_behind, 1 if donor.container else 2)


def _awaiting(
    donors: Sequence[_Donor], tree: ast.Module, secret: str
) -> Iterator[tuple[_Donor, awaiting.AwaitingWay, _CanaryPlace]]:
    """The tests of which an error is awaited, how, and where that stands; dice of their own leave the other canaries as
    they were."""
    awaits = awaiting.PythonAwaits.of(tree)
    if awaits is None:
        return
    order = Random(f"{secret} awaiting")
    ways = {number: awaits.ways(has_self=it.has_self) for number, it in enumerate(donors)}
    fit = [number for number, found in ways.items() if found and awaiting.can_await(donors[number].function)]
    near = [ast.unparse(it) for it in awaiting.awaited_in(tree)]
    others = [ast.unparse(donors[number].function) for number in fit]
    for number in map(fit.__getitem__, awaiting.likest(near, others, order)):
        yield donors[number], order.choice(ways[number]), _placed(donors[number], donors, order)


@dataclass(frozen=True, slots=True)
class _RaisingTest:
    """A test that awaits an error, its lines with `NAME` for its name where what raises does so plainly, and the lines
    between it and another test."""

    NAME: ClassVar[str] = "\0"

    function: _Function
    lines: Sequence[str]
    gap: int


def _raising(tree: ast.Module, lines: Sequence[str]) -> list[_RaisingTest]:
    """The tests of a file of which a copy can do plainly what has to raise."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and _holds_tests(node)]
    found: list[_RaisingTest] = []
    for gap, body in [(2, tree.body), *((1, node.body) for node in classes)]:
        for node in body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test") or not _is_plain(node, lines):
                continue
            text = [*map(_ended, lines[node.lineno - 1 : _end(node)])]
            if (made := awaiting.python_plain(node, text)) is not None:
                head = lines[_begin(node) - 1 : node.lineno - 1]
                named = made[0].replace(f"def {node.name}", f"def {_RaisingTest.NAME}", 1)
                if named != made[0]:
                    found.append(_RaisingTest(node, [*head, named, *made[1:]], gap))
    return found


def _at_end(
    path: str, lines: list[str], tree: ast.Module, order: Random, planting: Planting, identifiers: Collection[str]
) -> PlantedFile:
    """For a file of whose tests no copy can be a canary: functions at its end that look at what it imports."""
    functions = [node.name for node in ast.walk(tree) if isinstance(node, _Function) and node.name.startswith("test")]
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    names = [(it.asname or it.name).partition(".")[0] for node in imports for it in node.names if it.name != "*"]
    texts = [it for it in file_values(tree) if isinstance(it, str)] or functions
    canaries: list[Canary] = []
    made = [] if not lines or lines[-1].endswith(("\n", "\r")) else ["\n"]
    if functions and names:
        looked_at = order.sample(names, min(2, len(names)))
        kinds = [*((CanaryKind.FAIL, it) for it in looked_at), (CanaryKind.SKIP, names[0])]
        new_names = NewNames.of_functions(functions, planting.named, identifiers)
        for number, (kind, value) in enumerate(kinds, 1):
            slot, name = f"{path}:{number}", new_names.draw(planting.draw, planting.taken)
            if planting.slots is None or slot in planting.slots:
                planting.taken.add(name)
                canaries.append(Canary(slot, kind, path, name))
                skip = [f"    {line}\n" for line in _skip(planting.draw)] if kind is CanaryKind.SKIP else []
                # What a module holds is hardly ever a text, and none that was changed just now.
                wanted = LiteralText(lines).literal(near(planting.draw.choice(texts), planting.draw))
                made += ["\n\n", f"def {name}():\n", *skip, f"    assert {value} == {wanted}\n"]
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
    first = {donor.looked_at: donor for donor in reversed(shuffled)}
    distinct = [donor for donor in shuffled if first[donor.looked_at] is donor]
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


def _names_at_definition(node: _Function) -> bool:
    """Whether a function's definition looks names up."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return bool(node.decorator_list or node.returns or any(it.annotation for it in arguments))


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _begin(node: ast.stmt) -> int:
    """The line on which a statement begins, decorators included."""
    decorators = node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []
    return min([node.lineno, *(it.lineno for it in decorators)])


def _body(node: _Function) -> list[ast.stmt]:
    """A test's statements without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _first_assertion(node: _Function, lines: Sequence[str]) -> FirstAssertion | None:
    """The first assertion of a test that is reached in any case, also in a loop over what stands there and below a
    ``with``; it begins its line."""
    statements = list(_body(node))
    while statements:
        statement = statements.pop(0)
        found = assertion(statement)
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


def _copy(donor: _Donor, name: str, lines: Sequence[str], patches: Sequence[Patch], skip: Sequence[str]) -> list[str]:
    """The canary's lines; with lines that skip it first, nothing else is changed in them."""
    node = donor.function
    line = lines[node.lineno - 1].encode()
    start = line.index(node.name.encode(), line.index(b"def", node.col_offset) + 3)
    named = Patch(node.lineno, start, start + len(node.name.encode()), name)
    made = [*map(_ended, patched(lines, _begin(node), _end(node), [named, *([] if skip else patches)]))]
    if skip:
        first = _begin(_body(node)[0])
        inner = _indent(lines[first - 1])
        made[first - _begin(node) : first - _begin(node)] = [f"{inner}{line}\n" for line in skip]
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
