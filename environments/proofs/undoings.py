"""What can be undone of a stage's reference: hunks of it, and bodies of functions that it changes.

Pure: from the texts of B_t and M_t to `Undoing`s, each some files with another text. Only program text is undone, and
nothing that differs from M_t in white space, comments, docstrings and annotations alone: no test could tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import NamedTuple

from environments.suites.syntax import bare_lines, parsed, unless_too_deep
from prchain.core.code.inline_tests import inline_test_lines
from prchain.core.code.kinds import language_of
from sql.strength import UndoingKind

MOST_HUNKS = 8
MOST_STUBS = 8
"""Of `UndoingKind.RAISES` and `UndoingKind.RETURNS_NONE` together; the first is a word on reach alone."""

_CONTEXT = 3
"""Lines between two changes that make them two hunks, as git prints them."""

_MOST_MERGED = 5
"""Neighbours that a hunk is merged with before all of the file's are."""

_COMMENTS = ("//", "/*", "* ", "*/")
_BODIES = {
    UndoingKind.RETURNS_NONE: "return None",
    UndoingKind.RAISES: "raise NotImplementedError",
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


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


def undoings(files: Sequence[SourceFile], seed: str) -> list[Undoing]:
    """What to undo, in the order in which it is tried: all new functions at once, then hunks and functions by turns, at
    most so many of each, drawn by `seed`."""
    draw = Random(seed)
    # Nothing of a type stub runs.
    code = [file for file in files if language_of(file.path) is not None and not file.path.endswith(".pyi")]
    hunks = [it for file in code for it in _hunks(file) if _differs(it, file)]
    python = [file for file in code if language_of(file.path) == "python"]
    functions = [stubs for file in python for stubs in _stubs(file)]
    draw.shuffle(hunks)
    draw.shuffle(functions)
    stubs = [it for function in functions for it in function][:MOST_STUBS]
    found = [it for pair in zip_longest(hunks[:MOST_HUNKS], stubs) for it in pair if it is not None]
    seen: set[tuple[tuple[str, str | None], ...]] = set()
    unique = _all_new(python)
    for it in found:
        key = tuple(sorted(it.texts.items(), key=lambda item: item[0]))
        if key not in seen:
            seen.add(key)
            unique.append(it)
    return unique


def _hunks(file: SourceFile) -> Iterator[Undoing]:
    """One for each hunk of the file's patch; a file that comes or goes is one."""
    if file.base is None or file.landed is None:
        yield Undoing(UndoingKind.HUNK, file.path, 1, {file.path: file.base})
        return
    old, new = file.base.split("\n"), file.landed.split("\n")
    inline = inline_test_lines(file.landed) if language_of(file.path) == "rust" else frozenset[int]()
    groups: list[list[LineChange]] = []
    for change in file.changes:
        if groups and change.new_first - groups[-1][-1].new_end <= 2 * _CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in _that_parse(file, groups):
        written = {line for change in group for line in _lines_of(change) if new[line - 1 : line] not in ([], [""])}
        if inline and written <= inline:
            continue
        yield Undoing(UndoingKind.HUNK, file.path, group[0].new_first + 1, {file.path: _reverted(old, new, group)})


def _reverted(old: Sequence[str], new: Sequence[str], group: Sequence[LineChange]) -> str:
    first, last = group[0], group[-1]
    return "\n".join([*new[: first.new_first], *old[first.old_first : last.old_end], *new[last.new_end :]])


def _that_parse(file: SourceFile, groups: Sequence[list[LineChange]]) -> list[list[LineChange]]:
    """The hunks, each with as many beside it as it takes that the text without them is Python again: what has no syntax
    says nothing of the tests. One that never is goes."""
    if language_of(file.path) != "python" or parsed(file.landed or "") is None:
        return list(groups)
    old, new = (file.base or "").split("\n"), (file.landed or "").split("\n")
    found: list[list[LineChange]] = []
    for place in range(len(groups)):
        windows = (
            [change for group in groups[first : first + size] for change in group]
            for size in (*range(1, _MOST_MERGED), len(groups))
            for first in range(min(place, len(groups) - size), max(-1, place - size), -1)
        )
        merged = next((it for it in windows if it and parsed(_reverted(old, new, it)) is not None), None)
        if merged is not None and merged not in found:
            found.append(merged)
    return found


def _lines_of(change: LineChange) -> set[int]:
    """The lines of M_t that a change touches, from 1; where it takes lines away, those beside the place."""
    return set(range(change.new_first + 1, change.new_end + 1)) or {change.new_first, change.new_first + 1}


def _differs(undoing: Undoing, file: SourceFile) -> bool:
    text = undoing.texts[file.path]
    return _meaning(file.path, text) != _meaning(file.path, file.landed)


def _meaning(path: str, text: str | None) -> object:
    """The same for two texts that differ in nothing that runs."""
    if text is None:
        return None
    tree = parsed(text) if language_of(path) == "python" else None
    if tree is not None and (dumped := unless_too_deep(lambda: ast.dump(_Bare().visit(tree)))) is not None:
        return dumped
    return bare_lines(text.splitlines(), _COMMENTS)


class _Bare(ast.NodeTransformer):
    """Takes docstrings and annotations out. Annotated names of classes stay: dataclasses make fields of them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: _Function) -> ast.AST:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return self.generic_visit(_without_docstring(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.generic_visit(_without_docstring(node))

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.generic_visit(_without_docstring(node))


def _without_docstring(node: ast.Module | ast.ClassDef | _Function) -> ast.Module | ast.ClassDef | _Function:
    if node.body and _is_text(node.body[0]):
        node.body = node.body[1:]
    return node


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _stubs(file: SourceFile) -> list[list[Undoing]]:
    """For each function that the reference adds or changes, its stubs; of functions in functions the inner ones."""
    if file.landed is None:
        return []
    lines = range(1, file.landed.count("\n") + 2)
    changed = set(lines) if file.base is None else set[int]().union(*map(_lines_of, file.changes))
    before = file.base or ""
    meanings = {name: _dumped(before, node) for name, node in _functions_of(before)}
    found = []
    for name, node in _functions_of(file.landed):
        if not changed & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            continue
        if not _works(node) or meanings.get(name) == _dumped(file.landed, node):
            continue
        texts = [(kind, _stubbed(file.landed, node, body)) for kind, body in _BODIES.items()]
        found.append(
            [Undoing(kind, file.path, node.lineno, {file.path: text}) for kind, text in texts if text is not None]
        )
    return found


def _all_new(files: Sequence[SourceFile]) -> list[Undoing]:
    """M_t, with all functions that the reference adds returning None; none where it adds none that does anything."""
    texts: dict[str, str | None] = {}
    lines = []
    for file in files:
        known = {name for name, _ in _functions_of(file.base or "")}
        new = [node for name, node in _functions_of(file.landed or "") if name not in known and _works(node)]
        text = file.landed or ""
        for node in new:  # the lines stay as many
            text = _stubbed(text, node, _BODIES[UndoingKind.RETURNS_NONE]) or text
        if text != (file.landed or ""):
            texts[file.path] = text
            lines.append(new[0].lineno)
    return [Undoing(UndoingKind.NEW_RETURN_NONE, next(iter(texts)), lines[0], texts)] if texts else []


def _functions_of(text: str) -> list[tuple[str, _Function]]:
    """`_functions` of a text; none where it is no Python."""
    tree = parsed(text)
    return [] if tree is None else unless_too_deep(lambda: list(_functions(tree))) or []


def _functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, _Function]]:
    """The functions of a module and of its classes, by their names with dots."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")
        elif isinstance(child, _Function):
            yield f"{outer}{child.name}", child
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, outer)


def _dumped(text: str, node: _Function) -> object:
    dumped = unless_too_deep(lambda: ast.dump(_Bare().visit(ast.parse(ast.unparse(node)))))
    return bare_lines(text.split("\n")[node.lineno - 1 : node.end_lineno], ("#",)) if dumped is None else dumped


def _works(node: _Function) -> bool:
    """Whether its body does something: declarations of a protocol, overloads and abstract methods do not."""
    body = node.body[1:] if _is_text(node.body[0]) else node.body
    return not all(
        isinstance(it, ast.Pass | ast.Raise)
        or (isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant))
        or (isinstance(it, ast.Return) and (it.value is None or _is_none(it.value)))
        for it in body
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _stubbed(text: str, node: _Function, statement: str) -> str | None:
    """The text with another body for one function; its lines stay as many."""
    lines = text.split("\n")
    first, last = node.body[0], node.body[-1]
    place, end = first.lineno - 1, last.end_lineno or last.lineno
    head = lines[place].encode()[: first.col_offset].decode(errors="replace")
    made = "\n".join([*lines[:place], f"{head}{statement}", *[""] * (end - first.lineno), *lines[end:]])
    return made if parsed(made) is not None else None
