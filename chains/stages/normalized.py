"""Python code without what does not run: docstrings, annotations, and the imports that only annotations need.

Parsing drops comments and white space. Two texts that are equal after that do the same.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from prchain.core.code.lexing import is_prose
from prchain.core.code.syntax_trees import syntax_tree
from prchain.core.git import FilePatch
from prchain.core.git.patches import Hunk

_STATEMENT = re.compile(
    r"^\s*(?:(?:async )?(?:if|for|while|with|elif|except)\b.*:\s*$|(?:return|yield|raise|assert|del)\b.*[(\[.=_]"
    r"|[\w.\[\]'\"]+\s*(?:[-+*/|&]?=)\s*\S.*|[\w.]+\(.*\)\s*$)"
)
"""Lines that hardly ever occur in docstrings and signatures: most patches with such a line are not parsed."""


_FEWEST_SENTENCES = 2
"""Lines of prose that a hunk with statements needs to be one of a docstring."""


def may_be_annotation_only(files: Sequence[FilePatch]) -> bool:
    """Whether a patch may change docstrings and annotations only, by its lines: a cheap first check."""
    return all(file.path.endswith((".py", ".pyi")) and all(map(_may_be_dress, file.hunks)) for file in files)


def _may_be_dress(hunk: Hunk) -> bool:
    changed = [line[1:] for line in hunk.lines if line[0] != " "]
    # A docstring may hold statements as an example; sentences stand around it.
    return not any(map(_STATEMENT.match, changed)) or sum(map(is_prose, changed)) >= _FEWEST_SENTENCES


def same_normalized(before: str, after: str) -> bool:
    """Whether two Python texts differ at most in docstrings, annotations and typing imports; false if not Python."""
    first, second = _normalized(before), _normalized(after)
    return first is not None and first == second


def _normalized(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the parsed text's own escapes
            tree = _Normalizer().visit(syntax_tree(text))
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_TYPING = {"typing", "typing_extensions", "collections.abc", "__future__"}


class _Normalizer(ast.NodeTransformer):
    def visit_Module(self, node: ast.Module) -> ast.Module:
        self._body(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._body(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._body(node)
        node.returns = None
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self._body(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        self.generic_visit(node)
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        return None if node.module in _TYPING else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse:
            return None
        self.generic_visit(node)
        return node

    def _body(self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            del node.body[0]
        self.generic_visit(node)
        node.body = [statement for statement in node.body if not isinstance(statement, ast.Pass)]
