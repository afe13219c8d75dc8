"""Texts of M_t with a part of the reference undone, and whether such a text says anything.

Pure. Nothing that differs from M_t in white space, comments, docstrings, annotations, imports and ``__all__`` alone
says anything: no test could tell, or no test file could be imported. Nor does Python that reads a name which nothing
binds any more: any call fails by that, as any build does elsewhere.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from environments.suites.syntax import bare_lines, parsed, unless_too_deep
from prchain.core.code.kinds import language_of
from prchain.core.code.syntax_trees import syntax_tree
from sql.strength import UndoingKind

_COMMENTS = ("//", "/*", "* ", "*/")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class LineChange(NamedTuple):
    """Lines of B_t's text that became lines of M_t's; counted from 0, the ends are behind the last ones."""

    old_first: int
    old_end: int
    new_first: int
    new_end: int


class SourceFile(NamedTuple):
    """One file of the source reference. A text is None where the tree does not have the file; lines end with LF."""

    path: str
    base: str | None
    landed: str | None
    changes: tuple[LineChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Undoing:
    """`texts` are those of the files that differ from M_t, or, of a `UndoingKind.STUB`, from B_t; None: there is none.
    `line` is the first one in M_t."""

    kind: UndoingKind
    path: str
    line: int
    texts: Mapping[str, str | None]

    @property
    def place(self) -> str:
        """``path:line``."""
        return f"{self.path}:{self.line}"


def is_python(file: SourceFile) -> bool:
    """Whether a file is one of Python."""
    return language_of(file.path) == "python"


def differs(undoing: Undoing, file: SourceFile) -> bool:
    """Whether a file means something else than on M_t."""
    return meaning(file.path, undoing.texts[file.path]) != meaning(file.path, file.landed)


@lru_cache(maxsize=1024)
def meaning(path: str, text: str | None) -> bytes:
    """A digest that is the same for two texts that differ in nothing that runs."""
    if text is None:
        return b""
    tree = parsed(text) if language_of(path) == "python" else None
    found = None if tree is None else unless_too_deep(lambda: ast.dump(bare(tree)))
    if found is None:
        found = "\n".join(bare_lines(text.splitlines(), _COMMENTS))
    return sha256(found.encode("utf-8", "surrogatepass")).digest()


def bare(tree: ast.AST) -> ast.AST:
    """A tree without what `_Bare` takes out; it is changed in place."""
    found: ast.AST = _Bare().visit(tree)
    return found


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text alone, as docstrings are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@lru_cache(maxsize=1024)
def unbound(text: str) -> frozenset[str]:
    """Names that a text of Python reads and nothing in it binds, those of builtins too; attributes with a dot before.

    Nothing is said of a text that is too deep, or of names where it imports all of a module.
    """
    return unless_too_deep(lambda: _unbound(text)) or frozenset()


def _unbound(text: str) -> frozenset[str]:
    tables = list(_tables(symtable.symtable(text, "text", "exec")))
    bound = {it.get_name() for it in tables[0].get_symbols() if it.is_assigned() or it.is_imported()}
    read = set()
    for table in tables:
        for it in table.get_symbols():
            if it.is_global() and it.is_assigned():
                bound.add(it.get_name())
            if it.is_global() and it.is_referenced():
                read.add(it.get_name())
    attributes, members = set[str](), set[str]()
    for node in ast.walk(syntax_tree(text)):
        if isinstance(node, ast.Attribute):
            (members if isinstance(node.ctx, ast.Store) else attributes).add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            members.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            members.add(node.id)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            read.clear()
            bound = set()
    return frozenset([*(read - bound), *(f".{name}" for name in attributes - members)])


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


class _Bare(ast.NodeTransformer):
    """Takes docstrings, annotations, imports and ``__all__`` out. Annotated names of classes stay: dataclasses make
    fields of them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: Function) -> ast.AST:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return self.generic_visit(_without_docstring(node))

    def visit_Import(self, node: ast.Import) -> None:
        """An import that can go alone is for annotations, or for others to import."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """As `visit_Import`."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        match node.targets:
            case [ast.Name(id="__all__")]:
                return None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.generic_visit(_without_docstring(node))

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.generic_visit(_without_docstring(node))


def _without_docstring(node: ast.Module | ast.ClassDef | Function) -> ast.Module | ast.ClassDef | Function:
    if node.body and is_text(node.body[0]):
        node.body = node.body[1:]
    return node
