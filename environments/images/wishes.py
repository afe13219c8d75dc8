"""What tests need by other words than the project's own lists: `tests_require`, tox's `deps`, what nox and CI install.

Before 2019 these were often the only ones. Each is wished for, not asked for: what the project's lists have brought
stays as it is, and an image lacks what cannot be had.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from environments.images.python_project import config_sections, plain_name, tox_deps
from environments.images.requirement_lines import flat_lines, is_requirement, plain_lines

CI = (".travis.yml",)
"""The files of CI that are asked: those of the time before projects had lists of their own for tests."""

_INSTALL = re.compile(r"\bpip3? install[ \t]+([^\n;&|#]{1,500})")
_OF_FILE = re.compile(r"^(?:-r|--requirement)[ =]*(?:\{toxinidir\}/)?([A-Za-z0-9_./-]{1,200}\.(?:txt|pip|in))$")
_FACTORS = re.compile(r"([A-Za-z0-9_,{}!. -]{1,200}):\s+(\S.*)$")
_OF_TESTS = re.compile(r"^\s*(?:(?:unit)?tests?(?:ing)?|py|py3\d*|3\d+|cov(?:er(?:age)?)?)\s*$")
"""Factors of tox's environments that run tests, on a Python that is no 2."""
_ITSELF = re.compile(r"(?:(?:-e|--editable)[ =]*)?['\"]?(?:\{toxinidir\}|\.)/?\[([A-Za-z0-9., _-]{1,200})\]['\"]?$")
_TOOLS = {"pip", "setuptools", "wheel", "virtualenv", "tox", "tox-travis", "codecov", "coveralls", "twine", "poetry"}
"""What CI installs for itself."""


def named_files(texts: Mapping[str, str]) -> tuple[str, ...]:
    """The requirement files that tox and CI name; they are manifests whatever their names. `texts` are path to content
    of those that are known."""
    return tuple(dict.fromkeys(path for line in _lines(texts) if (path := _file_of(line))))


def wishes(texts: Mapping[str, str]) -> list[str]:
    """The requirements that tests are said to need, each once; of what CI installs without its own tools."""
    found = []
    for line in _lines(texts):
        path = _file_of(line)
        found += flat_lines(path, texts) if path else [line]
    wanted = dict.fromkeys(line for line in found if is_requirement(line))
    return [line for line in wanted if plain_name(re.split(r"[^A-Za-z0-9._-]", line)[0]) not in _TOOLS]


def named_extras(lines: Iterable[str]) -> list[str]:
    """The extras with which lines of requirements name the project itself."""
    found = [found[1] for line in lines if (found := _ITSELF.match(line))]
    return list(dict.fromkeys(extra.strip() for extras in found for extra in extras.split(",") if extra.strip()))


def wished_extras(texts: Mapping[str, str]) -> list[str]:
    """The extras of the project itself that tests are said to need."""
    return named_extras(_lines(texts))


def _file_of(line: str) -> str | None:
    found = _OF_FILE.match(line)
    path = posixpath.normpath(found[1]) if found else ""
    return path if path and not path.startswith(("/", "..")) else None


def _lines(texts: Mapping[str, str]) -> Iterator[str]:
    yield from _tests_require(texts.get("setup.py", ""))
    yield from plain_lines(config_sections(texts.get("setup.cfg", "")).get("options", {}).get("tests_require", ""))
    for line in tox_deps(texts.get("tox.ini", "")):
        factors = _FACTORS.match(line)
        if factors is None:
            yield line
        elif any(_OF_TESTS.search(factor) for factor in re.split(r"[,{}-]", factors[1])):
            yield factors[2]
    yield from nox_installs(texts.get("noxfile.py", ""))
    for path in CI:
        yield from ci_installs(texts.get(path, ""))


def ci_installs(text: str) -> list[str]:
    """What a file of CI gives to ``pip install``: requirements, and requirement files as ``-r FILE``."""
    found: list[str] = []
    for given in _INSTALL.findall(text):
        with suppress(ValueError):  # a quotation that does not end
            found += _installed(shlex.split(given))
    return list(dict.fromkeys(found))


def nox_installs(text: str) -> list[str]:
    """What the sessions for tests of a ``noxfile.py`` install by plain words: requirements, and ``-r FILE``."""
    sessions = (it for it in _parsed(text).body if isinstance(it, ast.FunctionDef) and "test" in it.name)
    calls = (it for session in sessions for it in ast.walk(session) if isinstance(it, ast.Call))
    found: list[str] = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "install":
            given = (it.value for it in call.args if isinstance(it, ast.Constant) and isinstance(it.value, str))
            found += _installed(list(given))
    return list(dict.fromkeys(found))


def _installed(words: Sequence[str]) -> Iterator[str]:
    """Of the words of an installation the requirements, and requirement files as ``-r FILE``."""
    for before, word in zip(["", *words], words, strict=False):
        if before in {"-r", "--requirement"} or word.startswith("--requirement="):
            yield f"-r {word.removeprefix('--requirement=')}"
        elif is_requirement(word) or _ITSELF.match(word):
            yield word


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _tests_require(text: str) -> list[str]:
    """``tests_require`` of a call of setup(), where it is a plain list, or a name that one was given to."""
    tree = _parsed(text)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "tests_require":
            value = named.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
            items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return []
