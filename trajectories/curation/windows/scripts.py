"""Code that a command brings along: here-documents and the texts behind ``-c``; what it binds, and its prose."""

from __future__ import annotations

import re
from typing import NamedTuple

from prchain.core.code.identifiers import definitions, is_code_name
from prchain.core.code.lexing import lex

_HERE = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(\w{1,40})\1")
_INLINE = re.compile(r"(?<![\w-])-c[ \t]+(?=[\"'])")
_ECHO = re.compile(r"(?<![\w-])(?:echo|printf)[ \t]+(\"[^\"\n]*\"|'[^'\n]*')")
_REMARK = re.compile(r"(?m)^[ \t]*#[ \t][^\n]*")
_BOUND = re.compile(
    r"(?m)(?:^|;)[ \t]*+([A-Za-z_]\w*+(?:[ \t]*+,[ \t]*+[A-Za-z_]\w*+)*+)[ \t]*+(?::[^=\n]{1,80})?=(?!=)"
    r"|\b([A-Za-z_]\w*+)[ \t]*+:=|\bfor[ \t]{1,8}([\w, \t()]{1,200}?)[ \t]in\b"
    r"|\b(?:as|def|class)[ \t]{1,8}([A-Za-z_]\w*+)|\blambda[ \t]{1,8}([\w, \t]{1,200}):"
)
"""What binds names; a keyword of a call binds none."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")


class Parts(NamedTuple):
    """A command taken apart."""

    shell: str
    """What the shell reads."""
    scripts: tuple[str, ...]
    """Here-documents, and texts of interpreters."""
    prose: tuple[str, ...]
    """Texts that are only printed, and remarks."""


def parts_of(command: str) -> Parts:
    """A command without the code and the prose that it brings, and these."""
    shell, scripts = _without_inline(command)
    shell, documents = _without_documents(shell)
    prose = [match[1] for match in _ECHO.finditer(shell)] + _REMARK.findall(shell)
    shell = _REMARK.sub(" ", _ECHO.sub(" echo ", shell))
    return Parts(shell, (*scripts, *documents), tuple(prose))


def _without_inline(command: str) -> tuple[str, list[str]]:
    kept: list[str] = []
    scripts: list[str] = []
    at = 0
    for match in _INLINE.finditer(command):
        if match.start() < at:
            continue
        end = _closing(command, match.end())
        if end < 0:  # then none of the marks behind it is closed
            break
        kept.append(command[at : match.end()])
        scripts.append(command[match.end() + 1 : end])
        at = end + 1
    return " ".join([*kept, command[at:]]), scripts


def _closing(text: str, start: int) -> int:
    """Where the quote that opens at `start` closes; -1 if it does not."""
    quote = text[start]
    end = text.find(quote, start + 1)
    while quote == '"' and end > 0 and text[end - 1] == "\\":
        end = text.find(quote, end + 1)
    return end


def _without_documents(command: str) -> tuple[str, list[str]]:
    kept: list[str] = []
    documents: list[str] = []
    document: list[str] = []
    marks: list[str] = []
    for line in command.split("\n"):
        if marks:
            if line.strip() == marks[0]:
                del marks[0]
                documents.append("\n".join(document))
                document = []
            else:
                document.append(line)
            continue
        marks = [match[2] for match in _HERE.finditer(line)]
        kept.append(_HERE.sub(" ", line))
    if document:
        documents.append("\n".join(document))
    return "\n".join(kept), documents


_PARAMETERS = re.compile(r"\bdef[ \t]{1,8}\w{1,200}[ \t]{0,8}\(([^()\n]{0,300})\)")
_PARAMETER = re.compile(r"(?:^|,)[ \t]{0,8}\*{0,2}([A-Za-z_]\w*)")


def own_names(code: str) -> frozenset[str]:
    """The names that code binds itself and that are nobody else's: plain words, and variables.

    A function, a class or a constant in the shape of code may be somebody else's, whoever writes it.
    """
    bound = {name for groups in _BOUND.findall(code) for group in groups for name in _NAME.findall(group)}
    found = definitions(code.split("\n"), "own.py")
    made = {name for name in (*found.strong, *found.weak, *bound) if not is_code_name(name)}
    bound |= {name for inside in _PARAMETERS.findall(code) for name in _PARAMETER.findall(inside)}
    functions = set(re.findall(r"\b(?:def|class)[ \t]+(\w+)", code))
    return frozenset(made | {name for name in bound - functions if _VARIABLE.fullmatch(name)})


def without_strings(code: str) -> str:
    """Code without its strings and comments."""
    return lex(code.split("\n"), "own.py").code
