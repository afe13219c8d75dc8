"""Python's syntax trees of texts that nobody has vetted: one may be no Python, or be nested deeper than we can go."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from prchain.core.code.syntax_trees import syntax_tree

T = TypeVar("T")


def unless_too_deep(work: Callable[[], T]) -> T | None:
    """What `work` gives; None where it needs a syntax tree that the text does not have, or that is too deep to walk."""
    try:
        return work()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a text; None where it is none of this Python's."""
    return unless_too_deep(lambda: syntax_tree(text))


def bare_lines(lines: list[str], comments: tuple[str, ...]) -> list[str]:
    """Lines of a text without white space, and without those that are comments: what is compared without a tree."""
    return [bare for line in lines if (bare := "".join(line.split())) and not line.strip().startswith(comments)]
