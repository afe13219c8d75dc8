"""The reference's test files over a tree, files that steer a runner, and which test files are run."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.checkouts.overlay import overlay
from environments.suites.steering import is_steering, may_steer, steering_changed
from environments.suites.testfiles import choose, is_test_file
from prchain.git.trees import TreeEntry


def tree(**blobs: str) -> dict[bytes, TreeEntry]:
    return {name.replace("__", "/").encode() + b".py": TreeEntry("100644", blob) for name, blob in blobs.items()}


def laid(base: dict[bytes, TreeEntry], changes: dict[bytes, TreeEntry | None]) -> dict[bytes, TreeEntry]:
    return {path: entry for path, entry in {**base, **changes}.items() if entry is not None}


def test_test_files_are_those_of_the_landed_tree_whatever_the_agent_made_of_them() -> None:
    landed = tree(src="ref", tests__test_new="N", tests__test_old="O2", tests__test_same="S")
    agent = tree(src="mine", tests__test_old="easy", tests__test_gone="G", tests__test_mine="X", tests__test_same="S")
    paths = [b"tests/test_new.py", b"tests/test_old.py", b"tests/test_gone.py", b"tests/test_same.py"]
    result = overlay(agent, landed, paths)
    after = laid(agent, result.changes)
    assert after == tree(
        src="mine", tests__test_new="N", tests__test_old="O2", tests__test_same="S", tests__test_mine="X"
    )
    assert result.overridden == (b"tests/test_gone.py", b"tests/test_old.py") and result.steering == ()


def test_files_of_earlier_stages_are_as_landed_too() -> None:
    result = overlay(tree(tests__test_early="mine"), tree(tests__test_early="E2"), [], [b"tests/test_early.py"])
    assert result.changes == {b"tests/test_early.py": TreeEntry("100644", "E2")}


def test_a_mode_is_part_of_what_is_laid_over() -> None:
    agent, landed = {b"tests/run.sh": TreeEntry("100644", "R")}, {b"tests/run.sh": TreeEntry("100755", "R")}
    assert overlay(agent, landed, [b"tests/run.sh"]).changes == landed


def test_runner_files_are_as_landed_where_the_agent_added_changed_or_removed_them() -> None:
    landed = tree(conftest="C", pkg__conftest="P")
    agent = tree(conftest="lie", tests__conftest="new", src__sitecustomize="new", src__mine="M")
    result = overlay(agent, landed, [])
    assert laid(agent, result.changes) == tree(conftest="C", pkg__conftest="P", src__mine="M")
    names = (b"conftest.py", b"pkg/conftest.py", b"src/sitecustomize.py", b"tests/conftest.py")
    assert result.steering == names and result.overridden == ()


_TREES = st.dictionaries(
    st.sampled_from([b"a.py", b"conftest.py", b"t/test_a.py", b"t/b\xff.py", b"t/n\nl.py"]),
    st.builds(TreeEntry, st.sampled_from(["100644", "100755"]), st.sampled_from("12")),
)


@given(_TREES, _TREES, st.sets(st.sampled_from([b"t/test_a.py", b"t/b\xff.py", b"t/n\nl.py"])))
def test_an_overlay_changes_nothing_else_and_is_done_at_once(
    base: dict[bytes, TreeEntry], landed: dict[bytes, TreeEntry], paths: set[bytes]
) -> None:
    changes = overlay(base, landed, paths).changes
    after = laid(base, changes)
    for path in paths | {b"conftest.py"}:
        assert after.get(path) == landed.get(path)
    for path in base.keys() - paths - {b"conftest.py"}:
        assert after.get(path) == base[path]
    assert overlay(after, landed, paths).changes == {} == overlay(landed, landed, paths).changes


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
    Change("pyproject.toml", "", "[project.entry-points.pytest11]\nx='x'\n", ("pytest11",)),
    Change("pyproject.toml", "", "no toml", ("file",)),
    Change("pyproject.toml", "", "tool = 3", ("file",)),
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
    Change("pom.xml", "<a/>", "<b/>", ("file",)),
    Change("build.rs", "", "fn main() {}", ("file",)),
    Change("node_modules/jest/index.js", "", "x", ("file",)),
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
