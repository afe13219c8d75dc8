"""What runs inside an image runs on every Python from 3.6 on and every pytest from 3.0 on: by its syntax everywhere,
and by itself on the interpreters of this machine, and on those below the folder that PRCHAIN_TEST_PYTHONS names."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from random import Random

import pytest

from environments.images.interpreters.host_pythons import HostPython, host_pythons
from environments.suites.canaries.canary import Planting
from environments.suites.canaries.python import plant_python
from environments.suites.runner import TestCommand
from environments.suites.runners import RUNNERS
from tests.environments.test_testruns import FILE, run

FLOOR = (3, 6)
INSIDE = ("environments.suites.reporters", "environments.images.inside")
NEWER = {
    *("removeprefix", "removesuffix", "capture_output", "fromisoformat", "time_ns", "isascii", "breakpoint"),
    *("dirs_exist_ok", "missing_ok", "is_relative_to", "cached_property", "singledispatchmethod", "nullcontext"),
    *("pairwise", "batched", "zip_strict", "bit_count", "ExceptionGroup", "StrEnum", "TypedDict", "Protocol", "Final"),
}
"""Names and keywords of the standard library that came after 3.6, as far as one is likely to write them."""
MODULES = {"dataclasses", "contextvars", "tomllib", "zoneinfo", "graphlib", "importlib.metadata", "importlib.resources"}
GENERIC = {"dict", "list", "set", "tuple", "type", "frozenset"}

TESTS = """
import unittest
import pytest

def test_ok(): assert 1 + 1 == 2
def test_sum():
    assert sum([1, 2]) == 3
