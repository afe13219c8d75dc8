"""What tests in Python need of the source, by module, class and parameter: names that the same word elsewhere hides.

A repository may have a function `copy` and lack it in the module that tests import it from; a parameter may be new to
one function and old in another, a method to one class. Whole files are parsed; one that does not parse tells nothing.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chains.needs.python_source import ANYTHING, PythonModule, Reader, Scopes, parsed, python_module
from chains.needs.python_tests import PythonTests, added_lines
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.code.lexing import family_of
from prchain.core.code.needs import Need, NeedKind
from prchain.core.git.patches import FilePatch

_ROOTS = ("", "src/", "lib/", "python/")
"""Where packages lie in a repository."""
_SHORTEST_VARIABLE = 3
"""Characters of a variable that is named for a class."""
_LABELLING = frozenset({"subTest", "param", "parametrize"})
"""Functions of test runners whose named arguments only label a test."""
_PLAIN_BASES = frozenset(
    {"object", "ABC", "abc.ABC", "Protocol", "Generic", "typing.Protocol", "typing.Generic"}
    | {"Exception", "ValueError", "TypeError", "Enum", "enum.Enum"}
)
"""Classes whose members no test of a repository is about."""


@dataclass(frozen=True, slots=True)
class NamesUsed:
    """How tests use names; nothing is known where one of their files is not read."""

    keywords: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Names of arguments to the functions that they are given to, and the names among the other arguments."""
    behind_dots: Collection[str] = frozenset()
    variables: Collection[str] = frozenset()
    """Names that tests bind, as variables or parameters, and use as nothing else."""


def python_needs(
    test_patch: Sequence[FilePatch],
    source_paths: Iterable[str],
    at_base: Reader,
    landed: Reader,
    old_paths: Collection[str] = (),
) -> Iterator[Need]:
    """What added lines of tests in Python need and is not there at B_t: names of modules of the repository that these
    do not bind, modules that do not exist, parameters that a function does not have, members that a class does not have
    that the file names, or a variable before them, members and parameters of methods that they override in a class of
    their own. The same need may come more than once.

    `at_base` and `landed` read B_t and M_t; `source_paths` are those of the source patch, `old_paths` their old ones.
    """
    repository = _Modules(at_base, landed)
    changed = sorted({path for path in source_paths if path.endswith(".py")})
    before = [repository.of_path(path, at_base) for path in sorted({*changed, *old_paths})]
    after = {path: module for path in changed if (module := repository.of_path(path, landed)) is not None}
    parameters = dict(_new_parameters(before, after))
    members = dict(_new_members(before, after))
    signatures = dict(_new_signatures(before, after))
    for patch in test_patch:
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is None:
            continue
        uses, scopes = PythonTests(tree, added_lines(patch)), Scopes(tree, patch.path)

        def need(
            kind: NeedKind, name: str, owner: str, path: str, lines: Iterable[int], scopes: Scopes = scopes
        ) -> Need:
            return Need(kind, name, owner, path, tuple(sorted(scopes(lines))))

        for (place, name), lines in uses.imported.items():
            if repository.lacks(place, name):
                path = repository.binding(place, name)
                yield need(_kind(name, repository.module(place), after.values()), name, "", path, lines)
        for place, lines in uses.modules.items():
            if repository.is_new(place):
                yield need("module", place.rpartition(".")[2], "", repository.path(place), lines)
        for (function, name), lines in uses.keywords.items():
            if (function, name) in parameters:
                yield need("parameter", name, function, parameters[function, name], lines)
        for name, lines in uses.attributes.items():
            for owner, kind, path in members.get(name, ()):
                if owner in uses.named or any(_is_called(it, owner) for it in uses.receivers[name]):
                    yield need(kind, name, owner, path, lines)
        for (base, name), lines in uses.overridden.items():
            owners = {owner: (kind, path) for owner, kind, path in members.get(name, ())}
            for owner in _introducing(base, owners, after):
                yield need(owners[owner][0], name, owner, owners[owner][1], lines)
        for (base, method, name), lines in uses.taken.items():
            places = signatures.get((method, name), {})
            for owner in _introducing(base, places, after):
                yield need("parameter", name, method, places[owner], lines)


def _is_called(variable: str, owner: str) -> bool:
    """Whether a variable is named for a class, or for the beginning of its name: `resp` for `Response`."""
    name = variable.replace("_", "").lower()
    return len(name) >= _SHORTEST_VARIABLE and owner.lstrip("_").lower().startswith(name)


def _kind(name: str, module: PythonModule | None, changed: Iterable[PythonModule]) -> NeedKind:
    """What a name of a module is; where the module has it from elsewhere, what it is in a changed one."""
    found = (it.kinds[name] for it in (module, *changed) if it is not None and name in it.kinds)
    return next(found, "name")


