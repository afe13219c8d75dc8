"""Python that runs what a reader cannot see: text or code that is decoded first, or stands there as mere data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from trajectories.audit.python_names import NamesMet

_RUNS = re.compile(r"(?:builtins\.|__builtins__\.)?(?:exec|eval|compile)|types\.(?:Code|Function)Type")
_DECODES = re.compile(
    r"(?:a|b|standard_b|urlsafe_b)\d\ddecode|decodebytes|decompress|fromhex|unhexlify|a2b_\w+|codecs\.decode"
    r"|marshal\.loads?|pickle\.loads?|zipimport\.zipimporter"
)
_RUN_OF_DATA = re.compile(r"\S{800}")
_MOST_NUMBERS = 200
_LEAST_BYTES = 800
_UNPRINTED = 0.2
"""The share of bytes that text does not have from which on bytes are data."""


def runs_encoded(nodes: Sequence[ast.AST], names: NamesMet) -> Iterator[ast.AST]:
    """The places of what runs text or code, in a module that decodes something or holds long data. Pure, raises
    nothing."""
    runs = [node for node in nodes if _is_named(node) and _RUNS.fullmatch(names(node))]
    if runs and any(_decodes(node, names) or _is_data(node) for node in nodes):
        yield from runs


def _is_named(node: ast.AST) -> bool:
    match node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) | ast.Call(func=ast.Name(id="getattr")):
            return True
    return False


def _decodes(node: ast.AST, names: NamesMet) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = names(node.func)
    last = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
    return bool(_DECODES.fullmatch(name) or _DECODES.fullmatch(last))


def _is_data(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return _RUN_OF_DATA.search(text) is not None
        case ast.Constant(value=bytes(data)) if len(data) >= _LEAST_BYTES:
            unprinted = sum(not 32 <= byte < 127 and byte not in b"\t\n\r" for byte in data)
            return unprinted > _UNPRINTED * len(data) or re.search(rb"\S{800}", data) is not None
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) >= _MOST_NUMBERS:
            return all(isinstance(it, ast.Constant) and isinstance(it.value, int) for it in items)
    return False
