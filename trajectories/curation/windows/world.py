"""Words of no repository: programs and their options, Python's own names, folders that every project has."""

from __future__ import annotations

import builtins
import io
import pathlib
import re
import sys
from collections.abc import Collection
from functools import cache

from trajectories.curation.entities import is_file_ending


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

FOLDERS = _words("src lib test tests testing doc docs example examples script scripts tools")
"""Folders at the top that a developer looks for without having seen them."""

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

_COMMAND_WORD = re.compile(r"(?:^|[|;&(\n`]|\$\(|\b(?:xargs|time|env|timeout \d+s?|then|do|else)\b)\s*([\w.+-]+)")
_OPTION = re.compile(r"(?<![\w\"'-])--?[A-Za-z][\w-]*")
_GIT_WORD = re.compile(r"\bgit[ \t]+(?:-[^\s]+[ \t]+)*([a-z-]+)")
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
    if options_are_known(command, programs):
        command = _OPTION.sub(" ", command)
    if "git" in programs:
        command = _GIT_WORD.sub(lambda match: " " if match[1] in _GIT else match[0], command)
    return _ANY_FILE.sub(lambda match: " " if is_file_ending(match[1]) else match[0], command)


def is_worldly(name: str) -> bool:
    """Whether a name is Python's own: a module, a builtin, a method of builtin types, or a name of its data model."""
    return name in standard_names() or name in _methods() or name in _KEYWORDS or _DUNDER.fullmatch(name) is not None


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
    return frozenset(sys.stdlib_module_names) | frozenset(dir(builtins)) | {"pytest"}


@cache
def _methods() -> frozenset[str]:
    kinds = (str, bytes, list, dict, set, tuple, int, float, BaseException, pathlib.Path, io.TextIOWrapper)
    return frozenset(name for kind in kinds for name in dir(kind))
