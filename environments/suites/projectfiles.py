"""Project files as values: the formats that have steering sections, and getting and setting a section by its path."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import tomli_w

_MOST_DOTS = 2_000
"""In a line of TOML: reading takes quadratic time in the dots of a key."""
_LONGEST = 1 << 20
"""Characters of a file of TOML."""

Part = tuple[str, ...]
"""The path of a section, key by key: ``("tool", "pytest")``."""


@dataclass(frozen=True, slots=True)
class ProjectFormat:
    """How a file is read and written. `read` raises `ValueError`, `TypeError`, `AttributeError` or
    `configparser.Error` for a text that is no such file; comments and layout are lost."""

    read: Callable[[str], dict[str, Any]]
    write: Callable[[dict[str, Any]], str]


def get_part(values: Mapping[str, Any], part: Part) -> Any:
    """The value at a path; None where there is none."""
    found: Any = values
    for key in part:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def set_part(values: dict[str, Any], part: Part, value: Any) -> None:
    """Set the value at a path; None takes it out. Raises `TypeError` where the path leads through what is no table."""
    *folders, last = part
    table: Any = values
    for key in folders:
        if key not in table and value is None:
            return
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise TypeError(f"{key} is no table")
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def _read_toml(text: str) -> dict[str, Any]:
    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()) or len(text) > _LONGEST:
        raise ValueError("too large")
    return tomllib.loads(text)


def _read_ini(text: str) -> dict[str, Any]:
    parser = _parser()
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _write_ini(values: dict[str, Any]) -> str:
    parser = _parser()
    parser.read_dict(values)
    text = StringIO()
    parser.write(text)
    return text.getvalue()


class _CaseParser(RawConfigParser):
    """Keeps names as they are written."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def _parser() -> RawConfigParser:
    return _CaseParser(strict=False, allow_no_value=True, default_section="\0")


def _read_json(text: str) -> dict[str, Any]:
    value = json.loads(text or "{}", parse_float=_exact)
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _exact(text: str) -> float:
    """A number, where it would be written as the same number. Raises `ValueError`."""
    number = float(text)
    if Decimal(text) != Decimal(repr(number)):
        raise ValueError(f"{text} is no number that can be kept")
    return number


def _read_xml(text: str) -> dict[str, Any]:
    try:
        root = ElementTree.fromstring(text or "<none/>")
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    values: dict[str, Any] = {_ROOT: [root.tag, dict(root.attrib)]}
    for child in root:
        child.tail = None
        values.setdefault(child.tag.rpartition("}")[2], []).append(
            ElementTree.canonicalize(ElementTree.tostring(child), strip_text=True)
        )
    return values


def _write_xml(values: dict[str, Any]) -> str:
    tag, attributes = values[_ROOT]
    root = ElementTree.Element(tag, attributes)
    for name, children in values.items():
        if name != _ROOT:
            root.extend(ElementTree.fromstring(child) for child in children)
    # Maven reads names with their prefix.
    space = tag[1:].partition("}")[0] if tag.startswith("{") else None
    return ElementTree.tostring(root, encoding="unicode", default_namespace=space)


_ROOT = "<root>"
_TOML = ProjectFormat(_read_toml, tomli_w.dumps)
_INI = ProjectFormat(_read_ini, _write_ini)
_XML = ProjectFormat(_read_xml, _write_xml)
_JSON = ProjectFormat(_read_json, lambda values: json.dumps(values, indent=2, allow_nan=False) + "\n")

FORMATS: Mapping[str, ProjectFormat] = {
    "pyproject.toml": _TOML,
    "cargo.toml": _TOML,
    "setup.cfg": _INI,
    "tox.ini": _INI,
    "package.json": _JSON,
    "pom.xml": _XML,
}
"""By the file's name in small letters."""
