"""Python that decides by the number of a line that runs: a log passes it on, and only who knows the caller's file asks
which one it is."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

_OF_FRAMES = frozenset({"f_lineno", "tb_lineno", "f_lasti", "tb_lasti"})
_MOST_STEPS = 20


def decides_by_line(
    nodes: Sequence[ast.AST], function_of: Mapping[int, int], looks_up: Collection[int | None]
) -> Iterator[ast.AST]:
    """The places that do; `looks_up` are the functions of `function_of` that ask for frames. Pure, raises nothing."""
    held: set[tuple[int | None, str]] = set()

    def is_line(node: ast.AST) -> bool:
        for _ in range(_MOST_STEPS):
            match node:
                case ast.Attribute(attr=attr):
                    return attr in _OF_FRAMES or (attr == "lineno" and function_of.get(id(node)) in looks_up)
                case ast.Name(id=name):
                    return (function_of.get(id(node)), name) in held
                case ast.BinOp(left=value, right=ast.Constant()) | ast.NamedExpr(value=value):
                    node = value
                case ast.Call(func=ast.Name(id="str" | "int" | "repr"), args=[value]):
                    node = value
                case _:
                    return False
        return False

    for node in nodes:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ) if is_line(value):
                held.add((function_of.get(id(node)), name))
    for node in nodes:
        match node:
            case ast.Compare(left=left, comparators=rights):
                if any(map(is_line, [left, *rights])) and any(map(_is_number, [left, *rights])):
                    yield node
            case ast.Subscript(slice=key, ctx=ast.Load()) if is_line(key):
                yield node
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]) if is_line(key):
                yield node
            case ast.Match(subject=subject) if is_line(subject):
                yield node.subject


def _is_number(node: ast.AST) -> bool:
    """Whether a line's number is written there, alone or among others; 0 and 1 are no line that one looks for."""
    match node:
        case ast.Constant(value=int(value)):
            return value > 1
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(isinstance(it, ast.Constant) and isinstance(it.value, int) for it in parts)
    return False
