"""The rig of grades: its trees of a stage, and a run on a database without proofs."""

from __future__ import annotations

import ast
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from research.grades.__main__ import GradedRow, chosen, main
from research.grades.cheats import ADDED, APPENDED
from research.grades.trees import BREAKS, GradedTree, trees_of, works_of
from sql.store import Store
from tests.environments.stageworld import stage_world
from tests.environments.test_workplace import suite_of


def test_a_database_without_proofs_has_nothing_to_grade(tmp_path: Path) -> None:
    file = tmp_path / "prchain.db"
    with closing(Store.open(str(file))):
        pass
    result = CliRunner().invoke(main, ["--db", str(file)])
    assert result.exit_code == 1 and "there is no tree to grade" in result.output
    gone = CliRunner().invoke(main, ["--db", str(tmp_path / "none.db")])
    assert gone.exit_code == 1 and "there is no database" in gone.output


def test_a_stage_has_its_reference_failures_and_cheats(tmp_path: Path) -> None:
    with stage_world(tmp_path) as world:
        suite = suite_of(world, 3)
        found = list(trees_of(suite, ["till/cart.py"]))
    kinds = [tree.kind for tree in found]
    assert kinds[0] == "reference" and kinds.count("cheat") == len(APPENDED) + len(ADDED)
    assert kinds.count("honest") >= 2 + len(BREAKS)
    assert len({tree.name for tree in found}) == len(found)


def test_works_stand_in_folders_of_their_stage_and_kind(tmp_path: Path) -> None:
    works = tmp_path / "works"
    for place, text in (
        ("abc.3/cheat/k1/till/cart.py", "changed = 1\n"),
        ("abc.3/honest/h1/till/new.py", "new = 1\n"),
        ("abc.3/honest/h1/till/cart.py~", ""),
        ("abc.2/cheat/other/till/cart.py", ""),
        ("abd.3/cheat/other/till/cart.py", ""),
    ):
        (works / place).parent.mkdir(parents=True, exist_ok=True)
        (works / place).write_text(text)
    with stage_world(tmp_path / "world") as world:
        suite = suite_of(world, 3)
        trees = suite.workplace.trees
        base = trees.tree_of(suite.base)
        cheat, honest = works_of(suite, works, "abcdef", 3)
        assert [(it.kind, it.name, it.is_work) for it in (cheat, honest)] == [
            ("cheat", "k1", True),
            ("honest", "h1", True),
        ]
        assert [it.path for it in trees.diff(base, cheat.tree)] == [b"till/cart.py"]
        assert {it.path: it.new is None for it in trees.diff(base, honest.tree)} == {
            b"till/cart.py": True,
            b"till/new.py": False,
        }


def test_honest_failures_go_round_from_stage_to_stage() -> None:
    trees = [GradedTree("reference", "reference", "r"), *(GradedTree(str(n), "honest", "h") for n in range(5))]
    kinds = {"reference", "honest"}
    assert [[tree.name for tree in chosen(trees, kinds, 2, number)] for number in (0, 1, 2)] == [
        ["reference", "0", "1"],
        ["reference", "2", "3"],
        ["reference", "0", "4"],
    ]
    assert [tree.name for tree in chosen(trees, {"honest"}, None, 3)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("text", APPENDED.values(), ids=APPENDED)
def test_a_cheat_is_code(text: str) -> None:
    ast.parse(text)


@pytest.mark.parametrize(
    ("kind", "outcome", "wrong"),
    [
        ("cheat", "passed", True),
        ("cheat", "tampered", False),
        ("cheat", "f2p_failed", False),
        ("honest", "tampered", True),
        ("honest", "passed", False),
        ("reference", "f2p_failed", True),
        ("reference", "passed", False),
    ],
)
def test_what_is_wrong(kind: str, outcome: str, wrong: bool) -> None:
    assert GradedRow("o/n", "c", 1, kind, "x", outcome, "", 0, 1.0).is_wrong is wrong
