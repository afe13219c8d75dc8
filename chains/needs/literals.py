"""String literals: of a file, and those that the source patch adds, as the fixed parts of what it says."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from chains.needs.python_source import Reader, parsed
from chains.needs.python_tests import added_lines
from prchain.core.code.lexing import family_of, lex
from prchain.core.git.patches import FilePatch

LONGEST_READ = 2_000
"""Characters of a literal that are compared; the rest of a page of output is like its beginning."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\$?\{[^{}\n]{0,80}\}|%(?:\(\w+\))?[-#0 +]*[\d*]*(?:\.\d+)?[sdrifgxXeEcavqwtT%]")


def literals_of(text: str, path: str) -> list[str]:
    """The string literals of a file: with Python's rules where it parses, neighbours joined; docstrings are none."""
    tree = parsed(text) if path.endswith(".py") else None
    if tree is None:
        return list(lex(text.split("\n"), path).strings)
    return ["\0".join(parts) for _, parts in python_literals(tree)]


def texts_held(
    texts: Collection[str], files: Iterable[tuple[Collection[str], bytes]], is_source: Callable[[str], bool]
) -> set[str]:
    """Those of some texts that a literal of a source file holds; `files` as `GitRepository.text_files` gives them."""
    held: set[str] = set()
    words: dict[str, bytes] = {text: max(re.findall(r"\w+", text) or [""], key=len).encode() for text in texts}
    by_word: dict[bytes, set[str]] = defaultdict(set)
    for text, word in words.items():
        by_word[word].add(text)
    for paths, content in files:
        path = next(filter(is_source, paths), None)
        if path is None:
            continue
        asked = {text for word, group in by_word.items() if word in content for text in group} - held
        if asked:
            values = literals_of(content.decode("utf-8", "replace"), path)
            held |= {text for text in asked if any(text in value for value in values)}
    return held


def templates_of(patches: Sequence[FilePatch], landed: Reader) -> Iterator[tuple[str, ...]]:
    """The literals that the source patch adds, each as its fixed parts."""
    for patch in patches:
        if family_of(patch.path) is None:
            continue
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is None:
            for value in lex(patch.added, patch.path).strings:
                if parts := (*_fixed_parts(value[:LONGEST_READ]),):
                    yield parts
            continue
        added = added_lines(patch)
        for node, literal in python_literals(tree):
            parts = tuple(part for piece in literal for part in _fixed_parts(piece[:LONGEST_READ]))
            if parts and not added.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                yield parts


def _fixed_parts(text: str) -> tuple[str, ...]:
    """The parts of a literal between placeholders of `str.format` and ``%``."""
    return tuple(part for part in _PLACEHOLDER.split(text) if part.strip())


def python_literals(tree: ast.AST) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """Every string of a tree that is no docstring, as its constant parts, `sayable`."""
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(it) for it in node.values}
            yield (
                node,
                tuple(
                    sayable(it.value)
                    for it in node.values
                    if isinstance(it, ast.Constant) and isinstance(it.value, str)
                ),
            )
        elif isinstance(node, ast.Constant) and id(node) not in prose and id(node) not in inside:
            if isinstance(node.value, str):
                yield node, (sayable(node.value),)
            elif isinstance(node.value, bytes):
                yield node, (node.value.decode("latin-1"),)


def sayable(text: str) -> str:
    """A text that can be stored and told: half of a pair of surrogates, which UTF-8 has not, as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
