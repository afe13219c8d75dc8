"""Identifiers: finding them in code, telling them from words, and finding those that code defines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from prchain.core.code.lexing import family_of, is_prose, lex

_IDENTIFIER = re.compile(r"\b[^\W\d]\w*")
_HUMP = re.compile(r"[^\W\d_A-Z][A-Z]|\d[A-Z]|[A-Z]{2}[a-z]")
_ABBREVIATIONS = re.compile(r"[A-Z]+s")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_LONGEST_LINE = 2000
"""Characters of a line in which definitions are searched; a longer one is generated, or hostile."""
_CUT_NAME = re.compile(r"\b\w+\Z")
_FEW_PARAMETERS = 4000
"""Characters of a parameter list that are read; a longer one is no parameter list."""

# Strong definitions can be used from elsewhere by their bare name. Weak ones only behind a dot, as a key or as a
# keyword: fields, class attributes, keys and keyword arguments, or local variables that look like them.
_STRONG = {
    "python": (
        r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)",
        r"^[ \t]*class[ \t]+(\w+)",
        r"^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)",
    ),
    "javascript": (
        r"\bfunction\b[ \t]*(?:\*[ \t]*)?([\w$]+)",
        r"\b(?:class|interface|enum|type|namespace)[ \t]+([\w$]+)",
        r"^(?:export[ \t]+)?(?:const|let|var)[ \t]+([\w$]+)",
    ),
    "rust": (
        r"\bfn[ \t]+(\w+)",
        r"\b(?:struct|enum|trait|union|type|mod)[ \t]+(\w+)",
        r"\b(?:const|static)[ \t]+(?:mut[ \t]+)?(\w+)[ \t]*:",
        r"\bmacro_rules![ \t]*(\w+)",
    ),
    "go": (
        r"^func[ \t]*(?:\([^()\n]*\)[ \t]*)?(\w+)",
        r"^type[ \t]+(\w+)",
        r"^(?:const|var)[ \t]+(\w+)",
    ),
    "java": (
        r"\b(?:class|interface|enum|record|object|trait|fun|struct|protocol|func)[ \t]+(\w+)",
        r"^[ \t]*(?:@\w+[ \t]+)*(?:public|private|protected|static|final|internal|override)\b[^=;(){}\n]*?[ \t](\w+)"
        r"[ \t]*[(=;]",
    ),
    "c": (
        r"^[ \t]*#[ \t]*define[ \t]+(\w+)",
        r"\b(?:struct|class|enum|union|namespace)[ \t]+(\w+)",
        r"^[A-Za-z_][\w \t*&:<>,]{0,200}[ \t*&:](\w+)[ \t]*\(",
    ),
    "hash": (r"^[ \t]*(?:def|class|module|function|sub)[ \t]+(?:self\.)?(\w+)",),
}
_WEAK = {
    "python": (
        r"\b(?:self|cls)\.(\w+)[ \t]*(?::[^=\n]{1,200})?=(?!=)",
        r"^[ \t]+(\w+)[ \t]*:[ \t]*[^\s=][^\n]*$",
        r"^[ \t]+(\w+)[ \t]*=(?!=)",
    ),
    "javascript": (
        r"^[ \t]*(?:(?:static|async|get|set|public|private|protected|readonly|override)[ \t]+)*[*#]?([\w$]+)[ \t]*"
        r"\([^\n]*\{[ \t]*$",
        r"^[ \t]*(?:readonly[ \t]+)?([\w$]+)\??[ \t]*:",
        r"\bthis\.([\w$]+)[ \t]*=(?!=)",
        r"^[ \t]*([\w$]+),$",
        r"^[ \t]*(?:static[ \t]+)?([\w$]+)[ \t]*=(?!=)",
    ),
    "rust": (
        r"^[ \t]*(?:pub(?:\([^()\n]*\))?[ \t]+)?(\w+)[ \t]*:(?!:)",
        r"^[ \t]+([A-Z]\w*)[ \t]*(?:[,({]|$)",
    ),
    "go": (r"^[ \t]+([A-Z]\w*)[ \t]+[\w*\[\]]",),
    "java": (r"^[ \t]+([A-Z][A-Z0-9_]+)[ \t]*[,;(]",),
    "c": (r"^[ \t]+[A-Za-z_][\w \t*&:<>]{0,200}[ \t*&](\w+)[ \t]*(?:;|=|\[)", r"^[ \t]+([A-Z][A-Z0-9_]+)[ \t]*[,=]"),
    "hash": (r"^[ \t]*(\w+)[ \t]*[:=]",),
}
_STRONG_RES = {family: [re.compile(p, re.M) for p in patterns] for family, patterns in _STRONG.items()}
_ANY_STRONG = {family: re.compile("|".join(patterns), re.M) for family, patterns in _STRONG.items()}
_WEAK_RES = {family: [re.compile(p, re.M) for p in patterns] for family, patterns in _WEAK.items()}
_PYTHON_DEF = re.compile(r"\bdef[ \t]+\w+[ \t]*\(")
_PARAMETER = re.compile(r"(?:^|,)\s*\*{0,2}([^\W\d]\w*)")
_NESTED = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}")
_EXPORTS = re.compile(r"\bexport[ \t]*\{([^{}]{0,2000})\}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NO_NAMES = _words(
    "self cls this super None True False null true false undefined def class return if else for while import from "
    "function const let var new fn pub use mut impl struct enum match package func type interface public private "
    "protected static void int bool switch case catch try finally throw async await yield lambda and or not is in as "
    "with pass raise except default export extends implements where elif break continue do del global"
)
"""Words of code that name nothing: keywords, literals, and what stands for the object itself."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """Names that code defines: `strong` ones can be used by their bare name, `weak` ones only of or with something."""

    strong: frozenset[str]
    weak: frozenset[str]


def identifiers(text: str) -> list[str]:
    """Every identifier in a text, in order and with repeats. What begins with a digit is none."""
    return _IDENTIFIER.findall(text)


def is_code_name(word: str) -> bool:
    """Whether a word has the shape of a name in code: joined by underscores, or with a capital inside."""
    core = word.strip("_")
    if not core:
        return False
    if "_" in word:
        return True
    return bool(_HUMP.search(word)) and not _ABBREVIATIONS.fullmatch(word)


def name_parts(name: str) -> tuple[str, ...]:
    """The words of a name, in small letters: of `maxRetries`, `MAX_RETRIES` and `max-retries` the same two."""
    return tuple(part.lower() for part in _PARTS.findall(name))


def spellings(name: str) -> set[str]:
    """A name of several words in the usual cases: snake, camel, Pascal and constants; of one word nothing."""
    parts = name_parts(name)
    if len(parts) < 2:
        return set()
    pascal = "".join(map(str.capitalize, parts))
    snake = "_".join(parts)
    return {snake, snake.upper(), pascal, parts[0] + "".join(map(str.capitalize, parts[1:]))}


def code_identifiers(lines: Iterable[str], path: str) -> set[str]:
    """The identifiers in lines of code, without those of strings and comments and without keywords.

    Of a line that reads as a sentence (a docstring whose quotes lie elsewhere) only the code-shaped ones are taken.
    """
    found: set[str] = set()
    for line in lex(lines, path).code.split("\n"):
        names = _IDENTIFIER.findall(line)
        found.update(filter(is_code_name, names) if is_prose(line) else names)
    return found - NO_NAMES


def definitions(lines: Iterable[str], path: str) -> Definitions:
    """What lines of code define, by the rules of their language's family; by pattern, since hunks do not parse."""
    family = family_of(path)
    if family is None:
        return Definitions(frozenset(), frozenset())
    code = "\n".join(_cut(line) for line in lex(lines, path).code.split("\n") if not is_prose(line))
    strong = {name for pattern in _STRONG_RES[family] for name in pattern.findall(code)}
    weak = {name for pattern in _WEAK_RES[family] for name in pattern.findall(code)}
    if family == "python":
        weak.update(_parameters(code))
    elif family == "javascript":
        strong.update(name for names in _EXPORTS.findall(code) for name in _IDENTIFIER.findall(names))
    strong -= NO_NAMES
    return Definitions(frozenset(strong), frozenset(weak - strong - NO_NAMES))


