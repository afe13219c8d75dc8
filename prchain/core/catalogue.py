"""Folders that serve as lists: each module holds one item, and a new module adds an item.

RUNNERS = Catalogue[Runner](__name__, "RUNNER")     # in the folder's __init__.py; each module has a RUNNER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar, cast

from prchain.core.errors import UsageError

Thing = TypeVar("Thing")


class Catalogue(Mapping[str, Thing]):
    """The items of a folder's modules by name, sorted; an item has its module's name, with hyphens.

    Names are read from the folder alone. A module is imported when its item is looked up.
    """

    def __init__(self, folder: str, constant: str) -> None:
        """`folder` is the package that makes the catalogue, `constant` the name of the item in each module."""
        self._folder = folder
        self._constant = constant

    def __getitem__(self, name: str) -> Thing:
        module = import_module(f".{self._modules[name]}", self._folder)
        return cast(Thing, getattr(module, self._constant))

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def named(self, name: str) -> Thing:
        """The item of a name that a user gave. Raises `UsageError` where there is none."""
        if name not in self:
            raise UsageError(f"there is no {self._constant.lower()} {name!r}; known are {', '.join(self)}")
        return self[name]

    @property
    def _modules(self) -> Mapping[str, str]:
        return _modules(tuple(sys.modules[self._folder].__path__))


@cache
def _modules(paths: tuple[str, ...]) -> Mapping[str, str]:
    """Name to module, for every module of the folders."""
    return {name.replace("_", "-"): name for name in sorted(module.name for module in iter_modules(paths))}
