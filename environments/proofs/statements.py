"""Single statements and conditions of Python, added or changed by a reference, without what they do. Pure.

They are for references whose hunks and functions are too few to say anything. As a function that only raises, what
fails in any call is none of them: a name that nothing else binds stays bound.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

from environments.proofs.edits import Function, SourceFile, Undoing, unbound
from environments.proofs.functions import changed_functions
from environments.proofs.hunks import MOST_PLACES
from environments.suites.syntax import parsed, unless_too_deep
from sql.strength import UndoingKind

_NOTHING = "pass"


def statements(files: Sequence[SourceFile], draw: Random) -> Iterator[Undoing]:
    """One for each new part of a changed function that can be taken away: a branch that is never taken, a loop that
    never runs, a statement that does nothing, one result of several that is None, a condition without one of its
    parts. New is what the function did not hold before, wherever in it. They are drawn one after the other."""
    found = [(file, part, words) for file in files for part, words in _new_parts(file)]
    draw.shuffle(found)
    known = {file.path: unbound(file.landed or "") for file in files}
    for file, part, words in found[:MOST_PLACES]:
        made = _replaced(file.landed or "", part, words)
        if parsed(made) is not None and unbound(made) <= known[file.path]:
            yield Undoing(UndoingKind.STATEMENT, file.path, part.lineno, {file.path: made})


_Part = tuple[ast.expr | ast.stmt, str]


def _new_parts(file: SourceFile) -> Iterator[_Part]:
    for old, node in changed_functions(file):
        before = "" if old is None else unless_too_deep(partial(ast.dump, old)) or ""
        yield from unless_too_deep(partial(_listed, node, before)) or ()


def _listed(function: Function, before: str) -> list[_Part]:
    return list(_parts(function, before))


def _parts(function: Function, before: str) -> Iterator[_Part]:
    """What can be taken away of a function, each with what stands in its place."""
    returns = sum(isinstance(it, ast.Return) for it in _inside(function))
    arguments = {it.arg for it in ast.walk(function.args) if isinstance(it, ast.arg)}
    for node in _inside(function):
        if ast.dump(node) in before:
            continue
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.Constant):
                    yield test, "False"
            case ast.For(iter=over):
                yield over, "()"
            case ast.BoolOp(values=values, op=op):
                neutral = "True" if isinstance(op, ast.And) else "False"
                yield from ((it, neutral) for it in values if ast.dump(it) not in before)
            case ast.Return(value=ast.expr() as value):
                if returns > 1 and not isinstance(value, ast.Constant):
                    yield value, "None"
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Assert() | ast.AugAssign() | ast.Delete():
                yield node, _NOTHING
            case ast.Assign(targets=[target], value=value):
                yield from _assigned(node, target, value, _bound_before(function, node) | arguments)


def _assigned(node: ast.Assign, target: ast.expr, value: ast.expr, bound: set[str]) -> Iterator[_Part]:
    match target:
        case ast.Subscript():
            yield node, _NOTHING
        case ast.Attribute() if not (isinstance(value, ast.Constant) and value.value is None):
            yield value, "None"
        case ast.Name(id=name) if name in bound:
            yield node, _NOTHING


def _inside(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body, not those of text with braces, whose places Python before 3.12 does not know."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _bound_before(function: Function, place: ast.stmt) -> set[str]:
    """Names that a function binds in lines before a statement."""
    return {
        it.id
        for it in _inside(function)
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store) and it.lineno < place.lineno
    }


def _replaced(text: str, node: ast.expr | ast.stmt, words: str) -> str:
    """The text with other words for a node; its lines stay as many where it is a statement."""
    lines = text.split("\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode(errors="replace")
    tail = lines[last].encode()[node.end_col_offset :].decode(errors="replace")
    return "\n".join([*lines[:first], f"{head}{words}{tail}", *lines[last + 1 :]])
