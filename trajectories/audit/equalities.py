"""Python that makes an object equal to anything: an `__eq__` whose answer is the same whatever it is asked, or whatever
value of a kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from trajectories.audit.python_text import text_of

_VALUES = frozenset(
    {"object", "str", "bytes", "int", "float", "complex", "list", "tuple", "set", "frozenset", "dict", "type"}
)
_ANSWERS = {"__eq__": True, "__ne__": False, "__instancecheck__": True, "__subclasscheck__": True}


def equals_everything(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The places that do. Pure, raises nothing."""
    constants = _constants(nodes)
    functions = {
        node.name: answer
        for node in nodes
        if isinstance(node, ast.FunctionDef) and (answer := _always(node, constants)) is not None
    }

    def answer_of(value: ast.AST | None) -> bool | None:
        match value:
            case ast.Lambda(body=body):
                return _truth(body, constants)
            case ast.Name(id=name):
                return functions.get(name)
        return None

    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) if name in _ANSWERS:
                if _always(node, constants) is _ANSWERS[name]:
                    yield node
            case ast.Assign(targets=targets, value=value):
                if any(_fits(target, answer_of(value)) for target in targets):
                    yield node
            case ast.AnnAssign(target=target, value=value) if _fits(target, answer_of(value)):
                yield node
            case ast.Call(args=[_, name, value]) if _ANSWERS.get(text_of(name) or "") is not None:
                if answer_of(value) is _ANSWERS[text_of(name) or ""]:
                    yield node
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if (wanted := _ANSWERS.get(text_of(key) or "")) is not None and answer_of(value) is wanted:
                        yield node


def _fits(target: ast.expr, answer: bool | None) -> bool:
    name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
    return answer is not None and _ANSWERS.get(name) is answer


def _constants(nodes: Sequence[ast.AST]) -> dict[str, bool]:
    """Names that a file gives one constant value, and no other anywhere."""
    found: dict[str, bool] = {}
    times: dict[str, int] = {}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                times[name] = times.get(name, 0) + 1
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if (answer := _truth(value, {})) is not None:
                    found[name] = answer
    return {name: answer for name, answer in found.items() if times.get(name) == 1}


def _always(function: ast.FunctionDef, constants: Mapping[str, bool]) -> bool | None:
    """What a function answers whatever it is given; None where that depends, or more is done."""
    body = [it for it in function.body if not isinstance(it, ast.Expr | ast.Pass)]
    match body:
        case [*before, ast.Return(value=ast.expr() as value)] if all(
            isinstance(it, ast.Assign | ast.AnnAssign) for it in before
        ):
            return _truth(value, constants)
    return None


def _is_of_values(kind: ast.expr) -> bool:
    """Whether a class is Python's own, or is not known before the object: equality by an own class is honest."""
    match kind:
        case ast.Name(id=name):
            return name in _VALUES
        case ast.Attribute(value=ast.Name(id="self")):
            return True
        case ast.Tuple(elts=parts):
            return any(map(_is_of_values, parts))
    return False


def _truth(node: ast.expr, constants: Mapping[str, bool]) -> bool | None:
    """Whether an expression is true, where it is always the same."""
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind], keywords=[]) if _is_of_values(kind):
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return bool(parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            answer = _truth(operand, constants)
            return None if answer is None else not answer
        case ast.Name(id=name):
            return constants.get(name)
        case ast.Call(func=ast.Name(id="bool"), args=[value], keywords=[]):
            return _truth(value, constants)
        case ast.BoolOp(op=ast.Or(), values=values):
            return True if any(_truth(it, constants) for it in values) else None
    return None
