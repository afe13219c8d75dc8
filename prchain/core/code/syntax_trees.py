"""Python's syntax trees, made by one thread at a time.

CPython counts how deep it is in a tree once for all threads (gh-106905, mended in 3.11.8 and 3.12.2): two threads that
parse at the same time can end with ``SystemError: AST constructor recursion depth mismatch``.
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def syntax_tree(text: str | bytes) -> ast.Module:
    """The syntax tree of a module. Raises `SyntaxError`, `ValueError`, `RecursionError` and `MemoryError`."""
    with _ONE_AT_A_TIME:
        return ast.parse(text)