def foreign_names(test_patch: Sequence[FilePatch], source_paths: Iterable[str], landed: Reader) -> set[str]:
    """The names that tests in Python import from modules that no changed file is: those are of other packages, or of
    the repository as it stands."""
    changed = {path.removesuffix(".py").removesuffix("/__init__") for path in source_paths}
    changed |= {path.removeprefix(root) for path in changed for root in _ROOTS if root and path.startswith(root)}
    found: set[str] = set()
    for patch in test_patch:
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Import):
                found |= {it.asname for it in node.names if it.asname and it.name.replace(".", "/") not in changed}
    return found


def names_used(test_patch: Sequence[FilePatch], landed: Reader) -> NamesUsed:
    """How the added lines of tests in Python use names."""
    keywords: dict[str, set[str]] = defaultdict(set)
    behind_dots: set[str] = set()
    variables: set[str] = set()
    imported: set[str] = set()
    for patch in test_patch:
        if family_of(patch.path) is None:
            continue
        tree = parsed(landed(patch.path)) if patch.path.endswith(".py") else None
        if tree is None:
            return NamesUsed()
        uses = PythonTests(tree, added_lines(patch))
        for (function, name), given in uses.given.items():
            if function not in _LABELLING:
                keywords[name] |= {function, *given}
        behind_dots |= uses.attributes.keys()
        variables |= uses.variables
        imported |= uses.imported_names
    return NamesUsed(keywords, behind_dots, variables - imported - keywords.keys() - behind_dots)


def defined_needs(source_paths: Iterable[str], landed: Reader, used: NamesUsed) -> dict[str, Need]:
    """Every name that the files of a source patch define at M_t in Python, with its kind and place; of several of one
    name the one that tests use it as, or else functions, classes and constants before members, and these before
    parameters."""
    found: dict[str, Need] = {}
    modules = [(path, parsed(landed(path))) for path in sorted(source_paths) if path.endswith(".py")]
    read = [(path, python_module(tree)) for path, tree in modules if tree is not None]
    for path, module in read:
        for owner, names in module.parameters.items():
            # A keyword of a call names a parameter, be it of the function itself or of a class that the call is given.
            for name in sorted(names & used.keywords.keys() - used.behind_dots):
                if owner in used.keywords[name] or name not in found:
                    found[name] = Need("parameter", name, owner, path)
    for path, module in read:
        for name, kind in module.kinds.items():
            found.setdefault(name, Need(kind, name, "", path))
    for path, module in read:
        for owner, members in module.members.items():
            for name, kind in members.items():
                found.setdefault(name, Need(kind, name, owner, path))
    for path, module in read:
        for owner, names in module.parameters.items():
            for name in sorted(names):
                found.setdefault(name, Need("parameter", name, owner, path))
    return found


def _new_parameters(
    before: Sequence[PythonModule | None], after: dict[str, PythonModule]
) -> Iterator[tuple[tuple[str, str], str]]:
    gone = {
        name
        for it in before
        if it
        for function, names in it.parameters.items()
        if not any(function in module.parameters for module in after.values())
        for name in names
    }
    known = {function for it in before if it for function in it.parameters}
    for path, module in reversed(after.items()):
        for function, names in module.parameters.items():
            # A new function may be an old one under another name: it keeps the parameters of those that are gone.
            old = {name for it in before if it for name in it.parameters.get(function, ())}
            old |= gone if function not in known else set()
            yield from (((function, name), path) for name in names - old)


def _new_members(
    before: Sequence[PythonModule | None], after: dict[str, PythonModule]
) -> Iterator[tuple[str, list[tuple[str, NeedKind, str]]]]:
    """Name to its classes, kinds and places. A class that derives from one that was not read may have inherited any."""
    found: dict[str, list[tuple[str, NeedKind, str]]] = defaultdict(list)
    every = [*filter(None, before), *after.values()]
    for path, module in after.items():
        for owner, members in module.members.items():
            line = _line_of_descent(owner, every)
            if line is None:
                continue
            old = {name for it in before if it for ancestor in line for name in it.members.get(ancestor, ())}
            for name, kind in members.items():
                if name not in old and not name.startswith("__"):
                    found[name].append((owner, kind, path))
    yield from found.items()


def _new_signatures(
    before: Sequence[PythonModule | None], after: dict[str, PythonModule]
) -> Iterator[tuple[tuple[str, str], dict[str, str]]]:
    """Methods and their parameters to the classes that give them these, with their places. As `_new_members`."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    every = [*filter(None, before), *after.values()]
    for path, module in after.items():
        for (owner, method), names in module.signatures.items():
            line = _line_of_descent(owner, every) if not method.startswith("__") else None
            if line is None:
                continue
            old = {
                name for it in before if it for ancestor in line for name in it.signatures.get((ancestor, method), ())
            }
            for name in names - old:
                found[method, name][owner] = path
    yield from found.items()


def _introducing(base: str, owners: Collection[str], after: dict[str, PythonModule]) -> list[str]:
    """Those of some classes that a test's class derives from by a name, without those that have it from others."""
    found = _derived_from(base, after) & set(owners)
    return sorted(owner for owner in found if not (_derived_from(owner, after) - {owner}) & found)


