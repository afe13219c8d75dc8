"""The words of a bash command, and its simple commands: pure, from its text, which may be anything."""

from __future__ import annotations

import re
import shlex
from collections import deque
from functools import lru_cache
from typing import NamedTuple

_LONGEST = 10_000
"""Characters. `shlex` copies the word that it reads once a character, which is quadratic; without their here-documents,
commands that show files are shorter."""

_OPERATORS = ";&|<>()\n"
OPERATOR = re.compile(r"&>>|&>|>>|>\||>&|<<<|<<|<&|<>|&&|\|\||\|&|[;&|<>()\n]")
"""One operator of a run."""
TO_FILE = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
"""Operators behind which a file stands into which something goes."""
FROM_FILE = frozenset({"<", "<>", "<<<", "<<", "<&"})
"""Operators behind which a file stands from which something comes."""
STREAMS = frozenset({"0", "1", "2"})
"""Numbers that stand before the operators of files."""

_QUOTED_OPERATOR = re.compile(r"""(?<=\s)(['"])[;&|<>()]+\1(?=\s)|\\[;&|<>()]""")
NO_OPERATOR = "\ue000"
"""In place of operators that are quoted: `shlex` tells nobody whether a word was."""

_COMMENT_LINE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_HERE_DOCUMENT = re.compile(r"""(?<!<)<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([A-Za-z_][\w.-]*))""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_KEYWORD = re.compile(r"[!{}]|do|done|elif|else|esac|fi|if|then|time|until|while")


class SimpleCommand(NamedTuple):
    """One program with its arguments, without redirections."""

    words: tuple[str, ...]
    then: str
    """The operator behind it; a line's end is one."""


def simple_commands(command: str) -> tuple[SimpleCommand, ...] | None:
    """The simple commands in a command as they stand there, those of substitutions too, without keywords, assignments
    and here-documents; None where no shell could read it."""
    words = shell_words(command)
    if words is None:
        return None
    found: list[SimpleCommand] = []
    part: list[str] = []
    into_file = False
    for word in words:
        if not is_operator(word):
            if not into_file:
                part.append(word)
            into_file = False
            continue
        for operator in OPERATOR.findall(word):
            into_file = operator in TO_FILE or operator in FROM_FILE
            if into_file:
                if part and part[-1] in STREAMS:
                    part.pop()
                continue
            if program := program_words(part):
                found.append(SimpleCommand(tuple(program), operator))
            part = []
    return tuple(found)  # the words end with a line's end, so nothing is left over


@lru_cache(maxsize=512)
def shell_words(command: str) -> tuple[str, ...] | None:
    """The words and runs of operators of a command, a line's end being one; None where no shell could read it."""
    text = _without_here_documents(command).replace("\\\n", "")
    if len(text) > _LONGEST:
        return None
    # An apostrophe in a comment closes no quote, but whether something is a comment depends on quotes.
    for candidate in (_COMMENT_LINE.sub("", text), _COMMENT.sub("", text), text):
        lexer = shlex.shlex(
            _QUOTED_OPERATOR.sub(NO_OPERATOR, f"{candidate}\n"), posix=True, punctuation_chars=_OPERATORS
        )
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
        try:
            return tuple(lexer)
        except ValueError:  # a quote that is not closed
            continue
    return None


class HereDocument(NamedTuple):
    """A text in a command for a program to read."""

    line: str
    """The line that announces it, without the marks of here-documents."""
    text: str


def here_documents(command: str) -> tuple[HereDocument, ...]:
    """The here-documents of a command, in order; none where the end of one is missing."""
    return _split_here_documents(command)[1]


def _without_here_documents(command: str) -> str:
    """The command without the texts that it holds for programs to read; as it is where the end of one is missing: then
    its mark is part of a word."""
    return _split_here_documents(command)[0]


def _split_here_documents(command: str) -> tuple[str, tuple[HereDocument, ...]]:
    kept: list[str] = []
    documents: list[HereDocument] = []
    ends: deque[tuple[str, bool]] = deque()
    body: list[str] = []
    for line in command.split("\n"):
        if ends:
            end, indented = ends[0]
            stripped = line.lstrip("\t") if indented else line
            if stripped == end:
                ends.popleft()
                documents.append(HereDocument(kept[-1], "\n".join([*body, ""])))
                body = []
            else:
                body.append(stripped)
            continue
        marks = list(_HERE_DOCUMENT.finditer(line))
        ends.extend((mark[2] or mark[3] or mark[4] or "", bool(mark[1])) for mark in marks)
        kept.append(_HERE_DOCUMENT.sub(" ", line) if marks else line)
    return (command, ()) if ends else ("\n".join(kept), tuple(documents))


def is_operator(word: str) -> bool:
    """Whether a word is a run of operators."""
    return bool(word) and all(character in _OPERATORS for character in word)


def program_words(words: list[str]) -> list[str]:
    """The words from the program on, without a comment."""
    first = 0
    while first < len(words) and (_KEYWORD.fullmatch(words[first]) or _ASSIGNMENT.match(words[first])):
        first += 1
    last = next((place for place in range(first, len(words)) if words[place].startswith("#")), len(words))
    return words[first:last]
