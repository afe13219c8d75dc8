"""Python in what agents write: parsed where it can be, and the values and calls that rules ask for."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator
from functools import lru_cache

from prchain.core.code.syntax_trees import syntax_tree

_LONGEST = 100_000
"""Characters of a text that is parsed."""

_MOST_PARTS = 20


def parsed(text: str, longest: int = _LONGEST) -> ast.Module | None:
    """The module in a text, or in a piece of one that stands indented; None where it is no Python, or longer."""
    if len(text) > longest:
        return None
    dedented = textwrap.dedent(text)
    for candidate in (dedented, f"def _():\n{textwrap.indent(dedented, ' ')}", f"{dedented.rstrip()}\n    pass\n"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return syntax_tree(candidate)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


@lru_cache(maxsize=64)
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a text; none where it is no Python."""
    tree = parsed(text)
    return () if tree is None else tuple(ast.walk(tree))


def dotted(node: ast.AST) -> str:
    """The dotted name that an expression is, calls in it left out; empty where it is none."""
    parts: list[str] = []
    while len(parts) < _MOST_PARTS:
        match node:
            case ast.Attribute(value=value, attr=attr):
                parts.append(attr)
                node = value
            case ast.Call(func=func):
                node = func
            case ast.Subscript(value=value):
                node = value
            case ast.Name(id=name):
                return ".".join([name, *reversed(parts)])
            case _:
                return ""
    return ""


def text_of(node: ast.AST | None) -> str | None:
    """The value of a text literal, the fixed parts of an f-string among them; None for anything else."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)
    return None


def literals(node: ast.AST) -> Iterator[str]:
    """Texts and numbers in an expression that is made of literals alone; nothing for others."""
    values: list[str] = []
    for part in ast.walk(node):
        match part:
            case ast.Constant(value=str(value)):
                values.append(value)
            case ast.Constant(value=bytes(raw)):
                values.append(raw.decode("latin-1"))
            case ast.Constant(value=bool() | None):
                pass
            case ast.Constant(value=int() | float() as number):
                values.append(number_text(number))
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Load() | ast.Constant():
                pass
            case ast.UnaryOp() | ast.USub():
                pass
            case _:
                return
    yield from values


def number_text(number: float) -> str:
    """A number as it is compared."""
    try:
        return repr(number)
    except ValueError:  # longer than Python turns into digits
        return ""


def unparsed(node: ast.AST) -> str:
    """The source of a node; empty where there is none."""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):
        return ""
