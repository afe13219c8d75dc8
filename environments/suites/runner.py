"""The interface of a test runner: how it is started, which files are its tests, what steers it, how its report is read.

One module of `environments.suites.runners` holds the values of one runner. Everything here is plain data and pure
functions; `environments.suites.testruns` runs tests with it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from prchain.core.git.output import path_name

if TYPE_CHECKING:  # a page of help needs a runner's command alone
    from environments.suites.canaries.canary import Planter
    from environments.suites.canaries.duels import Falsifier
    from environments.suites.canaries.masks import Masker
    from environments.suites.projectfiles import Part
    from environments.suites.testlogs import Status
    from prchain.core.code.inline_tests import InlineTest

Parser = Callable[[str], "dict[str, Status]"]
"""From what a runner printed or wrote to one status a test. Total: a text that is no log of the runner's has no tests.

A log that was cut off, or that does not agree with its own counts, leaves no test passed: what passed is an error.
"""

PARENT = "python3 -B -E -s -S {tools}/parent_reporter.py"
"""Before the command of a runner whose output tells how tests ended: its parent signs it, and ends tests that take too
long."""
PIPED = "2>&1 | cat >{report}; exit ${PIPESTATUS[0]}"
"""Behind a command whose output is the report: tests inherit a pipe, in which nothing that was written can be changed,
and not the report."""


@dataclass(frozen=True, slots=True)
class TestCommand:
    """How a repository's tests are run.

    `template` is a shell command with ``{files}`` (the test files as this runner takes them), ``{tools}`` (the folder
    of our reporters) and, where the command writes the report itself, ``{report}``. `runner` is the name of a `Runner`;
    with `signed` our reporter writes the report. `arguments` go before the files
    to a runner that our reporter starts in its own process. `environment` is added to the sandbox's.
    """

    template: str
    runner: str
    signed: bool = True
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    __test__: ClassVar[bool] = False  # no class of tests, whatever pytest thinks of its name


def as_paths(files: Sequence[str]) -> list[str]:
    """The files as paths, of which none looks like an option, or like a file of options (``@file`` of argparse)."""
    return list(dict.fromkeys(f"./{path}" if path.startswith(("-", "@")) else path for path in files))


def shell_word(text: str) -> str:
    """A word that bash takes for this text, in one line; what cannot be printed is written by its bytes."""
    if text.isprintable():
        return shlex.quote(text)
    shown = (chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}" for byte in _bytes(text))
    return f"$'{''.join(shown)}'"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def no_file(test: str, files: Collection[str]) -> str | None:
    """None: the runner's ids name no file."""
    return None


def none_named(files: Sequence[str], tests: Sequence[str]) -> list[str]:
    """None: the runner cannot be told to run some tests of a file."""
    return []


def none_inside(tests: Collection[str], changed: Collection[InlineTest], files: Collection[str]) -> frozenset[str]:
    """None: tests of the runner's languages do not stand inside source files."""
    return frozenset()


def file_before(mark: str) -> Callable[[str, Collection[str]], str | None]:
    """For ids that begin with the path of the test's file and this mark, which a path can hold, too."""

    def file_of(test: str, files: Collection[str]) -> str | None:
        path = test.partition(mark)[0]
        if path in files:
            return path
        return next((it for it in files if mark in it and (test == it or test.startswith(f"{it}{mark}"))), None)

    return file_of


def last_name(test: str) -> str:
    """The last word of an id with dots, without parameters and subtests: ``a.Case.test_it[1]``, ``pkg.TestIt/sub``."""
    return test.partition("[")[0].rpartition(".")[2].partition("/")[0]


def name_behind(mark: str) -> Callable[[str], str]:
    """For ids whose name stands behind the last such mark."""

    def name_of(test: str) -> str:
        return test.rpartition(mark)[2]

    return name_of


def function_behind(mark: str) -> Callable[[str], str]:
    """For ids whose function stands behind the file or class and such a mark, perhaps behind more of them, before
    parameters, which can hold marks; so can brackets stand in the name of a file."""

    def name_of(test: str) -> str:
        place, found, name = test.partition(mark)
        return (name if found else place).partition("[")[0].rpartition(mark)[2]

    return name_of


@dataclass(frozen=True, slots=True)
class OwnNames:
    """A repository's own rule for the names of a runner's test files."""

    files: tuple[str, ...]
    """Files of the tree's root that can say so."""
    patterns: Callable[[Mapping[str, str]], tuple[str, ...]]
    """From the texts of those `files` that exist to the patterns they set; empty: the runner's own rule holds."""
    takes: Callable[[str, tuple[str, ...]], bool]
    """Whether such patterns take a path for a test file."""


