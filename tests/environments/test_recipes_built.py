"""Recipes from a tree to a graded test run, on small repositories of our own.

Rust's and Java's registries need not be reached: the crate has no dependencies, and Debian's own repository of
artifacts holds what a project with JUnit 4 needs. Debian's packages are fetched, and from the indexes of Python and
Node what their projects ask for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import git
import pytest

from environments.backends import BACKENDS
from environments.images.image_settings import BuildSettings
from environments.images.images import prune_images
from environments.images.interpreters.offered import Interpreters
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.sandboxes.engine import connect
from environments.stages import Stage
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import Workplace
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import RAW_ATTRIBUTES, TreeStore
from prchain.core.settings import Settings
from sql.strength import Strength, Worth
from tests.environments.strengthworld import (
    RUNNERS,
    are_what_they_are_made_to_be,
    commit_stages,
    in_no_hurry,
    measured,
)
from tests.samples import drawn

BASE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
BUNDLE = os.environ.get("SSL_CERT_FILE")
REPOSITORY = f"prchain-test/recipes-{os.getpid()}"
"""Of this process: others may build and prune images beside it."""

pytestmark = pytest.mark.docker
recipe = pytest.mark.drawn(7, "recipes built in containers")

CRATE = {
    "Cargo.toml": '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn twice(n: i64) -> i64 { n + n }\n\n#[test]\nfn inner() { assert_eq!(twice(2), 4); }\n",
    "tests/outer.rs": "#[test]\nfn doubles() { assert_eq!(small::twice(3), 6); }\n\n"
    "#[test]\nfn halves() { assert_eq!(small::half(6), 3); }\n",
}
MENDED = CRATE["src/lib.rs"] + "\npub fn half(n: i64) -> i64 { n / 2 }\n"

GO = {
    "go.mod": "module example.org/small\n\ngo 1.19\n",
    "small.go": "package small\n\nfunc One() int { return 0 }\n",
    "small_test.go": 'package small\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n'
    "\t\tt.Fatal()\n\t}\n}\n",
}

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>small</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency>
  </dependencies>
</project>
"""
JAVA = {
    "pom.xml": _POM,
    ".gitignore": "target/\n",
    "src/main/java/org/example/Small.java": "package org.example;\npublic class Small {\n"
    "  public static int twice(int n) { return n + n; }\n  public static int half(int n) { return n; }\n}\n",
    "src/test/java/org/example/SmallTest.java": "package org.example;\nimport static org.junit.Assert.assertEquals;\n"
    "import org.junit.Test;\npublic class SmallTest {\n"
    "  @Test public void doubles() { assertEquals(6, Small.twice(3)); }\n"
    "  @Test public void halves() { assertEquals(3, Small.half(6)); }\n}\n",
}

WORKSPACE = {
    "pyproject.toml": """
[project]
name = "outer"
dynamic = ["version"]
dependencies = ["inner"]
[build-system]
requires = ["setuptools", "setuptools-scm"]
build-backend = "setuptools.build_meta"
[tool.setuptools_scm]
[tool.uv.sources]
inner = { workspace = true }
[tool.uv.workspace]
members = ["inner"]
""",
    ".gitignore": "*.egg-info/\n",
    ".gitattributes": "*.odd working-tree-encoding=no-such-code\n",
    "a.odd": "content that git could not encode\n",
    "src/outer/__init__.py": "from inner import half\n",
    "inner/pyproject.toml": """
[project]
name = "inner"
version = "1"
[project.entry-points."plugs"]
one = "inner:half"
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
""",
    "inner/src/inner/__init__.py": "def half(n): return n\n",
    "tests/test_outer.py": """
from importlib.metadata import entry_points, version
from outer import half

def test_halves(): assert half(6) == 3
def test_the_member_is_installed(): assert [one.name for one in entry_points(group="plugs")] == ["one"]
def test_the_version_is_of_the_tag(): assert version("outer") == "1.4"
""",
}
NODE = {
    "package.json": '{"name": "small", "version": "1.0.0", "devDependencies": {"mocha": "^10"}}',
    ".gitignore": "node_modules/\n",
    "index.js": "exports.half = n => n\n",
    "test/half.test.js": "const assert = require('assert')\nconst { half } = require('..')\n"
    "describe('half', () => { it('halves', () => assert.equal(half(6), 3)); it('is', () => assert(half)) })\n",
}


