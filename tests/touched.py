"""Which test files a change reaches, and how near it is to them: read off the sources, nothing is run or remembered.

An edge is an import, at a module's top or in a function; a module's dotted name as a text (commands, entry points,
processes that tests start); a `Catalogue`, which loads its folder; a package that a module finds by `with_name`, with
all that is below it; and a fixture of `conftest.py` that a test names. A file that is no module reaches the modules of
its folder, and the tests that name it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import grimp

PACKAGES = ("prchain", "sql", "miner", "chains", "environments", "trajectories", "research", "tests")

_NAMED = re.compile(rf"""["']((?:{"|".join(PACKAGES)})(?:\.\w+)+)(?::\w+)?["']""")
_CONFTEST = "tests.conftest"
"""Every test has it, and of what it imports those that name the fixture which needs it."""
_BESIDE = re.compile(r"""__file__\)\.with_name\(["'](\w+)["']\)""")
_CATALOGUE = re.compile(r"\bCatalogue\b[^(\n]*\(__name__")


class Sources:
    """The sources of a checkout, which is the current folder's, with the edges between them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._graph = grimp.build_graph(*PACKAGES, cache_dir=None)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Module to source."""
        texts = {}
        for module in self._graph.modules:
            stem = self.root / module.replace(".", "/")
            path = stem.with_suffix(".py")
            texts[module] = (path if path.exists() else stem / "__init__.py").read_text(encoding="utf-8")
        return texts

    @cached_property
    def importers(self) -> Mapping[str, set[str]]:
        """Module to the modules that use it."""
        found: dict[str, set[str]] = defaultdict(set)
        for module, text in self.texts.items():
            for used in (*self._graph.find_modules_directly_imported_by(module), *self._named(module, text)):
                found[used].add(module)
        return found

    def _named(self, module: str, text: str) -> Iterator[str]:
        yield from (name for name in _NAMED.findall(text) if name in self.texts)
        for name in _BESIDE.findall(text):
            package = f"{module.rpartition('.')[0]}.{name}"
            if package in self.texts:
                yield from self._graph.find_descendants(package)
        if _CATALOGUE.search(text):
            yield from self._graph.find_children(module)
        for group, points in self._entry_points.items():
            if f'"{group}"' in text:
                yield from points
        if _is_test(module):
            for fixture, used in self._fixtures.items():
                if re.search(rf"\b{fixture}\b", text):
                    yield from used

    @cached_property
    def _entry_points(self) -> Mapping[str, list[str]]:
        """Group of the project's entry points to their modules."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        groups = project.get("entry-points", {})
        return {group: [place.partition(":")[0] for place in points.values()] for group, points in groups.items()}

    @cached_property
    def _fixtures(self) -> Mapping[str, list[str]]:
        """Fixture of `conftest.py` to the modules that it imports when it is used."""
        functions = ast.parse(self.texts[_CONFTEST]).body
        return {
            node.name: [
                it.module
                for it in ast.walk(node)
                if isinstance(it, ast.ImportFrom) and it.module and it.module in self.texts
            ]
            for node in functions
            if isinstance(node, ast.FunctionDef)
        }

    def modules_of(self, path: str) -> set[str]:
        """The modules that a changed file, by its path from the root, is read by."""
        stem = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if path.endswith(".py"):
            # One that is gone is what is left of its folder.
            return {stem} if stem in self.texts else self._in_folder(stem.rpartition(".")[0])
        folder, _, name = path.rpartition("/")
        words = {name, f"*{Path(name).suffix}"} if Path(name).suffix else {name}
        naming = {
            module
            for module, text in self.texts.items()
            if _is_test(module) and any(f"{quote}{word}" in text for word in words for quote in "\"'/")
        }
        return naming | self._in_folder(folder.replace("/", "."))

    def _in_folder(self, package: str) -> set[str]:
        while package and package not in self.texts:
            package = package.rpartition(".")[0]
        return self._graph.find_children(package) | {package} if package and package != "tests" else set()


def _is_test(module: str) -> bool:
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def distances(
    changed: Iterable[str], importers: Mapping[str, set[str]], *, all_tests: Iterable[str] = ()
) -> dict[str, int]:
    """Module to its distance from the nearest changed one, in edges, of all that the change reaches."""
    found = dict.fromkeys(changed, 0)
    pending = deque(found)
    while pending:
        module = pending.popleft()
        users = set(all_tests) if module == _CONFTEST else importers.get(module, set()) - {_CONFTEST}
        for user in users - found.keys():
            found[user] = found[module] + 1
            pending.append(user)
    return found


def reached_tests(paths: Iterable[str], sources: Sources) -> dict[str, int]:
    """Test file to its distance from what changed, of changed files by their paths from the root."""
    tests = [module for module in sources.texts if _is_test(module)]
    changed = {module for path in paths for module in sources.modules_of(path)}
    found = distances(changed, sources.importers, all_tests=tests)
    return {f"{module.replace('.', '/')}.py": found[module] for module in tests if module in found}
