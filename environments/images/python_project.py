"""What the manifests of a Python project say about its dependencies, read without running anything of it."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from environments.images.globs import matches
from environments.images.nested_projects import OF_PROJECT, nested_folders
from environments.images.requirement_lines import (
    is_requirement,
    lock_pins,
    plain_lines,
    poetry_requirement,
    poetry_specifier,
)
from environments.images.tolerant_toml import items_of, table_of, toml_of
from environments.suites.syntax import parsed, unless_too_deep

_TESTS = re.compile(
    r"^(?:unit)?(?:py)?-?test(?:s|ing)?(?:-(?:extra|all|core|base|ci|common|default|deps|unit|requirements?))*$"
)
_DEVELOPMENT = re.compile(r"^(?:dev(?:el|elop|elopment)?(?:-(?:deps|dependencies|requirements?))?|ci)$")
_EVERYTHING = re.compile(r"^(?:all|full|complete|everything)$")
_BASE = re.compile(r"^(?:|base|main|default|install|core|common|requirements?)$")

_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")

_BACKENDS = {
    "hatchling": ["editables"],
    "setuptools": ["setuptools", "wheel"],
    "mesonpy": ["meson", "ninja"],
    "scikit_build_core": ["ninja"],
}
"""What a backend needs for an editable install, beyond what the project names."""

_OF_HATCH = ("dependencies", "extra-dependencies")
"""What an environment of hatch installs."""

_EXTRA = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$")


@dataclass(frozen=True, slots=True)
class PythonProject:
    """What a tree's manifests ask for. Names of extras, groups and files stand in the order of the manifests."""

    installable: bool = False
    requires_python: str = ""
    """PEP 440; empty where nothing is said."""
    build_requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a dependency group, of whatever tool, to its requirements."""
    requirement_files: tuple[str, ...] = ()
    """Requirement files for tests, development or the project itself, by their names."""
    tox_requirements: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """The folders of the workspace's members that can be installed, sorted; of a tree that is neither a project nor a
    workspace those of the projects in it."""
    member_extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of such projects: folder to the extras that tests may need."""
    pins: tuple[str, ...] = ()
    """``name==version`` of the lock file."""

    def chosen_extras(self, *, fewer: bool = False) -> tuple[str, ...]:
        """The extras that tests may need: for tests, development, or everything; `fewer` leaves the last out."""
        return tuple(name for name in self.extras if _is(name, *_extra_kinds(fewer)))

    def chosen_files(self, *, fewer: bool = False) -> tuple[str, ...]:
        """The requirement files that tests may need; `fewer` leaves out development's where tests have some."""
        stems = {path: _stem(path) for path in self.requirement_files}
        if not fewer or not any(_is(stem, _TESTS) for stem in stems.values()):
            return self.requirement_files
        return tuple(path for path, stem in stems.items() if not _is(stem, _DEVELOPMENT))

    def chosen_groups(self, *, fewer: bool = False) -> tuple[str, ...]:
        """The requirements of the groups that tests may need; `fewer` leaves out development where tests have one."""
        tests = [name for name in self.groups if _is(name, _TESTS)]
        both = [name for name in self.groups if _is(name, _TESTS, _DEVELOPMENT)]
        names = tests if fewer and tests else both
        return tuple(dict.fromkeys(line for name in names for line in self.groups[name]))


