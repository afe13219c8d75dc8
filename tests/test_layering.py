"""Imports point one way only: the table of the design, read from the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "prchain.core": set(),
    "sql": {"prchain.core"},
    "miner": {"prchain.core", "sql"},
    "chains": {"prchain.core", "sql"},
    "environments": {"prchain.core", "sql"},
    "trajectories": {"prchain.core", "sql", "chains", "environments"},
    "prchain": {"prchain.core", "sql", "miner", "chains", "environments", "trajectories"},
}
"""Each package to those whose modules its own may import; ``prchain`` is the door, all of the folder but the core."""

OUTSIDE = {"research", "tests"}
"""These import every package, and no package imports them."""

FOLDERS = sorted({package.partition(".")[0] for package in MAY_IMPORT})


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def package_of(name: str) -> str:
    """The package of a module, given by its dotted name, or its first folder where that is none of ours."""
    return next((package for package in MAY_IMPORT if f"{name}.".startswith(f"{package}.")), name.partition(".")[0])


@cache
def imports(source: str) -> tuple[str, ...]:
    """Every module that the source imports, at its top or inside a function, and those of ``import_module("...")``.

    A computed name is ``?`` unless it begins in the package that is given beside it, and so is a `Catalogue` of a
    folder that is not its module's own.
    """
    return tuple(_imported(ast.walk(ast.parse(source))))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom(level=level) if level:
                yield "."
            case ast.Call(
                func=ast.Name(id="import_module"),
                args=[ast.JoinedStr(values=[ast.Constant(value="."), *_]), ast.Attribute(value=ast.Name(id="self"))],
            ):
                continue
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                yield str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "?"
            case ast.Call(func=ast.Name(id="Catalogue") | ast.Subscript(value=ast.Name(id="Catalogue"))):
                if not isinstance(node.args[0], ast.Name) or node.args[0].id != "__name__":
                    yield "?"


def trespasses(module: str, source: str) -> list[str]:
    """The imports of a module (``package/path.py``) that its package may not make."""
    package = package_of(module.removesuffix(".py").replace("/", "."))
    barred = MAY_IMPORT.keys() - MAY_IMPORT[package] - {package} | OUTSIDE
    names = imports(source)
    loads_all = MAY_IMPORT.keys() <= MAY_IMPORT[package] | {package}
    return [name for name in names if package_of(name) in barred or (name in {"?", "."} and not loads_all)]


def rooms(folder: str, sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The imports between the rooms of a folder, from the sources of its modules by their paths.

    A folder in it is a room, and so is each module beside the folders.
    """
    found: dict[str, set[str]] = defaultdict(set)
    places = {module.removesuffix(".py").replace("/", "."): _room(folder, module) for module in sources}
    for module, source in sources.items():
        own = _room(folder, module)
        for name in imports(source):
            target = next(
                (candidate for candidate in (name, f"{name}.__init__", name.rpartition(".")[0]) if candidate in places),
                None,
            )
            if target is not None and places[target] != own:
                found[own].add(places[target])
    return found


def _room(folder: str, module: str) -> str:
    return module.removeprefix(f"{folder}/").partition("/")[0].removesuffix(".py")


HOUSES = sorted({path.parent.parent.relative_to(ROOT).as_posix() for path in modules()} - {"."})
"""Every folder that has folders."""


@pytest.mark.parametrize("folder", HOUSES)
def test_the_rooms_of_a_folder_import_one_way(folder: str) -> None:
    paths = (path.relative_to(ROOT).as_posix() for path in modules() if path.is_relative_to(ROOT / folder))
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    TopologicalSorter(rooms(folder, sources)).prepare()


def test_a_planted_circle_of_rooms_is_found() -> None:
    sources = {
        "x/a/one.py": "from x.b.two import f",
        "x/b/two.py": "from x.three import g",
        "x/three.py": "from x.a.four import h",
        "x/a/four.py": "from x.a import one",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(rooms("x", sources)).prepare()


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_lies_below_its_package(path: Path) -> None:
    assert trespasses(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sql/x.py", "from miner.mine import mine"),
        ("prchain/core/x.py", "def f():\n    import sql.store"),
        ("prchain/core/x.py", "from prchain.cli import run"),
        ("miner/x.py", "import chains.graph as g"),
        ("miner/x.py", "from tests.emulator import World"),
        ("chains/x.py", "from research.shares import wilson"),
        ("environments/x.py", "import importlib\nimportlib.import_module('chains.edges.graph')"),
        ("environments/x.py", "import importlib\nimportlib.import_module(f'chains.edges.{name}')"),
        ("environments/x.py", "import importlib\nimportlib.import_module(f'{name}.edges')"),
        ("prchain/core/x.py", "import importlib\nimportlib.import_module(name)"),
        ("prchain/core/x.py", "import_module(f'{name}.', self._folder)"),
        ("environments/x.py", "Catalogue('chains.edges', 'EDGE')"),
        ("environments/x.py", "Catalogue[Edge](folder, 'EDGE')"),
        ("sql/x.py", "from ..miner import mine"),
        ("trajectories/x.py", "import prchain.api"),
        ("prchain/api.py", "from tests.emulator import World"),
    ],
)
def test_a_planted_import_upwards_is_found(module: str, source: str) -> None:
    assert len(trespasses(module, source)) == 1


def test_the_command_group_names_only_modules_that_exist() -> None:
    from prchain.cli import COMMANDS

    for place, _ in COMMANDS.values():
        module = place.partition(":")[0]
        assert package_of(module) in MAY_IMPORT
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file()