@dataclass(frozen=True, slots=True)
class ManifestMarker:
    """What shows that a repository uses the runner: `text` stands in the manifest `file`. It counts for recipes of
    `language`; where several runners show, the one with the smallest `rank` is taken."""

    language: str
    file: str
    text: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """One test runner.

    `steering` and `project_files` are regular expressions of a path's end, from the beginning of a component to the
    path's end, without case; they hold for every tree, whichever runner its tests have.
    """

    name: str
    """In recipes and stored rows: at most 16 small letters."""
    template: str
    """See `TestCommand`; stored runs are known by it, so that another template makes them anew."""
    plain: str
    """A command that prints how each test ended, with ``{files}``: for people, and for SWE-bench's log parser where it
    has one for this runner (`prchain.core.swebench.logparsers`). What tests print must not look like a status."""
    typed: str
    """What one types to run some tests, a word in capitals in their place: for agents."""
    files: str
    """Regular expression, searched for in a path: by the runner's own rule it is a test file; helpers are none."""
    parse: Parser
    """Reads what the runner prints or writes, where no reporter of ours in the runner says how tests ended."""
    reports: bool = True
    """Whether our reporter is in the runner; else it is the runner's parent and signs what the runner prints."""
    options: tuple[str, ...] = ()
    """`TestCommand.arguments`; ``{tools}`` is replaced."""
    curt: tuple[str, ...] = ()
    """More of them, with which failures are not explained: a hundred explanations take longer than the tests."""
    arguments: Callable[[Sequence[str]], list[str]] = as_paths
    """From paths of test files to the arguments that have the runner run them."""
    named: Callable[[Sequence[str], Sequence[str]], list[str]] = none_named
    """From the paths of test files and ids of their tests to the arguments that have it run these tests alone; none
    where an id does not tell that. Tests of one function are run together, whatever their parameters."""
    separator: str = " "
    """Between those arguments."""
    refused: str = ""
    """Regular expression, searched for in a path: the runner cannot be given this file, or gives up all for it."""
    plain_refused: str = ""
    """The same for a file that it cannot be given in `plain`, though our reporter can."""
    file_of: Callable[[str, Collection[str]], str | None] = no_file
    """From a test's id and the files that were run to the test's file; None where the id does not tell."""
    steering: tuple[str, ...] = ()
    """Files that do nothing but tell the runner what to run and how to judge it."""
    project_files: tuple[str, ...] = ()
    """Files that have other work too and can steer the runner: project files, build scripts, transforms."""
    shadows: tuple[str, ...] = ()
    """Files that would be taken for the runner itself."""
    sections: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """By the name, in small letters, of a project file that can be read: its parts that steer the runner. Dependencies
    are none."""
    placing: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    """By the same names: parts that place modules, and steer only where one of them gets a name of `started`."""
    started: tuple[str, ...] = ()
    """Modules that run before the tests, whoever brings them."""
    own_names: OwnNames | None = None
    sign: ManifestMarker | None = None
    name_of: Callable[[str], str] = last_name
    """From a test's id to the name of its function, or its title."""
    inside: Callable[[Collection[str], Collection[InlineTest], Collection[str]], frozenset[str]] = none_inside
    """From tests' ids, the inline tests that references change and the files that were run to those of the tests that
    no overlay brings to an agent's tree, for they stand inside source files."""
    plant: Planter | None = None
    """Puts canaries into a test file; None where there are none for this runner."""
    lone: Callable[[Iterable[tuple[bytes, bytes]]], frozenset[str]] | None = None
    """From the paths and texts of a tree to the names of its tests that `plant` may change, for they stand nowhere
    else; None where tests keep their names."""
    falsify: Falsifier | None = None
    """Makes tests of a file false; None where that is not known for this runner."""
    mask: Masker | None = None
    """Masks tests of a file; None where that is not known for this runner."""

    def curtly(self, command: TestCommand) -> TestCommand:
        """The same command, where nobody reads why tests fail."""
        return replace(command, arguments=(*command.arguments, *self.curt)) if command.signed else command

    @property
    def command(self) -> TestCommand:
        """The runner's own command."""
        return TestCommand(self.template, self.name, "{tools}" in self.template, self.options)

    def given(self, files: Sequence[str]) -> list[str]:
        """The arguments that have the runner run these files, by their `path_text`."""
        return self.arguments([path_name(path) for path in files])

    def files_text(self, files: Sequence[str]) -> str:
        """The text in the place of ``{files}`` in a command, quoted for bash, in one line."""
        return self.separator.join(map(shell_word, self.given(files)))

    def left_out(self, files: Sequence[str], *, plain: bool = False) -> tuple[str, ...]:
        """Those of some files that the runner cannot be given, for it takes their names for something else."""
        patterns = [pattern for pattern in (self.refused, self.plain_refused if plain else "") if pattern]
        return tuple(path for path in files if any(re.search(pattern, path) for pattern in patterns))