def _derived_from(base: str, after: dict[str, PythonModule]) -> set[str]:
    """The changed files' class that a test derives from by a dotted name, with those of them that it derives from
    itself; none where the name is of another package."""
    root, dot, _ = base.partition(".")
    found: set[str] = set()
    left = {base.rpartition(".")[2]}
    while left:
        name = left.pop()
        places = [path for path, module in after.items() if name in module.bases]
        if not found and dot:
            places = [path for path in places if root in path.removesuffix(".py").split("/")]
        if places:
            found.add(name)
            left |= {more for path in places for more in after[path].bases[name]} - found
    return found


def _line_of_descent(owner: str, modules: Sequence[PythonModule]) -> set[str] | None:
    """A class with all that it derives from; None where one of these stands in none of the modules."""
    seen: set[str] = set()
    left = {owner}
    while left:
        written = left.pop()
        module, _, name = written.rpartition(".")
        stem = module.rpartition(".")[2]
        found = (it.bases[name] for it in modules if name in it.bases and stem in ("", it.stem))
        # `class Request(request.Request)` may itself stand in a module `request`.
        bases = [more for more in found if written not in more]
        if not bases:
            return None
        seen |= {written, name}
        left |= {base for more in bases for base in more} - seen - _PLAIN_BASES
    return seen


class _Modules:
    """The modules of the repository, at B_t and at M_t."""

    def __init__(self, at_base: Reader, landed: Reader) -> None:
        self._at_base, self._landed = at_base, landed
        self._read: dict[tuple[str, bool], PythonModule | None] = {}

    def of_path(self, path: str, reader: Reader) -> PythonModule | None:
        """The module in a file; None where there is no such file, or it does not parse."""
        key = (path, reader is self._landed)
        if key not in self._read:
            tree = parsed(reader(path)) if path.endswith(".py") else None
            self._read[key] = None if tree is None else python_module(tree, path)
        return self._read[key]

    def lacks(self, module: str, name: str) -> bool:
        """Whether a module binds a name at M_t, and did not at B_t."""
        now, before = (tuple(self._sources(module, reader)) for reader in (self._landed, self._at_base))
        if not any(read is not None and name in read.bound for _, read in now):
            return False
        return not any(read is None or read.bound & {name, ANYTHING} for _, read in before)

    def binding(self, module: str, name: str) -> str:
        """The file that binds a name of a module at M_t: its own, or that of one of which it takes every name."""
        found = (path for path, read in self._sources(module, self._landed) if read is not None and name in read.bound)
        return next(found, self.path(module))

    def is_new(self, module: str) -> bool:
        """Whether a module exists at M_t, and did not at B_t."""
        return self._of_name(module, self._landed)[1] is not None and self._of_name(module, self._at_base)[1] is None

    def module(self, name: str) -> PythonModule | None:
        """A module at M_t, by its dotted name."""
        return self._of_name(name, self._landed)[1]

    def path(self, name: str) -> str:
        """The file of a module at M_t."""
        return self._of_name(name, self._landed)[0]

    def _sources(self, module: str, reader: Reader) -> Iterator[tuple[str, PythonModule | None]]:
        """A module and those of which it takes every name, directly or not, with their files; none where there is no
        such module, and None for each of the others that cannot be read."""
        left, seen = [module], {module}
        while left:
            name = left.pop(0)
            path, read = self._of_name(name, reader)
            if read is not None or name != module:
                yield path, read
            stars = [] if read is None else sorted(read.stars)
            taken = (_absolute(star, name, is_package=path.endswith("/__init__.py")) for star in stars)
            left += (fresh := [it for it in dict.fromkeys(taken) if it not in seen])
            seen.update(fresh)

    def _of_name(self, module: str, reader: Reader) -> tuple[str, PythonModule | None]:
        path = module.replace(".", "/")
        places = [f"{root}{path}{ending}" for root in _ROOTS for ending in (".py", "/__init__.py")]
        places = [place for place in places if kind_of(place) is FileKind.SOURCE]
        return next(
            ((place, found) for place in places if (found := self.of_path(place, reader)) is not None), ("", None)
        )


def _absolute(module: str, of: str, *, is_package: bool) -> str:
    """The name of a module that another one imports with as many dots before it as levels up."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    if not dots:
        return name
    parts = of.split(".")
    above = parts[: len(parts) + is_package - dots]
    return ".".join([*above, name] if name else above)
