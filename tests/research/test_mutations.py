"""Small faults are drawn by a seed, and a test that catches one is named."""

from __future__ import annotations

import ast
from pathlib import Path

from research.mutations import draw, mutations, verdict

SOURCE = """
LIMIT = 3


def most(numbers, strict=False):
    found = []
    for number in numbers:
        if number < LIMIT and number != 1:
            found.append(number)
    return found[0:2]
"""


def test_each_change_is_one_and_can_be_compiled() -> None:
    found = list(mutations("x.py", SOURCE))
    assert {change.what for change in found} == {
        "False  ->  True",
        "number < LIMIT and number != 1  ->  number < LIMIT or number != 1",
        "number < LIMIT  ->  number <= LIMIT",
        "number != 1  ->  number == 1",
        "1  ->  2",
        "0  ->  1",
        "2  ->  3",
        "found.append(number)  ->  pass",
    }
    assert len({change.text for change in found}) == len(found)
    for change in found:
        assert ast.dump(ast.parse(change.text)) != ast.dump(ast.parse(SOURCE))


def test_a_seed_draws_the_same_faults_again_from_all_packages() -> None:
    found = draw(6, "a")
    assert found == draw(6, "a") != draw(6, "b")
    assert len({change.path.partition("/")[0] for change in found}) == 6


def test_the_test_that_fails_for_the_change_alone_is_named_and_the_copy_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SOURCE)
    (tmp_path / "test_x.py").write_text(
        "from x import most\n\n\ndef test_most():\n    assert most([0, 2, 3]) == [0, 2]\n"
    )
    (tmp_path / "test_broken.py").write_text("def test_broken():\n    assert 0\n")
    found = {change.what: change for change in mutations("x.py", SOURCE)}
    assert verdict(found["number < LIMIT  ->  number <= LIMIT"], tmp_path, ["test_x.py"], {}, 1.0) == "none"
    left_out = found["found.append(number)  ->  pass"]
    assert verdict(left_out, tmp_path, ["test_broken.py", "test_x.py"], {}, 1.0) == "test_x.py::test_most"
    assert (tmp_path / "x.py").read_text() == SOURCE
