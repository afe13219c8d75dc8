"""Whether the tests still catch small faults: `python -m research.mutations --count 24 --draw SEED`.

Draws modules of the installed packages, and in each one change: a comparison turned, a statement left out, a number or
a truth value changed. The tests that reach the module run over the changed copy, the nearest first and those in
containers last, until one fails: as `make test` draws them by the first of `--seeds`. A test that draws nothing answers
for every seed and for `make test-all`. Where a table that is drawn from answers, the other seeds run, too; where none
does, all points of the tables run, as in `make test-all`, and what fails there runs by each seed. Tests that need an
engine or a server run where it is there. Works in a copy; with `--out`, a run that was ended is gone on with, and what
had too few minutes is asked again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from prchain.core.console.terminal import say, say_table
from tests.fast import UNKNOWN
from tests.seconds import by_file, file_of, read
from tests.touched import Sources, reached_tests

ROOT = Path(__file__).parents[1]
INSTALLED = ("prchain", "sql", "miner", "chains", "environments", "trajectories")

NONE, LATE = "none", "time"
"""No test fails; none failed before the minutes were over."""

CHUNKS = (4, 24)
"""So many files are collected and run first, and next, before all others: the nearest ones mostly answer."""

CONFIRMING = 900.0
"""The most seconds for one test without the change."""

_DRAWS = re.compile(r"mark\.(?:drawn|whole)\b|\b(?:bare_)?database_(?:url|kind)\b")
_CONTAINERS = re.compile(r"^pytestmark = pytest\.mark\.docker$", re.M)

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutation:
    """A change of one module: what stands at `line` now, what stood there, and the whole new text."""

    path: str
    line: int
    what: str
    text: str


def mutations(path: str, source: str) -> Iterator[Mutation]:
    """Every small change of a module. The formatting of the changed text is lost; nobody reads it."""
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for node in ast.walk(function):
            for change in _changes(node):
                before = ast.unparse(node).partition("\n")[0]
                undo = change()
                after = ast.unparse(node).partition("\n")[0]
                yield Mutation(path, node.lineno, f"{before}  ->  {after}", ast.unparse(tree))  # type: ignore[attr-defined]
                undo()


def _changes(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _TURNED:
            yield _Change(node, "ops", [_TURNED[type(op)]()])
        case ast.Constant(value=bool(value)):
            yield _Change(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield _Change(node, "value", value + 1)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield _Change(node, "__class__", ast.Pass)
        case ast.BoolOp(op=ast.And()):
            yield _Change(node, "op", ast.Or())


@dataclass(frozen=True)
class _Change:
    node: ast.AST
    name: str
    value: object

    def __call__(self) -> _Change:
        """Make it; returns what undoes it."""
        undo = _Change(self.node, self.name, getattr(self.node, self.name))
        setattr(self.node, self.name, self.value)
        return undo


def draw(count: int, seed: str) -> list[Mutation]:
    """Some mutations, at most one of a module, of the packages in turn."""
    rng = random.Random(seed)
    found: list[Mutation] = []
    queues = {package: sorted((ROOT / package).rglob("*.py")) for package in INSTALLED}
    for paths in queues.values():
        rng.shuffle(paths)
    while len(found) < count:
        for paths in queues.values():
            while paths and len(found) < count:
                path = paths.pop()
                candidates = list(mutations(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
                if candidates:
                    found.append(rng.choice(candidates))
                    break
    return found


def verdict(mutation: Mutation, copy: Path, tests: Sequence[str], variables: Mapping[str, str], minutes: float) -> str:
    """The test that fails, `NONE`, or `LATE` where the minutes were over before.

    One that fails without the change, too, in a text that has lost its formatting as the changed one has, is passed
    over.
    """
    target = copy / mutation.path
    kept = target.read_text(encoding="utf-8")
    until = time.monotonic() + 60 * minutes
    passed_over: list[str] = []
    pending = list(_chunks(tests))
    try:
        while pending:
            _write(target, mutation.text)
            skipped = [f"--deselect={test}" for test in passed_over]
            found = _first_failure(copy, [*skipped, *pending[0]], variables, until - time.monotonic())
            if found == NONE:
                pending.pop(0)
            elif found == LATE:
                return found
            else:
                _write(target, ast.unparse(ast.parse(kept)))
                without = _first_failure(copy, [found], variables, CONFIRMING)
                if without in (NONE, LATE):
                    return found if without == NONE else LATE
                passed_over.append(found)
    finally:
        _write(target, kept)
    return NONE


def _chunks(tests: Sequence[str]) -> Iterator[Sequence[str]]:
    for start, end in zip((0, *CHUNKS), (*CHUNKS, len(tests)), strict=True):
        if tests[start:end]:
            yield tests[start:end]


def _write(module: Path, text: str) -> None:
    """Change a module, and forget what was compiled of it: the clock that tells is coarse."""
    module.write_text(text, encoding="utf-8")
    for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc"):
        compiled.unlink()


def _first_failure(copy: Path, tests: Sequence[str], variables: Mapping[str, str], seconds: float) -> str:
    """As `verdict`; the last file where pytest ended without a word."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        process = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=max(seconds, 1)
        )
    except subprocess.TimeoutExpired:
        return LATE
    if process.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return NONE
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", process.stdout, re.M)
    return failed[1] if failed else tests[-1]


