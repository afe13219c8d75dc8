"""The test runners, one a module: each module of this folder holds one, as `RUNNER`.

To add a runner, add its module here and a recipe that names it (`environments.images.recipes`). Where SWE-bench has a
log parser for it, a line of `prchain.logparsers` says so; where a reporter of ours is to sign its results, a file in
`environments/suites/reporters` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from environments.suites.runner import Runner

DEFAULT = "pytest"
"""The runner of a recipe that names none."""


@cache
def runners() -> Mapping[str, Runner]:
    """All runners by name, sorted."""
    names = sorted(module.name for module in iter_modules(__path__))
    found: list[Runner] = [import_module(f"environments.suites.runners.{name}").RUNNER for name in names]
    return {runner.name: runner for runner in found}
