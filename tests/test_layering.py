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
    "prchain": set(),
    "sql": {"prchain"},
    "miner": {"prchain", "sql"},
    "chains": {"prchain", "sql"},
    "environments": {"prchain", "sql"},
    "trajectories": {"prchain", "sql", "environments"},
}

OUTSIDE = {"research", "tests"}
"""These import every package, and no package imports them."""

NAMES_STAGES_AS_STRINGS = "prchain/cli.py"
"""The one module that loads modules above it, when a command is called."""

LISTS_ITS_CALLERS = "prchain/core/catalogue.py"
"""The one module that loads modules of its caller's folder, and of no other: see `imports`."""

CALLS_STAGES = "prchain/api.py"
"""The one module of functions above all stages, in the package where users look for it. It imports the stages when
it is called, and nothing imports it."""


def modules() -> list[Path]:
    return sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


@cache
def imports(source: str) -> tuple[str, ...]:
    """Every module that the source imports, at its top or inside a function, and those of ``import_module("...")``.

    A computed name is ``?``, and so is a `Catalogue` of a folder that is not its module's own.
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
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                yield str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "?"
            case ast.Call(func=ast.Name(id="Catalogue") | ast.Subscript(value=ast.Name(id="Catalogue"))):
                if not isinstance(node.args[0], ast.Name) or node.args[0].id != "__name__":
                    yield "?"


def trespasses(module: str, source: str) -> list[str]:
    """The imports of a module (``package/path.py``) that its package may not make."""
    package = module.partition("/")[0]
    allowed = MAY_IMPORT.keys() if module == CALLS_STAGES else MAY_IMPORT[package] | {package}
    barred = MAY_IMPORT.keys() - allowed | OUTSIDE
    wrong = [name for name in imports(source) if name.partition(".")[0] in barred]
    knows = module in {NAMES_STAGES_AS_STRINGS, LISTS_ITS_CALLERS}
    computed = [name for name in imports(source) if name in {"?", "."} and not knows]
    above = [name for name in imports(source) if f"{name.replace('.', '/')}.py" == CALLS_STAGES]
    return wrong + computed + above


def rooms(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The imports between the rooms of a package, from the sources of its modules by their paths.

    A folder of the package is a room, and so is each module beside the folders.
    """
    found: dict[str, set[str]] = defaultdict(set)
    places = {module.removesuffix(".py").replace("/", "."): _room(module) for module in sources}
    for module, source in sources.items():
        for name in imports(source):
            target = next(
                (candidate for candidate in (name, f"{name}.__init__", name.rpartition(".")[0]) if candidate in places),
                None,
            )
            if target is not None and places[target] != _room(module):
                found[_room(module)].add(places[target])
    return found


def _room(module: str) -> str:
    return module.split("/")[1].removesuffix(".py")


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_the_rooms_of_a_package_import_one_way(package: str) -> None:
    paths = (path for path in modules() if path.is_relative_to(ROOT / package))
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    TopologicalSorter(rooms(sources)).prepare()


def test_a_planted_circle_of_rooms_is_found() -> None:
    sources = {
        "x/a/one.py": "from x.b.two import f",
        "x/b/two.py": "from x.three import g",
        "x/three.py": "from x.a.four import h",
        "x/a/four.py": "from x.a import one",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(rooms(sources)).prepare()


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_lies_below_its_package(path: Path) -> None:
    assert trespasses(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sql/x.py", "from miner.mine import mine"),
        ("prchain/x.py", "def f():\n    import sql.store"),
        ("miner/x.py", "import chains.graph as g"),
        ("miner/x.py", "from tests.emulator import World"),
        ("chains/x.py", "from research.shares import wilson"),
        ("environments/x.py", "import importlib\nimportlib.import_module('chains.edges.graph')"),
        ("environments/x.py", "import importlib\nimportlib.import_module(f'chains.edges.{name}')"),
        ("environments/x.py", "import importlib\nimportlib.import_module(f'{name}.edges')"),
        ("prchain/x.py", "import importlib\nimportlib.import_module(name)"),
        ("environments/x.py", "Catalogue('chains.edges', 'EDGE')"),
        ("environments/x.py", "Catalogue[Edge](folder, 'EDGE')"),
        ("sql/x.py", "from ..miner import mine"),
        ("trajectories/x.py", "import prchain.api"),
        ("prchain/api.py", "from tests.emulator import World"),
    ],
)
def test_a_planted_import_upwards_is_found(module: str, source: str) -> None:
    assert len(trespasses(module, source)) == 1


def test_the_command_group_names_only_modules_that_exist_in_a_stage() -> None:
    from prchain.cli import COMMANDS

    for place, _ in COMMANDS.values():
        module = place.partition(":")[0]
        assert module.partition(".")[0] in MAY_IMPORT.keys() - {"prchain"}
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file()
