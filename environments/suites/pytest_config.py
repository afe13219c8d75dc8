"""Which files pytest takes for tests, where a repository says so itself.

PyGithub, for one, names its test files ``tests/Repository.py`` and sets ``python_files = "tests/*.py"``. Read as pytest
reads it (its reference: "Configuration file formats", "python_files"): the first file of `CONFIG_FILES` that has a
section for pytest counts, alone; a pattern with a slash is held against the path from the right, another one against
the file's name. Only files in the root are looked at.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from configparser import ConfigParser, Error
from fnmatch import fnmatchcase
from typing import Any

CONFIG_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""In the order in which pytest looks for them."""

_INI_SECTIONS = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}
_NEVER = frozenset({"__init__.py", "conftest.py", "setup.py"})
"""An ``__init__.py`` that is named stands for its whole folder in some versions of pytest."""


def python_files(texts: Mapping[str, str]) -> tuple[str, ...]:
    """The patterns of a repository for its test files; empty where it sets none, and pytest's own hold.

    `texts` are the contents of those of `CONFIG_FILES` that the root has. One that cannot be read has no section.
    """
    for name in CONFIG_FILES:
        if name in texts and (section := _section(name, texts[name])) is not None:
            found = section.get("python_files", ())
            words = found.split() if isinstance(found, str) else found if isinstance(found, list) else ()
            return tuple(word for word in words if isinstance(word, str))
    return ()


def is_named_by(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path, relative to the root, is a Python file that one of the patterns takes for tests."""
    name = path.rpartition("/")[2]
    if not name.endswith(".py") or name in _NEVER:
        return False
    return any(
        fnmatchcase(f"/{path}", f"*/{pattern}") if "/" in pattern else fnmatchcase(name, pattern)
        for pattern in patterns
    )


def _section(name: str, text: str) -> Mapping[str, Any] | None:
    """The settings of pytest in a file; None where it has none, which an own file of pytest cannot say."""
    if name in _INI_SECTIONS:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(text)
        except Error:
            return None
        section = _INI_SECTIONS[name]
        if parser.has_section(section):
            return dict(parser[section])
        return {} if name in {"pytest.ini", ".pytest.ini"} else None
    try:
        values: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    if name == "pyproject.toml":
        settings = _table(_table(values, "tool"), "pytest")
        return _table(settings, "ini_options") or settings or None
    return _table(values, "pytest") or {}


def _table(values: Any, name: str) -> dict[str, Any]:
    found = values.get(name) if isinstance(values, dict) else None
    return found if isinstance(found, dict) else {}
