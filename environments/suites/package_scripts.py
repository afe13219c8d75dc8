"""What the scripts of a ``package.json``, and targets of a makefile that they start, say of its tests: which runner
they start, by which options, for which files.

Pure. Scripts are split into words and never run: of options those are taken that say how tests are loaded, each quoted
anew.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from environments.suites.makefiles import CALL, targets
from environments.suites.runner import PARENT

_MOST_WORDS = 400
_MOST_ROOTS = 40
"""Scripts that are looked at beside ``test``."""
_MOST_STARTED = 60
"""Scripts that one of them comes to."""

_PROGRAM = re.compile(
    r"(?:.{0,200}/)?_?(jest|mocha|vitest|ts-mocha|tsx|node|ts-node|tap|tape|ava)(?:-cli)?(?:\.[cm]?js)?"
)
_NAMED = frozenset({"jest", "mocha", "vitest", "tap", "tape", "ava"})
"""Programs that are runners of ours."""
_OTHERS = frozenset(
    {
        "karma",
        "jasmine",
        "uvu",
        "lab",
        "qunit",
        "bun",
        "deno",
        "playwright",
        "cypress",
        "wtr",
        "zuul",
    }
    | {"web-test-runner", "borp", "nodeunit", "vows", "zora", "airtap", "mochify", "poku"}
)
"""Runners of tests that no runner of ours stands for."""
_STARTERS = frozenset(
    {"npx", "c8", "nyc", "cross-env", "cross-env-shell", "env", "exec", "time", "istanbul", "pnpx", "dotenv"}
)
_MANAGERS = frozenset({"npm", "pnpm", "yarn", "run-s", "run-p", "npm-run-all", "run"})
_ASSIGNED = re.compile(r"([A-Z][A-Z0-9_]{0,60})=(.*)", re.DOTALL)
_VARIABLES = re.compile(r"NODE_ENV|NODE_OPTIONS|BABEL_ENV|TS_NODE_[A-Z_]+|TZ")
"""Variables that say how tests are loaded."""

_LOADERS = {"--require", "-r", "--import", "--loader", "--experimental-loader", "--conditions", "-C"}
_VALUED: Mapping[str, frozenset[str]] = {
    "mocha": frozenset(
        _LOADERS
        | {"--ui", "-u", "--config", "--extension", "--ext", "--file", "--timeout", "--timeouts", "-t", "--opts"}
        | {"--compilers", "--node-option", "-n", "--package", "--project", "-p"}
    ),
    "jest": frozenset({"--config", "-c", "--env", "--rootDir", "--testEnvironment", "--projects", "--selectProjects"}),
    "vitest": frozenset({"--config", "-c", "--root", "--environment", "--project", "--pool"}),
    "nodetest": frozenset(_LOADERS),
    "tap": frozenset({"--node-arg", "--require", "-r", "--import", "--loader"}),
    "tape": frozenset({"--require", "-r"}),
    "ava": frozenset({"--config", "--node-arguments"}),
}
"""Options that say how tests are loaded, and take a value."""
_FLAGS = re.compile(
    r"--(?:exit|expose[-_]gc|check-leaks|no-warnings|experimental-[a-z-]+|enable-source-maps|globals|delay|preserve-symlinks)"
)
_ALONE = "--runInBand"
"""An option of jest for tests that cannot run beside others."""
_DROPPED = frozenset(
    {"--reporter", "-R", "--reporters", "--reporter-options", "-O", "--grep", "-g", "--coverageReporters"}
    | {"--test-reporter", "--test-reporter-destination", "--maxWorkers", "-w", "--retries", "--test-name-pattern"}
    | {"--timeout", "-t", "--match", "-m", "--coverage-map", "--concurrency"}
    | {"--coverageDirectory", "--outputFile", "--ignore", "--exclude", "--jobs", "-j", "--test-concurrency", "--silent"}
)
"""Options with a value that say nothing of that; ``--silent`` takes one of the next words at times."""


@dataclass(frozen=True, slots=True)
class Scripted:
    """How a script starts its tests. `runner` is the name of a runner of ours, or of another one."""

    runner: str
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    """Files, folders and globs that it names."""
    ignored: tuple[str, ...] = ()
    recursive: bool = False
    program: str = ""
    """The program in place of the runner's own."""

    @property
    def known(self) -> bool:
        """Whether it is a runner of ours."""
        return self.runner in _VALUED


