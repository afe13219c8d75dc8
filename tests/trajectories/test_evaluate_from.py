"""Predictions of others: which rows are read, and that our suites grade them as they grade an agent's tree."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from environments.backends import BACKENDS
from environments.graded_runs import Suite
from environments.images.provide import Provider
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from prchain.core.errors import EngineUnavailable, UsageError
from prchain.core.git.process import git_failure
from prchain.core.git.trees import TreeStore
from prchain.core.runs import RunResult
from sql.tables import GradedTree
from tests.miner.gitworld import git
from tests.trajectories.graphworld import GraphWorld
from tests.trajectories.rolloutworld import RolloutWorld, rollout_world
from trajectories.outcomes import INFRASTRUCTURE, TESTS_UNPROVED
from trajectories.studies.evaluation import cli
from trajectories.studies.evaluation.evaluation import evaluation
from trajectories.studies.evaluation.graded_runs import graded_runs, placed
from trajectories.studies.evaluation.grading import PATCH_EMPTY, PATCH_FAILED, PatchGrading, PatchUnit
from trajectories.studies.evaluation.predictions_of_others import Prediction, read_predictions
from trajectories.studies.evaluation.stored import instances_of

PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
GOOD = {"instance_id": "shop__till-1", "model_name_or_path": "theirs", "model_patch": PATCH}


def read(file: Path, content: str | bytes) -> tuple[list[Prediction], list[str]]:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    lines: list[str] = []
    return list(read_predictions(file, lines.append)), lines


# ---- rows

MALFORMED = {
    "nope": "character 1 ends what can be read as JSON",
    "[1]": "no object with columns",
    "{}": "instance_id is missing",
    json.dumps({**GOOD, "instance_id": "../../etc"}): "no name of an instance",
    json.dumps({**GOOD, "instance_id": 7}): "instance_id is a number",
    json.dumps({**GOOD, "model_name_or_path": " "}): "model_name_or_path is blank",
    json.dumps({**GOOD, "model_name_or_path": None}): "model_name_or_path is missing",
    json.dumps({**GOOD, "model_patch": ["x"]}): "model_patch is a list",
    json.dumps({**GOOD, "model_patch": "a\x00b"}): "U+0000",
    json.dumps({**GOOD, "model_patch": "\ud800"}): "U+D800",
    '{"instance_id": "shop__till-1", "model_name_or_path": "theirs"}': "model_patch is missing",
    '{"instance_id": ' + "[" * 100_000: "nested too deep",
}


def test_a_malformed_row_is_one_line_with_its_number_and_the_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    found, lines = read(file, "\n".join([json.dumps(GOOD), *MALFORMED, json.dumps(GOOD)]))
    assert [(it.sample, it.row) for it in found] == [(0, 1), (1, len(MALFORMED) + 2)]
    assert len(lines) == len(MALFORMED)
    for number, (line, expected) in enumerate(zip(lines, MALFORMED.values(), strict=True), 2):
        assert line.startswith(f"{file}, row {number}: ") and expected in line and "\n" not in line


def test_the_forms_that_the_harness_takes_are_read(tmp_path: Path) -> None:
    expected, _ = read(tmp_path / "p.jsonl", json.dumps(GOOD))
    as_list, _ = read(tmp_path / "list.json", json.dumps([GOOD], indent=1))
    alone, _ = read(tmp_path / "one.json", json.dumps(GOOD, indent=2))
    by_instance = {"shop__till-1": {"model_name_or_path": "theirs", "model_patch": PATCH}, "bad": 3}
    as_object, lines = read(tmp_path / "object.json", json.dumps(by_instance, indent=1))
    assert expected == alone == as_list == as_object == [Prediction("shop__till-1", "theirs", PATCH, 0, 1)]
    assert len(lines) == 1 and "row 2" in lines[0]
    for nothing in ("", " \n", None):
        (empty,), _ = read(tmp_path / "p.jsonl", json.dumps({**GOOD, "model_patch": nothing}))
        assert empty.patch == ""
    (ended,), _ = read(tmp_path / "p.jsonl", json.dumps({**GOOD, "model_patch": PATCH.rstrip("\n")}))
    assert ended.patch == PATCH


def test_a_file_that_is_none_of_predictions_is_refused(tmp_path: Path) -> None:
    for name in ("p.txt", "p.parquet"):
        with pytest.raises(UsageError):
            read(tmp_path / name, "x")
    with pytest.raises(UsageError, match="no file"):
        list(read_predictions(tmp_path / "none.jsonl", print))


@pytest.mark.parametrize("bad", [["--k", "x"], ["--predictions-out", "there"], ["--svg", "none/x.svg"]])
def test_options_that_cannot_be_are_found_before_anything_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    grades = MagicMock()
    monkeypatch.setattr("trajectories.studies.evaluation.graded.grade_file", grades)
    ended = CliRunner().invoke(cli.evaluate, ["--predictions-from", "p.jsonl", *bad])
    assert isinstance(ended.exception, UsageError) and not grades.called


# ---- grades


class PartSuite(Suite):
    """The test passes where the stage's file holds its value. `ran` keeps the trees that it was asked about."""

    def __init__(self, trees: Any, number: int, ran: list[str]) -> None:
        self._trees, self._number, self._ran = trees, number, ran

    def run(self, tree: str, expected: Collection[str], *, is_start: bool = False) -> TestRun:
        self._ran.append(tree)
        entry = self._trees.entries(tree).get(b"src/part_%d.py" % self._number)
        good = entry is not None and b"return %d" % self._number in self._trees.blobs([entry.blob])[0]
        return TestRun({"tests/test_parts.py::test_part": Status.passed if good else Status.failed}, "", 0.0, 0)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path_factory.mktemp("from"), chains=[(1, 2), (3, 4)]) as world:
        GraphWorld(world).prove(world.chains[0], {1: "proved", 2: "proved"})
        yield world


