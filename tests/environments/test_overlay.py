"""The reference's test files over a tree, files that steer a runner, and which test files are run."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.checkouts.overlay import Blobs, Overlay, overlay
from environments.suites.steering import is_steering, may_steer, steering_changed
from environments.suites.testfiles import choose, is_test_file
from prchain.core.git.trees import TreeEntry


def tree(**blobs: str) -> dict[bytes, TreeEntry]:
    return {name.replace("__", "/").encode() + b".py": TreeEntry("100644", blob) for name, blob in blobs.items()}


Tree = Mapping[bytes, TreeEntry]


def refuse(*_: Any) -> Any:
    raise AssertionError("no project file is among these")


UNREAD = Blobs(refuse, refuse)


def laid_over(own: Tree, landed: Tree, tests: Collection[bytes], earlier: Collection[bytes] = ()) -> Overlay:
    """The overlay where B_t is M_t and no file is read."""
    return overlay(own, landed, tests, earlier, base=landed, blobs=UNREAD)


def laid(base: dict[bytes, TreeEntry], changes: dict[bytes, TreeEntry | None]) -> dict[bytes, TreeEntry]:
    return {path: entry for path, entry in {**base, **changes}.items() if entry is not None}


def test_test_files_are_those_of_the_landed_tree_whatever_the_agent_made_of_them() -> None:
    landed = tree(src="ref", tests__test_new="N", tests__test_old="O2", tests__test_same="S")
    agent = tree(src="mine", tests__test_old="easy", tests__test_gone="G", tests__test_mine="X", tests__test_same="S")
    paths = [b"tests/test_new.py", b"tests/test_old.py", b"tests/test_gone.py", b"tests/test_same.py"]
    base = tree(src="old", tests__test_old="O1", tests__test_gone="G", tests__test_same="S")
    result = overlay(agent, landed, paths, base=base, blobs=UNREAD)
    after = laid(agent, result.changes)
    assert after == tree(src="mine", tests__test_new="N", tests__test_old="O2", tests__test_same="S")
    assert result.taken_back == ("tests/test_mine.py", "tests/test_old.py")


def test_files_of_earlier_stages_are_as_landed_too() -> None:
    result = laid_over(tree(tests__test_early="mine"), tree(tests__test_early="E2"), [], [b"tests/test_early.py"])
    assert result.changes == {b"tests/test_early.py": TreeEntry("100644", "E2")}


def test_a_mode_is_part_of_what_is_laid_over() -> None:
    agent, landed = {b"tests/run.sh": TreeEntry("100644", "R")}, {b"tests/run.sh": TreeEntry("100755", "R")}
    assert laid_over(agent, landed, [b"tests/run.sh"]).changes == landed


def test_runner_files_are_as_landed_where_the_agent_added_changed_or_removed_them() -> None:
    landed = tree(conftest="C", pkg__conftest="P")
    agent = tree(conftest="lie", tests__conftest="new", src__sitecustomize="new", src__mine="M")
    result = laid_over(agent, landed, [])
    assert laid(agent, result.changes) == tree(conftest="C", pkg__conftest="P", src__mine="M")
    names = ("conftest.py", "pkg/conftest.py", "src/sitecustomize.py", "tests/conftest.py")
    assert result.taken_back == names


_TREES = st.dictionaries(
    st.sampled_from([b"a.py", b"conftest.py", b"t/test_a.py", b"t/b\xff.py", b"t/n\nl.py"]),
    st.builds(TreeEntry, st.sampled_from(["100644", "100755"]), st.sampled_from("12")),
)


@given(_TREES, _TREES, st.sets(st.sampled_from([b"t/test_a.py", b"t/b\xff.py", b"t/n\nl.py"])))
def test_an_overlay_changes_nothing_else_and_is_done_at_once(
    base: dict[bytes, TreeEntry], landed: dict[bytes, TreeEntry], paths: set[bytes]
) -> None:
    changes = laid_over(base, landed, paths).changes
    after = laid(base, changes)
    tests = paths | {path for path in {*base, *landed} if path != b"a.py"}
    for path in tests:
        assert after.get(path) == landed.get(path)
    for path in base.keys() - tests:
        assert after.get(path) == base[path]
    assert laid_over(after, landed, paths).changes == {} == laid_over(landed, landed, paths).changes


@pytest.mark.parametrize(
    "path",
    [
        b"conftest.py",
        b"a/b/conftest.py",
        b"pytest.ini",
        b".pytest.ini",
        b"pytest.toml",
        b"src/sitecustomize.py",
        b"jest.config.ts",
        b"web/vitest.config.mts",
        b".mocharc.yml",
        b".cargo/config.toml",
        b".mvn/maven.config",
        b".config/nextest.toml",
        b"node_modules/jest/index.js",
        b"evil-1.0.dist-info/entry_points.txt",
        b"src/till.egg-info/entry_points.txt",
        b"src/evil.pth",
        b"hatch_build.py",
    ],
)
def test_files_that_only_steer_a_runner_are_known(path: bytes) -> None:
    assert is_steering(path) and not may_steer(path)


@pytest.mark.parametrize("path", [b"src/conf.py", b"pyproject.toml", b"package.json", b"tests/test_conftest.py", b"x"])
def test_other_files_are_not_taken_from_the_agent(path: bytes) -> None:
    assert not is_steering(path)


class Change(NamedTuple):
    path: str
    old: str
    new: str
    parts: tuple[str, ...]


CHANGES = [
    Change("pyproject.toml", "[project]\ndependencies=[]\n", "[project]\ndependencies=['x']\n", ()),
    Change("pyproject.toml", "", "[tool.pytest.ini_options]\naddopts='-k nothing'\n", ("tool.pytest",)),
    Change("pyproject.toml", "", "[project.entry-points.pytest11]\nx='x'\n", ("project.entry-points.pytest11",)),
    Change("pyproject.toml", "", "no toml", ("file",)),
    Change("pyproject.toml", "", "tool = 3", ()),
    Change("setup.cfg", "[tool:pytest]\naddopts=-q\n", "[metadata]\nname=x\n", ("tool:pytest",)),
    Change("setup.cfg", "[metadata]\nname=x\n", "[metadata]\nname=y\n", ()),
    Change("tox.ini", "", "[pytest]\naddopts=-q\n", ("pytest",)),
    Change("package.json", '{"scripts":{"test":"jest"}}', '{"scripts":{"test":"true"}}', ("scripts",)),
    Change("web/package.json", '{"version":"1"}', '{"version":"2"}', ()),
    Change("package.json", "{}", "{", ("file",)),
    Change(
        "Cargo.toml", "[package]\nname='x'\n", "[package]\nname='x'\n[[test]]\nname='a'\nharness=false\n", ("test",)
    ),
    Change("Cargo.toml", "[dependencies]\n", "[dependencies]\nserde='1'\n", ()),
    Change("pom.xml", "<a/>", "<a><build><plugins/></build></a>", ("build",)),
    Change("pom.xml", "<a/>", "<b", ("file",)),
    Change("build.rs", "", "fn main() {}", ("file",)),
    Change("src/cart.py", "", "x", ()),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.path} {change.parts}")
def test_what_steers_a_runner_in_a_project_file_is_told(change: Change) -> None:
    path, old, new = (text.encode() for text in change[:3])
    assert steering_changed(path, old, new) == change.parts
    assert steering_changed(path, new, new) == ()


def test_a_project_file_that_is_gone_has_lost_what_it_said() -> None:
    assert steering_changed(b"setup.cfg", b"[tool:pytest]\na=b\n", None) == ("tool:pytest",)
    assert steering_changed(b"package.json", b"\xff", b"{}") == ("file",)


@pytest.mark.parametrize(
    ("parser", "yes", "no"),
    [
        (
            "pytest",
            ["tests/test_a.py", "pkg/a_test.py"],
            ["tests/conftest.py", "src/latest.py", "tests/data/test.json"],
        ),
        ("unittest", ["tests/tests.py", "test_a.py"], ["src/contest.py"]),
        ("jest", ["src/a.test.tsx", "__tests__/deep/a.js"], ["src/a.ts", "__tests__/a.snap"]),
        ("vitest", ["a.spec.mts"], ["spec.md"]),
        ("mocha", ["test/cart.js", "a.spec.js"], ["src/cart.js"]),
        ("nodetest", ["test/cart.js", "a.test.mjs", "test-a.js", "src/a_test.cjs"], ["src/cart.js", "contest.js"]),
        ("go", ["cart/cart_test.go"], ["cart/testdata/x.go"]),
        ("cargo", ["tests/cart.rs", "src/cart/tests.rs"], ["src/lib.rs"]),
        ("surefire", ["src/test/java/CartTest.java", "TestCart.java", "CartIT.java"], ["Contest.java", "Cart.java"]),
    ],
)
def test_test_files_are_told_from_what_lies_beside_them(parser: str, yes: list[str], no: list[str]) -> None:
    assert [is_test_file(path, parser) for path in yes] == [True] * len(yes)
    assert [is_test_file(path, parser) for path in no] == [False] * len(no)


TREE = [
    "src/till/cart.py",
    "src/till/tax.py",
    "tests/conftest.py",
    "tests/test_cart.py",
    "tests/till/test_sum.py",
    "tests/other/test_far.py",
    "tests/test_new.py",
    "tests/test_early.py",
    "tests/test_root.py",
]


def test_the_stages_tests_come_first_then_the_chains_then_the_neighbours() -> None:
    chosen = choose(
        "pytest",
        TREE,
        test_patch=["tests/test_new.py", "tests/test_deleted.py", "tests/conftest.py"],
        source_patch=["src/till/cart.py", "README.md"],
        earlier=["tests/test_early.py"],
    )
    assert chosen == ("tests/test_new.py", "tests/test_early.py", "tests/test_cart.py", "tests/till/test_sum.py")


def test_the_number_of_files_is_bounded_but_never_cuts_the_stages_own() -> None:
    many = [f"tests/test_{n:03}.py" for n in range(100)]
    own = many[:50]
    assert choose("pytest", many, test_patch=own, source_patch=[], earlier=many) == tuple(own)
    assert len(choose("pytest", many, test_patch=many[:1], source_patch=[], earlier=many)) == 40


@pytest.mark.parametrize(
    ("parser", "source", "test"),
    [
        ("jest", "src/cart.ts", "src/cart.test.ts"),
        ("jest", "src/deep/cart.ts", "src/deep/__tests__/basket.js"),
        ("go", "shop/cart.go", "shop/other_test.go"),
        ("surefire", "src/main/java/shop/Cart.java", "src/test/java/shop/CartTest.java"),
        ("surefire", "src/main/java/shop/Cart.java", "src/test/java/shop/OtherTest.java"),
        ("cargo", "src/cart.rs", "tests/cart.rs"),
    ],
)
def test_a_test_near_the_changed_source_is_found(parser: str, source: str, test: str) -> None:
    tree = [source, test]
    assert choose(parser, tree, test_patch=[], source_patch=[source]) == (test,)


def contents() -> tuple[dict[str, bytes], Blobs]:
    """A store of blobs that are named by their content."""
    made: dict[str, bytes] = {}

    def write(content: bytes) -> str:
        made[str(len(made))] = content
        return str(len(made) - 1)

    return made, Blobs(lambda names: [made[name] for name in names], write)


def graded(path: str, base: str | None, landed: str | None, own: str | None) -> tuple[str | None, tuple[str, ...]]:
    """A project file in the graded copy, and what is taken back."""
    made, blobs = contents()
    trees = [
        {} if text is None else {path.encode(): TreeEntry("100644", blobs.write(text.encode()))}
        for text in (own, landed, base)
    ]
    result = overlay(trees[0], trees[1], [], base=trees[2], blobs=blobs)
    entry = {**trees[0], **result.changes}.get(path.encode())
    return None if entry is None else made[entry.blob].decode(), result.taken_back


OLD = "[project]\nname = 'till'\n[tool.pytest.ini_options]\naddopts = '-q'\n"


def test_a_project_file_keeps_what_the_agent_did_and_steers_as_the_reference() -> None:
    own = OLD.replace("-q", "-p evilplug") + "[project.scripts]\ntill = 'till:main'\n"
    landed = OLD + "[tool.ruff]\nline-length = 100\n"
    text, back = graded("pyproject.toml", OLD, landed, own)
    assert tomllib.loads(text or "") == {
        "project": {"name": "till", "scripts": {"till": "till:main"}},
        "tool": {"pytest": {"ini_options": {"addopts": "-q"}}},
    }
    assert back == ("pyproject.toml: tool.pytest",)


@pytest.mark.parametrize(
    ("path", "own", "back"),
    [
        ("pyproject.toml", OLD + "[project.entry-points.pytest11]\nx = 'evil'\n", "project.entry-points.pytest11"),
        ("pyproject.toml", OLD + "[build-system]\nbackend-path = ['.']\n", "build-system.backend-path"),
        ("setup.cfg", "[tool:pytest]\naddopts = -p evil\n", "tool:pytest"),
        ("setup.cfg", "[options.entry_points]\npytest11 =\n  x = evil\n", "options.entry_points.pytest11"),
        ("tox.ini", "[pytest]\npython_functions = none\n", "pytest"),
        ("package.json", '{"jest": {"testRunner": "./evil.js"}}', "jest"),
        ("Cargo.toml", "[[test]]\nname = 'a'\nharness = false\n", "test"),
        (
            "pyproject.toml",
            OLD + "[tool.setuptools.package-dir]\nsitecustomize = 'src/evil'\n",
            "tool.setuptools.package-dir",
        ),
        ("pyproject.toml", "[tool.setuptools]\npy-modules = ['usercustomize', 'evil']\n", "tool.setuptools.py-modules"),
        (
            "pyproject.toml",
            "[[tool.setuptools.ext-modules]]\nname = 'sitecustomize'\nsources = ['evil.c']\n",
            "tool.setuptools.ext-modules",
        ),
        (
            "pyproject.toml",
            "[tool.scikit-build.wheel.packages]\nsitecustomize = 'evil'\n",
            "tool.scikit-build.wheel.packages",
        ),
        (
            "pyproject.toml",
            "[[tool.poetry.packages]]\ninclude = 'evil'\nto = 'sitecustomize'\n",
            "tool.poetry.packages",
        ),
        ("setup.cfg", "[options]\npackage_dir =\n  sitecustomize = evil\n", "options.package_dir"),
        ("setup.cfg", "[options]\npackages = till, pluggy.evil\n", "options.packages"),
        ("setup.py", "import os\nos.system('x')\n", "file"),
        ("build.rs", "fn main() {}", "file"),
        ("pytest.py", "x = 1", "the runner's name"),
        ("_pytest/__init__.py", "", "the runner's name"),
    ],
)
def test_what_steers_a_runner_in_a_file_that_the_agent_added_is_taken_back(path: str, own: str, back: str) -> None:
    text, found = graded(path, None, None, own)
    assert f"{path}: {back}" in found
    assert not any(word in (text or "") for word in ("evil", "harness", "backend-path"))


@pytest.mark.parametrize(
    ("path", "base", "own"),
    [
        ("pyproject.toml", OLD, OLD + "[project.optional-dependencies]\nx = ['y>=2']\n"),
        ("setup.cfg", "[options]\ninstall_requires = a\n", "[options]\ninstall_requires =\n  a\n  b\n"),
        ("package.json", '{"dependencies": {}}', '{"dependencies": {"left-pad": "1"}}'),
        ("Cargo.toml", "[dependencies]\n", "[dependencies]\nserde = '1'\n"),
        (
            "setup.py",
            "from setuptools import setup\nsetup(name='till', install_requires=[])\n",
            "from setuptools import setup\n"
            "setup(name='till', install_requires=['a'], entry_points={'console_scripts': ['till = till:main']})\n",
        ),
        ("pytest.py", "a = 1", "a = 2"),
        (
            "pom.xml",
            '<project xmlns="urn:m"><build><plugins/></build></project>',
            '<project xmlns="urn:m"><dependencies><dependency/></dependencies><build><plugins/></build></project>',
        ),
        ("go.mod", "module x", "module x\nrequire y v1.0.0"),
        ("docs/conf.py", "a = 1", "a = 2"),
        (
            "pyproject.toml",
            OLD,
            OLD + "[tool.setuptools]\npackages = ['till', 'till.pytest']\npackage-dir = {'' = 'src'}\n",
        ),
    ],
)
def test_dependencies_and_other_work_are_never_taken_back(path: str, base: str, own: str) -> None:
    assert graded(path, base, base, own) == (own, ())
    assert graded(path, base, base + "\n" if path.endswith((".py", ".mod")) else base, own) == (own, ())


def test_a_setup_script_that_registers_a_plugin_of_the_runner_is_the_reference_s() -> None:
    base = "from setuptools import setup\nsetup(name='till')\n"
    own = "from setuptools import setup\nsetup(name='till', entry_points={'pytest11': ['x = evil']})\n"
    assert graded("setup.py", base, base, own) == (base, ("setup.py: file",))


def test_what_the_reference_changed_is_not_told_of_a_tree_that_has_it_from_before() -> None:
    landed = OLD.replace("-q", "-v")
    assert graded("pyproject.toml", OLD, landed, OLD) == (OLD, ())
    assert graded("pyproject.toml", OLD, landed, landed) == (landed, ())


@pytest.mark.parametrize("own", ["no toml [", "[tool]\npytest = 3\n[[tool.x]]\n", "\0", "[tool.pytest]\na = nan\n"])
def test_a_project_file_that_cannot_be_mended_is_the_reference_s(own: str) -> None:
    text, back = graded("pyproject.toml", OLD, OLD, own)
    assert back in (("pyproject.toml: tool.pytest",), ("pyproject.toml: file",))
    assert tomllib.loads(text or "")["tool"]["pytest"] == {"ini_options": {"addopts": "-q"}}


def test_a_new_init_file_above_hidden_tests_is_not_there() -> None:
    landed = {b"src/a.py": TreeEntry("100644", "a"), b"till/it/test_a.py": TreeEntry("100644", "t")}
    new = {path: TreeEntry("100644", "n") for path in (b"__init__.py", b"till/__init__.py", b"till/it/__init__.py")}
    agent = {**landed, **new, b"src/__init__.py": TreeEntry("100644", "n")}
    result = laid_over(agent, landed, [b"till/it/test_a.py"])
    assert set(result.changes) == set(new) and result.taken_back == tuple(sorted(path.decode() for path in new))
    assert laid_over(agent, agent, [b"till/it/test_a.py"]).changes == {}


def files(blobs: Blobs, **texts: str) -> dict[bytes, TreeEntry]:
    return {
        name.replace("__", "/").encode() + b".py": TreeEntry("100644", blobs.write(text.encode()))
        for name, text in texts.items()
    }


@pytest.mark.parametrize(
    "importing",
    [
        "from .test_text import words",
        "import measures.test_text",
        "from measures import (\n    lines,\n    test_text as it)",
    ],
)
def test_a_module_that_is_only_called_like_a_test_and_that_source_imports_is_the_agents_work(importing: str) -> None:
    _, blobs = contents()
    base = files(blobs, measures__core="a = 1\n", measures__test_chars="def count(): ...\n")
    own = base | files(
        blobs, measures__core=f"{importing}\nimport measures.test_chars\n", measures__test_text="def words(): ...\n"
    )
    own |= files(blobs, measures__test_chars="def count(): return 1\n", measures__test_mine="def test_it(): ...\n")
    result = overlay(own, base, [], base=base, blobs=blobs)
    assert result.taken_back == ("measures/test_mine.py",), "nothing imports it: a test of the agent's own"


def test_a_file_that_holds_tests_is_the_references_though_source_imports_it() -> None:
    _, blobs = contents()
    base = files(blobs, measures__core="from measures import test_text\n", measures__test_text="def test_it(): ...\n")
    own = base | files(blobs, measures__test_text="def test_it(): return\n")
    assert overlay(own, base, [], base=base, blobs=blobs).taken_back == ("measures/test_text.py",)
    folder = files(blobs, core="import tests.test_text\n", tests__test_text="def words(): ...\n")
    assert overlay(folder, {}, [], base={}, blobs=blobs).taken_back == ("tests/test_text.py",), "by its folder"
