"""What tests need by other words than the project's own lists: `tests_require`, tox's `deps`, what nox and CI install.

Before 2019 these were often the only ones. Each is wished for, not asked for: what the project's lists have brought
stays as it is, and an image lacks what cannot be had.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from environments.images.python_project import config_sections, plain_name, tox_deps
from environments.images.requirement_lines import flat_lines, is_requirement, plain_lines
from prchain.core.code.syntax_trees import syntax_tree

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
    yield from listed_in_setup(texts.get("setup.py", ""), "tests_require")
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
    for given in _INSTALL.findall(re.sub(r"\\\r?\n", " ", text)):
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
            # What is no plain word is still the value of an option before it.
            found += _installed([str(it.value) if isinstance(it, ast.Constant) else "" for it in call.args])
    return list(dict.fromkeys(found))


_LETTERS = re.compile(r"-[A-Za-z]*?([rcetfibdC])=?(.*)", re.DOTALL)
"""Short options of pip in one word: those before the first that takes a value take none."""
_WITH_VALUE = re.compile(
    r"--(?:abi|build|build-option|cache-dir|cert|client-cert|config-settings|constraint|default-timeout|download|editable"
    r"|exists-action|extra-index-url|find-links|global-option|group|implementation|index-url|install-option"
    r"|keyring-provider|log|no-binary|only-binary|platform|prefix|progress-bar|proxy|python|python-version|report"
    r"|requirement|retries|root|root-user-action|src|target|timeout|trusted-host|upgrade-strategy|use-deprecated"
    r"|use-feature)"
)
"""Long options of pip that take a value: https://pip.pypa.io/en/stable/cli/pip_install/"""


def _installed(words: Iterable[str]) -> Iterator[str]:
    """Of the words of an installation by pip the requirements, and requirement files as ``-r FILE``; the values of
    other options are neither, and what cannot be printed is left out."""
    waiting = iter(words)
    for word in waiting:
        option, value = _option(word)
        if not value and (len(option) == 1 or _WITH_VALUE.fullmatch(option)):
            value = next(waiting, "")
        if not value.isprintable():
            continue
        if option in {"r", "--requirement"}:
            yield f"-r {value}"
            continue
        itself = option in {"", "e", "--editable"} and _ITSELF.match(value)
        # A file of requirements without its option is a slip, and no package to have.
        if itself or (not option and not value.endswith(".txt") and is_requirement(value)):
            yield value


def _option(word: str) -> tuple[str, str]:
    """The option that a word is, and the value in the same word. The option is its letter where it is a short one that
    takes a value; it is empty where the word is none, which is the value then."""
    if not word.startswith("-"):
        return "", word
    if word.startswith("--"):
        option, _, value = word.partition("=")
        return option, value
    found = _LETTERS.fullmatch(word)
    return (found[1], found[2]) if found else (word, "")


def _parsed(text: str) -> ast.Module:
    try:
        return syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def listed_in_setup(text: str, argument: str) -> list[str]:
    """An argument of a call of setup(), ``tests_require`` say, where it is a plain list, or a name that one was given
    to."""
    tree = _parsed(text)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == argument:
            value = named.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
            items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return []