PNPM = {
    "package.json": json.dumps(
        {
            "private": True,
            "packageManager": "pnpm@8.15.4",
            "scripts": {"test": "mocha 'packages/*/test/*.js'", "build": "node build.js"},
            "devDependencies": {"mocha": "^10"},
        }
    ),
    "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
    "build.js": "const fs = require('fs')\nfs.mkdirSync('packages/b/dist', { recursive: true })\n"
    "fs.copyFileSync('packages/b/index.js', 'packages/b/dist/index.js')\n",
    "packages/b/package.json": json.dumps(
        {
            "name": "b",
            "version": "1.0.0",
            "main": "dist/index.js",
            "dependencies": {"left-pad": "1.3.0"},
        }
    ),
    "packages/b/index.js": "require('left-pad')\nexports.half = n => n\n",
    "packages/a/package.json": json.dumps(
        {
            "name": "a",
            "version": "1.0.0",
            "main": "index.js",
            "dependencies": {"b": "workspace:*", "left-pad": "1.2.0"},
        }
    ),
    "packages/a/index.js": "if (require('left-pad/package.json').version !== '1.2.0') throw new Error('not its own')\n"
    "module.exports = require('b')\n",
    "packages/a/test/half.js": "const assert = require('assert')\nconst { half } = require('..')\n"
    "describe('half', () => { it('halves', () => assert.equal(half(6), 3)); it('is', () => assert(half)) })\n",
}
"""A member that needs another one's build, and another version than that of the same package."""


@dataclass(frozen=True)
class Shop:
    """Makes images for trees, and runs tests in them."""

    folder: Path
    engine: Any

    def prepare(
        self, files: dict[str, str], change: dict[str, str]
    ) -> tuple[StageImage, Callable[[int, list[str]], TestRun]]:
        """The first tree's plan and image, and a function that runs test files on it (0) or on the changed tree (1)."""
        work = git.Repo.init(self.folder / "r")
        (self.folder / "r" / ".git" / "info" / "attributes").write_text(RAW_ATTRIBUTES)
        commits = []
        for tree_files in (files, change):
            for name, text in tree_files.items():
                path = self.folder / "r" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            work.git.add("-A")
            work.git.execute(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x"])
            commits.append(str(work.head.commit))
            if len(commits) == 1:
                work.git.tag("v1.4")
        trees = TreeStore.open(self.folder / "trees", [self.folder / "r"])
        stage = Stage(1, 1, commits[0], commits[1], "2024-05-01T00:00:00Z")
        settings = Settings.load(
            environments_base_image=BASE, environments_ca_bundle=BUNDLE, data_dir=self.folder / "data"
        )
        # Those of Node and Go come from a registry; what else this machine offers is not looked at.
        asks = files.keys() & {"package.json", "go.mod"}
        interpreters = Interpreters(BuildSettings.of(settings)) if asks else None
        provider = Provider(settings, engine=self.engine, interpreters=interpreters)
        provided = provider.provide(REPOSITORY, trees, GitRepository.open(self.folder / "r"), stage)
        backend = replace(BACKENDS["docker"], client=self.engine)
        workplace = Workplace(provided, trees, backend=backend, labels={"prchain.test": "images"})

        def run(which: int, tests: list[str]) -> TestRun:
            return workplace.tests(trees.tree_of(commits[which]), tests)

        return provided, run

    def strengths(self, provided: StageImage) -> dict[Worth, Strength]:
        """What the proof of one of three made-up stages is worth, drawn for each runner by the seed, or of all of them,
        by what they are made to be, in the image of another tree with the same manifests: a strong one takes some forty
        runs."""
        repository = GitRepository.open(self.folder / "r")
        stages = commit_stages(self.folder / "r", RUNNERS[provided.plan.runner])
        trees = TreeStore.open(self.folder / "trees", [self.folder / "r"])
        backend = replace(BACKENDS["docker"], client=self.engine)
        labels = {"prchain.test": "images"}
        return {
            worth: measured(provided, trees, repository, stage, backend=backend, labels=labels)
            for worth, stage in drawn(list(stages.items()), 1, f"strength with {provided.plan.runner}")
        }


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.chdir(tmp_path)
    in_no_hurry(monkeypatch)
    engine = connect()
    yield Shop(tmp_path, engine)
    prune_images(engine, repository=REPOSITORY)
    engine.close()


@recipe
def test_a_rust_crate_is_tested_without_a_network(shop: Shop) -> None:
    provided, run = shop.prepare(CRATE, {"src/lib.rs": MENDED})
    assert (provided.plan.recipe.name, provided.plan.runner) == ("rust", "cargo")
    before, after = run(0, ["tests/outer.rs"]), run(1, ["tests/outer.rs"])
    assert Status.passed not in before.statuses.values(), "the test file does not compile without what it tests"
    assert (before.exit_code, after.exit_code) == (101, 0)
    assert sorted(test.rpartition(" ")[2] for test in after.statuses) == ["doubles", "halves"]
    assert set(after.statuses.values()) == {Status.passed}
    inner = run(1, ["src/lib.rs"])
    assert sorted(test.rpartition(" ")[2] for test in inner.statuses) == ["doubles", "halves", "inner"]
    are_what_they_are_made_to_be(shop.strengths(provided))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("runner", "requirement"),
    [("jest", '"jest": "^29"'), ("nodetest", '"left-pad": "1"'), ("vitest", '"vitest": "^1"')],
)
def test_other_runners_on_node_have_proofs_of_every_strength(shop: Shop, runner: str, requirement: str) -> None:
    """With the Node of their day, in which the runner of its own may be older than that of this machine."""
    package = NODE["package.json"].replace('"mocha": "^10"', requirement)
    test = "node --test" if runner == "nodetest" else runner
    package = package.replace('"version"', f'"scripts": {{"test": "{test}"}}, "version"')
    provided, _ = shop.prepare({**NODE, "package.json": package}, {"index.js": "exports.half = n => n / 2\n"})
    assert provided.plan.runner == runner
    are_what_they_are_made_to_be(shop.strengths(provided))


