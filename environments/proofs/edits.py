"""Texts of M_t with a part of the reference undone, and whether such a text says anything.

Pure. Nothing that differs from M_t in white space, comments, docstrings and annotations alone says anything: no test
could tell. Nor does Python that reads a name which nothing binds any more: any call fails by that, as any build does
elsewhere.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from environments.suites.syntax import bare_lines, parsed, unless_too_deep
from prchain.core.code.kinds import language_of
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


def meaning(path: str, text: str | None) -> object:
    """The same for two texts that differ in nothing that runs."""
    if text is None:
        return None
    tree = parsed(text) if language_of(path) == "python" else None
    if tree is not None and (found := unless_too_deep(lambda: ast.dump(bare(tree)))) is not None:
        return found
    return bare_lines(text.splitlines(), _COMMENTS)


def bare(tree: ast.AST) -> ast.AST:
    """A tree without docstrings and annotations; it is changed in place."""
    found: ast.AST = _Bare().visit(tree)
    return found


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text alone, as docstrings are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def unbound(text: str) -> frozenset[str]:
    """Names that a text of Python reads and nothing in it binds, those of builtins too; attributes with a dot before.

    Nothing is said of a text that is too deep, or imports all names of a module.
    """
    return unless_too_deep(lambda: frozenset(_unbound(text))) or frozenset()


def _unbound(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    tables = list(_tables(symtable.symtable(text, "text", "exec")))
    bound = {it.get_name() for it in tables[0].get_symbols() if it.is_assigned() or it.is_imported()}
    for table in tables[1:]:
        bound |= {it.get_name() for it in table.get_symbols() if it.is_declared_global() and it.is_assigned()}
    if not any(isinstance(it, ast.ImportFrom) and it.names[0].name == "*" for it in ast.walk(tree)):
        for table in tables:
            for it in table.get_symbols():
                if it.is_referenced() and it.is_global() and it.get_name() not in bound:
                    yield it.get_name()
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    yield from (f".{name}" for name in attributes - set(_members(tree)))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def _members(tree: ast.AST) -> Iterator[str]:
    """Names that a text gives to attributes, or to what may be read as one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


class _Bare(ast.NodeTransformer):
    """Takes docstrings and annotations out. Annotated names of classes stay: dataclasses make fields of them."""

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

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.generic_visit(_without_docstring(node))

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.generic_visit(_without_docstring(node))


def _without_docstring(node: ast.Module | ast.ClassDef | Function) -> ast.Module | ast.ClassDef | Function:
    if node.body and is_text(node.body[0]):
        node.body = node.body[1:]
    return node
