"""The parts of a reference patch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.kinds import FileKind
from prchain.core.code.reference import Reference, lines_changed, split
from prchain.core.git.patches import FilePatch, Hunk


def patch(path: str, added: int = 1, removed: int = 0, old_path: str | None = None) -> FilePatch:
    lines = (*(f"-old {n}" for n in range(removed)), *(f"+new {n}" for n in range(added)))
    return FilePatch(path, old_path, "R" if old_path else "M", False, (Hunk(1, removed, 1, added, "", lines),))


def test_source_tests_and_what_rides_along_are_parted() -> None:
    files = [
        patch("src/a.py"),
        patch("src/latest.py"),
        patch("tests/test_a.py"),
        patch("docs/a.rst"),
        patch("uv.lock"),
        patch("pyproject.toml"),
        patch("src/data.json"),
        patch(".github/workflows/ci.yml"),
        patch("vendor/x.c"),
    ]
    reference = split(files)
    assert [file.path for file in reference.source] == ["src/a.py", "src/latest.py", "pyproject.toml", "src/data.json"]
    assert [file.path for file in reference.test] == ["tests/test_a.py"]
    assert [file.path for file in reference.other] == [
        "docs/a.rst",
        "uv.lock",
        ".github/workflows/ci.yml",
        "vendor/x.c",
    ]
    assert [file.path for file in reference.code] == ["src/a.py", "src/latest.py"]


def test_snapshots_and_fixtures_below_test_folders_go_with_the_tests() -> None:
    reference = split([patch("tests/a/__snapshots__/a.js.snap"), patch("tests/fixtures/b.js"), patch("tests/c.md")])
    assert len(reference.test) == 3
    assert reference.kinds == {FileKind.TEST}


def test_only_lines_with_content_of_program_text_count() -> None:
    blank = FilePatch("src/a.py", hunks=(Hunk(1, 1, 1, 3, "", ("-x = 1", "+", "+   ", "+x = 2")),))
    reference = split([blank, patch("pyproject.toml", 50), patch("src/data.json", 900), patch("tests/t.py", 7, 2)])
    assert reference.source_lines == 2
    assert reference.test_lines == 9
    assert lines_changed([FilePatch("a.png", binary=True)]) == 0


@pytest.mark.parametrize(
    ("files", "language"),
    [
        ([patch("a.py", 3), patch("b.rs", 2, 2)], "rust"),
        ([patch("a.py", 3), patch("tests/b.rs", 90)], "python"),
        ([patch("b.py", 2), patch("a.go", 2)], "go"),
        ([FilePatch("new.py", "old.py", "R")], "python"),
        ([patch("pyproject.toml")], None),
        ([], None),
    ],
)
def test_the_language_is_that_of_most_program_text(files: list[FilePatch], language: str | None) -> None:
    assert split(files).language == language


def test_a_rename_brings_both_paths_once() -> None:
    assert split([patch("b.py", old_path="a.py"), patch("a.py")]).paths == ("a.py", "b.py")


@given(st.lists(st.sampled_from(["a.py", "tests/a.py", "docs/a.md", "x.lock", "a.yaml", "vendor/a.c", "a.png"])))
def test_no_file_is_lost_or_doubled(paths: list[str]) -> None:
    files = [patch(path) for path in paths]
    reference = split(files)
    parts = [*reference.source, *reference.test, *reference.other]
    assert sorted(map(id, parts)) == sorted(map(id, files))
    assert (reference == Reference()) == (not paths)
