"""An imported chain is proved as one that was mined, and its publisher's lists are compared with the proof."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chains.imports.importing import Importer
from chains.imports.reading import read_instances
from environments.proofs.proof_report import proof_report
from environments.proofs.published import ABSENT, compare_lists
from environments.proofs.validations import ValidateRun, ValidationChoice
from environments.suites.outcomes import ClassifiedTests
from prchain.core.swebench.logparsers import LOG_PARSERS
from sql.chosen import selected_ids
from tests.chains.import_rows import swe_gym, swe_smith
from tests.environments.stageworld import StageWorld, stage_world
from tests.miner.gitworld import git


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StageWorld]:
    with stage_world(tmp_path, chains=[(1, 2)]) as world:
        yield world


@pytest.mark.usefixtures("bubblewrap")
def test_stages_of_ours_come_back_and_are_proved_by_the_same_tests(world: StageWorld) -> None:
    choice = ValidationChoice(chain=world.chain_id)
    assert ValidateRun(world.store, world.prover(runs=1), choice).run(1).counts == {"proved": 1}
    proofs = {stage.position: stage for stage in world.stages()}
    name = LOG_PARSERS["unittest"].name_of
    path = world.world.path
    rows = []
    for stage in world.chain.stages:
        classes = proofs[stage.position].classes
        rows.append(
            swe_gym(
                instance_id=f"shop__till-{stage.number}",
                base_commit=stage.base,
                patch=git(path, "diff", stage.base, stage.landed, "--", ".", ":!tests"),
                test_patch=git(path, "diff", stage.base, stage.landed, "--", "tests"),
                FAIL_TO_PASS=[name(test) for test in classes.f2p],
                PASS_TO_PASS=[
                    *map(name, classes.p2p),
                    *(["gone (tests.test_gone.Case.gone)"] if stage.number == 2 else []),
                ],
            )
        )
    first = world.chain.stages[0]
    rows.append(  # the same work as a fault that is brought in
        swe_smith(
            instance_id=f"shop__till.{first.landed[:8]}.func_basic__1",
            repo=f"swesmith/shop__till.{first.landed[:8]}",
            patch=git(path, "diff", first.landed, first.base, "--", ".", ":!tests"),
            FAIL_TO_PASS=[
                f"{file}::Case"
                for file in git(path, "diff", "--name-only", first.base, first.landed, "--", "tests").split()
            ],
            PASS_TO_PASS=[],
        )
    )
    file = world.folder / "set.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    importer = Importer(world.store, world.settings.data_dir, world.settings.mirrors_dir)
    assert importer.run(read_instances(file), lambda row: None).imported == 3
    report = ValidateRun(world.store, world.prover(runs=1), ValidationChoice(strategy="imported")).run(1)
    assert report.counts == {"proved": 3}
    with world.store.reading() as tx:
        ids = selected_ids(tx, "imported")
    told: list[str] = []
    for chain_id in ids:
        (found,) = world.stages(chain_id)
        page = proof_report(world.store, chain_id)
        original = proofs[page.stages[0].number or 1]
        assert found.classes.f2p == original.classes.f2p
        assert set(found.classes.p2p) <= set(original.classes.p2p) | set(original.classes.f2p)
        assert page.published is not None and page.published.differ is not bool(page.stages[0].number)
        told.append(page.published.words())
    assert sorted(proof.published.words() for proof in report.proofs if proof.published) == sorted(told)


def test_what_differs_is_told_by_the_class_that_a_test_is_in() -> None:
    classes = ClassifiedTests(
        f2p=("t.py::test_new", "t.py::test_[a b]"), p2p=("t.py::test_old",), failing=("t.py::test_slow",)
    )
    listed = ["t.py::test_new", "t.py::test_old", "t.py::test_gone"]
    found = compare_lists("pytest", listed, ["t.py::test_slow", "u.py::test_far"], classes)
    assert found.f2p_otherwise == {"t.py::test_old": "p2p", "t.py::test_gone": ABSENT}
    assert found.p2p_otherwise == {"t.py::test_slow": "failing", "u.py::test_far": ABSENT}
    assert found.f2p_unlisted == ("t.py::test_[a b]",) and found.differ
    # SWE-bench's parser cuts the id at the blank.
    same = compare_lists("pytest", ["t.py::test_new", "t.py::test_[a"], ["t.py::test_old", "u.py::test_far"], classes)
    assert not same.differ and same.words() == "1 of 2 listed P2P was not run"
    assert compare_lists(None, ["a"], [], ClassifiedTests(f2p=("a",))).words() == "as its publisher lists them"
