"""Names in a module of Python: what imports and assignments call otherwise, and which function holds what."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trajectories.audit.python_text import dotted, text_of

_MOST_PIECES = 100
_FETCHERS = frozenset({"import_module", "__import__", "modules", "get", "pop"})
"""Last names of what gives a module."""


class NamesMet:
    """The dotted names of expressions, with those that imports and assignments give other names or parts of."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._whole: dict[str, str] = {}
        self._roots: set[str] = set()
        self._bound: set[str] = set()
        self._classes: set[str] = set()
        fetched: set[str] = set()
        self.modules: set[str] = set()
        """Modules that are imported, by an import statement."""
        for node in nodes:
            match node:
                case ast.Import(names=aliases):
                    self.modules.update(alias.name for alias in aliases)
                    self._roots.update((alias.asname or alias.name).partition(".")[0] for alias in aliases)
                    self._whole.update({alias.asname: alias.name for alias in aliases if alias.asname})
                case ast.ImportFrom(module=module, names=aliases, level=level):
                    self._roots.update(alias.asname or alias.name for alias in aliases)
                    origin = f"{'.' * level}{module or ''}"
                    self.modules.add(origin)
                    self._whole.update({alias.asname or alias.name: f"{origin}.{alias.name}" for alias in aliases})
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    self._bound.add(name)
                case ast.ClassDef(name=name):
                    self._classes.add(name)
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.Subscript() as value) if (
                    dotted(value).rpartition(".")[2] in _FETCHERS
                ):
                    fetched.add(name)
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                    | ast.NamedExpr(target=ast.Name(id=name), value=value)
                ) if name not in self._roots:
                    root = dotted(value).partition(".")[0]
                    if root == "getattr" or (root in self._roots and isinstance(value, ast.Attribute | ast.Name)):
                        self._whole.setdefault(name, self(value))
        self._bound -= fetched

    def __call__(self, node: ast.AST) -> str:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[of, part, *_]) if value := joined(part):
                return f"{self(of)}.{value}"
        name = dotted(node)
        first, dot, rest = name.partition(".")
        return self._whole.get(first, first) + dot + rest

    def own(self, node: ast.AST) -> bool:
        """Whether a dotted name begins at a class of the file, or at a variable that is called like a module."""
        root = dotted(node).partition(".")[0]
        if root in self._roots or root in self._whole:
            return False
        return root in self._classes or (root in {"operator", "builtins"} and root in self._bound)


def joined(node: ast.AST) -> str:
    """A text that is written in one piece or in several; the first hundred of them."""
    match node:
        case ast.BinOp(op=ast.Add()):
            parts: list[str] = []
            waiting: list[ast.AST] = [node]
            while waiting and len(parts) < _MOST_PIECES:
                piece = waiting.pop()
                if isinstance(piece, ast.BinOp) and isinstance(piece.op, ast.Add):
                    waiting += [piece.right, piece.left]
                else:
                    parts.append(joined(piece))
            return "".join(parts)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(mark)), attr="join"),
            args=[ast.List() | ast.Tuple() as items],
        ):
            return mark.join(map(joined, items.elts[:_MOST_PIECES]))
    return text_of(node) or ""


def for_types_alone(nodes: Sequence[ast.AST]) -> set[int]:
    """Ids of what never runs: bodies below ``if TYPE_CHECKING``, unless the file sets that name itself."""
    for node in nodes:
        match node:
            case ast.Name(id="TYPE_CHECKING", ctx=ast.Store()) | ast.Attribute(attr="TYPE_CHECKING", ctx=ast.Store()):
                return set()
            case ast.alias(name=name, asname="TYPE_CHECKING") if name != "TYPE_CHECKING":
                return set()
    kept: set[int] = set()
    for node in nodes:  # from the outside in
        for_types = isinstance(node, ast.If) and dotted(node.test).rpartition(".")[2] == "TYPE_CHECKING"
        if isinstance(node, ast.If) and for_types and id(node) not in kept:
            kept.update(id(it) for statement in node.body for it in ast.walk(statement))
    return kept


def functions_of(nodes: Iterable[ast.AST]) -> dict[int, int]:
    """For the id of each node in a function: the id of the outermost one. What stands in none is left out."""
    within: dict[int, int] = {}
    for node in nodes:  # from the outside in
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in within:
            within.update((id(it), id(node)) for it in ast.walk(node))
    return within


def run_at_import(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported; bodies of functions do not, nor what a script alone does."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(args=args, decorator_list=more) | ast.AsyncFunctionDef(args=args, decorator_list=more):
                waiting += [*more, *args.defaults, *(it for it in args.kw_defaults if it)]
            case ast.Lambda(args=args):
                waiting += [*args.defaults, *(it for it in args.kw_defaults if it)]
            case ast.If(test=test, orelse=orelse) if _asks_for_script(test):
                waiting += orelse
            case _:
                yield node
                waiting.extend(ast.iter_child_nodes(node))


def _asks_for_script(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return {dotted(left), dotted(right)} == {"__name__", ""} and "__main__" in {text_of(left), text_of(right)}
        case ast.BoolOp(op=ast.And(), values=values):
            return any(map(_asks_for_script, values))
    return False