def read_project(texts: Mapping[str, str]) -> PythonProject:
    """The project that these manifests (path to content) describe. A manifest that cannot be read counts as empty."""
    pyproject = toml_of(texts.get("pyproject.toml", ""))
    config = config_sections(texts.get("setup.cfg", ""))
    setup = _setup_call(texts.get("setup.py", ""))
    project, tool = table_of(pyproject, "project"), table_of(pyproject, "tool")
    poetry = table_of(tool, "poetry")
    found = {
        path.rpartition("/")[0]: toml_of(texts[path]) for path in sorted(texts) if path.endswith("/pyproject.toml")
    }
    members = {folder: table for folder, table in found.items() if _is_member(folder, pyproject)}
    installable = bool(
        "setup.py" in texts
        or config.get("metadata", {}).get("name")
        or "build-system" in pyproject
        or project
        or poetry.get("name")
    ) and not _is_no_package(poetry, table_of(pyproject, "build-system"))
    python = (
        project.get("requires-python")
        or poetry_specifier(str(table_of(poetry, "dependencies").get("python", "")))
        or config.get("options", {}).get("python_requires")
        or setup.get("python_requires")
        or ""
    )
    extras = [
        *table_of(project, "optional-dependencies"),
        *table_of(poetry, "extras"),
        *config.get("options.extras_require", {}),
        *setup.get("extras_require", ()),
    ]
    nested = {} if installable or members else _nested(texts)
    python = python or ",".join(dict.fromkeys(it.requires_python for it in nested.values() if it.requires_python))
    builds = _build_requires(pyproject, _setup_requires(config, setup)) if installable else ()
    return PythonProject(
        installable=installable,
        requires_python=str(python) if re.fullmatch(r"[0-9.<>=!~, *]{1,60}", str(python)) else "",
        build_requires=tuple(dict.fromkeys((*builds, *(line for it in nested.values() for line in it.build_requires)))),
        extras=tuple(dict.fromkeys(name for name in extras if _EXTRA.match(str(name)))),
        groups=_all_groups(pyproject, members),
        members=(
            *(folder for folder, table in members.items() if table.keys() & {"project", "build-system"}),
            *nested,
        ),
        member_extras={folder: it.chosen_extras() for folder, it in nested.items()},
        requirement_files=_requirement_files(texts),
        tox_requirements=_tox(texts.get("tox.ini", "")),
        pins=_pins(texts),
    )


def _is_no_package(poetry: Mapping[str, Any], build: Mapping[str, Any]) -> bool:
    """Whether poetry is told that there is nothing to put in. Where another tool builds the project, poetry only keeps
    its developers' environments."""
    return poetry.get("package-mode", True) is False and "poetry" in str(build.get("build-backend", "poetry"))


def _nested(texts: Mapping[str, str]) -> dict[str, PythonProject]:
    own = {
        folder: {name: texts[f"{folder}/{name}"] for name in OF_PROJECT if f"{folder}/{name}" in texts}
        for folder in nested_folders(texts)
    }
    found = {folder: read_project(of_folder) for folder, of_folder in own.items()}
    return {folder: project for folder, project in found.items() if project.installable}


def extra_patterns(*, fewer: bool = False) -> list[str]:
    """The regular expressions of `PythonProject.chosen_extras`, of names as `plain_name` writes them."""
    return [kind.pattern for kind in _extra_kinds(fewer)]


def _extra_kinds(fewer: bool) -> tuple[re.Pattern[str], ...]:
    return (_TESTS, _DEVELOPMENT) if fewer else (_TESTS, _DEVELOPMENT, _EVERYTHING)


def is_workspace_member(path: str, pyproject: str) -> bool:
    """Whether a path is the manifest of a member of the workspace that the root's ``pyproject.toml`` declares.

    https://docs.astral.sh/uv/concepts/projects/workspaces/
    """
    folder, _, name = path.rpartition("/")
    return name == "pyproject.toml" and _is_member(folder, toml_of(pyproject))


def dynamic_files(pyproject: str) -> tuple[str, ...]:
    """The files that setuptools reads dependencies from; they are manifests whatever their names."""
    dynamic = table_of(table_of(table_of(toml_of(pyproject), "tool"), "setuptools"), "dynamic")
    tables = [table_of(dynamic, "dependencies"), *table_of(dynamic, "optional-dependencies").values()]
    found: list[str] = []
    for table in tables:
        files = table.get("file") if isinstance(table, Mapping) else None
        found += [files] if isinstance(files, str) else map(str, items_of(files))
    return tuple(found)


