"""Modules in Python as values: what they bind, of what kind, with which parameters and members."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from prchain.core.code.needs import NeedKind
from prchain.core.code.syntax_trees import syntax_tree

Reader = Callable[[str], str | None]
"""From a path of a tree to its text; None where there is none."""

ANYTHING = "*"
"""Stands among the names of a module that may bind any."""


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A module that was parsed. Functions and classes of the same name are taken together."""

    bound: frozenset[str] = frozenset()
    """The names at its top; `ANYTHING` where it cannot be told which."""
    stars: frozenset[str] = frozenset()
    """The modules of which it takes every name, as it is written: with dots before those beside it."""
    kinds: dict[str, NeedKind] = field(default_factory=dict)
    """Name at its top to what it is, of those that it defines itself."""
    parameters: dict[str, set[str]] = field(default_factory=dict)
    """Function or class to the names of its parameters."""
    signatures: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """Class and method to the parameters of the method that a caller can name."""
    members: dict[str, dict[str, NeedKind]] = field(default_factory=dict)
    """Class to its methods and attributes."""
    bases: dict[str, set[str]] = field(default_factory=dict)
    """Class to what it derives from, as it is written: a name behind a dot is of another module."""
    stem: str = ""
    """The last part of its own name."""


def parsed(text: str | None) -> ast.Module | None:
    """The tree of a module; None where there is none or it does not parse."""
    try:
        return None if text is None else syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def python_module(tree: ast.Module, path: str = "") -> PythonModule:
    """What the parsed module at a path has."""
    parameters: dict[str, set[str]] = {}
    signatures: dict[tuple[str, str], set[str]] = {}
    members: dict[str, dict[str, NeedKind]] = {}
    bases: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters.setdefault(node.name, set()).update(_parameter_names(node.args))
        elif isinstance(node, ast.ClassDef):
            own = parameters.setdefault(node.name, set())
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    signatures.setdefault((node.name, inner.name), set()).update(
                        it.arg for it in keyword_parameters(inner)
                    )
                if isinstance(inner, ast.FunctionDef) and inner.name in ("__init__", "__new__"):
                    own.update(_parameter_names(inner.args))
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    own.add(inner.target.id)
            members.setdefault(node.name, {}).update(_members(node))
            bases.setdefault(node.name, set()).update(map(base_name, node.bases))
    bound, stars, kinds = frozenset(_bound(tree.body)), frozenset(_stars(tree)), dict(_kinds(tree.body))
    stem = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    return PythonModule(bound, stars, kinds, parameters, signatures, members, bases, stem)


def _stars(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")], module=module, level=level):
                yield "." * level + (module or "")


def base_name(node: ast.expr) -> str:
    """What a class derives from, as it is written, without the types that a generic one is given; nothing where no
    dotted name says it."""
    return dotted_name(node.value if isinstance(node, ast.Subscript) else node)


def dotted_name(node: ast.expr) -> str:
    """A name, or names joined by dots, as it is written; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _parameter_names(arguments: ast.arguments) -> Iterator[str]:
    yield from (it.arg for it in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def keyword_parameters(method: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """The parameters of a method that a caller can name."""
    return [it for it in (*method.args.args, *method.args.kwonlyargs) if it.arg not in ("self", "cls")]


def _members(node: ast.ClassDef) -> Iterator[tuple[str, NeedKind]]:
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), ctx=ast.Store()):
                yield inner.attr, "attribute"
    for inner in node.body:
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                decorators = {dotted_name(it).rpartition(".")[2] for it in inner.decorator_list}
                yield inner.name, "attribute" if decorators & {"property", "cached_property", "setter"} else "method"
            case ast.Assign(targets=targets):
                yield from ((it.id, "attribute") for it in targets if isinstance(it, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, "attribute"


def _kinds(body: Iterable[ast.stmt]) -> Iterator[tuple[str, NeedKind]]:
    for node in _statements(body):
        match node:
            case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
                # A class that is made elsewhere gets what takes itself.
                yield name, "method" if [it.arg for it in args.args[:1]] == ["self"] else "function"
            case ast.ClassDef(name=name):
                yield name, "class"
            case ast.Assign() | ast.AnnAssign():
                yield from ((name, "constant") for name in _bound([node]) if name.isupper())


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in _statements(body):
        match node:
            case ast.FunctionDef(name="__getattr__"):
                yield ANYTHING
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    if alias.name != "*":
                        yield alias.asname or alias.name.partition(".")[0]
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr():
                yield from (
                    it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
                )


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of one scope, those in blocks too, in order. Without recursion: each `elif` is a level."""
    left = [*reversed([*body])]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While):
            left += reversed([inner for part in _inner(node) for inner in part])


def _inner(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for part in ("body", "orelse", "finalbody"):
        yield getattr(node, part, [])
    for handler in getattr(node, "handlers", ()):
        yield handler.body


class Scopes:
    """Which test a line of a test file belongs to."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        self._tree, self._path = tree, path

    def __call__(self, lines: Iterable[int]) -> set[str]:
        """The tests of some lines, as `prchain.core.code.needs.Need.tests` has them: the whole file where a line is in
        none."""
        return {self._of.get(line, self._path) for line in lines}

    @cached_property
    def _of(self) -> dict[int, str]:
        found: dict[int, str] = {}

        def visit(body: Iterable[ast.stmt], name: str) -> None:
            for node in body:
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{name}::{node.name}")
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                    first = min([node.lineno, *(it.lineno for it in node.decorator_list)])
                    found.update(dict.fromkeys(range(first, (node.end_lineno or first) + 1), f"{name}::{node.name}"))

        visit(self._tree.body, self._path)
        return found
