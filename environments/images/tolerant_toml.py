"""TOML of trees, which are hostile: what is of another type than wanted counts as not said, for whoever builds by it
says so in words of its own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any


def toml_of(text: str) -> Mapping[str, Any]:
    """A text as a table; empty where it is no TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # a number may have more digits than Python reads
        return {}


def table_of(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of a table; empty where there is none."""
    value = parent.get(name, {})
    return value if isinstance(value, Mapping) else {}


def items_of(value: Any) -> list[Any]:
    """A list as it is; empty for what is none."""
    return value if isinstance(value, list) else []