def scripted_tests(package: str, makefile: str = "") -> tuple[Scripted, ...]:
    """What the scripts of a ``package.json`` start, those that ``test`` comes to first, each in the script's order;
    scripts may start targets of a makefile."""
    scripts = {**targets(makefile), **_scripts(package)}
    names = [name for name in scripts if re.match(r"(?:unit|mocha|jest|vitest)$|tests?\b", name) and name != "test"]
    found = [it for name in ("test", *sorted(names)[:_MOST_ROOTS]) for it in _started(scripts, name, set())]
    return tuple(dict.fromkeys(found))


def chosen_script(package: str, makefile: str = "") -> Scripted | None:
    """The first of those that starts a runner of ours; else the first; None where no script starts any."""
    found = scripted_tests(package, makefile)
    return next((it for it in found if it.known), found[0] if found else None)


def with_options(template: str, script: Scripted) -> str:
    """The command of a runner with what the script says of how tests are loaded."""
    own_part = template.removeprefix(f"{PARENT} ")
    program, _, rest = own_part.partition(" ")
    # Braces are places of the template.
    is_plain = re.compile(r"[^{}\x00-\x1f\x7f]{1,500}").fullmatch
    words = [shlex.quote(word) for word in script.options] if all(map(is_plain, script.options)) else []
    variables = [f"{name}={shlex.quote(value)}" for name, value in script.variables if is_plain(value)]
    own = [script.program or program]
    if _ALONE in script.options:
        rest = in_one_process(rest)
    ordered = [*own, rest, *words] if script.runner == "vitest" else [*own, *words, rest]
    return " ".join([*variables, *([PARENT] if own_part != template else []), *ordered])


def in_one_process(command: str) -> str:
    """A command of jest without the number of its processes, which it refuses beside ``--runInBand``."""
    return re.sub(r"--maxWorkers=\d+ ", "", command)


def _scripts(package: str) -> dict[str, str]:
    with suppress(ValueError, RecursionError):
        scripts: Any = json.loads(package)
        scripts = scripts.get("scripts") if isinstance(scripts, dict) else None
        if isinstance(scripts, dict):
            return {str(name): text for name, text in scripts.items() if isinstance(text, str)}
    return {}


def _started(scripts: Mapping[str, str], name: str, seen: set[str]) -> Iterator[Scripted]:
    if name in seen or len(seen) > _MOST_STARTED or name not in scripts:
        return
    seen.add(name)
    for words in _commands(scripts[name]):
        variables, rest = _variables(words)
        if not rest:
            continue
        if rest[0] in _MANAGERS or rest[0] == CALL:
            for other in _run_by(rest, scripts):
                yield from (_merged(it, variables) for it in _started(scripts, other, seen))
            continue
        found = _command(rest)
        if found is not None:
            yield _merged(found, variables)


def _merged(script: Scripted, variables: Sequence[tuple[str, str]]) -> Scripted:
    return replace(script, variables=tuple({**dict(variables), **dict(script.variables)}.items()))


