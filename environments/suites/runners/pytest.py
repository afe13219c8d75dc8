"""pytest: the files that steer it, and the names of test files that a repository sets for it.

PyGithub, for one, names its test files ``tests/Repository.py`` and sets ``python_files = "tests/*.py"``. Read as pytest
reads it (its reference: "Configuration file formats", "python_files"): the first file of `CONFIG_FILES` that has a
section for pytest counts, alone; a pattern with a slash is held against the path from the right, another one against
the file's name. Only files in the root are looked at.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from fnmatch import fnmatchcase
from typing import Any

from environments.suites.canaries.falsehoods import PYTHON_FALSIFIER
from environments.suites.canaries.python import plant_python
from environments.suites.canaries.pythonmasks import mask_python
from environments.suites.canaries.renames import lone_names
from environments.suites.runner import OwnNames, Runner, as_paths, file_before, function_behind
from environments.suites.testlogs.pytest_text import parse_pytest

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


def named(files: Sequence[str], tests: Sequence[str]) -> list[str]:
    """See `Runner.named`: node ids without parameters. A path that pytest could take for more than a path has none."""
    found = [test.partition("[")[0] for test in tests]
    for it in found:
        path, _, place = it.partition("::")
        if path not in files or as_paths([path]) != [path] or not all(map(str.isidentifier, place.split("::"))):
            return []
    return list(dict.fromkeys(found))


_GROUP = "pytest11"
"""Of entry points: plugins of pytest."""

_COMMANDS = ("python", "python3", *(f"python3.{minor}" for minor in range(8, 20)), "pytest", "py.test", "coverage")
_COMMANDS += ("wc", "cat", "rm", "bash", "sh", "env", "find", "git", "mkdir", "tar")
"""Names of programs that run tests: no script of a project may have one."""

_PYPROJECT = (
    ("tool", "pytest"),
    ("tool", "coverage"),
    ("project", "entry-points", _GROUP),
    ("tool", "poetry", "plugins", _GROUP),
    ("tool", "flit", "entrypoints", _GROUP),
    *(("project", group, name) for group in ("scripts", "gui-scripts") for name in _COMMANDS),
    *(("tool", "poetry", "scripts", name) for name in _COMMANDS),
    # What runs, or where it goes, when the tree is installed.
    ("build-system", "build-backend"),
    ("build-system", "backend-path"),
    ("project", "dynamic"),
    ("tool", "hatch", "build"),
    ("tool", "hatch", "metadata", "hooks"),
    ("tool", "hatch", "version"),
    ("tool", "setuptools", "cmdclass"),
    ("tool", "setuptools", "data-files"),
    ("tool", "setuptools", "script-files"),
    ("tool", "setuptools", "dynamic"),
    ("tool", "poetry", "build"),
    ("tool", "pdm", "build"),
    ("tool", "pdm", "version"),
)

_SETUP = (
    ("DEFAULT",),
    ("tool:pytest",),
    ("pytest",),
    ("coverage:run",),
    ("options.entry_points", _GROUP),
    ("options", "entry_points"),
    ("options", "cmdclass"),
    ("options", "data_files"),
    ("options", "scripts"),
    ("options.data_files",),
    ("global",),
    ("metadata", "version"),
)

RUNNER = Runner(
    name="pytest",
    template="python {tools}/python_reporter.py",
    # Before pytest 3.3 -o takes all words up to the next option.
    options=("-o", "cache_dir={tools}/cache", "-p", "no:randomly", "--continue-on-collection-errors"),
    curt=("--tb=no",),
    # Statuses without what tests printed and without tracebacks: a line of those could look like a status.
    plain="python -m pytest -rfEsxXp --tb=no --color=no -p no:randomly --continue-on-collection-errors {files}",
    typed="python -m pytest FILES",
    files=r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$",
    parse=parse_pytest,
    file_of=file_before("::"),
    named=named,
    steering=(
        r"conftest\.py",
        r"\.?pytest\.(?:ini|toml)",
        r"(?:site|user)customize(?:\.[^/]*|/.*)?",
        r"\.coveragerc",
        r"[^/]+\.(?:dist|egg)-info(?:/.*)?",
        r"[^/]*\.(?:pth|egg-link)",
        r"hatch_build\.py",
    ),
    project_files=(r"pyproject\.toml", r"setup\.cfg", r"tox\.ini", r"setup\.py"),
    shadows=(r"pytest\.py", r"_?pytest/__init__\.py", r"pluggy/__init__\.py"),
    sections={
        "pyproject.toml": _PYPROJECT,
        "setup.cfg": _SETUP,
        "tox.ini": (("DEFAULT",), ("tool:pytest",), ("pytest",), ("coverage:run",)),
    },
    placing={
        "pyproject.toml": (
            *(("tool", "setuptools", name) for name in ("package-dir", "packages", "py-modules", "ext-modules")),
            ("tool", "poetry", "packages"),
            ("tool", "scikit-build", "wheel", "packages"),
        ),
        "setup.cfg": tuple(("options", name) for name in ("package_dir", "packages", "py_modules")),
    },
    started=("sitecustomize", "usercustomize", "pytest", "_pytest", "pluggy"),
    own_names=OwnNames(CONFIG_FILES, python_files, is_named_by),
    plant=plant_python,
    lone=lone_names,
    falsify=PYTHON_FALSIFIER,
    mask=mask_python,
    name_of=function_behind("::"),
    # Node ids hold both; our reporter has them taken for paths.
    plain_refused=r"\[|::",
)
