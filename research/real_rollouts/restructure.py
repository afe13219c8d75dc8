"""Restructures Python code without changing what it does: swaps branches, and gives results a name first.

The text is changed line by line, the program by its tree; a change is kept only where both give the same program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

ANSWER = "answer_own"
"""The name of a result before it is returned."""

Lines = list[str]


def restructured(text: str, node: ast.AST, fresh: Collection[int]) -> str:
    """The text with statements within `node`, a part of its tree, restructured, if all of their lines are `fresh`.
    `fresh` holds line numbers; 1 is the first."""
    # From the end, so that a change does not move the statements that come next.
    found = sorted(_whole(node, fresh), key=lambda statement: (statement.lineno, statement.col_offset), reverse=True)
    has_answer = ANSWER in text
    for statement in found:
        if isinstance(statement, ast.If):
            text = _changed(text, statement, _turn_lines, _turn)
        elif isinstance(statement, ast.Return) and not has_answer:
            text = _changed(text, statement, _name_lines, _name)
    return text


def _whole(node: ast.AST, fresh: Collection[int]) -> Iterator[ast.stmt]:
    for statement in ast.walk(node):
        if isinstance(statement, ast.If | ast.Return) and all(
            line in fresh for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        ):
            yield statement


def _changed(
    text: str,
    node: ast.stmt,
    by_lines: Callable[[Lines, ast.stmt], Lines | None],
    by_tree: Callable[[ast.stmt], list[ast.stmt]],
) -> str:
    lines = text.split("\n")
    position = node.lineno, node.col_offset
    # Changes further down left this node in its place, but may have made it longer.
    statement = next(
        candidate
        for candidate in ast.walk(ast.parse(text))
        if isinstance(candidate, type(node))
        and isinstance(candidate, ast.stmt)
        and (candidate.lineno, candidate.col_offset) == position
    )
    if not lines[statement.lineno - 1].lstrip().startswith(("if ", "if(", "return")):
        return text
    changed_lines = by_lines(lines, statement)
    if changed_lines is None:
        return text
    result = "\n".join(changed_lines)
    expected = _ChangeAt(position, by_tree).visit(ast.parse(text))
    try:
        return result if ast.dump(ast.parse(result)) == ast.dump(expected) else text
    except SyntaxError:
        return text


class _ChangeAt(ast.NodeTransformer):
    """Changes the statement at a position."""

    def __init__(self, position: tuple[int, int], change: Callable[[ast.stmt], list[ast.stmt]]) -> None:
        self._position = position
        self._change = change

    def generic_visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:  # type: ignore[override]
        if isinstance(node, ast.If | ast.Return) and (node.lineno, node.col_offset) == self._position:
            return self._change(node)
        return super().generic_visit(node)


def _turn(node: ast.stmt) -> list[ast.stmt]:
    assert isinstance(node, ast.If)
    return [ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)]


def _turn_lines(lines: Lines, node: ast.stmt) -> Lines | None:
    """``if not (a):`` with the branches swapped; None where the lines are not simple enough."""
    assert isinstance(node, ast.If)
    head, test = lines[node.lineno - 1].encode(), node.test
    if not node.orelse or test.lineno != test.end_lineno or test.lineno != node.lineno:
        return None
    first, last, end = node.body[0].lineno, node.body[-1].end_lineno, node.end_lineno
    if first == node.lineno or last is None or end is None or head[test.end_col_offset :].strip() != b":":
        return None
    indent = " " * node.col_offset
    bar = next((line for line in range(last, node.orelse[0].lineno) if lines[line].rstrip() == f"{indent}else:"), None)
    if bar is None or node.orelse[0].lineno <= bar + 1:
        return None
    turned = f"{indent}if not ({head[test.col_offset : test.end_col_offset].decode()}):"
    body, other = lines[node.lineno : bar], lines[bar + 1 : end]
    return [*lines[: node.lineno - 1], turned, *other, lines[bar], *body, *lines[end:]]


def _name(node: ast.stmt) -> list[ast.stmt]:
    assert isinstance(node, ast.Return) and node.value is not None
    answer = ast.Assign([ast.Name(ANSWER, ast.Store())], node.value)
    return [answer, ast.Return(ast.Name(ANSWER, ast.Load()))]


def _name_lines(lines: Lines, node: ast.stmt) -> Lines | None:
    """``answer_own = ...``, then ``return answer_own``; None for a value that has a name or needs none."""
    assert isinstance(node, ast.Return)
    if node.value is None or isinstance(node.value, ast.Name | ast.Constant):
        return None
    indent, line, end = " " * node.col_offset, lines[node.lineno - 1], node.end_lineno or node.lineno
    named = f"{indent}{ANSWER} = {line[node.col_offset :].removeprefix('return').lstrip()}"
    return [*lines[: node.lineno - 1], named, *lines[node.lineno : end], f"{indent}return {ANSWER}", *lines[end:]]
