"""Which files of a tree a runner on Node collects, by the scripts of ``package.json`` and the runner's own settings.

Pure. Settings that are code are not run: of them plain lists of plain texts are read. A repository's own regular
expression is used only where it is too simple to take for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from environments.suites.makefiles import MAKEFILE
from environments.suites.package_scripts import scripted_tests
from environments.suites.runner import OwnNames

_CODE = ("js", "cjs", "mjs", "ts", "cts", "mts", "jsx", "tsx")
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "mocha": (
        ".mocharc.json",
        ".mocharc.jsonc",
        ".mocharc.js",
        ".mocharc.cjs",
        ".mocharc.yml",
        ".mocharc.yaml",
        "test/mocha.opts",
    ),
    "jest": tuple(f"jest.config.{it}" for it in ("json", *_CODE[:6])),
    "vitest": tuple(f"{name}.config.{it}" for name in ("vitest", "vite") for it in _CODE[:6]),
}
"""Files of the root that say which files hold tests, by runner."""
_KEYS = {"mocha": "spec", "jest": "testMatch", "vitest": "include"}
_LIST = re.compile(
    r"\b(spec|testMatch|include)['\"]?\s{0,20}:\s{0,20}(?:\[([^\[\]]{0,4000})\]|(['\"`][^'\"`\n]{1,300}['\"`]))"
)
_TEXT = re.compile(r"(['\"`])([^'\"`\n]{1,300})\1")
_YAML = re.compile(r"(?m)^spec:[ \t]*(\S[^\n]{0,300})?((?:\n[ \t]{0,20}- [^\n]{1,300}){0,50})")
_EXTENSIONS = re.compile(r"--(?:extension|ext)[= ]")
_MOST = 100_000


def own_names(runner: str) -> OwnNames:
    """The rule of a runner on Node for the names of test files, by what a repository says."""
    return OwnNames(
        ("package.json", MAKEFILE, *_SETTINGS.get(runner, ())), lambda texts: patterns(runner, texts), takes
    )


def patterns(runner: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Globs of the files that the runner collects, those that it leaves out with a ``!`` before; none where nothing is
    said, and the runner's own rule holds."""
    texts = {path: text[:_MOST] for path, text in texts.items()}
    scripts = scripted_tests(texts.get("package.json", ""), texts.get(MAKEFILE, ""))
    started = [it for it in scripts if it.runner == runner]
    listed = list(_of_settings(runner, texts))
    found = [glob for glob in listed if runner != "vitest" or re.search(r"test|spec", glob)]
    ignored = [f"!{it}" for script in started for it in script.ignored]
    if runner not in {"jest", "vitest"}:
        for script in started:
            found += [glob for it in script.files for glob in _below(it, script.recursive, runner, script.options)]
    if runner == "mocha" and not found and any(not it.files for it in started):
        recursive = any(it.recursive for it in started)
        found += [glob for it in started for glob in _below("test", recursive, runner, it.options)]
    globs = [*found, *ignored] if any(not it.startswith("!") for it in found) else []
    return tuple(dict.fromkeys(it.removeprefix("<rootDir>/").removeprefix("./") for it in globs if len(it) < 300))


def takes(path: str, globs: tuple[str, ...]) -> bool:
    """Whether the globs, or expressions behind a mark, take a path for a test file."""
    wanted = tuple(it for it in globs if not it.startswith("!"))
    left_out = tuple(it[1:] for it in globs if it.startswith("!"))
    if not path.endswith(tuple(f".{it}" for it in _CODE)) or re.search(r"(?:^|/)node_modules/", path):
        return False
    return _any_takes(path, wanted) and not _any_takes(path, left_out)


def _any_takes(path: str, globs: tuple[str, ...]) -> bool:
    globs = tuple(it for it in globs if len(path) ** len(_WILD.findall(it)) < _STEPS)
    expressions = (it.removeprefix(_EXPRESSION) for it in globs if it.startswith(_EXPRESSION))
    plain = tuple(it for it in globs if not it.startswith(_EXPRESSION))
    # jest searches the absolute path.
    return _matcher(plain).fullmatch(path) is not None or any(re.search(it, f"/{path}") for it in expressions)


def _of_jest(section: Mapping[str, Any]) -> Iterator[str]:
    """What ``testRegex``, ``roots`` and ``testPathIgnorePatterns`` say, where that is simple."""
    expressions = [it for it in _texts(section.get("testRegex")) if _is_simple(it)]
    roots = [it.removeprefix("<rootDir>").strip("./") for it in _texts(section.get("roots"))]
    below = [f"^/{re.escape(it)}/" if it else "" for it in roots] or [""]
    yield from (
        f"{_EXPRESSION}{root}{'.*' if root and not it.startswith('^') else ''}{it}"
        for it in expressions
        for root in below
    )
    if expressions or section.get("testMatch"):
        for it in _texts(section.get("testPathIgnorePatterns")):
            expression = it.replace("<rootDir>", "")
            if _is_simple(expression):
                yield f"!{_EXPRESSION}{expression}"


