"""Rows that the rig writes are read as the stage that they were, and what differs when it comes back is told."""

from __future__ import annotations

import json
from pathlib import Path

from chains.imports.instance import Instance
from chains.imports.reading import read_instances
from environments.proofs.proof_rows import StageProof
from environments.suites.outcomes import ClassifiedTests, Grade
from research.imported_stages.columns import COLUMNS, PublishedStage, line, rows_of
from research.imported_stages.differences import (
    ReturnedStage,
    differing_tests,
    differing_verdicts,
    files_apart,
    table,
)
from tests.chains.import_rows import BASE, F2P, P2P, PATCH, TEST_PATCH

LANDED = "0a1b2c3d" + "4" * 32
FAULT = PATCH.replace("-LIMIT = 1\n+LIMIT = 0", "-LIMIT = 0\n+LIMIT = 1")
STAGE = PublishedStage(
    "shop/till",
    12,
    BASE,
    LANDED,
    "2024-05-06T07:08:09Z",
    "Take empty carts\n\nThey have a total.",
    PATCH,
    TEST_PATCH,
    FAULT,
    tuple(F2P),
    tuple(P2P),
    "pytest -rA tests/test_cart.py",
    "prchain/shop--till:stage-5f0c-1",
)


def instances(folder: Path) -> dict[str, Instance]:
    found = {}
    for columns, row in rows_of(STAGE):
        file = folder / f"{columns}.jsonl"
        file.write_text(line(row))
        [read] = read_instances(file, source=f"ours/{columns}")
        assert read.instance is not None, read.reason
        found[columns] = read.instance
    return found


def test_a_stage_is_read_out_of_all_columns_as_what_it_was(tmp_path: Path) -> None:
    found = instances(tmp_path)
    assert tuple(found) == COLUMNS
    smith = found.pop("swe_smith")
    assert smith.breaks and (smith.base_commit, smith.patch, smith.test_patch) == (LANDED[:8], FAULT, "")
    for it in (smith, *found.values()):
        assert (it.repository, it.query, it.f2p, it.p2p) == (STAGE.repository, STAGE.query, STAGE.f2p, STAGE.p2p)
    for it in found.values():
        assert (it.base_commit, it.patch, it.test_patch) == (STAGE.base, STAGE.patch, STAGE.test_patch)


def test_what_decides_an_environment_is_the_stage_s_own(tmp_path: Path) -> None:
    found = instances(tmp_path)
    # The day decides which packages and which Python are taken; these two forms tell none.
    assert {columns for columns, it in found.items() if it.created_at is None} == {"multi_swe_bench", "nemo_small"}
    assert {it.created_at for it in found.values()} == {STAGE.landed_at, None}
    commands = {columns: it.test_command for columns, it in found.items() if it.test_command}
    assert commands == dict.fromkeys(("harness_5", "swe_rebench", "swe_rebench_v2"), (STAGE.command,))
    assert (found["harness_5"].image, found["harness_5"].image_by) == (STAGE.image, "column")
    of_others = {columns: it.image or "" for columns, it in found.items() if columns != "harness_5"}
    assert all("till" in image for columns, image in of_others.items() if columns != "nemo_small")


def proof(files: tuple[str, ...] = ("a.py",), outcome: str = "proved", **tests: tuple[str, ...]) -> StageProof:
    return StageProof(1, outcome, files=files, runner="pytest", classes=ClassifiedTests(**tests))


def test_tests_of_another_class_differ_and_those_of_a_file_that_one_proof_ran_alone_do_not() -> None:
    ours = proof(("a.py", "b.py"), f2p=("a.py::one",), p2p=("a.py::two", "b.py::three"))
    assert differing_tests(ours, proof(f2p=("a.py::one",), p2p=("a.py::two",))) == []
    assert files_apart(ours, proof()) == "ours alone: b.py"
    assert differing_tests(ours, proof(f2p=("a.py::one", "a.py::two"))) == ["a.py::two: p2p, then f2p"]
    assert differing_tests(ours, proof(f2p=("a.py::one",))) == ["a.py::two: p2p, then none"]
    assert differing_tests(ours, proof(outcome="no_f2p")) == ["proved, then no_f2p: None"]


def test_a_verdict_is_its_outcome_and_the_tests_that_it_names() -> None:
    ours = {"reference": Grade("passed"), "nothing": Grade("f2p_failed", f2p_failed=("a", "b"))}
    same = (proof(), proof())
    assert differing_verdicts(ours, dict(ours), same) == []
    assert differing_verdicts(ours, {**ours, "nothing": Grade("f2p_failed", f2p_failed=("a",))}, same) == [
        "nothing: f2p_failed (2, 0, 0), then f2p_failed (1, 0, 0)"
    ]
    assert differing_verdicts(ours, {"reference": "refresh_failed"}, same) == [
        "reference: passed (0, 0, 0), then refresh_failed",
        "nothing: f2p_failed (2, 0, 0), then not graded",
    ]


def test_tests_of_files_that_one_side_alone_ran_are_no_other_verdict() -> None:
    """A later stage of a chain runs the test files of earlier ones, too."""
    one, more = proof(files=("tests/a.py",)), proof(files=("tests/a.py", "tests/b.py"))
    broken = ("tests/a.py::t", "tests/b.py::t")
    ours = {"nothing": Grade("f2p_failed", f2p_failed=("tests/a.py::f",), p2p_broken=broken)}
    theirs = {"nothing": Grade("f2p_failed", f2p_failed=("tests/a.py::f",), p2p_broken=broken[:1])}
    assert differing_verdicts(ours, theirs, (more, one)) == []
    assert differing_verdicts(theirs, {"nothing": Grade("f2p_failed")}, (one, more)) == [
        "nothing: f2p_failed (1, 1, 0), then f2p_failed (0, 0, 0)"
    ]


def test_the_table_counts_by_repository_and_columns_and_ends_with_all() -> None:
    same = ReturnedStage("b/b", 1, "swe_gym", "c", True)
    other = ReturnedStage("a/a", 2, "swe_smith", "d", True, tests=("x",), listed="y")
    third = ReturnedStage("b/b", 3, "swe_smith", "e", False, verdicts=("z",))
    assert list(table([same, other, third], COLUMNS)) == [
        ("a/a", "swe_smith", 1, 1, 0, 1, 0),
        ("b/b", "swe_gym", 1, 1, 1, 1, 1),
        ("b/b", "swe_smith", 1, 0, 1, 0, 1),
        ("all", "swe_gym", 1, 1, 1, 1, 1),
        ("all", "swe_smith", 2, 1, 1, 1, 1),
    ]


def test_a_row_is_one_line_of_json() -> None:
    for _, row in rows_of(STAGE):
        text = line(row)
        assert text.count("\n") == 1 and isinstance(json.loads(text), dict)
