"""Python whose comparison makes equal what it compares, or whose copy is the object itself.

A comparison that takes over what the other holds, and a reducer that only puts the object aside, say what tests ask for
whatever was computed. What a comparison keeps of its own object is none: a hash, a value that is made once.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from trajectories.audit.python_text import dotted, text_of

_Function = ast.FunctionDef | ast.Lambda

_COMPARES = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_COPIES = frozenset(
    ["__reduce__", "__reduce_ex__", "__getstate__", "__deepcopy__", "__copy__", "__getnewargs__", "__getnewargs_ex__"]
)
_FILLS = frozenset(
    [
        *["update", "extend", "append", "appendleft", "insert", "add", "setdefault", "clear", "put", "push"],
        *["__init__", "__setstate__", "__setattr__", "__setitem__", "__ior__", "__iadd__", "__iand__"],
        *["intersection_update", "difference_update", "symmetric_difference_update"],
    ]
)
"""Methods that put something into an object."""
_EMPTIES = frozenset({"clear", "pop", "popitem"})
_CLASSES = frozenset({"object", "dict", "list", "set", "type"})
_VIEWS = frozenset({"vars", "getattr", "super"})
"""Give the object itself, or a part of it."""
_MOST_STEPS = 20


def live_objects(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The places where that is done, and where a class of others gets another comparison. Pure, raises nothing."""
    given = [*_given(nodes)]
    if not given:
        return
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    helpers = [*functions.values()] if len(functions) < 1_000 else []
    crossing = {it.name for it in helpers if _crosses(it, (), is_comparison=False)}
    keeping = {it.name for it in helpers if _keeps(it, ())}
    told: dict[tuple[bool, _Function], bool] = {}
    for name, value, node in given:
        function = functions.get(value.id) if isinstance(value, ast.Name) else value
        if not isinstance(function, ast.FunctionDef | ast.Lambda):
            continue
        compares = name in _COMPARES
        if (compares, function) not in told:
            told[compares, function] = _crosses(function, crossing) if compares else _keeps(function, keeping)
        if told[compares, function]:
            yield node
    metaclasses = {
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        and any(dotted(it) == "type" or dotted(it).endswith("Meta") for it in node.bases)
    }
    for node in nodes:
        if any(_is_of_others(it, metaclasses) for it in _compared_anew(node)):
            yield node


def _given(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """What is given as a comparison or a reducer, whatever way: its name, the value and the place."""
    wanted = _COMPARES | _COPIES
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) if name in wanted:
                yield name, node, node
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if (name := _last_name(target)) in wanted:
                        yield name, value, node
            case ast.AnnAssign(target=target, value=ast.expr() as value) if (name := _last_name(target)) in wanted:
                yield name, value, node
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if (name := text_of(key) or "") in wanted:
                        yield name, value, node
            case ast.Call(args=args, keywords=keywords):
                for first, second in pairwise(args):
                    if (name := text_of(first) or "") in wanted:
                        yield name, second, node
                yield from ((it.arg, it.value, node) for it in keywords if it.arg in wanted)
                if dotted(node.func).rpartition(".")[2] == "pickle" and len(args) > 1:
                    yield "__reduce__", args[1], node


def _last_name(target: ast.expr) -> str:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=key):
            return text_of(key) or ""
    return ""


def _compared_anew(node: ast.AST) -> Iterator[ast.expr]:
    """The classes that get another comparison there; for a class that is made by a call, the call."""
    match node:
        case ast.Assign(targets=targets):
            yield from (it.value for it in targets if isinstance(it, ast.Attribute) and it.attr in _COMPARES)
        case ast.Call(func=ast.Name(id="type"), args=[_, _, ast.Dict(keys=keys)]) if any(
            text_of(key) in _COMPARES for key in keys
        ):
            yield node
        case ast.Call(func=ast.Name(id="type"), args=[_, _, ast.Call(func=ast.Name(id="dict"), keywords=keywords)]):
            yield from (node for it in keywords if it.arg in _COMPARES)
        case ast.Call(args=[kind, name, _]) if text_of(name) in _COMPARES and dotted(node.func).endswith("setattr"):
            yield kind
        case ast.Call(args=[kind, name, _]) if text_of(name) in _COMPARES and dotted(node.func).endswith("__setattr__"):
            yield kind


