"""Which hidden tests the check of needs reads, and what it says of those that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from chains.needs.stage_needs import stage_needs
from chains.needs.test_files import is_record, unread
from prchain.core.code.needs import Need, unmet, verdict_of
from prchain.core.code.reference import split
from prchain.core.git import GitRepository
from prchain.core.git.patches import FilePatch, Hunk
from tests.miner.gitworld import World


def added(path: str, *lines: str) -> FilePatch:
    return FilePatch(path, hunks=(Hunk(0, 0, 1, len(lines), "", tuple(f"+{line}" for line in lines)),))


def needs_of(folder: Path, after: Mapping[str, str], before: Mapping[str, str]) -> tuple[Need, ...]:
    """The needs of a stage that writes some files."""
    world = World(folder / "world")
    for files in ({"README": "-\n", **before}, after):
        world.commit("main", {path.encode(): text for path, text in files.items()})
    world.save()
    git = GitRepository(world.path)
    base, landed = git.run("rev-list", "--reverse", "main", named=True).split()
    return stage_needs(git, base, landed, split(next(iter(git.patches([(base, landed)]))))).needs


def told(needs: tuple[Need, ...]) -> set[str]:
    return {need.text for need in needs if need.kind != "unseen"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/snapshots/a.snap", True),
        ("tests/page.html.txt", True),
        ("tests/fixtures/a.py", True),
        ("src/__snapshots__/a.js", True),
        ("tests/test_a.py", False),
        ("tests/tests.rs", False),
    ],
)
def test_data_of_tests_is_told_from_tests(path: str, expected: bool) -> None:
    assert is_record(path) is expected


def test_tests_that_cannot_be_read_are_unseen_with_the_reason() -> None:
    patches = [added("test/test_a.rb", "assert x"), added("tests/test_b.py", "print 'x'"), added("a_test.go", "x()")]
    texts = {"tests/test_b.py": "print 'x'"}
    found = list(unread(patches, texts.get, ["tests/a.snap"]))
    assert [(need.text, need.withheld) for need in found] == [
        ("tests/a.snap", "data for tests with texts that only the patch of the source has"),
        ("test/test_a.rb", "tests in ruby are not read"),
        ("tests/test_b.py", "does not parse"),
    ]
    assert verdict_of(unmet("test/test_a.rb tests/a.snap", found)) == "unseen"
    assert unmet("", found, f2p=["tests/test_c.py::test_c"]) == [found[0]]


SOURCE = 'pub fn say() {\n    println!("{} files are left over", n);\n}\n'


def test_a_recorded_text_that_only_the_source_patch_has_leaves_the_stage_unseen(tmp_path: Path) -> None:
    after = {"src/a.rs": SOURCE, "tests/snapshots/a.snap": "3 files are left over\n"}
    needs = needs_of(tmp_path, after, {})
    assert [need.kind for need in needs] == ["unseen"]


def test_a_recorded_text_of_the_base_is_no_need(tmp_path: Path) -> None:
    after = {"src/a.rs": SOURCE, "tests/snapshots/a.snap": "3 files are left over\n"}
    assert needs_of(tmp_path, after, {"src/b.rs": SOURCE}) == ()


def test_keys_of_test_data_that_only_the_source_patch_has_are_told_and_the_data_is_seen(tmp_path: Path) -> None:
    source = "def read(project):\n    return project.get('pypi_id') or project['plain']\n"
    after = {"src/a.py": source, "tests/data/all.yml": "- pypi_id: b\n  plain: c\n  other_id: d\n"}
    needs = needs_of(tmp_path, after, {"src/b.py": "x = 1\n"})
    assert [(need.kind, need.text) for need in needs] == [("text", "pypi_id")]


INLINE = """\
pub struct Config {
    pub max_depth: u8,
    pub symbol: String,
}

fn symbol() -> &str {
    "🐪 "
}

#[cfg(test)]
mod tests {
    fn helper() {}

    #[test]
    fn reads() {
        helper();
        let it = read(toml::toml! {
            max_depth = 3
        });
        assert_eq!(
            it,
            format!("via {}", "🐪 v5"),
        );
    }
}
"""


def test_tests_in_files_of_rust_are_read_with_their_keys_and_symbols(tmp_path: Path) -> None:
    source, tests = INLINE.split("#[cfg(test)]\n")
    needs = needs_of(tmp_path, {"src/a.rs": source, "tests/it.rs": tests}, {})
    assert told(needs) == {"max_depth", "🐪 v5"}
    assert {need.tests for need in needs} == {("tests/it.rs",)}


def test_tests_inside_source_files_of_rust_need_nothing_and_are_no_source(tmp_path: Path) -> None:
    assert needs_of(tmp_path / "inline", {"src/a.rs": INLINE}, {}) == ()
    tests = 'fn reads() {\n    assert_eq!(run(), "via 🐪 v5");\n}\n'
    source = INLINE.replace('    "🐪 "\n', '    ""\n')
    assert needs_of(tmp_path / "both", {"src/a.rs": source, "tests/it.rs": tests}, {}) == ()


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ('    let x = r#"\n[walk]\nmax-depth = 3\n"#;\n', {"max_depth"}),
        ("    let mut max_depth = 2;\n    max_depth = 3;\n", set()),
    ],
)
def test_keys_of_configurations_in_tests_are_names(tmp_path: Path, tests: str, expected: set[str]) -> None:
    after = {"src/a.rs": "pub struct Config {\n    max_depth: u8,\n}\n", "tests/it.rs": f"fn reads() {{\n{tests}}}\n"}
    assert told(needs_of(tmp_path, after, {})) == expected


def test_keys_in_files_of_configurations_are_names(tmp_path: Path) -> None:
    after = {"src/a.go": "type Config struct {\n\tMaxDepth int\n\tquiet bool\n}\n", "tests/a.yml": "MaxDepth: 3\n"}
    assert told(needs_of(tmp_path, after, {})) == {"MaxDepth"}


def test_a_field_of_go_without_a_capital_counts_unless_it_is_only_aligned_anew(tmp_path: Path) -> None:
    before = {"a.go": "package a\n\ntype T struct {\n\told bool\n}\n"}
    after = {
        "a.go": "package a\n\ntype T struct {\n\told   bool\n\tquiet bool\n}\n",
        "a_test.go": "package a\n\nvar x = T{\n\told: true,\n\tquiet: true,\n}\n",
    }
    assert told(needs_of(tmp_path, after, before)) == {"quiet"}


def test_an_argument_that_the_source_takes_by_a_text_is_told_as_a_parameter(tmp_path: Path) -> None:
    before = {"jwt.py": "def decode(token, **kwargs):\n    return token\n"}
    after = {
        "jwt.py": "def decode(token, **kwargs):\n    audience = kwargs.get('audience')\n    return audience or token\n",
        "tests/test_jwt.py": "import jwt\n\ndef test_it(key):\n    for audience in (1, 2):\n"
        "        assert jwt.decode(key, audience=audience)\n",
    }
    assert [(need.kind, need.text) for need in needs_of(tmp_path, after, before)] == [("parameter", "audience")]
