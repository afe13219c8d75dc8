"""What the name of a file says of a change."""

from __future__ import annotations

import pytest

from prchain.core.code.paths import is_housekeeping, is_prose, is_trivial
from tests.growth import assert_linear

TRIVIAL = [
    "CHANGELOG.md",
    "docs/changes.rst",
    "NEWS",
    "a/b/yarn.lock",
    "Cargo.lock",
    "uv.lock",
    ".gitignore",
    "README.md",
    "AUTHORS",
    ".mailmap",
    "release-notes.md",
    "go.sum",
]
HOUSEKEEPING = [
    "package.json",
    "pyproject.toml",
    "dev-requirements.txt",
    "pkg/__init__.py",
    "src/_version.py",
    "x.gemspec",
    ".github/workflows/ci.yml",
    "doc/whatsnew/v1.rst",
    "CHANGES.d/12.md",
    "x/deep.lock",
    "RELEASE.md",
]
WORK = [
    "src/main.py",
    "lib/changelogger.py",
    "readme_parser.py",
    "src/news/feed.c",
    "version_test.go",
    "src/versions.ts",
    "tests/test_history.py",
    "a/locking.py",
    "blocks",
    "requirements.py",
]


@pytest.mark.parametrize("path", TRIVIAL)
def test_trivial_paths(path: str) -> None:
    assert is_trivial(path) and is_housekeeping(path)


@pytest.mark.parametrize("path", HOUSEKEEPING)
def test_housekeeping_that_is_not_trivial(path: str) -> None:
    assert is_housekeeping(path) and not is_trivial(path)


@pytest.mark.parametrize("path", WORK)
def test_paths_of_real_work_are_not_trivial(path: str) -> None:
    assert not is_trivial(path)


@pytest.mark.parametrize(
    ("path", "prose"), [("a/b.md", True), ("x.PNG", True), ("a.rst", True), ("md", False), ("a.md.py", False)]
)
def test_prose(path: str, prose: bool) -> None:
    assert is_prose(path) is prose


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["changelog", "/", "requirements", ".", "release/", "a-"])
def test_the_time_to_read_hostile_paths_grows_as_they_do(unit: str) -> None:
    assert_linear(lambda size: unit * (size // len(unit)), lambda path: (is_housekeeping(path), is_prose(path)), 5000)
