"""Releases and dependency updates, told by words and files together."""

from __future__ import annotations

import pytest

from prchain.core.code.housekeeping import housekeeping_of, is_release
from tests.growth import assert_linear


@pytest.mark.parametrize(
    ("subject", "paths", "expected"),
    [
        ("Bump django from 4.1 to 4.2", ["requirements.txt"], "dependency_bump"),
        ("chore(deps): update all non-major dependencies", ["package.json", "yarn.lock"], "dependency_bump"),
        ("Bump django from 4.1 to 4.2", ["requirements.txt", "app/models.py"], None),
        ("Release 1.2.0", ["CHANGELOG.md", "pkg/_version.py"], "release"),
        ("Bump version to 1.2.0", ["pyproject.toml", "docs/guide.md"], "release"),
        ("Release the lock while parsing", ["src/parser.rs"], None),
        ("Stream results", ["CHANGELOG.md"], None),
        ("Bump django from 4.1 to 4.2", [], "dependency_bump"),
        ("", [], None),
    ],
)
def test_words_and_files_have_to_agree(subject: str, paths: list[str], expected: str | None) -> None:
    assert housekeeping_of(subject, paths) == expected


@pytest.mark.parametrize("subject", ["v1.2.3", "chore(main): release 2.0.0", "Prepare the 1.0 release", "Changelog"])
def test_subjects_of_releases(subject: str) -> None:
    assert is_release(subject)


@pytest.mark.parametrize("subject", ["Fix the parser", "Add releases page", "Support version ranges", "reversion"])
def test_subjects_of_work_are_none_of_a_release(subject: str) -> None:
    assert not is_release(subject)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["bump ", "release: ", "a", " ", "chore(", "update the "])
def test_the_time_to_read_hostile_subjects_grows_as_they_do(unit: str) -> None:
    assert_linear(lambda size: unit * (size // len(unit)), lambda subject: housekeeping_of(subject, []), 5000)