TAP_FILES = {
    "tap": ("^16", "const { test } = require('tap')", "equal"),
    "tape": ("^5", "const test = require('tape')", "equal"),
    "ava": ("^4", "const test = require('ava')", "is"),
}


@pytest.mark.whole
@pytest.mark.parametrize("runner", TAP_FILES)
def test_a_node_project_whose_files_print_tap_is_tested(shop: Shop, runner: str) -> None:
    version, names, equal = TAP_FILES[runner]
    ended = "" if runner == "ava" else "; t.end()"
    package = {"name": "small", "version": "1.0.0", "scripts": {"test": runner}, "devDependencies": {runner: version}}
    text = f"""{names}
const {{ half }} = require('..')
test('halves', t => {{ t.{equal}(half(6), 3){ended} }})
test('is there', t => {{ t.{equal}(typeof half, 'function'){ended} }})
"""
    files = {**NODE, "package.json": json.dumps(package), "test/half.test.js": text}
    provided, run = shop.prepare(files, {"index.js": "exports.half = n => n / 2\n"})
    assert provided.plan.runner == runner
    before, after = run(0, ["test/half.test.js"]), run(1, ["test/half.test.js"])
    tests = ["test/half.test.js > halves", "test/half.test.js > is there"]
    assert before.statuses == dict(zip(tests, (Status.failed, Status.passed), strict=True)), before.tail
    assert after.statuses == dict.fromkeys(tests, Status.passed), after.tail


@recipe
def test_a_module_of_go_has_proofs_of_every_strength(shop: Shop) -> None:
    """Ids of Go name no file."""
    provided, run = shop.prepare(GO, {"small.go": GO["small.go"].replace("return 0", "return 1")})
    assert (provided.plan.recipe.name, provided.plan.runner) == ("go", "go")
    before, after = run(0, ["small_test.go"]), run(1, ["small_test.go"])
    assert (list(before.statuses.values()), list(after.statuses.values())) == ([Status.failed], [Status.passed])
    are_what_they_are_made_to_be(shop.strengths(provided))


