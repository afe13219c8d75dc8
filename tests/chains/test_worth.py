"""How likely a stage makes a sensible task."""

from __future__ import annotations

import pytest

from chains.stages.worth import judge_worth
from chains.weights import MECHANICAL, weights
from prchain.core.code.reference import Reference, split
from prchain.core.git.patches import FilePatch, Hunk


def patch(path: str, added: int, removed: int = 0) -> FilePatch:
    lines = tuple(f"+value_{n} = {n}" for n in range(added)) + tuple(f"-value_{n} = 0" for n in range(removed))
    return FilePatch(path, hunks=(Hunk(1, removed, 1, added, "", lines),))


def reference(added: int = 20, removed: int = 4, tests: int = 15) -> Reference:
    files = [patch("src/a.py", added, removed)]
    return split([*files, patch("tests/test_a.py", tests)] if tests else files)


def worth(reference: Reference, title: str = "Take vouchers at the till") -> float:
    return judge_worth(reference, title).worth


def test_tests_speak_for_it() -> None:
    assert worth(reference(tests=40)) > worth(reference(tests=3)) > worth(reference(tests=0))


def test_taking_code_away_speaks_against_it() -> None:
    assert worth(reference(added=4, removed=30)) < worth(reference())


def test_many_test_files_for_the_same_lines_speak_against_it() -> None:
    many = split([patch("src/a.py", 20, 4), *(patch(f"tests/test_{n}.py", 5) for n in range(3))])
    assert worth(many) < worth(reference(tests=15))


@pytest.mark.parametrize(
    "title",
    ["Rename the till", "refactor: part the till", "Drop Python 3.8", "perf: faster till", "Add type annotations"],
)
def test_mechanical_titles_speak_against_it(title: str) -> None:
    assert worth(reference(), title) < worth(reference())


@pytest.mark.parametrize("title", ["Remove vouchers from Dropbox", "Prototype the till", "Add cites and sites"])
def test_words_are_whole_words(title: str) -> None:
    found = MECHANICAL.search(title)
    assert found is None or found[0] == "Remove"


def test_the_reasons_are_those_of_the_table_and_add_up() -> None:
    found = judge_worth(reference(), "Clean the till")
    assert {sign.name for sign in found.signs} == weights("worth").keys() == found.values.keys()
    for sign in found.signs:
        assert sign.weight == pytest.approx(found.values[sign.name] * weights("worth")[sign.name], abs=1e-3)