_EXPRESSION = "re:"
_SIMPLE = re.compile(
    r"(?:\\[./dw-]|[\w/ -]\??|\^|\$|\((?:\?:)?[\w./|\\-]{0,100}\)\??|\[[\w.^/-]{1,40}\][?*+]?|\.[*+]?){1,80}"
)
_WILD = re.compile(r"\*\*/?|[@?!*+]?\(|[*?+{]")
_STEPS = 2 * 10**9
"""What matching may cost at most: a path's length to the power of the places that can be several things. Of hostile
globs and paths the worst then takes about a second."""


def _is_simple(expression: str) -> bool:
    return _SIMPLE.fullmatch(expression) is not None


def _of_settings(runner: str, texts: Mapping[str, str]) -> Iterator[str]:
    key = _KEYS.get(runner)
    if key is None:
        return
    package: Any = {}
    with suppress(ValueError, RecursionError):
        package = json.loads(texts.get("package.json", "{}"))
    section = package.get(runner) if isinstance(package, dict) else None
    if isinstance(section, dict):
        yield from _texts(section.get(key))
        if runner == "jest":
            yield from _of_jest(section)
    for path in _SETTINGS.get(runner, ()):
        text = texts.get(path, "")
        if path.endswith((".yml", ".yaml")):
            for one, several in _YAML.findall(text):
                yield from (it.strip("'\"[]- ") for it in (one, *several.split("\n")) if it.strip("'\"[]- "))
        elif path.endswith(".opts"):
            yield from (line for line in text.split("\n") if line and not line.startswith(("-", "#")))
        else:
            for name, several, one in _LIST.findall(text):
                if name == key:
                    yield from (found[1] for found in _TEXT.findall(several or one))


def _texts(value: Any) -> Iterable[str]:
    values = value if isinstance(value, list) else [value]
    return [it for it in values if isinstance(it, str)]


def _below(place: str, recursive: bool, runner: str, options: tuple[str, ...]) -> list[str]:
    """A file or a glob as it is; a folder as the files in it, by the extensions that the runner loads."""
    place = place.rstrip("/")
    if re.search(r"[*{}?]|\.[cm]?[jt]sx?$", place):
        return [place]
    inner = "**/*" if recursive or runner != "mocha" else "*"
    more = [
        value.lstrip(".")
        for index, option in enumerate(options)
        for value in [option.partition("=")[2] or (options[index + 1] if index + 1 < len(options) else "")]
        if _EXTENSIONS.match(f"{option} ")
    ]
    endings = [*_CODE[:3], *(it for text in more for it in text.split(",") if re.fullmatch(r"\w{1,5}", it))]
    return [f"{place}/{inner}.{{{','.join(dict.fromkeys(endings))}}}"]


@cache
def _matcher(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_expression, globs)) or r"(?!)")


_PART = re.compile(r"\*\*/|\*\*|\*|\?\(|[@+!*]\(|\?|\{|\}|,|\(|\)|\||\[[^\]/]{1,40}\]|[^*?@+!{},()|\[]+|.", re.DOTALL)


def _expression(glob: str) -> str:
    """A glob of Node's tools as a regular expression without nested repetitions: ``**``, ``{a,b}``, ``?(x)``, and
    others of these groups as one of their parts."""
    pieces: list[str] = []
    closings: list[str] = []
    wide = 0
    for part in _PART.findall(glob):
        if part in {"**/", "**"}:
            wide += 1
            pieces.append(("(?:.*/)?" if part == "**/" else ".*") if wide <= 3 else "")
        elif part == "*":
            pieces.append("[^/]*")
        elif part == "?":
            pieces.append("[^/]")
        elif part in {"?(", "@(", "+(", "!(", "*(", "(", "{"}:
            pieces.append("(?:")
            closings.append(")?" if part in {"?(", "*("} else ")")
        elif part in {")", "}"} and closings:
            pieces.append(closings.pop())
        elif part in {",", "|"} and closings:
            pieces.append("|")
        elif part.startswith("[") and len(part) > 2:
            pieces.append(f"[{re.escape(part[1:-1]).replace(chr(92) + '-', '-')}]")
        else:
            pieces.append(re.escape(part))
    return "".join(pieces) + "".join(reversed(closings))
