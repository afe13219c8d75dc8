"""The packages import only what an installation without the developers' tools has."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
INSIDE = ("environments/suites/reporters/", "environments/images/inside/")
"""Run by the Python of an image, with the packages there."""


def imported(source: str) -> set[str]:
    """The top-level names that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def distribution_names(requirements: list[str]) -> set[str]:
    return {
        re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement)[0]).lower() for requirement in requirements
    }


def test_every_package_that_is_imported_is_a_dependency_or_an_extra_for_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    declared = distribution_names([*project["dependencies"], *extras])
    homes = packages_distributions()
    missing = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            if place.startswith(INSIDE):
                continue
            for name in imported(path.read_text(encoding="utf-8")) - set(ROOMS) - sys.stdlib_module_names:
                if not distribution_names(homes.get(name, [name])) & declared:
                    missing[name] = place
    assert missing == {}


def test_an_import_within_a_function_is_found() -> None:
    assert imported("def f():\n    import a.b\n    from c.d import e\nfrom . import g\n") == {"a", "c"}
