"""``cargo test``. Its report is libtest's text, for its JSON needs an unstable flag."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from environments.suites.canaries.blocknames import lone_functions
from environments.suites.canaries.blocks import RUST
from environments.suites.canaries.rustduels import RUST_FALSIFIER
from environments.suites.canaries.rustmasks import mask_rust
from environments.suites.runner import PARENT, Runner
from environments.suites.testlogs import Status, join, uncoloured
from environments.suites.testlogs.libtest import read_binary
from prchain.core.code.inline_tests import InlineTest
from prchain.core.code.kinds import FileKind, kind_of

_FILE_NAME = re.compile(r"-[0-9a-f]{16}(?:\.exe)?\)$")


def parse_cargo(log: str) -> dict[str, Status]:
    """The tests of ``cargo test``, as ``crate path/of/target.rs test::name`` (``crate doc name`` for doc tests).

    Standard error has to be in the log, because the names of the test binaries stand there. How the lines of a binary
    are read, and when they are believed, is told in `environments.suites.testlogs.libtest`: one that ended without its
    result, or whose lines contradict it, leaves no test passed (each is an error).
    """
    reports: list[tuple[str, Status]] = []
    place, lines = "", list[str]()
    for line in [*re.split(r"\r?\n", uncoloured(log)), "   Doc-tests end"]:
        if heading := _heading(line):
            reports.extend((f"{place} {test}".strip(), status) for test, status in read_binary(lines))
            place, lines = heading, []
        else:
            lines.append(line)
    return join(reports)


def _heading(line: str) -> str:
    """The name and file of the binary that a line begins the output of; empty for another line.

    Cargo prints such lines in columns, behind what the binary before left without the end of a line.
    """
    if hashed := _FILE_NAME.search(line):
        before, _, words = line[: hashed.start()].rpartition("Running ")
        path, _, binary = words.rpartition(" (")
        path, name = path.removeprefix("unittests "), binary.rpartition("/")[2]
        return f"{name} {path}" if path and name and _ends_in_columns(before, 5) else ""
    before, mark, name = line.rpartition("Doc-tests ")
    return f"{name} doc" if mark and name and " " not in name and _ends_in_columns(before, 3) else ""


def _ends_in_columns(before: str, width: int) -> bool:
    return not before.strip() or before.endswith(" " * width)


def targets(files: Sequence[str]) -> list[str]:
    """``--test name`` for integration tests; with any other file nothing, which runs the whole package's tests, for
    unit tests live in the source."""
    names = [_target(path) for path in files if not _HELPER.fullmatch(path)]
    return [] if None in names else [part for name in dict.fromkeys(names) for part in ("--test", str(name))]


_HELPER = re.compile(r"tests/[^/]+/mod\.rs")
"""A module that targets share: for what is no target Cargo runs none."""


def _target(path: str) -> str | None:
    """The integration test target that a path belongs to: ``tests/name.rs`` or ``tests/name/...``."""
    parts = path.split("/")
    if len(parts) >= 2 and parts[0] == "tests" and (len(parts) > 2 or parts[1].endswith(".rs")):
        return parts[1].removesuffix(".rs")
    return None


def file_of(test: str, files: Collection[str]) -> str | None:
    """The root file of the target that a test is of."""
    path = test.partition(" ")[2].partition(" ")[0]
    return path if path in files else None


def module_of(test: str, files: Collection[str]) -> str | None:
    """The file in which a test stands, by its modules: they have files beside the target's root, or in its folder."""
    root, _, name = test.partition(" ")[2].partition(" ")
    folder, _, base = root.rpartition("/")
    modules = name.split("::")[:-1]
    # A file beside a target of one file is another target.
    shared = base in _ROOTS or kind_of(root) is not FileKind.TEST
    for depth in range(len(modules), 0, -1):
        place = "/".join([folder, *modules[:depth]])
        for path in (f"{place}.rs", f"{place}/mod.rs"):
            if path in files and (shared or path.count("/") > root.count("/")):
                return path
    return file_of(test, files)


_ROOTS = ("main.rs", "lib.rs", "mod.rs")


def name_of(test: str) -> str:
    """The function's name."""
    return test.rpartition(" ")[2].rpartition("::")[2]


def inside(tests: Collection[str], changed: Collection[InlineTest], files: Collection[str]) -> frozenset[str]:
    """Every doc test, whose id holds its line, and the tests that are the changed ones, each with its cases.

    A test is known by the modules of its file, where some test of the run bears out the layout of folders, and else by
    its name behind the modules inside of the file. Those of test targets and of laid files do not count.
    """
    laid = [modules for path in files if "src" in path.split("/") and (modules := _modules(path))]
    names = {test: name for test in tests if (name := _name_inside(test, laid)) is not None}
    found = {test for test in tests if _place(test) == "doc"}
    for path, name in changed:
        whole = (*_modules(path), *name)
        exact = [test for test, parts in names.items() if parts[: len(whole)] == whole]
        found.update(exact or (test for test, parts in names.items() if _within(name, parts)))
    return frozenset(found)


def _name_inside(test: str, laid: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The name of a test with its modules; None where it is of a test target, or in a module of a laid file."""
    if _place(test) == "doc" or kind_of(_place(test)) is FileKind.TEST:
        return None
    name = tuple(test.rpartition(" ")[2].split("::"))
    return None if any(name[: len(modules)] == modules for modules in laid) else name


def _place(test: str) -> str:
    return test.partition(" ")[2].partition(" ")[0]


def _within(name: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return any(parts[at : at + len(name)] == name for at in range(len(parts)))


def _modules(path: str) -> tuple[str, ...]:
    """The modules of a source file in its target, by the layout of folders that Cargo and rustc have."""
    parts = path.removesuffix(".rs").split("/")
    parts = parts[len(parts) - parts[::-1].index("src") :] if "src" in parts else parts
    parts = parts[2:] if parts[:1] == ["bin"] else parts
    is_root = parts in (["lib"], ["main"]) or parts[-1:] == ["mod"]
    return tuple(parts[:-1] if is_root else parts)


RUNNER = Runner(
    name="cargo",
    template=f"{PARENT} cargo test --offline --no-fail-fast --color never {{files}}",
    plain="cargo test --offline --no-fail-fast --color never {files}",
    typed="cargo test --offline NAME",
    files=r"(?:^|/)tests/(?:[^/]+/)*[^/]+\.rs$|(?:^|/)tests?\.rs$|_tests?\.rs$",
    parse=parse_cargo,
    reports=False,
    arguments=targets,
    # The name of no crate; some are patterns for --test.
    refused=r"^tests/(?!\w[\w-]*(?:\.rs$|/))",
    file_of=file_of,
    steering=(r"\.nextest\.toml", r"(?:\.cargo|\.config)/[^/]*(?:config|nextest|extensions)[^/]*"),
    project_files=(r"cargo\.toml", r"build\.rs"),
    sections={"cargo.toml": (("test",), ("profile",), ("lib", "test"), ("lib", "harness"), ("package", "build"))},
    name_of=name_of,
    inside=inside,
    plant=RUST.plant,
    lone=lone_functions,
    falsify=replace(RUST_FALSIFIER, file_of=module_of),
    mask=mask_rust,
)
