"""What added lines of a test file in Python use: names of modules, arguments, members, and those that they override."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from chains.needs.python_source import base_name, dotted_name, keyword_parameters
from prchain.core.git.patches import FilePatch

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*){1,8}")

_BY_NAME = frozenset({"setattr", "getattr", "delattr", "hasattr", "object"})
"""Functions that are given something and the name of one of its attributes; `object` is that of `mock.patch`."""


def added_lines(patch: FilePatch) -> set[int]:
    """The numbers that a patch's added lines have in the new file, from 1."""
    found: set[int] = set()
    for hunk in patch.hunks:
        number = hunk.new_start
        for line in hunk.lines:
            if line[0] == "+":
                found.add(number)
            number += line[0] != "-"
    return found


class PythonTests:
    """What the added lines of a test file use, and on which lines."""

    def __init__(self, tree: ast.Module, added: Collection[int]) -> None:
        self._added = added
        self._aliases: dict[str, str] = {}
        self.imported: dict[tuple[str, str], set[int]] = defaultdict(set)
        """Modules, and names that they have to bind."""
        self.modules: dict[str, set[int]] = defaultdict(set)
        self.keywords: dict[tuple[str, str], set[int]] = defaultdict(set)
        """Names of functions, and of their arguments."""
        self.given: dict[tuple[str, str], set[str]] = defaultdict(set)
        """Names of functions, and of their arguments, to the names among their arguments without a name."""
        self.variables: set[str] = set()
        """Names that the file binds as variables and parameters."""
        self.attributes: dict[str, set[int]] = defaultdict(set)
        """Names behind a dot."""
        self.receivers: dict[str, set[str]] = defaultdict(set)
        """Names behind a dot to the variables before it."""
        self.named: set[str] = set()
        """Every name that the file uses, on old lines too."""
        self.overridden: dict[tuple[str, str], set[int]] = defaultdict(set)
        """Classes of other files, and members that classes of this one define which derive from them."""
        self.taken: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        """The same with the names of the parameters of such a method."""
        self._bases: dict[str, set[str]] = defaultdict(set)
        self._siblings: dict[str, str] = {}
        self._members: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._aliases |= {it.asname or it.name: it.name for it in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # Some of these are modules of a package.
                self._aliases |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
            elif isinstance(node, ast.ImportFrom):
                self._siblings |= {it.asname or it.name: it.name for it in node.names}
            elif isinstance(node, ast.ClassDef):
                self._bases[node.name] |= set(map(base_name, node.bases))
                self._members |= {name for name, _ in _defined(node)}
            elif isinstance(node, ast.Name):
                self.named.add(node.id)
                if isinstance(node.ctx, ast.Store):
                    self.variables.add(node.id)
            elif isinstance(node, ast.arg):
                self.variables.add(node.arg)
            elif isinstance(node, ast.Attribute):
                self.named.add(node.attr)
        # No `ast.NodeVisitor`: a sum of some hundred texts is nested deeper than Python calls.
        for node in ast.walk(tree):
            match node:
                case ast.Import():
                    self._read_import(node)
                case ast.ImportFrom():
                    self._read_import_from(node)
                case ast.Attribute():
                    self._read_attribute(node)
                case ast.Constant():
                    self._read_constant(node)
                case ast.Call():
                    self._read_call(node)
                case ast.ClassDef():
                    self._read_class(node)

    @property
    def imported_names(self) -> set[str]:
        """The names that its imports bind."""
        return {*self._aliases, *self._siblings}

    def _read_import(self, node: ast.Import) -> None:
        for name in (it.name for it in node.names if self._is_added(node)):
            self.modules[name].add(node.lineno)

    def _read_import_from(self, node: ast.ImportFrom) -> None:
        if self._is_added(node) and node.module and not node.level:
            self.modules[node.module].add(node.lineno)
            for it in node.names:
                self.imported[node.module, it.name].add(node.lineno)
                self.modules[f"{node.module}.{it.name}"].add(node.lineno)

    def _read_attribute(self, node: ast.Attribute) -> None:
        if self._is_added(node) and not self._is_own(node):
            self._use(node.value, node.attr, node.lineno)

    def _read_constant(self, node: ast.Constant) -> None:
        # What a test replaces or loads by its dotted name: a name of a module, or a member of a class of one.
        if isinstance(node.value, str) and _DOTTED.fullmatch(node.value) and node.lineno in self._added:
            owner, _, name = node.value.rpartition(".")
            self.imported[owner, name].add(node.lineno)
            self.attributes[name].add(node.lineno)
            self.named.add(owner.rpartition(".")[2])

    def _use(self, value: ast.expr, name: str, line: int) -> None:
        """The use of `name` of what `value` is."""
        self.attributes[name].add(line)
        match value:
            case ast.Name(id=variable) | ast.Attribute(attr=variable):
                self.receivers[name].add(variable)
        module = self._aliases.get(dotted_name(value))
        if module is not None:
            self.imported[module, name].add(line)

    def _read_call(self, node: ast.Call) -> None:
        if self._is_added(node):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for it in node.keywords:
                if it.arg is not None and it.value.lineno in self._added:
                    self.keywords[function, it.arg].add(it.value.lineno)
                    self.given[function, it.arg] |= {arg.id for arg in node.args if isinstance(arg, ast.Name)}
            match node.args:
                case [value, ast.Constant(value=str(name)), *_] if function in _BY_NAME:
                    self._use(value, name, node.lineno)

    def _read_class(self, node: ast.ClassDef) -> None:
        defined = [(name, line) for name, line in _defined(node) if line in self._added]
        methods = [it for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
        taken = [(it.name, arg.arg, arg.lineno) for it in methods for arg in keyword_parameters(it)]
        for base in self._foreign_bases(node):
            for name, line in defined:
                self.overridden[base, name].add(line)
            for method, name, line in taken:
                if line in self._added:
                    self.taken[base, method, name].add(line)

    def _foreign_bases(self, node: ast.ClassDef) -> set[str]:
        """The classes of other files that a class derives from, by their dotted names as far as these are told; those
        of relative imports by their own."""
        found: set[str] = set()
        seen: set[str] = set()
        left = set(map(base_name, node.bases))
        while left:
            name = left.pop()
            seen.add(name)
            root, dot, rest = name.partition(".")
            own = self._bases.get(name.rpartition(".")[2])
            if own is not None and root not in self._aliases and root not in self._siblings:
                left |= own - seen
            elif root in self._siblings:
                found.add(rest.rpartition(".")[2] or self._siblings[root])
            else:
                found.add(f"{self._aliases.get(root, root)}{dot}{rest}")
        return found

    def _is_own(self, node: ast.Attribute) -> bool:
        """Whether it is a member of a class of this file, by the name that this has for itself."""
        return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and node.attr in self._members

    def _is_added(self, node: ast.stmt | ast.expr) -> bool:
        return any(line in self._added for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _defined(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """The methods and attributes that a class defines, and the lines where."""
    for inner in node.body:
        match inner:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, inner.lineno
            case ast.Assign(targets=targets):
                yield from ((it.id, it.lineno) for it in targets if isinstance(it, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, inner.lineno
