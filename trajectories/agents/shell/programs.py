"""What an agent's command runs, as far as its text tells: programs that show whether work is right, and tests."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.llm.model import ToolCall
from trajectories.agents.shell.words import SimpleCommand, simple_commands
from trajectories.agents.tools.bash import Bash
from trajectories.model import Entry


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSIVE = _names(
    ": [ [[ $ ack ag alias apropos awk base64 basename break case cat cd chgrp chmod chown clear cmp column comm "
    "command continue cp cut date df diff dirname disown do done du echo ed egrep elif else env esac eval exit export "
    "expr false fd fgrep fi file find fold for free function gawk git grep gunzip gzip head history hostname id if in "
    "install jobs join jq kill less ln local ls man md5sum mkdir mktemp more mv nl od paste patch pgrep pkill popd "
    "printenv printf ps pushd pwd read readlink realpath return rg rm rmdir rsync sed seq set sha256sum shift shopt "
    "shuf sleep sort source split stat strings sum tac tail tar tee test then top touch tr tree true truncate type "
    "ulimit umask unalias uname uniq unlink unset unzip wait watch wc whereis which while who whoami xxd yq yes zip"
)
"""Programs and words of the shell that show, move or write files, or wait, and execute nothing of a repository."""

_WAITS = _names("sleep wait watch jobs ps top pgrep kill pkill")
"""Programs by which one waits for others: after them the same command is a new look."""

_TESTERS = _names(
    "pytest py.test tox nox unittest nose nose2 nosetests stestr trial jest vitest mocha ava ctest rspec phpunit "
    "runtests.py run_tests.py runtests.sh run_tests.sh runtests"
)
_TEST_VERBS = {
    **dict.fromkeys(("go", "dotnet", "mix", "swift", "bazel", "deno", "flutter", "dart", "forge"), _names("test")),
    "cargo": _names("test nextest"),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _names("test t")),
    **dict.fromkeys(("make", "gmake", "rake", "ninja"), _names("test tests check spec")),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew"), _names("test check verify")),
    "manage.py": _names("test"),
}
"""Programs that run tests when their first word says so."""

_RUNNERS = _names("poetry uv pipenv hatch pdm rye coverage")
"""Programs that run another one after the word `run`."""
_WRAPPERS = _names(
    "builtin bunx chrt command env exec ionice nice nohup npx setsid stdbuf sudo time timeout xargs xvfb-run"
)
_OPTION = re.compile(r"-|[0-9.]{1,12}[smhd]?\Z|[A-Za-z_]\w*=")
"""What stands between a program that runs another and that one."""
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*|py")
_IN_PLACE = re.compile(r"-[A-Za-hj-z]*i")

_SHOWS = _names("--version --help -h --collect-only --co --fixtures --markers --list --listTests --no-run")
"""Options with which no test runs."""
_CHOOSES = re.compile(r"-k.*|-m|--lf|--last-failed|--ff|--deselect.*|-m=.+|-run|-t|--grep|--filter.*|.*::.+")
"""Options and names that choose some tests of those that there are."""

_PASSED = re.compile(r"\b[1-9][0-9]{0,8} passed\b")
_FAILED = re.compile(r"\b[1-9][0-9]{0,8} (?:failed|errors?)\b|\bFAILED\b")
_SUMMARY = 2000
"""Characters at the end of an output in which tests are counted."""


class RunReading(NamedTuple):
    """What a command runs."""

    executes: bool
    """Something runs that is more than looking at files, moving them and writing them. Also where no shell could read
    the command."""
    waits: bool
    tests: bool
    """Tests run."""
    all_tests: bool
    """No option and no name chooses some of them. What lies in one file or folder counts as all: an agent is told of no
    more."""
    tells: bool
    """The exit code of the command is 0 only if that of the tests is."""


@lru_cache(maxsize=512)
def read_run(command: str) -> RunReading:
    """What a command runs; any text is taken."""
    parts = simple_commands(command)
    if parts is None:
        return RunReading(True, waits=False, tests=False, all_tests=False, tells=False)
    programs = [unwrapped(part.words) for part in parts]
    tests = [place for place, words in enumerate(programs) if runs_tests(words)]
    return RunReading(
        executes=any(map(_executes, programs)),
        waits=any(posixpath.basename(words[0]) in _WAITS for words in programs if words),
        tests=bool(tests),
        all_tests=bool(tests) and not any(_chooses(programs[place]) for place in tests),
        tells=bool(tests) and _decides(parts, tests[0]),
    )


def tests_passed(reading: RunReading, observation: Entry) -> bool | None:
    """Whether the tests of a command passed; None where it ran none, or nobody can tell."""
    if not reading.tests or observation.error is not None:
        return None
    exit_code = observation.details.get("exit_code")
    summary = observation.content[-_SUMMARY:]
    if (exit_code != 0 and reading.tells) or _FAILED.search(summary):
        return False
    if exit_code != 0:
        return None
    return True if reading.tells or _PASSED.search(summary) else None


def bash_command(call: ToolCall, arguments: Mapping[str, Any], observation: Entry | None) -> str | None:
    """The command that a call ran; None for other tools, and where nothing was run."""
    command = arguments.get("command")
    if call.name != Bash.name or not isinstance(command, str) or observation is None:
        return None
    return command if observation.error is None or "exit_code" in observation.details else None


def unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """A simple command without the programs that only run it, as ``timeout 60``; ``python -m x`` is ``x``."""
    at = 0
    while at < len(words):
        program = posixpath.basename(words[at])
        if program in _RUNNERS and words[at + 1 : at + 2] == ("run",):
            at += 2
        elif _PYTHON.fullmatch(program) and (target := _python_target(words, at)) is not None:
            at = target
        elif program in _WRAPPERS or (at and _OPTION.match(words[at])):
            at += 1
        else:
            break
    return words[at:]


def runs_tests(words: Sequence[str]) -> bool:
    """Whether a simple command (`unwrapped`) runs tests, by the program's name or the script's."""
    if not words or not _SHOWS.isdisjoint(words):
        return False
    program = posixpath.basename(words[0])
    if program in _TESTERS:
        return True
    if program in _TEST_VERBS:
        verb = next((word for word in words[1:] if not word.startswith("-") and word != "run"), "")
        return verb.partition(":")[0] in _TEST_VERBS[program]
    script = words[0].removeprefix("./")
    # One beside the folders is a script of the agent's own.
    return script.endswith(".py") and script.find("/") > 0 and kind_of(script) is FileKind.TEST


def _python_target(words: Sequence[str], at: int) -> int | None:
    """Where the module or the script stands that an interpreter runs; None where it runs a text."""
    for place in range(at + 1, len(words)):
        word = words[place]
        if word in {"-m", "-W", "-X"} and place + 1 < len(words):
            if word == "-m":
                return place + 1
        elif word in {"-c", "-"}:
            return None
        elif not word.startswith("-") and words[place - 1] not in {"-W", "-X"}:
            return place
    return None


def _executes(words: Sequence[str]) -> bool:
    if not words:
        return True
    program = posixpath.basename(words[0])
    if program == "perl":
        return not any(map(_IN_PLACE.match, words[1:]))
    return program not in _PASSIVE and not program.startswith(("$", "-"))


def _chooses(words: Sequence[str]) -> bool:
    return any(map(_CHOOSES.fullmatch, words[1:]))


def _decides(parts: Sequence[SimpleCommand], place: int) -> bool:
    """Whether the exit code of the simple command at a place, if it is not 0, is that of the whole."""
    return parts[-1].then in {"\n", ";"} and all(part.then == "&&" for part in parts[place:-1])
