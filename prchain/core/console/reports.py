"""Reports: what a command found, apart from how it is shown.

A report is a frozen dataclass that a query fills. A printer shows it to people; `json_value` gives the same value to
machines, and can give it to a page. The names of its fields are the keys of the JSON, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

WHERE_ASKED = {"where_asked": True}
"""Metadata of a field that JSON leaves out where it is None: it is there for those only who asked for it."""


def json_value(value: Any) -> Any:
    """A report, or anything made of reports, mappings and lists, as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {it.name: json_value(getattr(value, it.name)) for it in fields(value) if _is_said(value, it)}
    if isinstance(value, Mapping):
        return {name: json_value(item) for name, item in value.items()}
    return [json_value(item) for item in value] if isinstance(value, list | tuple) else value


def _is_said(value: Any, field: Field[Any]) -> bool:
    return not field.metadata.get("where_asked") or getattr(value, field.name) is not None
