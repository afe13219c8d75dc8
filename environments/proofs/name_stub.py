"""The stub of a stage: B_t, with nothing but None behind the names that tests need.

Pure. Work that consists of such names alone makes test files importable, and so passes what only an import has hidden.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator

from environments.proofs.edits import Undoing
from environments.suites.syntax import parsed, unless_too_deep
from prchain.core.code.kinds import FileKind, kind_of
from sql.strength import UndoingKind


def name_stub(tests: Iterable[str], present: Collection[str], read: Callable[[str], str]) -> Undoing | None:
    """B_t, with None for each name that test files of Python import, or read of modules, and that B_t does not have.

    `tests` are texts of M_t's test files, `present` the paths of B_t, and `read` gives the text of one of its files.
    None where no name is missing, or the missing ones are of no module that B_t's packages could hold.
    """
    modules = _ModuleNames(present, read)
    missing: dict[str, set[str]] = {}
    for text in tests:
        if (tree := parsed(text)) is not None:
            for module, name in _imports(tree):
                modules.require(module, name, missing)
            for module, name in _reads(tree):
                if modules.holds(module):
                    modules.require(module, name, missing)
    texts: dict[str, str | None] = {}
    for path, names in sorted(missing.items()):
        lines = "".join(f"{name} = None\n" for name in sorted(names))
        text = read(path) if path in present else ""
        texts[path] = text + ("" if not text or text.endswith("\n") else "\n") + lines
    if not texts:
        return None
    return Undoing(UndoingKind.STUB, min(texts), 1, texts)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Modules that a test file imports, each with a name that it wants of it, or None for the module alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((it.name, None) for it in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield from ((node.module, it.name) for it in node.names if it.name != "*")


def _reads(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a test file reads of what it has imported, as ``it.name``."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for it in node.names:
                aliases[it.asname or it.name.partition(".")[0]] = it.name if it.asname else it.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            aliases |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Load()):
                if name in aliases and not attribute.startswith("__"):
                    yield aliases[name], attribute


_ROOTS = ("", "src", "lib", "python")
"""Folders whose modules are imported by their own names. Elsewhere only packages are: a script may have any name."""


class _ModuleNames:
    """The modules of B_t's source, by their dotted names."""

    def __init__(self, present: Collection[str], read: Callable[[str], str]) -> None:
        self._read = read
        self._paths: dict[str, str] = {}
        source = [path for path in present if path.endswith(".py") and kind_of(path) is FileKind.SOURCE]
        for path in sorted(source, key=len, reverse=True):
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            start = len(parts) - 1
            while start and "/".join([*parts[:start], "__init__.py"]) in present:
                start -= 1
            if start + 1 < len(parts) or path.endswith("/__init__.py") or "/".join(parts[:start]) in _ROOTS:
                self._paths[".".join(parts[start:])] = path
        self._names: dict[str, set[str] | None] = {}

    def holds(self, module: str) -> bool:
        """Whether a dotted name is that of a module."""
        return module in self._paths

    def require(self, module: str, name: str | None, missing: dict[str, set[str]]) -> None:
        """Note in `missing`, by path, what a test wants of a module and B_t does not have."""
        path = self._paths.get(module)
        if path is None:
            above, _, last = module.rpartition(".")
            package = self._paths.get(above)
            if above and package is not None and package.endswith("/__init__.py"):
                new = missing.setdefault(f"{package.removesuffix('__init__.py')}{last}.py", set())
                new |= {name} if name else set()
            return
        if name is None or f"{module}.{name}" in self._paths:
            return
        if path not in self._names:
            self._names[path] = _bound(self._read(path))
        names = self._names[path]
        if names is not None and name not in names:
            missing.setdefault(path, set()).add(name)


def _bound(text: str) -> set[str] | None:
    """The names that a module binds at its top; None where that cannot be said."""
    tree = parsed(text)
    if tree is None:
        return None
    names: set[str] = set()
    statements = unless_too_deep(lambda: list(_top(tree.body)))
    for node in statements or ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {it.asname or it.name.partition(".")[0] for it in node.names}
        else:
            names |= {it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    return None if statements is None or names & {"*", "__getattr__"} else names


def _top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those within ``if``, ``try`` and ``with`` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _top(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _top(handler.body)