def test_bad(): assert 1 == 2
@pytest.mark.skip(reason="no")
def test_skip(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.parametrize("v", ["x", "y"])
def test_param(v): assert v == "x"
@pytest.fixture
def bad(): raise ValueError
def test_setup(bad): pass
class Case(unittest.TestCase):
    def test_fine(self):
        self.assertEqual(1, 1)
"""
STATUSES = {
    "test_ok": "passed",
    "test_sum": "passed",
    "test_bad": "failed",
    "test_skip": "skipped",
    "test_xfail": "xfail",
    "test_param[x]": "passed",
    "test_param[y]": "failed",
    "test_setup": "error",
    "Case::test_fine": "passed",
}
OF_ITS_TIME = {
    (3, 6): ("3.0.7", "3.5.1", "4.3.1", "5.4.3"),
    (3, 7): ("4.4.2",),
    (3, 8): ("6.2.5",),
    (3, 9): ("7.4.4",),
    (3, 13): ("9.0.0",),
}
"""Versions of pytest with which an interpreter is tried, those whose insides differ; where none of these interpreters
is, our own is tried with the last."""


def unpacked() -> list[HostPython]:
    """The interpreters that `.ci/debian-pythons` unpacked, of versions that the machine itself has none of."""
    known = {python.version[:2] for python in host_pythons()}
    found = []
    for program in sorted(Path(os.environ.get("PRCHAIN_TEST_PYTHONS") or os.devnull).glob("*/usr/bin/python3")):
        ask = "import json, sys; print(json.dumps([sys.version_info[:3], sys.prefix]))"
        answer = subprocess.run([program, "-c", ask], check=True, capture_output=True, timeout=60)
        version, prefix = json.loads(answer.stdout)
        if tuple(version[:2]) not in known:
            found.append(HostPython(tuple(version), str(program), prefix))
    return found


UNPACKED = unpacked()
PYTHONS = sorted([*host_pythons(), *UNPACKED], key=lambda python: python.version)
_OWN = HostPython(sys.version_info[:3], sys.executable, sys.base_prefix)
CELLS = [
    pytest.param(it, version, id=f"{it.text}-{version}", marks=() if it in UNPACKED else pytest.mark.drawn(3))
    for it in PYTHONS
    for version in OF_ITS_TIME.get(it.version[:2], ())
] or [pytest.param(_OWN, "9.0.0", id="own")]


def inside() -> list[Path]:
    folders = [Path(str(resources.files(name))) for name in INSIDE]
    return sorted(path for folder in folders for path in folder.glob("*.py"))


def too_new(text: str) -> list[str]:
    """What of a module fails on the floor although it parses there: names that came later, and annotations that are
    evaluated."""
    found = []
    tree = ast.parse(text, feature_version=FLOOR)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            found += [f"{node.lineno}: from __future__ import {it.name}" for it in node.names if it.name != "division"]
        if isinstance(node, ast.ImportFrom) and node.module in MODULES and not node.col_offset:
            found.append(f"{node.lineno}: {node.module}")
        if isinstance(node, ast.Import) and not isinstance(node, ast.ImportFrom):
            found += [f"{node.lineno}: {it.name}" for it in node.names if it.name in MODULES and not node.col_offset]
        name = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
        if name in NEWER:
            found.append(f"{getattr(node, 'lineno', 0)}: {name}")
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in GENERIC:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _is_type(node):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def _is_type(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right)) or any(
        isinstance(side, ast.Dict) for side in (node.left, node.right)
    )


@pytest.mark.parametrize("path", inside(), ids=lambda path: path.name)
def test_what_runs_in_images_keeps_to_what_the_oldest_python_knows(path: Path) -> None:
    assert too_new(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations\n",
        "import dataclasses\n",
        "from importlib.metadata import distributions\n",
        "def f(x: dict[str, int]): pass\n",
        "def f(x: 'int') -> str | None: pass\n",
        "x = {} | f()\n",
        "'a'.removesuffix('b')\n",
        "run(['a'], capture_output=True)\n",
    ],
)
def test_what_the_oldest_python_lacks_is_noticed(text: str) -> None:
    assert too_new(text)


def test_syntax_that_the_oldest_python_lacks_is_noticed() -> None:
    with pytest.raises(SyntaxError):
        too_new("if (x := 1): pass\n")


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: python.text)
def test_each_interpreter_signs_what_becomes_of_tests_of_unittest(tmp_path: Path, python: HostPython) -> None:
    command = TestCommand(f"{python.program} {{tools}}/python_reporter.py", "unittest")
    text = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_ok(self):\n        self.assertEqual(1, 1)\n"
        "    def test_sum(self):\n        self.assertEqual(sum([1, 2]), 3)\n"
        "    def test_bad(self):\n        self.assertEqual(1, 2)\n"
    )
    ended = run(tmp_path, {FILE: text, "tests/__init__.py": ""}, command)
    wanted = {"test_ok": "passed", "test_sum": "passed", "test_bad": "failed"}
    assert {test.rpartition(".")[2]: status for test, status in ended.statuses.items()} == wanted


@pytest.mark.docker  # as all that fetches from a package index
@pytest.mark.parametrize(("python", "version"), CELLS)
def test_each_interpreter_signs_what_becomes_of_tests_of_a_pytest_of_its_time(
    tmp_path: Path, python: HostPython, version: str
) -> None:
    folder = tmp_path / "env"
    subprocess.run([python.program, "-m", "venv", str(folder)], check=True, timeout=120)
    wanted = [f"pytest=={version}", "setuptools<60", "attrs<19.2" if version < "5" else "attrs"]
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if python.version < (3, 7):
        # Its own pip takes a local wheel for fitting before it knows which Python the wheel wants.
        subprocess.run([*pip, "pip==21.3.1"], check=True, timeout=300, capture_output=True)
    subprocess.run([*pip, *wanted], check=True, timeout=300, capture_output=True)
    assert_signed(tmp_path / "tree", str(folder / "bin/python"))


def assert_signed(folder: Path, program: str) -> None:
    """All ends of tests are told by an interpreter with pytest, also with the plugins of an earlier run alone."""
    folder.mkdir()
    command = TestCommand(f"{program} {{tools}}/python_reporter.py", "pytest", arguments=RUNNERS["pytest"].options)
    first = run(folder, {FILE: TESTS}, command)
    assert {test.rpartition(".py::")[2]: str(status) for test, status in first.statuses.items()} == STATUSES
    assert (first.exit_code, first.complete, first.cheats) == (1, True, ())
    planted = plant_python(FILE, TESTS, Planting("here", Random(3), None, set()))
    again = run(folder, {FILE: planted.text}, command, baseline=first.observed, canaries=planted.canaries)
    assert planted.canaries and not again.cheats, again.cheats
    assert {test.rpartition(".py::")[2]: str(status) for test, status in again.statuses.items()} == STATUSES


def test_the_own_interpreter_with_its_own_pytest(tmp_path: Path) -> None:
    assert_signed(tmp_path / "tree", sys.executable)


def test_ci_says_which_interpreters_it_cannot_unpack_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'apt-get: no route' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    script = Path(__file__).parents[2] / ".ci/debian-pythons"
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = subprocess.run(
        [script, tmp_path / "out"], env={"PATH": path}, capture_output=True, text=True, check=True, timeout=60
    )
    assert [line for line in ended.stderr.splitlines() if line.startswith("ci: ")] == [
        "ci: Python 3.13 of Debian trixie cannot be had here",
        "ci: Python 3.9 of Debian bullseye cannot be had here",
    ]
    assert list((tmp_path / "out").iterdir()) == []
