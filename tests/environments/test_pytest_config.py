"""Test files that a repository names in its own way for pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from _pytest.config.findpaths import load_config_dict_from_file
from _pytest.pathlib import fnmatch_ex
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.runners.pytest import CONFIG_FILES, is_named_by, python_files
from environments.suites.testfiles import choose, is_test_file

PYGITHUB = '[tool.pytest.ini_options]\npython_files = "tests/*.py"\n'


@pytest.mark.parametrize(
    ("texts", "patterns"),
    [
        ({}, ()),
        ({"pyproject.toml": PYGITHUB}, ("tests/*.py",)),
        ({"pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["a.py", "b_*.py"]\n'}, ("a.py", "b_*.py")),
        ({"pyproject.toml": '[tool.pytest]\npython_files = ["a.py"]\n'}, ("a.py",)),
        ({"setup.cfg": "[tool:pytest]\npython_files = test_*.py\n    check_*.py\n"}, ("test_*.py", "check_*.py")),
        ({"tox.ini": "[pytest]\npython_files = a.py b.py\n"}, ("a.py", "b.py")),
        ({"pytest.toml": '[pytest]\npython_files = ["a.py"]\n'}, ("a.py",)),
        # The first file with a section counts, alone; pytest's own files count though they have none.
        ({"tox.ini": "[pytest]\naddopts = -q\n", "setup.cfg": "[tool:pytest]\npython_files = a.py\n"}, ()),
        ({"pytest.ini": "", "pyproject.toml": PYGITHUB}, ()),
        ({"tox.ini": "[tox]\n", "pyproject.toml": "[a]\n", "setup.cfg": "[tool:pytest]\npython_files = a\n"}, ("a",)),
    ],
)
def test_the_first_section_for_pytest_counts(texts: dict[str, str], patterns: tuple[str, ...]) -> None:
    assert python_files(texts) == patterns


@pytest.mark.parametrize("name", CONFIG_FILES)
@pytest.mark.parametrize("text", ["[", "a = ", "[pytest]\npython_files = 3\n[pytest]\n", "tool = 1\n", "%(x)s", "\x00"])
def test_a_file_that_cannot_be_read_says_nothing(name: str, text: str) -> None:
    assert python_files({name: text}) == ()


@pytest.mark.parametrize(
    ("path", "patterns", "is_one"),
    [
        ("tests/Repository.py", ("tests/*.py",), True),
        ("lib/tests/deep/Repository.py", ("tests/*.py",), True),
        ("github/Repository.py", ("tests/*.py",), False),
        ("anywhere/check_it.py", ("check_*.py",), True),
        ("tests/__init__.py", ("tests/*.py",), False),
        ("tests/conftest.py", ("*.py",), False),
        ("tests/ReplayData/a.txt", ("tests/*",), False),
    ],
)
def test_a_pattern_with_a_slash_is_held_against_the_path(path: str, patterns: tuple[str, ...], *, is_one: bool) -> None:
    assert is_named_by(path, patterns) is is_one
    assert is_test_file(path, "pytest", patterns) is is_one


PATTERNS = st.text(alphabet="ab_*?[]!/", min_size=1, max_size=6).filter(lambda pattern: not pattern.startswith("/"))


@given(path=st.from_regex(r"[ab_]{1,3}(/[ab_]{1,3}){0,2}\.py", fullmatch=True), pattern=PATTERNS)
def test_patterns_mean_what_they_mean_to_pytest(path: str, pattern: str) -> None:
    assert is_named_by(path, (pattern,)) is fnmatch_ex(pattern, Path("/") / path)


@pytest.mark.parametrize("name", ["pyproject.toml", "tox.ini"])
def test_pytest_reads_the_same_patterns(tmp_path: Path, name: str) -> None:
    text = PYGITHUB if name == "pyproject.toml" else "[pytest]\npython_files = a b\n"
    (tmp_path / name).write_text(text)
    found = load_config_dict_from_file(tmp_path / name)
    assert found is not None
    theirs: Any = getattr(found["python_files"], "value", found["python_files"])
    assert python_files({name: text}) == tuple(theirs.split())


def test_a_suite_holds_files_with_names_of_their_own() -> None:
    tree = ["tests/GitRelease.py", "tests/Framework.py", "github/GitRelease.py", "tests/ReplayData/GitRelease.txt"]
    assert choose("pytest", tree, test_patch=["tests/GitRelease.py"], source_patch=["github/GitRelease.py"]) == ()
    assert choose(
        "pytest",
        tree,
        test_patch=["tests/GitRelease.py"],
        source_patch=["github/GitRelease.py"],
        patterns=("tests/*.py",),
    ) == ("tests/GitRelease.py",)