def tox_deps(text: str) -> list[str]:
    """The lines of ``deps`` of tox's default environment, and its ``extras`` as ``.[EXTRA]``."""
    section = config_sections(text).get("testenv", {})
    extras = (line for lines in plain_lines(section.get("extras", "")) for line in lines.split(","))
    return [*plain_lines(section.get("deps", "")), *(f".[{extra.strip()}]" for extra in extras)]


def _is(name: str, *kinds: re.Pattern[str]) -> bool:
    return any(kind.match(plain_name(name)) for kind in kinds)


def config_sections(text: str) -> dict[str, dict[str, str]]:
    """The sections of a text as of ``setup.cfg``; none where it cannot be read."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError):  # the second for a line that goes on where there is no value
        return {}
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def _setup_call(text: str) -> dict[str, Any]:
    """``python_requires`` and the names of ``extras_require`` of the call of setup(), where they are plain values."""
    tree = parsed(text)
    return {} if tree is None else unless_too_deep(lambda: _in_setup(tree)) or {}


def _in_setup(tree: ast.Module) -> dict[str, Any]:
    values: dict[str, ast.expr] = {}
    added: dict[str, list[str]] = {}
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                values[target.id] = value
            elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):  # extras["x"] = ...
                added.setdefault(ast.unparse(target.value), []).append(str(target.slice.value))
    found: dict[str, Any] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "setup":
            for keyword in call.keywords:
                value = (
                    values.get(keyword.value.id, keyword.value)
                    if isinstance(keyword.value, ast.Name)
                    else keyword.value
                )
                if keyword.arg == "python_requires" and isinstance(value, ast.Constant):
                    found["python_requires"] = str(value.value)
                if keyword.arg == "setup_requires" and isinstance(value, ast.List | ast.Tuple):
                    lines = [str(item.value) for item in value.elts if isinstance(item, ast.Constant)]
                    found["setup_requires"] = [line for line in lines if is_requirement(line)]
                if keyword.arg == "extras_require" and isinstance(value, ast.Dict):
                    keys = [str(key.value) for key in value.keys if isinstance(key, ast.Constant)]
                    name = keyword.value.id if isinstance(keyword.value, ast.Name) else ""
                    found["extras_require"] = [*keys, *added.get(name, ())]
    return found


def _setup_requires(config: Mapping[str, Mapping[str, str]], setup: Mapping[str, Any]) -> list[str]:
    """What setup() has fetched before it runs; without the network it must be there."""
    named = plain_lines(config.get("options", {}).get("setup_requires", ""))
    return [line for line in (*named, *setup.get("setup_requires", ())) if is_requirement(line)]


def _build_requires(pyproject: Mapping[str, Any], of_setup: Sequence[str]) -> tuple[str, ...]:
    system = table_of(pyproject, "build-system")
    requires = [str(line) for line in items_of(system.get("requires")) if is_requirement(str(line))]
    backend = str(system.get("build-backend", "setuptools.build_meta")).partition(".")[0]
    return tuple(dict.fromkeys([*requires, *of_setup, *_BACKENDS.get(backend, [])]))


def _groups(pyproject: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    tool = table_of(pyproject, "tool")
    poetry = table_of(tool, "poetry")
    groups: dict[str, list[str]] = {}
    plain = table_of(pyproject, "dependency-groups")
    for name in plain:
        groups.setdefault(name, []).extend(_group(plain, name))
    tables = {"dev": table_of(poetry, "dev-dependencies")}
    named = table_of(poetry, "group")
    tables |= {name: table_of(table_of(named, name), "dependencies") for name in named}
    for name, table in tables.items():
        lines = (poetry_requirement(key, constraint) for key, constraint in table.items())
        groups.setdefault(name, []).extend(line for line in lines if line)
    of_pdm = table_of(table_of(tool, "pdm"), "dev-dependencies")
    lists = {"dev": items_of(table_of(tool, "uv").get("dev-dependencies"))}
    lists |= {name: items_of(lines) for name, lines in of_pdm.items()}
    for name, environment in table_of(table_of(tool, "hatch"), "envs").items():
        if isinstance(environment, Mapping):
            dependencies = [line for key in _OF_HATCH for line in items_of(environment.get(key))]
            lists.setdefault({"default": "dev", "hatch-test": "test"}.get(name, name), []).extend(dependencies)
    for name, requirements in lists.items():
        groups.setdefault(name, []).extend(map(str, requirements))
    kept = {
        name: tuple(line for line in dict.fromkeys(lines) if is_requirement(line)) for name, lines in groups.items()
    }
    return {name: lines for name, lines in kept.items() if lines}


def _all_groups(pyproject: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The groups of a project and, under the same names, those of its workspace's members; without the members."""
    groups = _groups(pyproject)
    own = {plain_name(str(table_of(table, "project").get("name", ""))) for table in members.values()}
    for table in members.values():
        for name, lines in _groups(table).items():
            groups[name] = tuple(dict.fromkeys([*groups.get(name, ()), *lines]))
    return {
        name: tuple(line for line in lines if plain_name(re.split(r"[^A-Za-z0-9._-]", line)[0]) not in own)
        for name, lines in groups.items()
    }


