"""What a command showed of tests to an agent, as far as its text and its output tell."""

from __future__ import annotations

import posixpath
import re
from enum import StrEnum

from trajectories.agents.shell.programs import read_run, unwrapped
from trajectories.agents.shell.words import simple_commands
from trajectories.model import Entry


class SeenTests(StrEnum):
    """What is known of tests; each value says it in words."""

    NO_RUN = "no tests were run"
    NOTHING_RAN = "the last run found no tests"
    NOT_ENDED = "the last run was ended"
    FAILED = "in the last run tests failed"
    PASSED = "the tests passed"
    UNKNOWN = "nobody can tell"
    SCRIPT = "a script ran"
    """One that does not speak of tests; agents call such ones tests, too."""


_SUMMARY = 4_000
"""Characters at the end of an output that are read."""
_COUNT = r"[1-9](?<!\w.)[0-9]{0,8} (?:tests? )?"
"""A number at the beginning of a word. That is looked at after the digit: the
engine of patterns skips to a digit, and tries a boundary at each character."""
_PASSED = re.compile(
    rf"(?m){_COUNT}(?:passed|passing)\b|^Ran [1-9][0-9]{{0,8}} tests?\b|^ok\s|^PASS\b|^# pass [1-9]"
    r"|\btest result: ok|\bBUILD SUCCESS|\bTests run: [1-9][0-9]{0,8}, Failures: 0, Errors: 0"
)
_FAILED_COUNT = re.compile(rf"{_COUNT}(?:failed|failing|failures?|errors?|exceptions?)\b")
_FAILED = re.compile(
    r"(?m)\bFAILED\b|^FAIL\b|^--- FAIL|^not ok\b|^# fail [1-9]|\bBUILD FAILURE|\b(?:Failures|Errors): [1-9]"
    r"|\bInterrupted: |\bINTERNALERROR\b|^E   "
)
_FAILED_WORDS = ("FAIL", "not ok", "# fail ", "Failures: ", "Errors: ", "Interrupted: ", "INTERNALERROR", "E   ")
"""One of these stands in what `_FAILED` matches, in small letters one of `_NOTHING_WORDS` in what `_NOTHING` does; they
are looked for first, since most outputs have none and patterns are slow to say so."""
_NOTHING = re.compile(
    r"(?mia)\bno tests ran\b|\bran 0 tests\b|\bcollected 0 items(?! /)|^=+ [0-9]{1,9} deselected\b"
    r"|\bno tests? (?:found|were found|to run|files found)\b|\bno module named '?(?:pytest|nose|tox|django|trial)\b"
    r"|\bnot found$|^ERROR: (?:file or directory )?not found|^error: unrecognized arguments|^usage: "
)
_NOTHING_WORDS = (
    *("no test", "ran 0 tests", "collected 0 items", " deselected", "no module named", "not found", "usage: "),
    "unrecognized arguments",
)
_TALKS_OF_TESTS = re.compile(r"(?i)test|\bpass|\bok\b|\bassert")
_NO_TESTS = frozenset(
    "apt apt-get autopep8 black conda curl dpkg eslint flake8 gofmt isort mypy pip pip3 prettier pycodestyle "  # noqa: SIM905
    "pydocstyle pyflakes pylint pyright ruff shellcheck tsc uv wget yapf".split()
)
"""Programs that execute something which nobody calls a test."""


def seen_tests(command: str, observation: Entry) -> SeenTests | None:
    """What a command showed of tests; None where it ran nothing that could be one. Pure, raises nothing.

    Runs of test runners are read. What else ran may be what the agent calls its tests.
    """
    reading = read_run(command)
    text = observation.content[-_SUMMARY:]
    if not (reading.tests or _is_called_test(command)):
        if not (reading.executes and _may_test(command)):
            return None
        return SeenTests.UNKNOWN if _TALKS_OF_TESTS.search(f"{command}\n{text}") else SeenTests.SCRIPT
    if observation.details.get("timed_out"):
        return SeenTests.NOT_ENDED
    if observation.error is not None:
        return SeenTests.UNKNOWN
    if _FAILED_COUNT.search(text) or _holds(_FAILED, _FAILED_WORDS, text):
        return SeenTests.FAILED
    if _PASSED.search(text):
        return SeenTests.PASSED
    if _holds(_NOTHING, _NOTHING_WORDS, text, text.lower()):
        return SeenTests.NOTHING_RAN
    exit_code = observation.details.get("exit_code")
    if not reading.tells or exit_code is None:
        return SeenTests.UNKNOWN
    return SeenTests.PASSED if exit_code == 0 else SeenTests.FAILED


def _holds(pattern: re.Pattern[str], words: tuple[str, ...], text: str, searched: str | None = None) -> bool:
    """Whether a pattern, of which one of the words is a part, is found in a text; `searched` is where words are."""
    return any(word in (searched or text) for word in words) and pattern.search(text) is not None


def _is_called_test(command: str) -> bool:
    """Whether a script of the repository runs tests by its name, as ``bin/test``; ``test`` alone is the shell's."""
    programs = (unwrapped(part.words) for part in simple_commands(command) or ())
    return any(
        words and "/" in words[0] and posixpath.basename(words[0]) in {"test", "tests", "test.sh"} for words in programs
    )


def _may_test(command: str) -> bool:
    parts = simple_commands(command)
    if parts is None:
        return True
    programs = (unwrapped(part.words) for part in parts)
    return any(
        words and read_run(" ".join(words[:1])).executes and posixpath.basename(words[0]) not in _NO_TESTS
        for words in programs
    )
