"""Names of Python itself: its builtins, and what code takes from the standard library. No patch introduces them."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable
from functools import cache

from prchain.core.code.identifiers import NO_NAMES, defined_names, identifiers
from prchain.core.code.lexing import family_of, lex
from prchain.core.git.patches import FilePatch

_FROM = re.compile(r"\bfrom[ \t]+(\w+)[\w.]*[ \t]+import[ \t]*(?:\(([^()]{0,4000})\)|([^\n(]{0,400}))")
_DOTTED = re.compile(r"(?<![\w.])([^\W\d]\w*)((?:\.[^\W\d]\w*){1,5})")


@cache
def builtin_names() -> frozenset[str]:
    """The builtins of the Python that runs, their public methods, and the modules of its standard library."""
    types = [value for value in vars(builtins).values() if isinstance(value, type)]
    methods = {name for value in types for name in dir(value) if not name.startswith("_")}
    return frozenset({*dir(builtins), *methods, *sys.stdlib_module_names})


def library_names(patches: Iterable[FilePatch]) -> set[str]:
    """The names in the added lines of Python that are Python's own and that none of these lines defines.

    Of the standard library: what is imported from one of its modules, and what stands behind the dot of one.
    """
    found: set[str] = set()
    defined: set[str] = set()
    for patch in patches:
        if family_of(patch.path) != "python":
            continue
        code = lex(patch.added, patch.path).code
        found |= builtin_names().intersection(identifiers(code))
        for module, several, one in _FROM.findall(code):
            if module in sys.stdlib_module_names:
                found.update(identifiers(several or one))
        for module, rest in _DOTTED.findall(code):
            if module in sys.stdlib_module_names:
                found.update(identifiers(rest))
        defined |= defined_names(patch.added, patch.path)
    return found - defined - NO_NAMES