def _is_member(folder: str, pyproject: Mapping[str, Any]) -> bool:
    workspace = table_of(table_of(table_of(pyproject, "tool"), "uv"), "workspace")
    included, excluded = (
        tuple(
            glob.strip("/")
            for glob in map(str, items_of(workspace.get(key)))
            if re.fullmatch(r"[A-Za-z0-9_.*?/-]+", glob)
        )
        for key in ("members", "exclude")
    )
    plain = re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*", folder) is not None
    return plain and matches(folder, included) and not matches(folder, excluded)


def plain_name(name: str) -> str:
    """The name of a package or an extra as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _group(groups: Mapping[str, Any], name: str) -> list[str]:
    """The requirements of a group of PEP 735 with those that it includes, each group once."""
    lines: list[str] = []
    waiting: list[Any] = [{"include-group": name}]
    read = set[str]()
    while waiting:  # no recursion: files are hostile
        entry = waiting.pop()
        if isinstance(entry, str):
            lines.append(entry)
        elif isinstance(entry, Mapping) and (included := str(entry.get("include-group", ""))) not in read:
            read.add(included)
            waiting += reversed(items_of(groups.get(included)))
    return lines


def _requirement_files(paths: Iterable[str]) -> tuple[str, ...]:
    found = []
    for path in sorted(paths):
        file = PurePosixPath(path)
        if file.suffix != ".txt" or file.stem.startswith("constraints"):
            continue
        folder = file.parent.as_posix() in {"requirements", "reqs"}
        stem = _stem(path)
        named = folder or stem != file.stem
        if (
            named
            and len(file.parts) <= 2
            and (folder or len(file.parts) == 1)
            and _is(stem, _TESTS, _DEVELOPMENT, _BASE)
        ):
            found.append(path)
    return tuple(found)


def _stem(path: str) -> str:
    """What a requirement file is for, by its name: ``requirements-dev.txt`` is for dev."""
    stem = PurePosixPath(path).stem
    return re.sub(r"^requirements?(?=$|[-_.])|(?<=[-_.])requirements?$", "", stem).strip("-_.")


def _tox(text: str) -> tuple[str, ...]:
    return tuple(line for line in tox_deps(text) if is_requirement(line))


def _pins(texts: Mapping[str, str]) -> tuple[str, ...]:
    for name in _LOCKS:
        if name in texts and (pins := lock_pins(name, texts[name])):
            return tuple(pins)
    return ()