def _is_of_others(kind: ast.expr, metaclasses: Collection[str]) -> bool:
    """Whether a class is reached by an object of it, made by a call, or the class of classes."""
    match kind:
        case ast.Call(func=ast.Name(id="type")) | ast.Attribute(attr="__class__"):
            return True
        case ast.Name(id=name):
            return name in metaclasses
    return False


def _parameters(function: _Function) -> list[str]:
    return [it.arg for it in (*function.args.posonlyargs, *function.args.args)]


def _body(function: _Function) -> list[ast.AST]:
    statements = function.body if isinstance(function, ast.FunctionDef) else [function.body]
    return [node for statement in statements for node in ast.walk(statement)]


def _set_names(node: ast.AST) -> tuple[list[ast.expr], ast.expr | None]:
    """Single targets of an assignment in the wider sense, and what they get."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            targets = [target]
        case ast.AugAssign(target=target, value=value):
            targets = [target]
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            targets = [target]
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            targets = [target]
        case ast.Delete(targets=targets):
            return targets, None
        case _:
            return [], None
    flat: list[ast.expr] = []
    waiting = [*targets]
    while waiting:
        match waiting.pop():
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                waiting += parts
            case ast.Starred(value=part):
                waiting.append(part)
            case target:
                flat.append(target)
    return flat, value


def _root(node: ast.AST) -> str:
    """The name of which an expression is a part, or the object itself; empty where it is made anew."""
    for _ in range(_MOST_STEPS):
        match node:
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
                node = value
            case ast.Call(func=ast.Name(id="super")):
                return "super"
            case ast.Call(func=ast.Name(id=name), args=[of, *_]) if name in _VIEWS:
                node = of
            case ast.IfExp(body=value):
                node = value
            case ast.BoolOp(values=[*_, value]):
                node = value
            case ast.Name(id=name):
                return name
            case _:
                return ""
    return ""


class _ComparedSides:
    """Which of two compared objects the names of a function are, and whose content they have."""

    def __init__(self, first: str, second: str, body: Sequence[ast.AST]) -> None:
        self._of: dict[str, str] = {first: first, second: second, "super": first}
        self._content: dict[str, set[str]] = {first: {first}, second: {second}, "super": {first}}
        for _ in range(2):  # a loop may use what it sets further down
            for node in body:
                targets, value = _set_names(node)
                for target in targets if value is not None else ():
                    if isinstance(target, ast.Name) and value is not None:
                        self._content.setdefault(target.id, set()).update(self.content(value))
                        if not isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign):
                            continue
                        if side := self.of(value):
                            self._of.setdefault(target.id, side)
                        elif target.id in self._of:
                            self._of[target.id] = ""

    def of(self, node: ast.AST) -> str:
        """The object that an expression is, or is a part of; empty for none."""
        return self._of.get(_root(node), "")

    def content(self, *nodes: ast.AST) -> set[str]:
        """The objects whose content an expression may have."""
        found: set[str] = set()
        waiting = [*nodes]
        while waiting:
            match waiting.pop():
                case ast.Call(func=ast.Name(id="id" | "type" | "len")):
                    pass
                case ast.Name(id=name):
                    found |= self._content.get(name, set())
                case node:
                    waiting += ast.iter_child_nodes(node)
        return found


def _crosses(function: _Function, crossing: Collection[str], *, is_comparison: bool = True) -> bool:
    """Whether a function of two objects puts content of one into the other; a comparison must not change the second one
    at all, but by what it makes of that one itself."""
    names = _parameters(function)
    if len(names) < 2:
        return False
    first, second = names[:2]
    body = _body(function)
    sides = _ComparedSides(first, second, body)
    opposite = {first: second, second: first}
    for node in body:
        targets, value = _set_names(node)
        changed = {sides.of(it) for it in targets if isinstance(it, ast.Attribute | ast.Subscript)} - {""}
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in opposite:
            changed = {node.target.id}
        if changed:
            content = sides.content(value) if value is not None else set()
            if any(opposite[it] in content for it in changed):
                return True
            if is_comparison and (len(changed) > 1 or (second in changed and second not in content)):
                return True
        if isinstance(node, ast.Call) and _call_crosses(node, sides, opposite, crossing):
            return True
    return False


def _call_crosses(
    node: ast.Call, sides: _ComparedSides, opposite: Mapping[str, str], crossing: Collection[str]
) -> bool:
    arguments = [*node.args, *(it.value for it in node.keywords)]
    match node.func:
        case ast.Name(id=name):
            if name == "setattr" and arguments and (side := sides.of(arguments[0])):
                return opposite[side] in sides.content(*arguments[1:]) or side != next(iter(opposite))
            return name in crossing and len(sides.content(*arguments)) > 1
        case ast.Attribute(value=value, attr=name):
            if name in crossing and len(sides.content(value, *arguments)) > 1:
                return True
            side = sides.of(value)
            if name in _EMPTIES and side and isinstance(value, ast.Name):
                return True
            if name not in _FILLS:
                return False
            if not side and arguments and (side := sides.of(arguments[0])):  # dict.update(self, other)
                arguments = arguments[1:]
            return bool(side) and opposite[side] in sides.content(*arguments)
    return False


def _keeps(function: _Function, keeping: Collection[str]) -> bool:
    """Whether a function puts its first object into something that stays."""
    names = _parameters(function)
    if not names:
        return False
    own = names[0]
    body = _body(function)
    local = _made_here(function, body)

    def stays(place: ast.AST) -> bool:
        inner = next((it for it in _chain(place) if isinstance(it, ast.Call)), None)
        if inner is not None:
            return dotted(inner.func) in {"type", "globals", "vars", "__import__", "import_module"}
        root = _root(place)
        return bool(root) and root not in local

    for node in body:
        targets, value = _set_names(node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None and _holds(value, own):
            for it in targets:
                if isinstance(it, ast.Attribute | ast.Subscript) and stays(it.value):
                    return True
        match node:
            case ast.Lambda(args=ast.arguments(args=[]), body=ast.Name(id=name)) if name == own:
                return True
            case ast.Call(func=ast.Name(id="setattr"), args=[place, _, value]) if _holds(value, own) and stays(place):
                return True
            case ast.Call(func=func, args=args) if dotted(func).rpartition(".")[2] in keeping and (
                any(_holds(it, own) for it in args[:1]) or (not args and dotted(func).startswith(f"{own}."))
            ):
                return True
            case ast.Call(func=ast.Attribute(value=place, attr=name), args=args) if (
                name in _FILLS and name != "__init__" and args
            ):
                of_class = isinstance(place, ast.Name) and place.id in _CLASSES  # dict.update(it, ...)
                if any(_holds(it, own) for it in args[of_class:]) and stays(args[0] if of_class else place):
                    return True
    return False


def _chain(node: ast.AST) -> Iterator[ast.AST]:
    for _ in range(_MOST_STEPS):
        yield node
        match node:
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                node = value
            case _:
                return


def _made_here(function: _Function, body: Sequence[ast.AST]) -> set[str]:
    """Names of what ends with the call: made in it, or given to it and not kept by a default."""
    parameters, defaults = _parameters(function), function.args.defaults
    kept = {
        name
        for name, default in zip(parameters[::-1], defaults[::-1], strict=False)
        if not isinstance(default, ast.Constant)
    }
    local = {*parameters[1:], "super"} - kept
    for node in body:
        targets, value = _set_names(node)
        if value is not None and _root(value) in {"", *local}:
            local |= {it.id for it in targets if isinstance(it, ast.Name)}
    return local - {name for node in body if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}


def _holds(node: ast.AST, own: str, depth: int = 0) -> bool:
    """Whether a value is the object, its dictionary, or a plain container or reference of these."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="__dict__"):
            return name == own
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return depth < _MOST_STEPS and any(_holds(it, own, depth + 1) for it in parts)
        case ast.Call(func=func, args=[of, *_]) if dotted(func).rpartition(".")[2] in {"ref", "proxy", "vars", "cast"}:
            return depth < _MOST_STEPS and _holds(of, own, depth + 1)
        case ast.Lambda(body=body):
            return depth < _MOST_STEPS and _holds(body, own, depth + 1)
    return False
