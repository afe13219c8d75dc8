"""Words of no repository: programs and their options, Python's own names, folders that every project has."""

from __future__ import annotations

import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import io
import json
import pathlib
import re
import sys
import typing
from collections.abc import Collection
from functools import cache

from prchain.core.code.identifiers import is_code_name, name_parts
from trajectories.agents.steps.entities import is_file_ending


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROGRAMS = _words(
    "awk basename bash cat cd cmp cp cut date diff dirname du echo egrep env false fgrep file find git go "
    "cargo grep head jq less ls make mkdir mktemp mv nl node npm npx od perl pip printf pwd py pytest python "
    "python2 python3 read rg rm sed seq set sh sort stat tail tee test time timeout touch tox tr tree true "
    "uniq uv wc which xargs"
)
"""Programs that every developer knows, and that tell nothing of a repository."""

_EXPLORING = PROGRAMS - _words("make tox npm npx node cargo go uv jq perl")
"""Programs whose options are the world's, too."""

_GIT = _words("blame branch diff grep log ls-files rev-parse shortlog show stash status")
"""What git can be asked to do."""

FOLDERS = _words(
    "src lib test tests testing doc docs example examples script scripts tools build dist node_modules venv "
    "__pycache__ site-packages"
)
"""Folders at the top that a developer looks for, or leaves out, without having seen them."""

_FILES = _words(
    "pyproject.toml setup.py setup.cfg tox.ini pytest.ini conftest.py requirements.txt Makefile README.md README.rst "
    "README CHANGELOG.md CHANGELOG.rst CHANGES.md CHANGES.rst CHANGES CONTRIBUTING.md CONTRIBUTING.rst LICENSE "
    ".gitignore __init__.py __main__.py py.typed package.json go.mod Cargo.toml"
)
"""Files that nearly every project has."""

_PLACES = _words("workspace testbed opt usr home")
"""Folders at the root of the file system in which a repository, or what it needs, may lie (P2T, app. H)."""

_KNOWN = _words(
    "GitHub PyPI CPython PyPy JavaScript TypeScript IPv4 IPv6 macOS OAuth PostgreSQL MySQL SQLite WebSocket WebSockets "
    "TODO FIXME XXX noqa PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONWARNINGS PATH HOME PWD TMPDIR TERM COLUMNS LANG "
    "LC_ALL NO_COLOR EOF tmp_path monkeypatch capsys caplog"
)
"""Names of products, of the shell's variables and of pytest's fixtures."""

_OTHER_MODULES = _words(
    "annotationlib compression tomllib distutils imp asyncore asynchat smtpd cgi cgitb crypt telnetlib pipes nntplib"
)
"""Modules of Python that not every version has; what is decided must not depend on the one that runs."""

_META = _words("foo bar baz qux spam eggs ham dummy fake sample mine my some demo example repro")
"""Words of names that are made up for the moment."""

_KEYWORDS = _words(
    "sep end file flush key reverse default start encoding errors mode indent sort_keys capture_output text check "
    "timeout cwd env input shell stdout stderr parents exist_ok missing_ok maxsplit strict newline ensure_ascii"
)
"""Keywords of what Python brings."""

_SCRATCH = _words(
    "repro reproduce reproduction reproducer test tests check probe script debug demo try scratch tmp temp verify "
    "example bug issue run main quick case cases before after out output log my new old"
)
"""Words of which developers make the names of files that they throw away."""

_MODULES = _words(
    "pytest pip unittest timeit json venv pdb cProfile compileall py_compile site inspect ast dis mypy ruff"
)
_RUNS = re.compile(r"(?<![\w./-])py(?:thon[\d.]*)?[ \t]+(?:-[A-Za-ln-z]+[ \t]+)*(?:-m[ \t]+(\w+)|([\w./-]+\.py))\b")
"""What an interpreter is told to run."""

_SHORTEST = 3

_VALUE = re.compile(r"--(?:tb|color|colour|pretty|format|sort|since|durations|import-mode)=[^\s|;&]*|-p[ \t]+no:\w+")
"""Options whose values are the world's, too."""