@pytest.mark.whole
def test_a_module_of_go_has_the_go_that_it_names(shop: Shop) -> None:
    """Debian 12 has 1.19, which knows no range over a number."""
    one = "package small\n\nfunc One() (n int) {\n\tfor range 1 {\n\t\tn++\n\t}\n\treturn\n}\n"
    files = {**GO, "go.mod": "module example.org/small\n\ngo 1.22.1\n"}
    provided, run = shop.prepare(files, {"small.go": one})
    assert provided.notes == ("go 1.22, by go.mod",)
    before, after = run(0, ["small_test.go"]), run(1, ["small_test.go"])
    assert (list(before.statuses.values()), list(after.statuses.values())) == ([Status.failed], [Status.passed])


@pytest.mark.whole
def test_a_maven_project_is_tested_with_debians_artifacts_where_the_central_ones_cannot_be_reached(shop: Shop) -> None:
    tests = ["src/test/java/org/example/SmallTest.java"]
    mended = JAVA["src/main/java/org/example/Small.java"].replace("return n;", "return n / 2;")
    provided, run = shop.prepare(JAVA, {"src/main/java/org/example/Small.java": mended})
    assert (provided.plan.recipe.name, provided.plan.runner) == ("java", "surefire")
    before, after = run(0, tests), run(1, tests)
    assert sorted(before.statuses.values()) == [Status.failed, Status.passed]
    assert sorted(after.statuses.values()) == [Status.passed, Status.passed], after.tail
    assert all("halves" in test for test, status in before.statuses.items() if status is Status.failed)


@recipe
def test_a_python_workspace_is_made_ready_offline_for_each_tree(shop: Shop) -> None:
    tests = ["tests/test_outer.py"]
    provided, run = shop.prepare(WORKSPACE, {"inner/src/inner/__init__.py": "def half(n): return n // 2\n"})
    assert provided.notes == ()
    before, after = run(0, tests), run(1, tests)
    assert {test.rpartition("::")[2]: str(status) for test, status in before.statuses.items()} == {
        "test_halves": "failed",
        "test_the_member_is_installed": "passed",
        "test_the_version_is_of_the_tag": "passed",
    }
    assert set(after.statuses.values()) == {Status.passed}
    are_what_they_are_made_to_be(shop.strengths(provided))


@pytest.mark.whole
def test_a_project_that_its_own_list_pins_is_the_trees_and_not_the_indexs(shop: Shop) -> None:
    half = "def half(n): return n\n"
    files = {
        "setup.py": "from setuptools import setup\nsetup(name='toml', package_dir={'': 'src'}, packages=['toml'])\n",
        "requirements/tests.txt": "pytest\ntoml==0.10.2\n",
        ".gitignore": "*.egg-info/\n",
        "src/toml/__init__.py": half,
        "tests/test_toml.py": "from toml import half\n\ndef test_halves(): assert half(6) == 3\n",
    }
    _, run = shop.prepare(files, {"src/toml/__init__.py": half.replace("n\n", "n / 2\n")})
    before, after = run(0, ["tests/test_toml.py"]), run(1, ["tests/test_toml.py"])
    assert (list(before.statuses.values()), list(after.statuses.values())) == ([Status.failed], [Status.passed])


@recipe
def test_a_workspace_of_pnpm_is_built_for_each_tree_and_keeps_its_members_modules(shop: Shop) -> None:
    tests = ["packages/a/test/half.js"]
    provided, run = shop.prepare(PNPM, {"packages/b/index.js": PNPM["packages/b/index.js"].replace("=> n", "=> n / 2")})
    assert provided.notes == ("node 20, by the day", "pnpm 8.15.4, by packageManager")
    before, after = run(0, tests), run(1, tests)
    assert {test.rpartition(" ")[2]: str(status) for test, status in before.statuses.items()} == {
        "halves": "failed",
        "is": "passed",
    }
    assert list(after.statuses.values()) == [Status.passed, Status.passed], after.tail


@recipe
def test_a_node_project_finds_its_modules_outside_the_work_folder(shop: Shop) -> None:
    provided, run = shop.prepare(NODE, {"index.js": "exports.half = n => n / 2\n"})
    assert provided.plan.runner == "mocha"
    before, after = run(0, ["test/half.test.js"]), run(1, ["test/half.test.js"])
    assert sorted(before.statuses.values()) == [Status.failed, Status.passed]
    assert list(after.statuses.values()) == [Status.passed, Status.passed]
    are_what_they_are_made_to_be(shop.strengths(provided))