def grading(world: RolloutWorld, ran: list[str], *, down: bool = False) -> PatchGrading:
    settings, backend = world.settings(), BACKENDS["unsafe-local"]
    provider = Provider(settings, images=False)

    def suite(place: Any, stage: Any, patches: Any) -> PartSuite:
        if down:
            raise EngineUnavailable("the engine does not answer")
        return PartSuite(place.trees, stage.stage.number, ran)

    return PatchGrading(world.store, settings, backend, provider, make_suite=suite)


def reference(world: RolloutWorld, number: int) -> str:
    ends = (world.world.sha(names[number]) for names in (world.bases, world.landed))
    return git(world.world.path, "diff", *ends) + "\n"


def new_file(path: str, mode: str = "100644", text: str = "x") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"


@pytest.mark.parametrize(
    ("other", "asked"), [("nobody", False), ("3", False), ("theirs, position=1", False), ("theirs", True)]
)
def test_a_group_that_is_not_there_is_told_before_anything_is_graded(
    world: RolloutWorld, monkeypatch: pytest.MonkeyPatch, other: str, asked: bool
) -> None:
    with world.store.reading() as tx:
        name = next(iter(instances_of(tx, [world.chains[0]]).values())).published
    rows = [{**GOOD, "instance_id": name, "model_name_or_path": it} for it in ("a", "theirs")]
    file = world.folder / "theirs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setattr(PatchGrading, "run", grades := MagicMock(return_value=RunResult()))
    command = ["--db", str(world.store.url.database), "--predictions-from", str(file), "--compare", "a", other]
    ended = CliRunner().invoke(cli.evaluate, [*command, "--backend", "unsafe-local", "--unsafe-local"])
    assert grades.called is asked
    assert asked or (isinstance(ended.exception, UsageError) and "there are: a; theirs" in str(ended.exception)), ended


def test_a_patch_is_graded_on_its_base_once(world: RolloutWorld) -> None:
    chain, ran = world.chains[0], list[str]()
    units = [
        PatchUnit(chain, 1, reference(world, 1)),
        PatchUnit(chain, 1, reference(world, 1)),
        PatchUnit(chain, 2, reference(world, 2)),
        PatchUnit(chain, 2, new_file("src/part_2.py")),
        PatchUnit(chain, 1, ""),
    ]
    result = grading(world, ran).run(units)
    assert result.counts == {"f2p_failed": 1, PATCH_EMPTY: 1, "passed": 2}
    # What fails is run twice.
    assert len(ran) == 4 and len(world.rows(GradedTree, "tree")) == 3
    again = grading(world, ran).run(units)
    assert again.counts == result.counts and len(ran) == 4