_COMMAND_WORD = re.compile(
    r"(?:^|[|;&(\n`]|\$\(|\b(?:xargs|time|env|timeout \d+s?|then|do|else)\b)[ \t]*+"
    r"(?:[A-Z_]{1,40}=[^\s;|&]{0,200}[ \t]{1,8})?([\w.+-]+)"
)
_OPTION = re.compile(r"(?<![\w\"'-])--?[A-Za-z][\w-]*")
_GIT_WORD = re.compile(r"\bgit[ \t]+(?:-[^\s]+[ \t]+)*([a-z-]+)")
_DEVICE = re.compile(r"/dev/(?:null|stdin|stdout|stderr)\b")
_ANY_FILE = re.compile(r"\*\.(\w+)")
_DUNDER = re.compile(r"__[a-z][a-z0-9_]*__")
_FROM = re.compile(r"\bfrom[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w, \t]+)")


def programs_in(command: str) -> frozenset[str]:
    """The programs of the world that a command runs."""
    return frozenset(word for word in _COMMAND_WORD.findall(command) if word in PROGRAMS)


def options_are_known(command: str, programs: Collection[str]) -> bool:
    """Whether the options of a command with these programs tell nothing: not those of a repository's own programs."""
    if any(script or module not in _MODULES for module, script in _RUNS.findall(command)):
        return False
    return bool(programs) and _EXPLORING.issuperset(programs)


def is_scratch_word(word: str) -> bool:
    """Whether a word in the name of a file that is thrown away tells nothing."""
    return word in _SCRATCH or len(word) < _SHORTEST or word.isdigit()


def without_worldly(command: str, programs: Collection[str]) -> str:
    """A command without options that tell nothing, git's own verbs and patterns of endings (``*.py``)."""
    command = _DEVICE.sub(" ", command)
    if options_are_known(command, programs):
        command = _OPTION.sub(" ", _VALUE.sub(" ", command))
    if "git" in programs:
        command = _GIT_WORD.sub(lambda match: " " if match[1] in _GIT else match[0], command)
    return _ANY_FILE.sub(lambda match: " " if is_file_ending(match[1]) else match[0], command)


def is_worldly(name: str) -> bool:
    """Whether a name is Python's own: a module, a builtin, a method of builtin types, or a name of its data model."""
    if name in _KNOWN or name in _META or name in _library_names():
        return True
    return name in standard_names() or name in _methods() or name in _KEYWORDS or _DUNDER.fullmatch(name) is not None


def is_made_up(name: str) -> bool:
    """Whether a name says that it was made up for the moment: ``my_app``, ``FooThing``."""
    return not _META.isdisjoint(name_parts(name))


def is_known_file(path: str) -> bool:
    """Whether a path tells nothing whatever the repository is: a file that every project has, at the top or in a usual
    folder, a made-up one, or one outside of any place where a repository lies."""
    folder, _, name = path.rpartition("/")
    if path.startswith("/"):
        return path.split("/")[1] not in _PLACES
    if name in _FILES:
        return not folder or folder in FOLDERS
    stem = name.partition(".")[0]
    return not folder and (stem in _META or is_scratch_word(stem))


def imported_names(code: str) -> frozenset[str]:
    """What code takes from modules that Python brings."""
    return frozenset(
        name
        for module, names in _FROM.findall(code)
        if module.partition(".")[0] in sys.stdlib_module_names
        for name in names.replace(",", " ").split()
    )


@cache
def standard_names() -> frozenset[str]:
    """Modules and builtins that Python itself brings."""
    return frozenset(sys.stdlib_module_names) | frozenset(dir(builtins)) | _OTHER_MODULES | {"pytest"}


@cache
def _library_names() -> frozenset[str]:
    """Classes and functions that the most used modules of Python bring, where their names have the shape of code."""
    return frozenset(
        name
        for module in (collections, contextlib, dataclasses, enum, functools, json, pathlib, typing)
        for name in module.__all__
        if is_code_name(name)
    )


@cache
def _methods() -> frozenset[str]:
    kinds = (str, bytes, list, dict, set, tuple, int, float, BaseException, pathlib.Path, io.TextIOWrapper)
    return frozenset(name for kind in kinds for name in dir(kind))
