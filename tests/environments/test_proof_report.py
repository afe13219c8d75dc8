"""A chain's proof to read: every stage with its tests, and what there is to say of one that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from environments.proofs.proof import EARLIER_BROKEN, NOT_REACHED, TESTS_UNUSABLE
from environments.proofs.proof_report import earlier_broken, proof_report
from environments.proofs.proof_rows import ChainProof, StageProof, StoredRuns, write_proof, write_strength
from environments.suites.baseline import RunnerBaseline
from environments.suites.outcomes import ClassifiedTests
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.cli import run
from prchain.core.safeguards import PLANTING
from sql.outcomes import PROVED
from sql.strength import Strength, UndoingKind, UndoingOutcome, Undone
from sql.tables import BuiltImage, Validation
from tests.environments.stageworld import StageWorld, stage_world

ONE, TWO = "tests/test_a.py", "tests/test_b.py"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        monkeypatch.setenv("PRCHAIN_DB", world.settings.db)
        yield world


def a_run(tail: str, **fields: Any) -> TestRun:
    values: dict[str, Any] = {"statuses": {f"{ONE}::a": Status.passed}, "tail": tail, "seconds": 3.4, "exit_code": 0}
    return TestRun(**{**values, **fields})


def failed_proof(world: StageWorld, slots: Sequence[str] = (f"{ONE}:1", f"{ONE}:r1")) -> ChainProof:
    """A chain whose second stage breaks a test of the first one, and has another one removed upstream."""
    first = StageProof(
        1,
        PROVED,
        image="prchain/shop--till:1",
        runner="pytest",
        recipe="python",
        files=(ONE,),
        classes=ClassifiedTests(f2p=(f"{ONE}::a", f"{ONE}::b", f"{ONE}::c"), p2p=("p",) * 1200),
        baseline=RunnerBaseline(canaries=tuple(slots), planting=PLANTING),
        seconds=12.0,
    )
    second = StageProof(
        2,
        EARLIER_BROKEN,
        "1 of earlier stages' F2P: ...",
        runner="pytest",
        files=(ONE, TWO),
        removed=(f"{ONE}::b",),
        classes=ClassifiedTests(p2p=(f"{ONE}::c",), broken=(f"{ONE}::a",), missing=(f"{ONE}::b",)),
        seconds=8.0,
    )
    chain = ChainProof(world.chain_id, EARLIER_BROKEN, "stage 2: ...", (first, second, StageProof(3, NOT_REACHED)), 20)
    image = {"name": "prchain/shop--till:1", "repository": "shop/till", "recipe": "python", "outcome": "built"}
    dated = {"as_of": "2024-05-01T12:00:00Z", "notes": [], "seconds": 1.0, "repairs": 0, "built_at": "2026-01-01"}
    with world.store.transaction() as tx:
        write_proof(tx, chain, "docker")
        tx.upsert(BuiltImage, [image | dated])
    return chain


def test_show_prints_each_stage_with_its_runner_files_counts_runs_and_seconds(
    world: StageWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_proof(world)
    for side, ordinal, test_run in (("after", 1, a_run("all well")), ("before", 1, a_run("", infra="out_of_memory"))):
        StoredRuns(world.store, world.chain_id, 1).keep(side, ordinal, "key", test_run)
    StoredRuns(world.store, world.chain_id, 2).keep("after", 1, "key", a_run("\n".join("0123456789") + "\x1b[2J\n"))
    assert run(["environments", "show", world.chain_id[:3]]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{world.chain_id}  shop/till  earlier_broken in 20 s (docker, 20")
    assert out[1:] == [
        "  stage 2: ...",
        "stage 1 (#1): proved in 12 s",
        "  pytest, 1 test file: F2P 3, P2P 1,200, flaky 0, failing 0",
        "  proof: not_measured; `prchain environments validate --strength` does",
        "  1 canary among them when work is graded",
        "  1 test by other names when work is graded",
        "  canaries alone guard a grade: who reads them and the tests tells them apart",
        "  in prchain/shop--till:1, of packages as of 2024-05-01",
        "  runs: before 1 3 s (out_of_memory), after 1 3 s",
        "stage 2 (#2): earlier_broken in 8 s",
        "  1 of earlier stages' F2P: ...",
        "  pytest, 2 test files: F2P 0, P2P 1, flaky 0, missing 1, broken 1, failing 0",
        "  1 F2P test of earlier stages removed or rewritten upstream",
        "  1 F2P test of earlier stages broken here",
        "  runs: after 1 3 s",
        *(f"  | {number}" for number in range(4, 9)),
        "  | 9\\x1b[2J",
        "stage 3 (#3): not_reached",
    ]


def test_show_says_where_nothing_guards_a_grade(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    failed_proof(world, ())
    assert run(["environments", "show", world.chain_id[:3]]) == 0
    assert capsys.readouterr().out.count("nothing guards a grade: what makes its tests pass is believed, unless") == 1
    assert run(["environments", "show", world.chain_id[:3], "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [it["safeguard"] for it in stages] == ["none", None, None]


def test_show_tells_what_a_proof_is_worth_and_names_what_nobody_caught(
    world: StageWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_proof(world)
    undone = tuple(
        Undone(UndoingKind.HUNK, f"till/cart.py:{line}", outcome)
        for line, outcome in enumerate((UndoingOutcome.CAUGHT, UndoingOutcome.PASSED, UndoingOutcome.INVALID), 1)
    )
    strength = Strength(2, 1, (f"{ONE}::c",), (f"{ONE}::new",), 0, undone)
    with world.store.transaction() as tx:
        write_strength(tx, world.chain_id, 1, strength)
    StoredRuns(world.store, world.chain_id, 1).keep("undone", 1, "key", a_run(""))
    assert run(["environments", "show", world.chain_id, "--tests"]) == 0
    first = capsys.readouterr().out.partition("stage 2 (#2)")[0]
    assert (
        "  proof: unknown: 2 own F2P, 1 of them added or changed; 1 hidden by an import alone; 1 of 2 undoings caught, "
        f"1 invalid; no P2P beside them\n  new or changed tests fail on M_t: {ONE}::new\n"
        "  undone and not caught: till/cart.py:2 (hunk)\n"
    ) in first
    assert f"  hidden by an import alone:\n    {ONE}::c\n" in first and "undone 1" not in first


def test_show_names_the_files_that_were_left_out(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    failed_proof(world)
    notes = ("left out: a b/x_test.go", "overruled: x")
    for ordinal in (1, 2):
        StoredRuns(world.store, world.chain_id, 1).keep("after", ordinal, "key", a_run("", notes=notes))
    assert run(["environments", "show", world.chain_id[:3]]) == 0
    assert "  left out, since the runner cannot be given them: a b/x_test.go\n" in capsys.readouterr().out


def test_show_names_the_tests_where_it_is_asked_to(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    failed_proof(world)
    assert run(["environments", "show", world.chain_id, "--tests"]) == 0
    second = capsys.readouterr().out.partition("stage 2 (#2)")[2].partition("stage 3")[0].splitlines()
    assert second[-13:] == [
        "  files:",
        f"    {ONE}",
        f"    {TWO}",
        "  P2P:",
        f"    {ONE}::c",
        "  missing:",
        f"    {ONE}::b",
        "  broken:",
        f"    {ONE}::a",
        "  removed upstream:",
        f"    {ONE}::b",
        "  earlier broken:",
        f"    {ONE}::a",
    ]


def test_machines_get_counts_and_with_tests_the_names(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    failed_proof(world)
    assert run(["environments", "show", world.chain_id, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["outcome"], page["backend"], page["repository"]) == (EARLIER_BROKEN, "docker", "shop/till")
    first, second, third = page["stages"]
    assert (first["counts"]["f2p"], first["counts"]["p2p"], first["files"], first["number"]) == (3, 1200, [ONE], 1)
    assert (second["removed"], second["earlier_broken"]) == ([f"{ONE}::b"], [f"{ONE}::a"])
    assert third["outcome"] == NOT_REACHED and "tests" not in first
    assert run(["environments", "show", world.chain_id, "--json", "--tests"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"][0]["tests"]["f2p"] == [f"{ONE}::{name}" for name in "abc"]


def test_the_run_that_was_out_of_time_is_the_one_whose_end_is_shown(world: StageWorld) -> None:
    stage = StageProof(1, TESTS_UNUSABLE, "before: timed out after 900 s", runner="pytest", files=(ONE,))
    with world.store.transaction() as tx:
        write_proof(tx, ChainProof(world.chain_id, TESTS_UNUSABLE, "stage 1", (stage,)), "local")
    runs = StoredRuns(world.store, world.chain_id, 1)
    runs.keep("after", 1, "key", a_run("fine"))
    runs.keep("before", 1, "key", a_run("it hung here", timed_out=True))
    found = proof_report(world.store, world.chain_id).stages[0]
    assert found.last_lines == ("it hung here",)
    assert [(run.side, run.timed_out) for run in found.runs] == [("before", True), ("after", False)]


@pytest.mark.parametrize(
    ("classes", "files", "broken"),
    [
        (ClassifiedTests(p2p=(f"{ONE}::a",)), (ONE,), []),
        (ClassifiedTests(failing=(f"{ONE}::a",)), (ONE,), [f"{ONE}::a"]),
        (ClassifiedTests(missing=(f"{ONE}::a",)), (ONE,), [f"{ONE}::a"]),
        (ClassifiedTests(), (TWO,), []),
        (ClassifiedTests(flaky=(f"{ONE}::a",)), (ONE,), []),
    ],
)
def test_tests_of_earlier_stages_are_broken_as_the_proof_has_it(
    classes: ClassifiedTests, files: tuple[str, ...], broken: list[str]
) -> None:
    first = StageProof(1, PROVED, runner="pytest", files=(ONE,), classes=ClassifiedTests(f2p=(f"{ONE}::a",)))
    second = StageProof(2, EARLIER_BROKEN, runner="pytest", files=files, classes=classes)
    assert earlier_broken(second, [first]) == broken


def test_of_a_chain_that_was_not_validated_one_line_says_how_to(
    world: StageWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.rows(Validation, "outcome") == []
    assert run(["environments", "show", world.chain_id[:4]]) == 2
    assert f"`prchain environments validate --chain {world.chain_id}`" in capsys.readouterr().err
    assert run(["environments", "show", "zz"]) == 2
