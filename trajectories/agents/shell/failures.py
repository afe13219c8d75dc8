"""Whether a bash command failed, by its exit code: not where the code is an answer, as of `grep` and of tests that ran.

Pure, from the command's text, which may be anything. The code is that of the last list of commands that the text holds;
of ``a && b`` it can be that of either. Where two readings fit, tests and answers go before failures.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from prchain.core.llm.model import ToolCall
from trajectories.agents.scaffolds.turns import read_object
from trajectories.agents.shell.programs import bash_command, runs_tests, unwrapped
from trajectories.agents.shell.words import (
    FROM_FILE,
    OPERATOR,
    STREAMS,
    TO_FILE,
    is_operator,
    program_words,
    shell_words,
)
from trajectories.agents.tools.observations import GOES_ON, SIGPIPE
from trajectories.model import Entry

_NOT_FOUND = frozenset({126, 127})
"""The shell's codes for a program that cannot be run or does not exist (bash's manual, "Exit Status")."""
_SIGNAL = 128
_XARGS = 123
"""xargs' code where a program that it ran ended with 1 to 125."""

_ONE = frozenset({1})
_ANSWERS: Mapping[str, Container[int]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "pgrep", "pidof"), _ONE),
    **dict.fromkeys(("diff", "diff3", "sdiff", "colordiff", "cmp"), _ONE),
    **dict.fromkeys(("test", "[", "[[", "expr", "let", "which", "type", "hash"), _ONE),
    **dict.fromkeys(("black", "isort", "ruff", "flake8", "pyflakes", "pycodestyle", "pydocstyle", "mypy"), _ONE),
    **dict.fromkeys(("pyright", "eslint", "prettier", "shellcheck", "rubocop", "golangci-lint"), _ONE),
    "pylint": range(2, 32, 2),
}
"""Programs that answer by their exit code, with those that are answers: nothing found, not equal, not so, findings."""
_GIT_ANSWERS = frozenset(
    "check-ignore config diff diff-files diff-index diff-tree grep merge-base show-ref".split()  # noqa: SIM905
)
"""Commands of git that answer with 1."""
_TEST_CODES: Mapping[str, Container[int]] = {**dict.fromkeys(("pytest", "py.test"), (1, 2)), "unittest": _ONE}
"""Codes after which tests have run, or could not be collected (pytest's reference, "Exit codes"; unittest's `main`), of
runners that have others for what was typed wrong. Other runners have no codes of their own for that."""
_NEVER_FAIL = frozenset({"echo", "printf", "true", ":"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_ENDS = frozenset({"}", "done", "fi", "esac"})
_ERREXIT = re.compile(r"(?:^|[\s;&|({])set\s+(?:-[a-df-z]*e|-o\s+errexit)")
_ANY_PART = re.compile(r"(?:^|[\s;&|({])set\s[^;&|\n]*\bpipefail\b|\bPIPESTATUS\b")
_DEEPEST = 40
"""Of groups within groups; what lies deeper is not read."""
_LONGEST = 200
"""Of pipelines that may each have ended a command; of longer scripts the last ones are read, in linear time."""


class _Group(NamedTuple):
    """Commands in parentheses, braces or a loop, of which the last chain is what matters."""

    chain: tuple[_Pipeline, ...]
    depth: int


_Part: TypeAlias = tuple[str, ...] | _Group
"""A command of a pipeline: its words, none where they are not known; or a group."""


class _Pipeline(NamedTuple):
    parts: tuple[_Part, ...]
    negated: bool


_Chain: TypeAlias = tuple[_Pipeline, ...]
"""Pipelines joined by ``&&`` of which each may have ended the command: what stands before ``||`` has not."""


def call_failed(call: ToolCall, observation: Entry) -> bool:
    """Whether a call ran a bash command that failed, as far as its observation tells. A command that was ended, as one
    that took too long, has failed; one that goes on, and a look at it, have not."""
    arguments = read_object(call.arguments)
    if isinstance(arguments, str) or "exit_code" not in observation.details or GOES_ON in observation.details:
        return False
    command = bash_command(call, arguments, observation)
    if command is None:
        return False
    details = observation.details
    return command_failed(
        command, details["exit_code"], tuple(details.get("pipestatus", ())), output=observation.content
    )


def command_failed(command: str, exit_code: int | None, pipestatus: Sequence[int] = (), *, output: str = "") -> bool:
    """Whether a command failed.

    `exit_code` is None where it was ended. `pipestatus` are the codes of its last pipeline, if they are known: then a
    failure that the pipeline hides counts. `output` tells whether a Python module that runs tests is missing.
    """
    if exit_code is None:
        return True
    chain = _last_chain(command)
    if chain is None:
        return exit_code != 0
    judge = _Judge(output, any_part=_ANY_PART.search(command) is not None)
    fitting = next((it for it in reversed(chain) if len(it.parts) == len(pipestatus) > 1), None)
    if fitting is not None:
        return any(judge.part_failed(part, code) for part, code in zip(fitting.parts, pipestatus, strict=True))
    return exit_code != 0 and judge.chain_failed(chain, exit_code)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Holds codes against the commands that gave them."""

    output: str
    any_part: bool
    """Whether a pipeline's code can be that of any of its commands (``pipefail``, ``exit ${PIPESTATUS[0]}``)."""

    def part_failed(self, part: _Part, code: int) -> bool:
        if code in {0, SIGPIPE}:
            return False
        if isinstance(part, _Group):
            return self.chain_failed(part.chain, code)
        return not (self._is_answer(part, code) or self._is_of_tests(part, code))

    def chain_failed(self, chain: _Chain, code: int) -> bool:
        """Whether a chain failed that ended with this code, which is not 0."""
        while len(chain) > 1 and self._never_fails(chain[-1]):
            chain = chain[:-1]
        if not chain:
            return True
        last = chain[-1]
        if (last.negated and code == 1) or not all(self.part_failed(part, code) for part in self._deciding(last)):
            return False
        return not any(self._tests_ran(part, code) for pipeline in chain for part in self._deciding(pipeline))

    def _deciding(self, pipeline: _Pipeline) -> Sequence[_Part]:
        return pipeline.parts if self.any_part else pipeline.parts[-1:]

    def _never_fails(self, pipeline: _Pipeline) -> bool:
        last = pipeline.parts[-1]
        return not isinstance(last, _Group) and bool(last) and posixpath.basename(last[0]) in _NEVER_FAIL

    def _tests_ran(self, part: _Part, code: int) -> bool:
        return not isinstance(part, _Group) and self._is_of_tests(part, code)

    def _is_answer(self, words: tuple[str, ...], code: int) -> bool:
        program, rest = _program(words)
        if "xargs" in words and code == _XARGS:
            code = 1
        if program in _SHELLS:
            text = next((text for flag, text in pairwise(rest) if re.fullmatch("-[a-z]*c", flag)), None)
            return text is not None and not command_failed(text, code, output=self.output)
        if words and words[-1] == "]]":
            return code == 1
        if program == "git":
            verb = next((word for word in _git_words(rest) if not word.startswith("-")), "")
            return code == 1 and verb in _GIT_ANSWERS
        if program == "command":
            return code == 1 and rest[:1] in {("-v",), ("-V",)}
        return code in _ANSWERS.get(program, ())

    def _is_of_tests(self, words: tuple[str, ...], code: int) -> bool:
        program, rest = _program(words)
        own = unwrapped(words)
        if program in _SHELLS:
            own = tuple(word for word in rest if not word.startswith("-"))
        if not runs_tests(own) or code in _NOT_FOUND or code >= _SIGNAL:
            return False
        if re.search(
            rf"^\S*(?:python|pypy)[0-9.]*: No module named '?{re.escape(program)}\b", self.output, re.MULTILINE
        ):
            return False
        return code in _TEST_CODES.get(program, range(1, _SIGNAL))


def _program(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The name of the program that a simple command runs at last, and its arguments."""
    own = unwrapped(words)
    return (posixpath.basename(own[0]), own[1:]) if own else ("", ())


def _git_words(words: Sequence[str]) -> Sequence[str]:
    """The arguments of git without the values of options before its command."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in {"-C", "-c"} else 1
    return words[at:]


@lru_cache(maxsize=512)
def _last_chain(command: str) -> _Chain | None:
    """The chain whose code is that of the command; None where no shell could read it."""
    words = shell_words(command)
    if words is None:
        return None
    reader = _ChainReader(errexit=_ERREXIT.search(command) is not None)
    for word in words:
        reader.take(word)
    return reader.ended()


@dataclass(slots=True)
class _Shell:
    """What was read of a command, or of a parenthesis within it."""

    kind: str = ""
    """Of the parenthesis: ``group``; ``value`` of a substitution; ``other`` of a function's head or an array."""
    words: list[str] = field(default_factory=list)
    inner: _Part | None = None
    """The group that is the part being read."""
    value: _Part | None = None
    """The last substitution, whose code is that of an assignment."""
    parts: list[_Part] = field(default_factory=list)
    negated: bool = False
    chain: list[_Pipeline] = field(default_factory=list)
    before: _Chain = ()
    """The chain of the last list that has ended."""


class _ChainReader:
    """Takes the words of one command."""

    def __init__(self, *, errexit: bool) -> None:
        self._errexit = errexit
        self._shells = [_Shell()]
        self._file_next = False
        """An operator whose file comes next was read."""
        self._open = False
        """An operator was read behind which a line's end does not end the list."""

    def take(self, word: str) -> None:
        if is_operator(word):
            for operator in OPERATOR.findall(word):
                self._operator(operator)
        elif self._file_next:
            self._file_next = False
        else:
            self._shells[-1].words.append(word)
            self._open = False

    def ended(self) -> _Chain:
        while len(self._shells) > 1:
            self._close()
        self._end_list()
        return self._shells[0].before

    def _operator(self, operator: str) -> None:
        shell = self._shells[-1]
        if operator in TO_FILE or operator in FROM_FILE:
            if shell.words and shell.words[-1] in STREAMS:
                shell.words.pop()
            self._file_next = True
            return
        of_file, self._file_next = self._file_next, False
        match operator:
            case "(":
                self._shells.append(_Shell(_kind_of_parenthesis(shell.words, of_file=of_file)))
            case ")":
                self._close()
            case "|" | "|&":
                self._end_part()
            case "&&":
                self._end_pipeline()
            case "||":
                self._end_pipeline()
                shell.chain = []
            case "&":
                self._end_pipeline()
                shell.chain = []
            case "\n" if self._open:
                return
            case _:
                self._end_list()
        self._open = operator in {"|", "|&", "&&", "||"}

    def _close(self) -> None:
        if len(self._shells) == 1:
            self._shells[-1].words.clear()  # the pattern of a case
            return
        self._end_list()
        closed = self._shells.pop()
        outer = self._shells[-1]
        if closed.kind == "group":
            outer.inner = _group(closed.before)
        elif closed.kind == "value":
            outer.value = _group(closed.before)

    def _end_part(self) -> None:
        shell = self._shells[-1]
        words, program = shell.words, tuple(program_words(shell.words))
        leading = words[: len(words) - len(program)]
        shell.negated = shell.negated or "!" in leading
        part: _Part = ()
        if program:
            part = program
        elif shell.inner is not None:
            part = shell.inner
        elif words and words[-1] in _ENDS and not (shell.parts or shell.chain):
            part = _group(shell.before)
        elif shell.value is not None:
            part = shell.value
        shell.parts.append(part)
        shell.words, shell.inner, shell.value = [], None, None

    def _end_pipeline(self) -> None:
        self._end_part()
        shell = self._shells[-1]
        parts, shell.parts = tuple(shell.parts), []
        negated, shell.negated = shell.negated, False
        if any(parts):
            shell.chain.append(_Pipeline(parts, negated))

    def _end_list(self) -> None:
        self._end_pipeline()
        shell = self._shells[-1]
        chain, shell.chain = tuple(shell.chain), []
        if chain and not (shell.before and _passes_on(chain)):
            shell.before = (*shell.before, *chain)[-_LONGEST:] if self._errexit else chain


def _kind_of_parenthesis(words: Sequence[str], *, of_file: bool) -> str:
    last = words[-1] if words else ""
    if of_file or last.endswith("$"):
        return "value"
    return "other" if program_words(list(words)) or last.endswith("=") else "group"


def _passes_on(chain: _Chain) -> bool:
    """Whether a list only ends the shell with a code that was kept: ``exit $code``."""
    last = chain[-1].parts[-1]
    return len(chain) == 1 and not isinstance(last, _Group) and last[:1] == ("exit",) and "$" in "".join(last[1:])


def _group(chain: _Chain) -> _Part:
    if len(chain) == 1 and len(chain[0].parts) == 1 and not chain[0].negated:
        return chain[0].parts[0]
    inner = (part.depth for pipeline in chain for part in pipeline.parts if isinstance(part, _Group))
    depth = 1 + max(inner, default=0)
    return _Group(chain, depth) if depth <= _DEEPEST else ()
