"""What literals of Python make, and texts that are woven of them. Pure."""

from __future__ import annotations

import ast

from environments.suites.canaries.pythontests import called

_MAKERS = frozenset({"dedent", "cleandoc", "set", "frozenset", "tuple", "list", "dict", "bytes", "str", "int", "float"})
"""Called with literals alone these make the same value in every run."""
_MAKING = frozenset({"encode", "decode", "format", "join", "strip", "lstrip", "rstrip", "replace", "lower", "upper"})
"""Methods of texts that make texts."""


def wanted_side(left: ast.expr, right: ast.expr) -> ast.expr:
    """Which side of an equality is made of literals."""
    return left if is_made(left) and not is_made(right) else right


def is_made(node: ast.expr) -> bool:
    """Whether literals alone make a value, the same in every run."""
    match node:
        case ast.Constant(value=value):
            return value is not Ellipsis
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(map(is_made, parts))
        case ast.Dict(keys=keys, values=values):
            return all(it is not None and is_made(it) for it in [*keys, *values])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=value):
            return is_made(value)
        case ast.BinOp(left=left, right=right):
            return is_made(left) and is_made(right)
        case ast.Call(func=func, args=parts, keywords=named) if (
            isinstance(func, ast.Attribute) and kind_of_text(func.value) and is_made(func.value)
        ) or (called(node) in _MAKERS and parts):
            return all(map(is_made, [*parts, *(it.value for it in named)]))
    return False


def kind_of_text(node: ast.expr) -> str:
    """How the mask's class ends: of the value's own kind where code may look at that."""
    match node:
        case ast.Constant(value=str()):
            return "Str"
        case ast.Constant(value=bytes()):
            return "Bytes"
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Mod()):
            return kind_of_text(left)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if kind := kind_of_text(value):
            return {"encode": "Bytes", "decode": "Str"}.get(name, kind) if name in _MAKING else ""
        case ast.Call() if called(node) in ("dedent", "cleandoc", "str"):
            return "Str"
    return ""


def is_woven(node: ast.expr) -> bool:
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
