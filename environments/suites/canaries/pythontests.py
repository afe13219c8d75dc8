"""The tests of a file of Python, and their statements. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tests_of(tree: ast.AST) -> Iterator[tuple[str, Function]]:
    """The tests, by what they are known as: where two functions of the file have one name, that is the name with its
    class, ``Case.test_it``; of those that are still known as one none is."""
    found = [*functions_of(tree)]
    plain = Counter(node.name for _, node in found)
    whole = Counter(name for name, _ in found)
    for name, node in found:
        if node.name.startswith("test") and whole[name] == 1:
            yield (node.name if plain[node.name] == 1 else name), node


def functions_of(node: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """The functions below a node, each with its name behind that of the class that it stands in."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield f"{owner}{inner.name}", inner
        yield from functions_of(inner, f"{inner.name}." if isinstance(inner, ast.ClassDef) else owner)


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a test at any depth, but for functions and classes in it."""
    for statement in body:
        if isinstance(statement, Function | ast.ClassDef):
            continue
        yield statement
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from statements([inner])
            elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                yield from statements(inner.body)


def called(node: ast.expr) -> str:
    """The last name of what is called, or looked at."""
    match node.func if isinstance(node, ast.Call) else node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
