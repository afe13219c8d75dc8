"""Requirements as pip reads them, from the forms that other tools write: Poetry's tables, lock files."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")

_VERSION = re.compile(r"^[A-Za-z0-9.!+_-]{1,100}$")

_LONGEST_VERSION = 100
"""Python refuses to read a number of some thousand digits."""


def poetry_requirement(name: str, dependency: Any) -> str | None:
    """A dependency of Poetry's table as PEP 508 writes it; None for one by path, or that cannot be written so.

    `dependency` is a version, a table, or a list of tables for several platforms, of which the first counts.
    https://python-poetry.org/docs/dependency-specification/
    """
    if isinstance(dependency, list):
        dependency = dependency[0] if dependency else "*"
    table: Mapping[str, Any] = dependency if isinstance(dependency, Mapping) else {"version": dependency}
    if not _NAME.match(name):
        return None
    named = table.get("extras")
    extras = f"[{','.join(map(str, named))}]" if isinstance(named, list) and named else ""
    marker = f" ; {table['markers']}" if table.get("markers") else ""
    if "git" in table:
        reference = table.get("rev") or table.get("tag") or table.get("branch")
        return f"{name}{extras} @ git+{table['git']}{f'@{reference}' if reference else ''}{marker}"
    if "url" in table:
        return f"{name}{extras} @ {table['url']}{marker}"
    if "path" in table:
        return None
    return f"{name}{extras}{poetry_specifier(str(table.get('version', '*')))}{marker}"


def poetry_specifier(constraint: str) -> str:
    """Poetry's version constraint as PEP 440 writes it; empty where any version will do, or with ``||``."""
    if "||" in constraint or "|" in constraint:
        return ""
    parts = [part.strip() for part in constraint.replace(" ", ",").split(",") if part.strip()]
    joined: list[str] = []
    for part in parts:  # ">= 1.0" was split at its space
        if joined and re.fullmatch(r"[<>=!~^]+", joined[-1]):
            joined[-1] += part
        else:
            joined.append(part)
    return ",".join(found for part in joined if (found := _one_specifier(part)))


def _one_specifier(part: str) -> str:
    if part in {"*", ""}:
        return ""
    if part.startswith("^"):
        return _up_to(part[1:], caret=True)
    if part.startswith("~") and not part.startswith("~="):
        return _up_to(part[1:], caret=False)
    if part[0].isdigit():
        return f"=={part}"
    return f"={part}" if re.match(r"^=[^=]", part) else part


def _up_to(version: str, *, caret: bool) -> str:
    """Caret: the first number that is not 0 stays; tilde: the second one, where it was given."""
    if len(version) > _LONGEST_VERSION:
        return ""
    numbers = [int(number) for number in re.findall(r"\d+", re.split(r"[a-zA-Z+-]", version)[0])] or [0]
    if caret:
        keep = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        keep = min(1, len(numbers) - 1)
    top = [*numbers[:keep], numbers[keep] + 1]
    return f">={version},<{'.'.join(map(str, top))}"


def lock_pins(path: str, text: str) -> list[str]:
    """The versions that a lock file pins, as ``name==version``, sorted: of uv, Poetry, PDM and Pipenv.

    Left out is what stands in several versions (for several platforms) and what comes from a folder or from git. A file
    that cannot be read pins nothing.
    """
    try:
        found = _pipfile_pins(text) if path.endswith("Pipfile.lock") else _table_pins(text)
    except (ValueError, AttributeError, TypeError):
        return []
    versions: dict[str, set[str]] = {}
    for name, version in found:
        if _NAME.match(name) and _VERSION.match(version):
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(version)
    return sorted(f"{name}=={min(these)}" for name, these in versions.items() if len(these) == 1)


def _table_pins(text: str) -> list[tuple[str, str]]:
    pins = []
    for package in tomllib.loads(text).get("package", []):
        source = package.get("source", {})
        local = {"editable", "virtual", "directory", "git", "path", "url"} & set(source)
        if not local and source.get("type") not in {"directory", "git", "file", "url"}:
            pins.append((str(package.get("name", "")), str(package.get("version", ""))))
    return pins


def _pipfile_pins(text: str) -> list[tuple[str, str]]:
    lock = json.loads(text)
    tables = [*lock.get("default", {}).items(), *lock.get("develop", {}).items()]
    return [(name, str(table.get("version", "")).removeprefix("==")) for name, table in tables]


def plain_lines(text: str) -> list[str]:
    """The lines of a requirement file that say something, without comments and with continued lines joined."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line]


def flat_lines(path: str, texts: Mapping[str, str]) -> list[str]:
    """The lines of a requirement file with those of the files that it includes (``-r``), each once.

    `texts` are the files that are known, path to content; an included file that is not there is left out.
    Constraints and other options are left out.
    """
    found: list[str] = []
    waiting, read = [("", f"-r {path}")], set[str]()
    while waiting:  # no recursion and no file twice: files are hostile
        folder, line = waiting.pop()
        included = re.match(r"(?:-r|--requirement)[ =]*(.+)$", line)
        if included:
            included_path = posixpath.normpath(posixpath.join(folder, included[1]))
            if included_path not in read:
                read.add(included_path)
                of_file = reversed(plain_lines(texts.get(included_path, "")))
                waiting += [(posixpath.dirname(included_path), it) for it in of_file]
        elif not line.startswith("-") or re.match(r"(?:-e|--editable)\b", line):
            found.append(line)
    return list(dict.fromkeys(found))


def is_requirement(line: str) -> bool:
    """Whether a line is a requirement by name, as PEP 508 writes it, and neither an option nor a path.

    What cannot be printed is none: a line break in it would begin a line of its own in a requirement file.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415  loaded with the first project

    if not line.replace("\t", " ").isprintable():
        return False
    try:
        Requirement(line)
    except (ValueError, RecursionError):  # `InvalidRequirement` is a ValueError; a marker may have too many brackets
        return False
    return True