HOSTILE = {
    "above": new_file("../../x"),
    "absolute": new_file("/etc/x"),
    "git": new_file(".git/hooks/pre-commit"),
    "modules": new_file(".gitmodules", "120000", "x"),
    "no patch": "Sure! Here is the patch you asked for.\n",
    "does not apply": PATCH,
    "wrong counts, which git calls corrupt": PATCH.replace("-1 +1", "-1,4 +1"),
    "a path like a failure": PATCH.replace("/x", "/missing: not found"),
    "garbage": "diff --git a/x b/x\nGIT binary patch\nliteral 5\nzzzzz\n",
    "bomb": "diff --git a/x b/x\nGIT binary patch\nliteral 99999999999\nAa\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_patch_that_git_does_not_take_fails_and_runs_nothing(world: RolloutWorld, name: str) -> None:
    ran: list[str] = []
    (ended,) = grading(world, ran).run([PatchUnit(world.chains[0], 1, HOSTILE[name])]).results
    assert (ended.outcome, ran) == (PATCH_FAILED, []) and ended.reason and "\n" not in ended.reason
    assert not list(world.folder.rglob("pre-commit"))


@pytest.mark.parametrize(("stderr", "status"), [("fatal: x: No space left on device\n", 128), ("", -9)])
def test_a_full_disk_and_a_killed_git_are_not_the_patch_s_fault(
    world: RolloutWorld, monkeypatch: pytest.MonkeyPatch, stderr: str, status: int
) -> None:
    cause = git_failure("apply", stderr, status)
    assert cause.name in INFRASTRUCTURE
    monkeypatch.setattr(TreeStore, "_call", MagicMock(side_effect=cause))
    with pytest.raises(type(cause)):
        grading(world, []).work_on(PatchUnit(world.chains[0], 1, new_file("src/full.py")), print)


def test_a_grade_from_a_run_that_a_machine_ended_is_not_stored(
    world: RolloutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(world.rows(GradedTree, "tree"))
    lost = TestRun({}, "", 0.0, None, infra="sandbox_lost")
    monkeypatch.setattr(PartSuite, "run", lambda *_, **__: lost)
    (ended,) = grading(world, []).run([PatchUnit(world.chains[0], 1, new_file("src/lost.py"))]).results
    assert ended.outcome == "sandbox_lost" and len(world.rows(GradedTree, "tree")) == before


def test_what_is_not_the_model_s_fault_stands_apart(world: RolloutWorld) -> None:
    (unproved,) = grading(world, []).run([PatchUnit(world.chains[1], 1, reference(world, 3))]).results
    assert unproved.outcome == TESTS_UNPROVED and "validate" in str(unproved.reason)
    other = new_file("src/other.py")
    (down,) = grading(world, [], down=True).run([PatchUnit(world.chains[0], 1, other)]).results
    assert down.outcome == EngineUnavailable("").name
    with world.store.reading() as tx:
        instances = instances_of(tx, world.chains)
    one, _, three, _ = (
        it.published for it in sorted(instances.values(), key=lambda it: (world.chains.index(it.key[:-2]), it.position))
    )
    predictions = [
        Prediction(one, "m", reference(world, 1), 0, 1),
        Prediction(one, "m", other, 1, 2),
        Prediction(three, "m", reference(world, 3), 0, 3),
        Prediction("nobody__x-1", "m", PATCH, 0, 4),
    ]
    found = placed(predictions, instances)
    graded = grading(world, []).run([found.units[0]])
    runs, report = graded_runs(found, instances, RunResult((*graded.results, down, unproved)), Path("p.jsonl"), 2)
    (group,) = evaluation(runs, steps=(10,))["groups"]
    assert (group["instances"], group["runs"], group["resolved"]) == (1, 1, 1)
    assert group["apart"] == {down.outcome: 1, TESTS_UNPROVED: 1}
    assert (group["steps"], group["at_steps"], group["usd"], group["tokens_in"]) == (None, {}, None, None)
    assert (report.predictions, report.bad, report.unknown, report.missing, report.done) == (4, 2, 1, {"m": 2}, False)
    assert report.outcomes == {"passed": 1, down.outcome: 1, TESTS_UNPROVED: 1}