@dataclass(frozen=True)
class Judge:
    """Runs the tests that reach a module over changed copies of it."""

    sources: Sources
    copy: Path
    seeds: Sequence[str]
    minutes: float

    def answers(self, mutation: Mutation) -> dict[str, str]:
        """What each seed, and `all`, answer: the test that fails, `NONE` or `LATE`."""
        tests = self.tests(mutation.path)
        first, *others = self.seeds

        def of(seed: str, files: Sequence[str]) -> str:
            return verdict(mutation, self.copy, files, {"PRCHAIN_TEST_SEED": seed}, self.minutes)

        found = {first: of(first, tests)}
        drawing = [file for file in tests if file in self._drawing]
        if found[first] not in (NONE, LATE):
            again = file_of(found[first]) in drawing
            found |= {seed: of(seed, tests) if again else found[first] for seed in others}
            return {**found, "all": found[first]}
        if found[first] == LATE:
            return dict.fromkeys((*self.seeds, "all"), LATE)
        # Whatever draws nothing has passed.
        more = [file for file in tests if file in self._drawing or file in self._generating]
        caught = verdict(mutation, self.copy, more, {"PRCHAIN_TEST_ALL": "1"}, 2 * self.minutes)
        if caught in (NONE, LATE):
            return {**dict.fromkeys(self.seeds, NONE), "all": caught}
        near_first = list(dict.fromkeys([file_of(caught), *drawing]))
        return {**found, **{seed: of(seed, near_first) for seed in others}, "all": caught}

    def tests(self, path: str) -> list[str]:
        """The test files that reach a module, the nearest first, those that are all in containers last."""
        reached, measured = reached_tests([path], self.sources), by_file(read())
        return sorted(
            reached,
            key=lambda file: (file in self._contained, reached[file], measured.get(file, UNKNOWN), file),
        )

    @cached_property
    def _drawing(self) -> set[str]:
        """Test files whose tests are other ones by another seed."""
        return {*reached_tests(["tests/samples.py"], self.sources), *self._holding(_DRAWS)}

    @cached_property
    def _generating(self) -> set[str]:
        """Test files of properties, of which `make test-all` tries more examples."""
        return self._holding(re.compile("^from hypothesis", re.M))

    @cached_property
    def _contained(self) -> set[str]:
        return self._holding(_CONTAINERS)

    def _holding(self, pattern: re.Pattern[str]) -> set[str]:
        return {
            f"{module.replace('.', '/')}.py"
            for module, text in self.sources.texts.items()
            if module.startswith("tests.") and pattern.search(text)
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what catches each mutation; returns 1 where a seed misses what all tests catch."""
    parser = argparse.ArgumentParser(prog="python -m research.mutations", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--draw", default="0", help="the seed that draws the mutations")
    parser.add_argument("--seeds", default="0,1,2", help="seeds that draw from tables of tests")
    parser.add_argument("--minutes", type=float, default=6.0, help="the most for one run of tests")
    parser.add_argument("--out", type=Path, help="a file of answers; what it has is not asked again")
    options = parser.parse_args(arguments)
    seeds = options.seeds.split(",")
    rows, missed = [], 0
    known = _read(options.out) if options.out else {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", "__pycache__", ".*_cache", ".hypothesis"))
        judge = Judge(Sources(ROOT), copy, seeds, options.minutes)
        for mutation in draw(options.count, options.draw):
            name, begun = f"{mutation.path}:{mutation.line}", time.monotonic()
            found = known.get(f"{name} {mutation.what}")
            if found is None:
                found = judge.answers(mutation)
                if options.out and LATE not in found.values():
                    line = {"module": name, "change": mutation.what, "answers": found}
                    with options.out.open("a", encoding="utf-8") as out:
                        out.write(json.dumps({**line, "seconds": round(time.monotonic() - begun)}) + "\n")
            missed += found["all"] not in (NONE, LATE) and NONE in found.values()
            rows.append([name, mutation.what[:60], *(_short(found[seed]) for seed in (*seeds, "all"))])
            say(" | ".join(rows[-1]))
    say()
    say_table(["module", "change", *(f"seed {seed}" for seed in seeds), "all"], rows)
    say(f"{missed} caught by all tests and missed by a seed")
    return 1 if missed else 0


def _read(file: Path) -> dict[str, dict[str, str]]:
    """Module, line and change to the answers."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {f"{it['module']} {it['change']}": it["answers"] for it in map(json.loads, lines)}


def _short(test: str) -> str:
    return test.partition("[")[0].removeprefix("tests/")


if __name__ == "__main__":
    sys.exit(main())
