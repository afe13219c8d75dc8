"""Functions of Python that a reference adds or changes, with other bodies. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from environments.proofs.edits import Function, SourceFile, Undoing, bare, is_text
from environments.proofs.hunks import changed_lines
from environments.suites.syntax import bare_lines, parsed, unless_too_deep
from prchain.core.code.syntax_trees import syntax_tree
from sql.strength import UndoingKind

_BODIES = {
    UndoingKind.RETURNS_NONE: "return None",
    UndoingKind.RAISES: "raise NotImplementedError",
}


def stubs(file: SourceFile) -> list[Iterator[Undoing]]:
    """For each function that the reference adds or changes, its stubs, none of them for what is a function's own. Each
    is made when it is asked for: it takes a look at the whole file, and few of a large file's are drawn."""
    return [_stubs(file, node) for _, node in changed_functions(file)]


def _stubs(file: SourceFile, node: Function) -> Iterator[Undoing]:
    for kind, body in _BODIES.items():
        text = _stubbed(file.landed or "", [node], body)
        if text is not None:
            yield Undoing(kind, file.path, node.lineno, {file.path: text})


def changed_functions(file: SourceFile) -> Iterator[tuple[Function | None, Function]]:
    """The functions that the reference adds or changes and that do anything: as they were, if they were, and are."""
    if file.landed is None:
        return
    lines = range(1, file.landed.count("\n") + 2)
    changed = set(lines) if file.base is None else set[int]().union(*map(changed_lines, file.changes))
    before = dict(_functions_of(file.base or ""))
    for name, node in _functions_of(file.landed):
        if not changed & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) or not _works(node):
            continue
        old = before.get(name)
        if old is None or _dumped(file.base or "", old) != _dumped(file.landed, node):
            yield old, node


def all_new(files: Sequence[SourceFile]) -> list[Undoing]:
    """M_t, with all functions that the reference adds returning None; none where it adds none that does anything."""
    texts: dict[str, str | None] = {}
    lines = []
    for file in files:
        known = {name for name, _ in _functions_of(file.base or "")}
        new = [node for name, node in _functions_of(file.landed or "") if name not in known and _works(node)]
        text = _stubbed(file.landed or "", new, _BODIES[UndoingKind.RETURNS_NONE]) if new else None
        if text is not None:
            texts[file.path] = text
            lines.append(new[0].lineno)
    return [Undoing(UndoingKind.NEW_RETURN_NONE, next(iter(texts)), lines[0], texts)] if texts else []


def _functions_of(text: str) -> list[tuple[str, Function]]:
    """`_functions` of a text; none where it is no Python."""
    tree = parsed(text)
    return [] if tree is None else unless_too_deep(lambda: list(_functions(tree))) or []


def _functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    """The functions of a module and of its classes, by their names with dots."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")
        elif isinstance(child, Function):
            yield f"{outer}{child.name}", child
        elif isinstance(child, ast.If | ast.Try):
            yield from _functions(child, outer)


def _dumped(text: str, node: Function) -> object:
    dumped = unless_too_deep(lambda: ast.dump(bare(syntax_tree(ast.unparse(node)))))
    return bare_lines(text.split("\n")[node.lineno - 1 : node.end_lineno], ("#",)) if dumped is None else dumped


def _works(node: Function) -> bool:
    """Whether its body does something: declarations of a protocol, overloads and abstract methods do not."""
    body = node.body[1:] if is_text(node.body[0]) else node.body
    return not all(
        isinstance(it, ast.Pass | ast.Raise)
        or (isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant))
        or (isinstance(it, ast.Return) and (it.value is None or _is_none(it.value)))
        for it in body
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _stubbed(text: str, nodes: Iterable[Function], statement: str) -> str | None:
    """The text with another body for some functions; its lines stay as many. None where that is no Python."""
    lines = text.split("\n")
    for node in nodes:
        first, last = node.body[0], node.body[-1]
        decorators = getattr(first, "decorator_list", ())
        place, end = min(it.lineno for it in (first, *decorators)) - 1, last.end_lineno or last.lineno
        head = lines[place].encode()[: first.col_offset].decode(errors="replace")
        lines[place:end] = [f"{head}{statement}", *[""] * (end - place - 1)]
    made = "\n".join(lines)
    return made if parsed(made) is not None else None
