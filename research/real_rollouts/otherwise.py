"""Rewrites Python code without changing what it does, as if an agent had found the developers' solution by itself.

The local variables of a function get other names, its branches are swapped, its results get a name before they are
returned, and a comment is added before its first statement. Positions come from the parser, and the result is parsed
again: a function is left unchanged where the two trees differ in more than that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from research.real_rollouts.restructure import restructured

MARK = "another way to the same end"
"""The text of the comment."""

_SUFFIX = "_own"
_LOOK_AT_NAMES = frozenset({"locals", "vars", "eval", "exec", "dir", "globals"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
Names = dict[str, str]


def otherwise(old: str, new: str, excluded: Collection[str] = (), narrow: Collection[str] = ()) -> str:
    """`new` with every function rewritten that has lines `old` lacks, except those whose dotted names are `excluded`.

    In functions that are `narrow` no line of `old` changes. A text that is not Python, or has no such function, is
    returned unchanged.
    """
    for name in functions_of(old, new):
        if name not in excluded:
            new = _rewrite_function(old, new, name, narrow=name in narrow)
    return new


def functions_of(old: str, new: str) -> list[str]:
    """The dotted names of the functions and methods of `new` that have lines which `old` lacks, in order."""
    if (tree := _parsed(new)) is None:
        return []
    fresh = fresh_lines(old, new)
    found = {
        name: any(line in fresh for line in range(node.lineno, (node.end_lineno or 0) + 1))
        for name, node in functions(tree)
    }
    names = [name for name, _ in functions(tree)]
    # Functions that share a name (overloads, properties) are ambiguous.
    return [name for name, is_fresh in found.items() if is_fresh and names.count(name) == 1]


def fresh_lines(old: str, new: str) -> set[int]:
    """The numbers of the lines of `new` that `old` lacks; 1 is the first."""
    matcher = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    return {
        line + 1
        for kind, _, _, start, end in matcher.get_opcodes()
        if kind in {"insert", "replace"}
        for line in range(start, end)
    }


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def functions(node: ast.AST, before: str = "") -> Iterator[tuple[str, Function]]:
    """The functions and methods of a program by their dotted names, without nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield before + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{before}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from functions(child, before)


def _rewrite_function(old: str, text: str, name: str, *, narrow: bool) -> str:
    own = fresh_lines(old, text)
    text = _renamed(text, name, own if narrow else None)
    tree = _parsed(text)
    if tree is not None:
        text = restructured(text, dict(functions(tree))[name], own)
        tree = _parsed(text)
    function = dict(functions(tree))[name] if tree else None
    if function is None:
        return text
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if narrow:
        fresh = fresh_lines(old, text)
        body = [node for part in body for node in ast.walk(part) if isinstance(node, ast.stmt) and node.lineno in fresh]
        body.sort(key=lambda statement: statement.lineno)
    first = body[0] if body else None
    if first is None or first.lineno <= function.lineno:
        return text
    lines = text.split("\n")
    index = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", ()))]) - 1
    if lines[index][: first.col_offset].strip():
        return text
    lines.insert(index, f"{' ' * first.col_offset}# {MARK}")
    commented = "\n".join(lines)
    return commented if _same(text, commented, {}) else text


def _renamed(text: str, name: str, lines: Collection[int] | None) -> str:
    """The text with other names for a function's variables; with `lines`, only for variables used on these alone."""
    tree = _parsed(text)
    assert tree is not None
    function = dict(functions(tree))[name]
    names: Names = {}
    for local in _locals(function):
        other = local + _SUFFIX
        if re.search(rf"\b{re.escape(other)}\b", text) or not _is_only_on(function, local, lines):
            continue
        renamed = {**names, local: other}
        changed = _replaced(text, function, renamed)
        if changed is not None and _same(text, changed, {other: local for local, other in renamed.items()}):
            names = renamed
    return (_replaced(text, function, names) or text) if names else text


def _is_only_on(function: Function, name: str, lines: Collection[int] | None) -> bool:
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name)
    return lines is None or all(node.lineno in lines for node in nodes)


def _locals(function: Function) -> list[str]:
    """The variables that the function itself sets, if their names cannot mean anything else; sorted."""
    inner = [node for node in ast.walk(function) if node is not function]
    if any(isinstance(node, Function | ast.ClassDef | ast.Global | ast.Nonlocal | ast.Match) for node in inner):
        return []
    names = [node for node in inner if isinstance(node, ast.Name)]
    if any(node.id in _LOOK_AT_NAMES for node in names):
        return []
    parts = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    comprehended = {id(node) for part in inner if isinstance(part, parts) for node in ast.walk(part)}
    excluded = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    excluded |= {node.name for node in inner if isinstance(node, ast.ExceptHandler) and node.name}
    excluded |= {
        (alias.asname or alias.name).split(".")[0]
        for node in inner
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return sorted(
        {
            node.id
            for node in names
            if isinstance(node.ctx, ast.Store) and id(node) not in comprehended and not node.id.startswith("_")
        }
        - excluded
    )


def _replaced(text: str, function: Function, names: Names) -> str | None:
    """The text with these names replaced in the function; None where they are not where the parser says."""
    lines = [line.encode() for line in text.split("\n")]
    positions = {
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id in names
    }
    for line, column, name in sorted(positions, reverse=True):
        old, old_name = lines[line - 1], name.encode()
        if old[column : column + len(old_name)] != old_name:
            return None
        lines[line - 1] = old[:column] + names[name].encode() + old[column + len(old_name) :]
    return b"\n".join(lines).decode()


class _NameRestorer(ast.NodeTransformer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def _same(text: str, other: str, original_names: Names) -> bool:
    """Whether two texts are the same program after the names of `other` are mapped by `original_names`."""
    first, second = _parsed(text), _parsed(other)
    return (
        first is not None
        and second is not None
        and ast.dump(first) == ast.dump(_NameRestorer(original_names).visit(second))
    )
