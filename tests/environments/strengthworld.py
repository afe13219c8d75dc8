"""Made-up stages of one repository: one whose tests see the work, one that an import alone proves, and one in between.

All have the same manifests, so that one image serves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import git
import pytest

from environments.images.stage_image import StageImage
from environments.proofs.proof import prove
from environments.proofs.proof_rows import StageProof
from environments.proofs.strength_runs import StrengthMeter
from environments.stages import Stage, stage_patches
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite, Workplace
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from sql.outcomes import PROVED
from sql.strength import Strength, Worth

Files = Mapping[str, str]

_APART = "\n" * 8
"""So many lines that two changes are two hunks."""

_RUST = "pub fn one() -> i64 {{ {0} }}\n{apart}pub fn two() -> i64 {{ {1} }}\n{apart}pub fn three() -> i64 {{ {2} }}\n"
_GO = (
    "package small\n\nfunc One() int {{ return {0} }}\n{apart}func Two() int {{ return {1} }}\n{apart}"
    "func Three() int {{ return {2} }}\n"
)
_JS = "exports.one = () => {0}\n{apart}exports.two = () => {1}\n{apart}exports.three = () => {2}\n"
_MODULE = "export const one = () => {0}\n{apart}export const two = () => {1}\n{apart}export const three = () => {2}\n"
_PYTHON = "def one():\n    return {0}\n{apart}def two():\n    return {1}\n{apart}def three():\n    return {2}\n"


def _texts(text: str) -> tuple[str, str]:
    """The source before and after: three functions that are wrong, and right."""
    return text.format(0, 0, 0, apart=_APART), text.format(1, 2, 3, apart=_APART)


@dataclass(frozen=True)
class Runner:
    """What one runner's repository has."""

    source: str
    texts: tuple[str, str]
    tests: str
    old: str
    """The test file before: one test, which passes."""
    sees_all: str
    sees_one: str
    needs_new: str
    """The old test, and one of its own that fails, in a file that imports what is new."""
    new: Files

    @property
    def stages(self) -> Mapping[Worth, Files]:
        """What each pull request changes."""
        fixed = {self.source: self.texts[1]}
        return {
            Worth.STRONG: {**fixed, self.tests: self.sees_all},
            Worth.WEAK: {**fixed, self.tests: self.sees_one},
            Worth.IMPORT_ONLY: {**self.new, self.tests: self.needs_new},
        }


def _rust(*tests: str, use: str = "") -> str:
    return (
        use
        + "#[test]\nfn old() {\n    assert_eq!(2 + 2, 4);\n}\n"
        + "".join(
            f"\n#[test]\nfn new_{number}() {{\n    assert_eq!({test});\n}}\n" for number, test in enumerate(tests)
        )
    )


def _go(*tests: str) -> str:
    head = 'package small\n\nimport "testing"\n\nfunc TestOld(t *testing.T) {\n\tt.Log(One())\n}\n'
    return head + "".join(
        f"\nfunc TestNew{number}(t *testing.T) {{\n\tif {test} {{\n\t\tt.Fatal()\n\t}}\n}}\n"
        for number, test in enumerate(tests)
    )


_HEAD = "const assert = require('assert')\nconst it_is = require('..')\n"
_NODE_HEAD = f"const {{ describe, it }} = require('node:test')\n{_HEAD}"
_VITEST_HEAD = """\
import assert from 'node:assert'
import { describe, it } from 'vitest'
import * as it_is from '../index.js'
"""


def _js(head: str, *tests: str) -> str:
    new = (f"  it('new {number}', () => {{\n    assert.equal({test})\n  }})\n" for number, test in enumerate(tests))
    return f"{head}describe('all', () => {{\n  it('old', () => {{\n    assert(it_is)\n  }})\n{''.join(new)}}})\n"


def _python(*tests: str, use: str = "") -> str:
    return f"import inner\n{use}\n\ndef test_old():\n    assert inner\n" + "".join(
        f"\n\ndef test_new_{number}():\n    assert {test}\n" for number, test in enumerate(tests)
    )


def _on_node(head: str) -> Runner:
    """Modules as Node had them first, or, of vitest, those of the language."""
    old = head is not _VITEST_HEAD
    new = "const half = require('../extra')\n" if old else "import half from '../extra.js'\n"
    return Runner(
        "index.js",
        _texts(_JS if old else _MODULE),
        "test/half.test.js",
        _js(head),
        _js(head, "it_is.one(), 1", "it_is.two(), 2", "it_is.three(), 3"),
        _js(head, "it_is.one(), 1"),
        _js(head + new, "half(6), 4"),
        {"extra.js": "module.exports = n => n / 2\n" if old else "export default n => n / 2\n"},
    )