@lru_cache(maxsize=256)
def _commands(text: str) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    with suppress(ValueError):  # a quotation that does not end
        lexer = shlex.shlex(text[:4000], posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("&|;"):
                found.append(tuple(words[:_MOST_WORDS]))
                words = []
            else:
                words.append(word)
        found.append(tuple(words[:_MOST_WORDS]))
    return tuple(found)


def _variables(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The variables that a command is given, and its words from the program on."""
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest[0]
        assigned = _ASSIGNED.fullmatch(word)
        if assigned:
            if _VARIABLES.fullmatch(assigned[1]):
                found.append((assigned[1], assigned[2]))
            rest.pop(0)
        elif word in _STARTERS:
            # Options of what only measures or starts a program stand before that.
            rest = rest[1:]
            while rest and not _ASSIGNED.fullmatch(rest[0]) and not _is_program(rest[0]) and rest[0] not in _STARTERS:
                rest.pop(0)
        elif word in {"npm", "pnpm", "yarn"} and rest[1:2] in (["exec"], ["dlx"]):
            rest = [it for it in rest[2:] if it != "--"]
        elif word in {"pnpm", "yarn"} and len(rest) > 1 and _is_program(rest[1]):
            rest = rest[1:]
        else:
            break
    return found, rest


def _is_program(word: str) -> bool:
    return _PROGRAM.fullmatch(word) is not None or word in _MANAGERS or word in _OTHERS


def _run_by(words: Sequence[str], scripts: Mapping[str, str]) -> Iterator[str]:
    if words[0] == CALL:
        named = [it for it in words[1:] if not it.startswith("-") and "=" not in it]
        yield from [f"{CALL} {it}" for it in named] or [CALL]
        return
    for word in words[1:]:
        if word in scripts:
            yield word
        elif word.endswith("*"):
            yield from (name for name in scripts if name.startswith(word.rstrip("*")))


def _command(words: Sequence[str]) -> Scripted | None:
    program = _PROGRAM.fullmatch(words[0])
    if program is None:
        return Scripted(words[0]) if words[0] in _OTHERS else None
    name, rest = program[1], list(words[1:])
    if name == "ts-mocha":
        return _read("mocha", rest, Scripted("mocha", program="ts-mocha"))
    if name in _NAMED:
        return _read(name, rest, Scripted(name))
    options: list[str] = []
    while rest:
        word = rest[0]
        inner = _PROGRAM.fullmatch(word)
        if inner and inner[1] in _NAMED:
            of_node = [("NODE_OPTIONS", " ".join(options))] if options else []
            return _merged(_read(inner[1], rest[1:], Scripted(inner[1])), of_node)
        if word == "--test":
            start = Scripted("nodetest", tuple(options), program="tsx" if name == "tsx" else "")
            return _read("nodetest", rest[1:], start)
        if not word.startswith("-"):
            return None
        options += [word, *([rest[1]] if word in _LOADERS and len(rest) > 1 else [])]
        rest = rest[2 if word in _LOADERS else 1 :]
    return None


def _read(runner: str, words: Sequence[str], start: Scripted) -> Scripted:
    """What the words behind the name of a runner say."""
    options, files, ignored, recursive = list(start.options), [], [], False
    waiting = iter(words)
    for word in waiting:
        option, has_value, value = word.partition("=")
        if not word.startswith("-"):
            files.append(word)
        elif word == "--recursive":
            recursive = True
        elif option in _VALUED[runner]:
            value = value if has_value else next(waiting, "")
            if option == "--node-arg":  # of node-tap, for the Node that runs a file
                options.append(value)
            else:
                options += [f"{option}={value}"] if has_value else [option, value]
        elif option in {"--ignore", "--exclude"} and runner == "mocha":
            ignored.append(value if has_value else next(waiting, ""))
        elif runner == "jest" and word in {"-i", _ALONE}:
            options.append(_ALONE)
        elif _FLAGS.fullmatch(option):
            options.append(word)
        elif option in _DROPPED and not has_value:
            next(waiting, "")
    files = [it for it in files if it not in {"run", "test", "watch"} or runner not in {"jest", "vitest"}]
    return replace(start, options=tuple(options), files=tuple(files), ignored=tuple(ignored), recursive=recursive)
