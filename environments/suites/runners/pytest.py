"""pytest: its logs, the files that steer it, and the names of test files that a repository sets for it.

PyGithub, for one, names its test files ``tests/Repository.py`` and sets ``python_files = "tests/*.py"``. Read as pytest
reads it (its reference: "Configuration file formats", "python_files"): the first file of `CONFIG_FILES` that has a
section for pytest counts, alone; a pattern with a slash is held against the path from the right, another one against
the file's name. Only files in the root are looked at.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, Error
from fnmatch import fnmatchcase
from typing import Any

from environments.suites.canaries.python import plant_python
from environments.suites.runner import OwnNames, Runner, file_before, name_behind
from environments.suites.testlogs import Status, join

_TERMINAL = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
_WORDS = {
    "PASSED": Status.passed,
    "FAILED": Status.failed,
    "ERROR": Status.error,
    "SKIPPED": Status.skipped,
    "XFAIL": Status.xfail,
    "XPASS": Status.xpass,
}
_WORD = "|".join(_WORDS) + r"|SUBFAILED(?:\[.*?\]|\(.*?\))*"
"""pytest 9 reports a failed subtest beside its test, which it calls passed."""
_VERBOSE = re.compile(rf"(?P<test>\S+?::.*) (?P<word>{_WORD})(?: \(.*\))? +\[ *\d+%\]")
_WORKER = re.compile(rf"\[gw\d+\] \[ *\d+%\] (?P<word>{_WORD}) (?P<test>\S.*?) *")
_SUMMARY = re.compile(r"=+ short test summary info =+")
_SUMMARY_LINE = re.compile(rf"(?P<word>{_WORD}) (?P<test>\S.*)")
_SUMMARY_END = re.compile(r"=+ .*\bin [\d.]+s.* =+")

CONFIG_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""In the order in which pytest looks for them."""

_INI_SECTIONS = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}
_NEVER = frozenset({"__init__.py", "conftest.py", "setup.py"})
"""An ``__init__.py`` that is named stands for its whole folder in some versions of pytest."""


def parse_pytest(log: str) -> dict[str, Status]:
    """The tests of ``pytest -rA`` or ``pytest -v``, xdist's lines too.

    The output of a test can hold such lines as well; only what stands behind the last heading of the summary is read
    as summary, and a test of two words has the worse one. ``SKIPPED [1] path:7: why`` names no test and is left out.
    Ids end before `` - message``; one with `` - `` in its brackets is kept whole.
    """
    return join(_pytest(_TERMINAL.sub("", log).splitlines()))


def _pytest(lines: list[str]) -> Iterator[tuple[str, Status]]:
    heading = max((n for n, line in enumerate(lines) if _SUMMARY.fullmatch(line)), default=len(lines))
    for line in lines[:heading]:
        if found := _VERBOSE.fullmatch(line) or _WORKER.fullmatch(line):
            yield found["test"], _status(found["word"])
    for line in lines[heading + 1 :]:
        if _SUMMARY_END.fullmatch(line):
            return
        found = _SUMMARY_LINE.fullmatch(line)
        if found and not (found["word"] == "SKIPPED" and re.match(r"\[\d+\] ", found["test"])):
            yield _without_message(found["test"]), _status(found["word"])


def _status(word: str) -> Status:
    return _WORDS.get(word, Status.failed)


def _without_message(text: str) -> str:
    for cut in re.finditer(" - ", text):
        test = text[: cut.start()]
        if test.count("[") <= test.count("]"):
            return test
    return text


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
    options=("-p", "no:randomly", "--continue-on-collection-errors", "-o", "cache_dir={tools}/cache"),
    # Statuses without what tests printed and without tracebacks: a line of those could look like a status.
    plain="python -m pytest -rfEsxXp --tb=no --color=no -p no:randomly --continue-on-collection-errors {files}",
    typed="python -m pytest FILES",
    files=r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$",
    parse=parse_pytest,
    file_of=file_before("::"),
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
    own_names=OwnNames(CONFIG_FILES, python_files, is_named_by),
    plant=plant_python,
    name_of=name_behind("::"),
)