RUNNERS: Mapping[str, Runner] = {
    "cargo": Runner(
        "src/lib.rs",
        _texts(_RUST),
        "tests/outer.rs",
        _rust(),
        _rust("small::one(), 1", "small::two(), 2", "small::three(), 3"),
        _rust("small::one(), 1"),
        _rust("half(6), 4", use="use small::extra::half;\n\n"),
        {"src/lib.rs": _texts(_RUST)[0] + "pub mod extra;\n", "src/extra.rs": "pub fn half(n: i64) -> i64 { n / 2 }\n"},
    ),
    "go": Runner(
        "small.go",
        _texts(_GO),
        "small_test.go",
        _go(),
        _go("One() != 1", "Two() != 2", "Three() != 3"),
        _go("One() != 1"),
        _go("Half(6) != 4"),
        {"half.go": "package small\n\nfunc Half(n int) int { return n / 2 }\n"},
    ),
    **{name: _on_node(_HEAD) for name in ("jest", "mocha")},
    "nodetest": _on_node(_NODE_HEAD),
    "vitest": _on_node(_VITEST_HEAD),
    "pytest": Runner(
        "inner/src/inner/__init__.py",
        _texts(_PYTHON),
        "tests/test_outer.py",
        _python(),
        _python("inner.one() == 1", "inner.two() == 2", "inner.three() == 3"),
        _python("inner.one() == 1"),
        _python("half(6) == 4", use="from inner.extra import half\n"),
        {"inner/src/inner/extra.py": "def half(n):\n    return n // 2\n"},
    ),
}


@dataclass
class Kept:
    """Stored runs in memory."""

    runs: dict[tuple[str, int], tuple[str, TestRun]] = field(default_factory=dict)

    def find(self, side: str, ordinal: int, key: str) -> TestRun | None:
        known = self.runs.get((side, ordinal))
        return known[1] if known and known[0] == key else None

    def keep(self, side: str, ordinal: int, key: str, run: TestRun) -> None:
        self.runs[side, ordinal] = key, run

    def all(self, side: str) -> list[TestRun]:
        return [run for (one, _), (_, run) in sorted(self.runs.items(), key=lambda it: it[0]) if one == side]


def commit_stages(folder: Path, runner: Runner) -> dict[Worth, Stage]:
    """The stages as commits on top of what is checked out in a repository."""
    work = git.Repo(folder)

    def commit(files: Files) -> str:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        work.git.add("-A")
        work.git.execute(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"])
        return str(work.head.commit)

    base = commit({runner.source: runner.texts[0], runner.tests: runner.old})
    stages = {}
    for worth, files in runner.stages.items():
        stages[worth] = Stage(1, 1, base, commit(files), "2024-05-01T00:00:00Z")
        work.git.checkout("-q", base)
    return stages


def are_what_they_are_made_to_be(found: Mapping[Worth, Strength]) -> None:
    """Assert that each stage is worth what it was made to be."""
    assert found
    assert {made: strength.worth for made, strength in found.items()} == {made: made for made in found}, found
    if by_import := found.get(Worth.IMPORT_ONLY):
        assert by_import.own == 0 and len(by_import.hidden) == 1
        assert len(by_import.failing) == 1, "the new test, which fails with the reference, too"


def in_no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of a made-up repository take no time, so that the start of a process is all that a run takes; on a busy
    machine one may take many times another. Which undoings there is time for must not decide."""
    for name in ("BUDGET", "ADDED"):
        monkeypatch.setattr(f"environments.proofs.strength_runs.{name}", 1e6)
    monkeypatch.setattr("environments.proofs.strength_runs._LEAST_TIMEOUT", 600.0)


def measured(
    provided: StageImage, trees: TreeStore, repository: GitRepository, stage: Stage, **workplace: Any
) -> Strength:
    """Prove a stage by one run a side, and measure the proof."""
    patches: Sequence[Any] = tuple(stage_patches(repository, trees, [stage]))
    place = Workplace(provided, trees, **workplace)
    suite = StageSuite.of(place, stage, patches)
    kept: Any = Kept()
    before = place.tests(suite.with_overlay(stage.base), suite.files)
    after = place.tests(trees.tree_of(stage.landed), suite.files)
    kept.keep("before", 1, "", before)
    kept.keep("after", 1, "", after)
    found = prove([before], [after], runner=place.runner, files=suite.files, own_files=suite.own_files)
    assert found.outcome == PROVED, (found, after.tail)
    proof = StageProof(1, PROVED, files=suite.files, classes=found.classes, baseline=after.observed)
    strength = StrengthMeter(kept, suite, stage, patches[0], proof, repository, ()).measure(lambda words: None)
    assert strength is not None, "a sandbox was lost"
    return strength
