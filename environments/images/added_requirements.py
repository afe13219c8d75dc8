"""What a stage's own landing adds to the requirements of its repository.

An image follows from the manifests of B_t. Where the reference begins to need a package, M_t's tests fail in such an
image, and an agent, who is offline, could not put it in either; so it is wished for, as what tox and CI name is.
SWE-bench's environments, made once for a version of a repository, hold such packages, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from environments.images.python_project import config_sections, plain_name, read_project
from environments.images.requirement_lines import flat_lines, is_requirement, plain_lines, poetry_requirement
from environments.images.tolerant_toml import items_of, table_of, toml_of
from environments.images.wishes import listed_in_setup, wishes

_MOST = 20
"""Packages; a landing that needs more anew has made another project of it."""


def added_requirements(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The requirements of packages that the manifests `after` name for tests or the project and those `before` do not,
    one a package. Both are path to content, of B_t and M_t; another version of a package is no other package."""
    if before == after:
        return ()
    known = {_package(line) for line in _lines(before)}
    found: dict[str, str] = {}
    for line in _lines(after):
        if is_requirement(line) and _package(line) not in known:
            found.setdefault(_package(line), line)
    return tuple(found.values())[:_MOST]


def _package(line: str) -> str:
    return plain_name(re.split(r"[^A-Za-z0-9._-]", line)[0])


def _lines(texts: Mapping[str, str]) -> Iterator[str]:
    project = read_project(texts)
    pyproject = toml_of(texts.get("pyproject.toml", ""))
    own, poetry = table_of(pyproject, "project"), table_of(table_of(pyproject, "tool"), "poetry")
    config = config_sections(texts.get("setup.cfg", ""))
    yield from _texts(own.get("dependencies"))
    for name, dependency in table_of(poetry, "dependencies").items():
        if name != "python" and (line := poetry_requirement(name, dependency)):
            yield line
    yield from plain_lines(config.get("options", {}).get("install_requires", ""))
    yield from listed_in_setup(texts.get("setup.py", ""), "install_requires")
    extras: Mapping[str, Any] = table_of(own, "optional-dependencies")
    for name in project.chosen_extras():
        yield from _texts(extras.get(name))
        yield from plain_lines(config.get("options.extras_require", {}).get(name, ""))
    yield from project.chosen_groups()
    for path in project.chosen_files():
        yield from flat_lines(path, texts)
    yield from wishes(texts)


def _texts(value: Any) -> Iterator[str]:
    return (item for item in items_of(value) if isinstance(item, str))
