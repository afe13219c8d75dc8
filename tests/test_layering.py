"""Imports point one way only: the table of the design, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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

NAMES_STAGES_AS_STRINGS = "prchain/cli.py"
"""The one module that loads what stands above it, when a command is called."""


def modules() -> list[Path]:
    return sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def imports(source: str) -> Iterator[str]:
    """Every module that the source imports, at its top or inside a function, and those of ``import_module("...")``."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom(level=level) if level:
                yield "."
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                yield str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else "?"


def trespasses(module: str, source: str) -> list[str]:
    """The imports of a module (``package/path.py``) that its package may not make."""
    package = module.partition("/")[0]
    allowed = MAY_IMPORT[package] | {package}
    wrong = [name for name in imports(source) if name.partition(".")[0] in MAY_IMPORT.keys() - allowed | {"tests"}]
    computed = [name for name in imports(source) if name in {"?", "."} and module != NAMES_STAGES_AS_STRINGS]
    return wrong + computed


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
        ("environments/x.py", "import importlib\nimportlib.import_module('chains.edges.graph')"),
        ("prchain/x.py", "import importlib\nimportlib.import_module(name)"),
        ("sql/x.py", "from ..miner import mine"),
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
