"""Exceptions of an index as of a day (`dated_indexes.toml`), as uv's configuration has them.

https://docs.astral.sh/uv/reference/settings/#exclude-newer-package
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources

from prchain.core.timestamps import stamp


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    file = resources.files("environments.images") / "dated_indexes.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def exceptions(as_of: datetime, *, installs: bool) -> dict[str, str]:
    """Package to the day as of which it is taken, where that is later than `as_of`; with `installs` build tools that
    put a project in, else those that build what it needs."""
    tables = _tables()
    days = {**tables["packages"], **tables["installs" if installs else "builds"]}
    own = stamp(as_of)
    return {name: f"{day}T00:00:00Z" for name, day in sorted(days.items()) if f"{day}T00:00:00Z" > own}


def uv_configuration(as_of: datetime, *, installs: bool) -> bytes:
    """A ``uv.toml`` with these exceptions."""
    lines = [f'{name} = "{day}"\n' for name, day in exceptions(as_of, installs=installs).items()]
    return ("[exclude-newer-package]\n" + "".join(lines)).encode()
