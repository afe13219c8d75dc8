"""What tests in Python use of the source, by module and by parameter: names that a word of the same spelling hides.

A repository may have a function `copy` and lack it in the module that tests import it from; a parameter may be new to
one function and old in another. Whole files are parsed; a file that does not parse tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from prchain.git.patches import FilePatch
from prchain.kinds import FileKind, kind_of

Reader = Callable[[str], str | None]
"""From a path of a tree to its text; None where there is none."""

_ROOTS = ("", "src/", "lib/", "python/")
"""Where packages lie in a repository."""
_ANYTHING = "*"


@dataclass(frozen=True, slots=True)
class _Module:
    """The names that a module binds, and the parameters of its functions and classes; of the same name together."""

    bound: frozenset[str] = frozenset()
    parameters: dict[str, set[str]] = field(default_factory=dict)


def python_names(
    test_patch: Sequence[FilePatch],
    source_paths: Iterable[str],
    at_base: Reader,
    landed: Reader,
    old_paths: Collection[str] = (),
) -> set[str]:
    """The names that added lines of tests in Python need and that are not there at B_t: names of modules of the
    repository that these do not bind, modules that do not exist, and parameters that a function does not have.

    `at_base` and `landed` read B_t and M_t; `source_paths` are those of the source patch, `old_paths` their old ones.
    """
    modules = _Modules(at_base, landed)
    before, after = (
        _parameters(modules.of_path(path, reader) for path in paths if path.endswith(".py"))
        for paths, reader in (({*source_paths, *old_paths}, at_base), (source_paths, landed))
    )
    found: set[str] = set()
    for patch in test_patch:
        tree = _parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is not None:
            uses = _Uses(tree, _added_lines(patch))
            found |= {name for module, name in uses.imported if modules.lacks(module, name)}
            found |= {module.rpartition(".")[2] for module in uses.modules if modules.is_new(module)}
            found |= {
                name
                for function, name in uses.keywords
                if name in after.get(function, ()) and name not in before.get(function, ())
            }
    return found


class _Modules:
    """The modules of the repository, at B_t and at M_t."""

    def __init__(self, at_base: Reader, landed: Reader) -> None:
        self._at_base, self._landed = at_base, landed
        self._read: dict[tuple[str, bool], _Module | None] = {}

    def of_path(self, path: str, reader: Reader) -> _Module | None:
        """The module in a file; None where there is no such file, or it does not parse."""
        key = (path, reader is self._landed)
        if key not in self._read:
            tree = _parsed(reader(path))
            self._read[key] = None if tree is None else _module(tree)
        return self._read[key]

    def lacks(self, module: str, name: str) -> bool:
        """Whether a module binds a name at M_t, and did not at B_t."""
        now, before = (self._of_name(module, reader) for reader in (self._landed, self._at_base))
        if now is None or name not in now.bound:
            return False
        return before is None or not before.bound & {name, _ANYTHING}

    def is_new(self, module: str) -> bool:
        """Whether a module exists at M_t, and did not at B_t."""
        return self._of_name(module, self._landed) is not None and self._of_name(module, self._at_base) is None

    def _of_name(self, module: str, reader: Reader) -> _Module | None:
        path = module.replace(".", "/")
        places = [f"{root}{path}{ending}" for root in _ROOTS for ending in (".py", "/__init__.py")]
        places = [place for place in places if kind_of(place) is FileKind.SOURCE]
        return next((found for place in places if (found := self.of_path(place, reader)) is not None), None)


class _Uses(ast.NodeVisitor):
    """What the added lines of a test file use."""

    def __init__(self, tree: ast.Module, added: Collection[int]) -> None:
        self._added = added
        self._aliases: dict[str, str] = {}
        self.imported: set[tuple[str, str]] = set()
        """Modules, and names that they have to bind."""
        self.modules: set[str] = set()
        self.keywords: set[tuple[str, str]] = set()
        """Names of functions, and of their arguments."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._aliases |= {it.asname or it.name: it.name for it in node.names}
        self.visit(tree)

    def visit_Import(self, node: ast.Import) -> None:
        if self._is_added(node):
            self.modules |= {it.name for it in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if self._is_added(node) and node.module and not node.level:
            self.modules.add(node.module)
            self.imported |= {(node.module, it.name) for it in node.names}
            self.modules |= {f"{node.module}.{it.name}" for it in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._is_added(node):
            module = (
                self._aliases.get(ast.unparse(node.value)) if isinstance(node.value, ast.Name | ast.Attribute) else None
            )
            if module is not None:
                self.imported.add((module, node.attr))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if self._is_added(node):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            self.keywords |= {
                (function, it.arg) for it in node.keywords if it.arg is not None and it.value.lineno in self._added
            }
        self.generic_visit(node)

    def _is_added(self, node: ast.stmt | ast.expr) -> bool:
        return any(line in self._added for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _parsed(text: str | None) -> ast.Module | None:
    try:
        return None if text is None else ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _added_lines(patch: FilePatch) -> set[int]:
    found: set[int] = set()
    for hunk in patch.hunks:
        number = hunk.new_start
        for line in hunk.lines:
            if line[0] == "+":
                found.add(number)
            number += line[0] != "-"
    return found


def _module(tree: ast.Module) -> _Module:
    parameters: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters.setdefault(node.name, set()).update(_parameter_names(node.args))
        elif isinstance(node, ast.ClassDef):
            own = parameters.setdefault(node.name, set())
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name in ("__init__", "__new__"):
                    own.update(_parameter_names(inner.args))
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    own.add(inner.target.id)
    return _Module(frozenset(_bound(tree.body)), parameters)


def _parameter_names(arguments: ast.arguments) -> Iterator[str]:
    yield from (it.arg for it in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _parameters(modules: Iterable[_Module | None]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module in modules:
        for function, names in (module.parameters if module else {}).items():
            found.setdefault(function, set()).update(names)
    return found


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module bind; ``*`` where it cannot be told which."""
    for node in body:
        match node:
            case ast.FunctionDef(name="__getattr__"):
                yield _ANYTHING
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    yield alias.asname or alias.name.partition(".")[0]
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Expr():
                yield from (
                    it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
                )
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                for part in ("body", "orelse", "finalbody"):
                    yield from _bound(getattr(node, part, ()))
                for handler in getattr(node, "handlers", ()):
                    yield from _bound(handler.body)
