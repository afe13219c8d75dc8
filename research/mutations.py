"""Whether the tests still catch small faults: `python -m research.mutations --count 24 --draw SEED`.

Draws modules of the installed packages, and in each one change: a comparison turned, a statement left out, a number or
a truth value changed. The tests that reach the module run over the changed copy, the nearest first, until one fails: as
`make test` draws them by each of `--seeds`, and, for what a seed misses, all of them, as in `make test-all`. Tests that
need an engine or a server run where it is there. Works in a copy.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prchain.core.console.terminal import say, say_table
from tests.fast import UNKNOWN
from tests.seconds import by_file, read
from tests.touched import Sources, reached_tests

ROOT = Path(__file__).parents[1]
INSTALLED = ("prchain", "sql", "miner", "chains", "environments", "trajectories")

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


def verdict(mutation: Mutation, copy: Path, tests: Sequence[str], variables: dict[str, str], minutes: float) -> str:
    """The test that fails, `none`, or `time` where the minutes were over before."""
    target = copy / mutation.path
    kept = target.read_text(encoding="utf-8")
    target.write_text(mutation.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    try:
        process = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=60 * minutes
        )
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        target.write_text(kept, encoding="utf-8")
    if process.returncode == 0:
        return "none"
    lines = process.stdout.splitlines()
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else f"pytest ended with {process.returncode}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what catches each mutation; returns 1 where a seed misses what all tests catch."""
    parser = argparse.ArgumentParser(prog="python -m research.mutations", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--draw", default="0", help="the seed that draws the mutations")
    parser.add_argument("--seeds", default="0,1,2", help="seeds that draw from tables of tests")
    parser.add_argument("--minutes", type=float, default=6.0, help="the most for one run of tests")
    options = parser.parse_args(arguments)
    sources, measured = Sources(ROOT), by_file(read())
    rows, missed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", "__pycache__", ".*_cache", ".hypothesis"))
        for mutation in draw(options.count, options.draw):
            reached = reached_tests([mutation.path], sources)
            tests = sorted(reached, key=lambda file: (reached[file], measured.get(file, UNKNOWN), file))
            found = [
                verdict(mutation, copy, tests, {"PRCHAIN_TEST_SEED": seed}, options.minutes)
                for seed in options.seeds.split(",")
            ]
            whole = "-"
            if {"none", "time"} & set(found):
                whole = verdict(mutation, copy, tests, {"PRCHAIN_TEST_ALL": "1"}, 4 * options.minutes)
                missed += whole not in {"none", "time"} and "none" in found
            rows.append([f"{mutation.path}:{mutation.line}", mutation.what[:60], *map(_short, found), _short(whole)])
            say(" | ".join(rows[-1]))
    say()
    say_table(["module", "change", *(f"seed {seed}" for seed in options.seeds.split(",")), "all"], rows)
    say(f"{missed} caught by all tests and missed by a seed")
    return 1 if missed else 0


def _short(test: str) -> str:
    return test.partition("[")[0].removeprefix("tests/")


if __name__ == "__main__":
    sys.exit(main())
