"""Scripts of Python in an agent's commands: which there are, and what they change in files, as far as literals tell."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping

from trajectories.agents.shell.words import simple_commands
from trajectories.audit.acts import FileEdit
from trajectories.audit.python_text import dotted, nodes_of, text_of

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*|ipython[0-9.]*")
_MOST_PIECES = 2_000
_MOST_WRITTEN = 10
"""Times its own length that a script is believed to write: a name may stand for one long text again and again."""


def runs_python(line: str) -> bool:
    """Whether a line of shell has Python run its standard input."""
    return any(
        _PYTHON.fullmatch(posixpath.basename(part.words[0])) and all(word.startswith("-") for word in part.words[1:])
        for part in simple_commands(line) or ()
    )


def python_text(words: tuple[str, ...]) -> str | None:
    """What ``python -c`` runs."""
    inner = next((place for place, word in enumerate(words) if _PYTHON.fullmatch(posixpath.basename(word))), None)
    if inner is None or "-c" not in words[inner:-1]:
        return None
    return words[words.index("-c", inner) + 1]


def script_edits(script: str) -> Iterator[FileEdit]:
    """The edits of files that a script makes by replacing texts, as far as its literals tell."""
    if "write" not in script:
        return
    names: dict[str, str] = {}
    path: str | None = None
    pieces: list[tuple[str, str | None, str]] = []
    found = [node for node in nodes_of(script) if isinstance(node, ast.Assign | ast.Call)]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (text := text_of(value)) is not None:
                names[name] = text
            case (
                ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open"), args=[first, *_])
                | ast.Call(func=ast.Name(id="Path") | ast.Attribute(attr="Path"), args=[first, *_])
            ):
                path = _literal(first, names) or path
            case ast.Call(func=ast.Attribute(attr="replace"), args=[old, new, *_]):
                before, after = _literal(old, names), _literal(new, names)
                if before is not None and after is not None:
                    pieces.append((path or "", before, after))
            case ast.Call(func=ast.Attribute(attr="write" | "write_text"), args=[value, *_]):
                if (text := _literal(value, names)) is not None:
                    pieces.append((path or "", None, text))
    room = _MOST_WRITTEN * len(script)
    for where, before, after in pieces[:_MOST_PIECES]:
        room -= len(before or "") + len(after)
        if room > 0 and (target := where or path):
            yield FileEdit(0, 0, target, before or "", after, whole=before is None)


def _literal(node: ast.AST, names: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call) and dotted(node).endswith("Path") and node.args:
        return _literal(node.args[0], names)
    return text_of(node)
