"""How a publisher's test command is run: by our reporter where it starts pytest, as it is written where a parser of
ours reads what it prints, and else not at all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from environments.suites.runners.harbor import script
from prchain.core.errors import ImageError

_PYTEST = (
    *("pytest", "pytest_options", "pytest_v2", "pytest_nebo", "matplotlib", "astroid", "flask", "marshmallow", "pvlib"),
    *("pyvista", "sqlfluff", "xarray", "pydicom", "requests", "pylint", "astropy", "scikit", "sphinx", "seaborn"),
)

RUNNERS_OF_PARSERS = {
    **{f"parse_log_{name}": "pytest" for name in _PYTEST},
    "parse_log_django": "unittest",
    "parse_log_gotest": "go",
    "parse_log_cargo": "cargo",
    "parse_log_jest": "jest",
    "parse_log_jest_json": "jest",
    "parse_log_vitest": "vitest",
    "parse_log_maven": "surefire",
    "harbor": "harbor",
}
"""Log parsers of SWE-bench 5.0.2, and of SWE-rebench's two harnesses, to the runner whose output they read; and our own
name for what reads the rewards of Harbor's tasks."""

ONLY_THERE = frozenset({"harbor"})
"""Of these: the tests run in the image that is named, and no other can take its place."""

LANGUAGES = {
    **dict.fromkeys(("pytest", "unittest"), "python"),
    **dict.fromkeys(("jest", "vitest"), "javascript"),
    **{"go": "go", "cargo": "rust", "surefire": "java", "harbor": "unknown"},
}
"""Of these runners."""

_READ = frozenset({"pytest", "unittest", "cargo"})
"""Runners whose plain output our parsers read; those of the others want a report."""

_SHELL = re.compile(r"[;&|<>`$(){}\n*?~#!]")
"""What makes a line more than a program with its arguments."""

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_STARTS = (("pytest",), ("py.test",), ("python", "-m", "pytest"), ("python3", "-m", "pytest"))
_WITH_VALUE = frozenset(
    {"-k", "-m", "-p", "-W", "-o", "-c", "-n", "--ignore", "--deselect", "--confcutdir", "--rootdir", "--import-mode"}
    | {"--ignore-glob", "--override-ini", "--pythonwarnings", "--timeout", "--maxfail", "--basetemp", "--tb", "--color"}
    | {"--durations", "--numprocesses", "--dist", "--config-file", "-r", "--log-level", "--capture"}
)
"""Options of pytest, and of its plugins, whose value may be the next word."""

_OURS = re.compile(
    r"-(?:r.*|n.*|v+|q+|s|x|l)|--(?:tb|color|maxfail|durations|exitfirst|verbose|quiet|basetemp|rootdir)\b.*"
    r"|--(?:numprocesses|dist)\b.*"
)
"""Options that say how results are shown, end a run early or part it among processes: our reporter tells them all."""

_PLACES = ("{files}", "{tools}", "{report}")
"""What a template of ours has replaced; a publisher's text that holds one of them is not run."""


@dataclass(frozen=True, slots=True)
class PublishedTests:
    """How the tests of a publisher's image are run."""

    runner: str | None = None
    """A name of `environments.suites.runners`; None: the one that the repository's manifests show."""
    arguments: tuple[str, ...] = ()
    """Options for our reporter's run of the runner."""
    variables: dict[str, str] = field(default_factory=dict)
    script: str = ""
    """The publisher's lines, where they are run as they are and the runner's parser reads what they print."""
    note: str = ""
    """Why the publisher's command is not used; empty where it is, or where none is named."""


def published_tests(commands: Sequence[str], log_parser: str | None) -> PublishedTests:
    """How to run the tests for which a publisher names these lines of shell and this parser. Raises `ImageError` where
    they cannot be run, and nothing else may take their place."""
    runner = RUNNERS_OF_PARSERS.get(log_parser or "")
    lines = [line.strip() for line in commands if line.strip()]
    if not lines:
        return PublishedTests(runner)
    if log_parser in ONLY_THERE:
        if any(place in line for line in lines for place in _PLACES):
            raise ImageError("its line that runs tests holds a word in braces that is ours")
        return _of_harbor(lines)
    if runner in (None, "pytest") and len(lines) == 1 and (found := _of_pytest(lines[0])) is not None:
        return found
    if runner in _READ and not any(place in line for line in lines for place in _PLACES):
        return PublishedTests(runner, script="\n".join(lines))
    what = f"its log parser {log_parser}" if log_parser else "what it prints"
    return PublishedTests(runner, note=f"its publisher's test command is not used: no parser of ours reads {what}")


def _of_harbor(lines: Sequence[str]) -> PublishedTests:
    """The variables of all commands, which lines before the last one export, and the last one."""
    words = [word for line in lines[:-1] for word in shlex.split(line)[1:]]
    variables = {found[1]: found[2] for word in words if (found := _VARIABLE.fullmatch(word))}
    return PublishedTests("harbor", variables=variables, script=script(lines[-1:]))


def _of_pytest(line: str) -> PublishedTests | None:
    """A line that starts pytest and does nothing else, by our reporter: with its variables and options, and without the
    files that it names, for a stage's own are run. None for any other line."""
    if _SHELL.search(line):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    variables: dict[str, str] = {}
    while words and (found := _VARIABLE.fullmatch(words[0])):
        variables[found[1]] = found[2]
        words = words[1:]
    start = next((start for start in _STARTS if tuple(words[: len(start)]) == start), None)
    if start is None:
        return None
    options: list[str] = []
    left = words[len(start) :]
    while left:
        word, left = left[0], left[1:]
        if not word.startswith("-") or word in ("-", "--"):
            continue
        given = [word]
        if word in _WITH_VALUE and left:
            given, left = [word, left[0]], left[1:]
        if not _OURS.fullmatch(word):
            options += given
    return PublishedTests("pytest", tuple(options), variables)
