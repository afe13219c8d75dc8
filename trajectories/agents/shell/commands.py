"""What a bash command shows of files, and which files it writes: pure, from the command's text.

Commands are an agent's, so they may be any text: what cannot be read shows nothing and is an `UnclearProgram`. Nothing
raises, and time grows with the length of the text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from trajectories.agents.shell.printing import MOST_RANGES, Lines, PrintedLines, narrowed, selection
from trajectories.agents.shell.words import (
    FROM_FILE,
    NO_OPERATOR,
    OPERATOR,
    STREAMS,
    TO_FILE,
    is_operator,
    program_words,
    shell_words,
)


class ShownLines(NamedTuple):
    """Lines of a file are printed."""

    path: str
    lines: Lines


class WrittenFile(NamedTuple):
    """A file is changed, made or removed."""

    path: str


class UnclearProgram(NamedTuple):
    """A program runs that may change any file."""


Act: TypeAlias = ShownLines | WrittenFile | UnclearProgram


class CommandReading(NamedTuple):
    """What a command does with files, in order."""

    acts: tuple[Act, ...]
    alone: bool
    """Whether all that the command prints comes from one pipeline."""


_SILENT = re.compile(
    r":|\[\[?|cd|cp|exit|export|false|for|mkdir|mv|popd|pushd|rm|set|shopt|sleep|test|true|truncate|unlink|unset|"
)
"""Programs that print nothing, mostly."""
_DEVICE = re.compile("/dev/(?!shm/)")
"""What is no file; ``/dev/shm`` is a folder for files in memory, and a sandbox may stand there."""

_READER = re.compile(
    r":|\[\[?|ag|cat|cd|cmp|cut|diff|du|echo|egrep|exit|export|false|fgrep|file|for|grep|head|less|ls|mkdir|more|nl|popd|"
    r"printf|pushd|pwd|rg|sed|set|shopt|sleep|stat|tail|test|tr|tree|true|type|uniq|unset|wc|which|"
)
"""Programs that change no file; for ``sed`` see `_SED_IN_PLACE`."""
_READING_GIT = re.compile(r"blame|describe|diff|grep|log|ls-files|rev-parse|show|status")
_WRITER = re.compile(r"cp|mv|rm|tee|truncate|unlink")
_FIND_WRITES = re.compile(r"-(?:exec|execdir|ok|okdir|delete|f(?:print|print0|printf|ls))")
_SED_IN_PLACE = re.compile(r"-[nErsuz]*i|--in-place")


@lru_cache(maxsize=512)
def read_command(command: str, cwd: str | None, after: str | None = None) -> CommandReading:
    """What a command does with files.

    `cwd` is the folder in which it begins, `after` the one in which it ended; it stands in for a folder that the text
    does not tell (``cd "$HOME"``). None: not known; then paths from there on that are not absolute are left out.
    """
    words = shell_words(command)
    if words is None:
        return CommandReading((UnclearProgram(),), alone=False)
    reader = _Reader(cwd, after)
    for word in words:
        reader.take(word)
    return reader.ended()


@dataclass(slots=True)
class _Part:
    """A command of a pipeline."""

    words: list[str]
    stdin: str | None = None
    redirected: bool = False
    """Whether its output goes into a file."""
    targets: list[str] = field(default_factory=list)
    """The files into which something of it goes."""

    @property
    def program(self) -> str:
        return posixpath.basename(self.words[0]) if self.words else ""

    @property
    def edits_in_place(self) -> bool:
        return self.program == "sed" and any(map(_SED_IN_PLACE.match, self.words[1:]))

    @property
    def is_silent(self) -> bool:
        return _SILENT.fullmatch(self.program) is not None or self.edits_in_place


@dataclass(slots=True)
class _Level:
    """What stands around a parenthesis."""

    part: _Part
    pipeline: list[_Part]
    cwd: str | None
    hidden: bool
    in_doubt: bool
    first: int


class _Reader:
    """Takes the words of one command."""

    def __init__(self, cwd: str | None, after: str | None) -> None:
        self._cwd = cwd
        self._after = after
        self._acts: list[Act] = []
        self._printing = 0
        self._part = _Part([])
        self._pipeline: list[_Part] = []
        self._redirect: tuple[str, str] | None = None
        """An operator whose file comes next, and the number before it."""
        self._levels: list[_Level] = []
        self._hidden = False
        """Within a substitution, whose output is no output of the command."""
        self._in_doubt = False
        """After ``||``, where nobody knows what ran."""
        self._group: int | None = None
        """The first act of the parenthesis that has just ended."""

    def take(self, word: str) -> None:
        if is_operator(word):
            for operator in OPERATOR.findall(word):
                self._operator(operator)
        elif self._redirect is not None:
            self._redirected(*self._redirect, word)
            self._redirect = None
        else:
            self._part.words.append(word)

    def ended(self) -> CommandReading:
        self._end_pipeline()
        return CommandReading(tuple(self._acts), self._printing == 1)

    def _operator(self, operator: str) -> None:
        group, self._group = self._group, None
        if operator in TO_FILE or operator in FROM_FILE:
            number = ""
            if self._part.words and self._part.words[-1] in STREAMS and not operator.startswith("&"):
                number = self._part.words.pop()
            self._redirect = operator, number
            if operator in TO_FILE and number != "2":
                self._hide_from(group)
            return
        substitution = operator == "(" and (self._redirect is not None or self._ends_in_dollar())
        self._redirect = None
        match operator:
            case "|" | "|&":
                self._hide_from(group)
                self._end_part()
            case "(":
                self._open(substitution)
            case ")":
                self._close()
            case _:
                self._end_pipeline()
                self._in_doubt = operator == "||" or (operator == "&&" and self._in_doubt)

    def _ends_in_dollar(self) -> bool:
        return bool(self._part.words) and self._part.words[-1].endswith("$")

    def _hide_from(self, first: int | None) -> None:
        """What a parenthesis printed goes elsewhere."""
        if first is not None:
            self._acts[first:] = [act for act in self._acts[first:] if not isinstance(act, ShownLines)]

    def _open(self, substitution: bool) -> None:
        if not substitution:
            self._end_pipeline()
        level = _Level(self._part, self._pipeline, self._cwd, self._hidden, self._in_doubt, len(self._acts))
        self._levels.append(level)
        self._part, self._pipeline = _Part([]), []
        self._hidden = self._hidden or substitution

    def _close(self) -> None:
        self._end_pipeline()
        if self._levels:
            level = self._levels.pop()
            self._part, self._pipeline, self._cwd = level.part, level.pipeline, level.cwd
            self._hidden, self._in_doubt, self._group = level.hidden, level.in_doubt, level.first

    def _redirected(self, operator: str, number: str, target: str) -> None:
        part = self._part
        if operator in FROM_FILE:
            if operator == "<" and number in {"", "0"}:
                part.stdin = target
        elif operator == ">&" and (target.isdecimal() or target == "-"):
            pass  # into another stream, which is shown too
        else:
            part.redirected = part.redirected or number != "2"
            part.targets.append(target)

    def _end_part(self) -> None:
        part, self._part = self._part, _Part([])
        self._pipeline.append(part)

    def _end_pipeline(self) -> None:
        self._end_part()
        pipeline, self._pipeline = self._pipeline, []
        for part in pipeline:
            part.words = program_words(part.words)
            self._acts += self._writes(part)
        first = pipeline[0]
        if len(pipeline) == 1 and first.program in {"cd", "pushd", "popd"}:
            self._cwd = self._folder(first)
        elsewhere = any(part.redirected for part in pipeline)
        if not self._hidden and not elsewhere and not first.is_silent:
            self._printing += 1
        if not self._hidden and not elsewhere and not self._in_doubt:
            self._acts += self._shown(pipeline)

    def _folder(self, part: _Part) -> str | None:
        words = [word for word in part.words[1:] if word not in {"--", "-P", "-L"}]
        known = part.program != "popd" and len(words) == 1 and words[0] != "-"
        return (self._path(words[0]) if known else None) or self._after

    def _path(self, word: str) -> str | None:
        """The path that a word names; None where that is not known."""
        if not word or word.startswith("~") or any(mark in word for mark in f"$`*?\0{NO_OPERATOR}"):
            return None
        if "{" in word and ("," in word or ".." in word):
            return None
        if not word.startswith("/"):
            if self._cwd is None:
                return None
            word = posixpath.join(self._cwd, word)
        return absolute(word)

    def _writes(self, part: _Part) -> Iterator[Act]:
        targets = list(part.targets)
        unclear = False
        program, words = part.program, part.words[1:]
        names = [word for word in words if not word.startswith("-")]
        if _WRITER.fullmatch(program) or part.edits_in_place:
            last = names[-1:] if program in {"cp", "mv"} else []
            targets += names[-1:] if program == "cp" else names
            targets += [posixpath.join(folder, posixpath.basename(name)) for folder in last for name in names[:-1]]
        elif program == "git":
            unclear = not names or not _READING_GIT.fullmatch(names[0])
        elif program == "find":
            unclear = any(map(_FIND_WRITES.fullmatch, words))
        else:
            unclear = not _READER.fullmatch(program)
        for target in targets:
            path = self._path(target)
            if path is None:
                unclear = True
            elif not _DEVICE.match(path):
                yield WrittenFile(path)
        if unclear:
            yield UnclearProgram()

    def _shown(self, pipeline: Sequence[_Part]) -> Iterator[ShownLines]:
        first = _selection(pipeline[0])
        if first is None or not first.files or (len(first.files) > 1 and len(pipeline) > 1):
            return
        lines = first.lines
        for part in pipeline[1:]:
            further = _selection(part)
            if further is None or further.files:
                return
            lines = narrowed(lines, further.lines)
        if not lines or len(lines) > MOST_RANGES:
            return
        for word in first.files:
            path = self._path(word)
            if path is not None and not _DEVICE.match(path):
                yield ShownLines(path, lines)


def absolute(path: str) -> str:
    """An absolute path without ``.``, ``..`` and double slashes."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _selection(part: _Part) -> PrintedLines | None:
    """What a part prints; its input is a file where one was redirected into it."""
    chosen = selection(part.program, part.words[1:])
    if chosen is None:
        return None
    files = [part.stdin if word == "-" else word for word in chosen.files or ["-"]]
    return chosen._replace(files=[word for word in files if word is not None])
