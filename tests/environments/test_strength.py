"""What proofs are worth, measured on made-up repositories in bubblewrap: a strong, an import-only and a weak stage."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import git
import pytest
from sqlalchemy import update

from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.proofs.reference_runs import AFTER, BEFORE
from environments.proofs.validations import ValidateReport, ValidateRun, ValidationChoice
from environments.sandboxes.local import PATH
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import FILE, TreeEntry, TreeStore
from prchain.core.settings import Settings
from sql.outcomes import PROVED
from sql.strength import Strength, Worth
from sql.tables import ReferenceRun, StageTests
from tests.environments.stageworld import Changes, StageWorld, stage_world, test_file
from tests.environments.strengthworld import RUNNERS, are_what_they_are_made_to_be, commit_stages, in_no_hurry
from tests.environments.strengthworld import measured as measured_stage

pytestmark = pytest.mark.usefixtures("bubblewrap")

OLD = {f"old_{number}": f"self.assertEqual(this.total([{number}]), {number})" for number in range(19)}
"""Tests of before the pull request."""

START: Changes = {"tests/test_cart.py": test_file("cart", **OLD)}

IMPORT_ONLY: Changes = {
    "till/cart.py": "def total(items):\n    return sum(items)\n\n\ndef first_of(items):\n    return items[0]\n",
    "tests/test_cart.py": test_file("cart", **OLD, first="self.assertEqual(first_of([3]), 4)").replace(
        "import cart as this", "import cart as this\nfrom till.cart import first_of"
    ),
}
"""Nineteen old tests that cannot be imported before, and one of its own that fails with the reference, too."""

STRONG: Changes = {
    "till/cart.py": "def total(items, sale=False):\n    return off(sum(items)) if sale else sum(items)\n\n\n"
    "def off(amount):\n    return amount - 1\n",
    "tests/test_cart.py": test_file("cart", **OLD, sale="self.assertEqual(this.total([2, 4], sale=True), 5)"),
}

WEAK: Changes = {
    "till/cart.py": "def total(items):\n    return sum(items)\n\n\ndef most(items):\n    return max(items)\n\n\n"
    "def least(items):\n    return min(items)\n\n\nLIMIT = 3\n",
    "tests/test_cart.py": test_file("cart", **OLD, limit="self.assertEqual(this.LIMIT, 3)"),
}
"""Two functions, and a test of the constant beside them."""

STUB = "def total(items):\n    return sum(items)\n\n\nfirst_of = None\n"


def measured(world: StageWorld, *, strength: bool = True, **choice: Any) -> ValidateReport:
    prover = world.prover(runs=1, strength=strength)
    return ValidateRun(world.store, prover, ValidationChoice(**choice)).run(1)


def strength_of(world: StageWorld, chain: str | None = None) -> Strength:
    [stage] = world.stages(chain)
    assert stage.strength is not None
    return stage.strength


def runs_of(world: StageWorld, *sides: str) -> list[tuple[Any, ...]]:
    return [row for row in world.rows(ReferenceRun, "side", "ordinal", "key", "ran_at") if row[0] in sides]


def test_old_tests_that_an_import_hid_prove_nothing_though_a_stub_passes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage_world(tmp_path, {1: IMPORT_ONLY}, start=START, chains=[(1,)]) as world:
        assert measured(world, strength=False).counts == {PROVED: 1}
        [stage] = world.stages()
        assert (len(stage.classes.f2p), stage.classes.p2p, len(stage.classes.failing)) == (19, (), 1 + 1)
        suite = world.suite()
        trees = suite.workplace.trees
        stub = TreeEntry(FILE, trees.write_blob(STUB.encode()))
        run = suite.run(trees.edit(trees.tree_of(suite.base), {b"till/cart.py": stub}))
        assert all(run.statuses.get(test) == "passed" for test in stage.classes.f2p)

        before = runs_of(world, BEFORE, AFTER)
        assert measured(world).counts == {PROVED: 1}
        assert runs_of(world, BEFORE, AFTER) == before, "nothing is proved anew"
        assert world.stages() == (replace(stage, strength=strength_of(world)),)
        strength = strength_of(world)
        assert (strength.worth, strength.own, strength.hidden) == (Worth.IMPORT_ONLY, 0, stage.classes.f2p)
        assert strength.failing == ("tests.test_cart.Case.test_first",) and strength.guards == 19
        assert measured(world).results == (), "nothing is left to measure"
        monkeypatch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
        with world.store.transaction() as tx:
            tx.connection.execute(update(StageTests).values(strength=None))
        assert measured(world).counts == {PROVED: 1}
        assert replace(strength_of(world), seconds=0) == replace(strength, seconds=0)


@pytest.mark.parametrize(("changes", "worth"), [(STRONG, Worth.STRONG), (WEAK, Worth.WEAK)])
def test_undoing_the_work_shows_or_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Changes, worth: Worth
) -> None:
    in_no_hurry(monkeypatch)
    with stage_world(tmp_path, {1: changes}, start=START, chains=[(1,)]) as world:
        measured(world)
        strength = strength_of(world)
        assert strength.worth is worth and strength.own == strength.changed == 1


@pytest.mark.skipif(shutil.which("node", path=PATH) is None, reason="node is not installed where sandboxes look")
def test_node_s_own_runner_has_proofs_of_every_strength(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_no_hurry(monkeypatch)
    git.Repo.init(tmp_path / "r")
    (tmp_path / "r" / "package.json").write_text('{"scripts": {"test": "node --test"}, "main": "index.js"}')
    stages = commit_stages(tmp_path / "r", RUNNERS["nodetest"])
    trees = TreeStore.open(tmp_path / "trees", [tmp_path / "r"])
    repository = GitRepository.open(tmp_path / "r")
    provider = Provider(Settings(data_dir=tmp_path / "data"), images=False)
    provided = provider.provide("shop/till", trees, repository, stages[Worth.STRONG])
    assert provided.plan.runner == "nodetest"
    are_what_they_are_made_to_be(
        {
            worth: measured_stage(provided, trees, repository, stage, backend=BACKENDS["local"])
            for worth, stage in stages.items()
        }
    )