def bare_definitions(text: str, family: str) -> list[str]:
    """The functions, classes, constants and the like that code defines, each as often as it stands there.

    For histories of millions of lines: strings and comments are not taken out first.
    """
    found = [str(match[match.lastindex or 0]) for match in _ANY_STRONG[family].finditer(text)]
    return [name for name in found if name not in NO_NAMES]


def defined_names(lines: Iterable[str], path: str) -> set[str]:
    """Every name that lines of code define: functions, classes, constants, parameters, attributes, exported symbols."""
    found = definitions(lines, path)
    return {*found.strong, *found.weak}


def _cut(line: str) -> str:
    """The first `_LONGEST_LINE` characters of a line, without a name that this cuts in two."""
    return line if len(line) <= _LONGEST_LINE else _CUT_NAME.sub("", line[:_LONGEST_LINE])


def _parameters(code: str) -> set[str]:
    found: set[str] = set()
    read_end = 0
    for match in _PYTHON_DEF.finditer(code):
        if match.start() < read_end:
            continue
        read_end = match.end() + _FEW_PARAMETERS
        inside = code[match.end() : match.end() + _FEW_PARAMETERS]
        depth = 1
        for place, char in enumerate(inside):
            depth += (char in "([{") - (char in ")]}")
            if depth == 0:
                read_end = match.end() + place
                parameter_list = inside[:place]
                for _ in range(3):
                    parameter_list = _NESTED.sub("", parameter_list)
                found.update(_PARAMETER.findall(parameter_list))
                break
    return found
