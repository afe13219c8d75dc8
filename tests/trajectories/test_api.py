"""The Python API to a database, on the demo's database."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import prchain.api
from prchain.core.errors import NotARepository, SettingsError, StoreCorrupt, StoreTooOld, StoreUnavailable, UsageError
from prchain.demo.library import REPOSITORY
from tests.trajectories.demoworld import CITED, UNCITED, Ran

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(finished_demo: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo's folder, as the current folder."""
    copy = finished_demo.copied(tmp_path / "demo")
    monkeypatch.chdir(copy)
    return copy


def test_the_example_of_the_docs_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.M | re.S)
    exec(compile(example, "docs/api.md", "exec"), {})
    output = capsys.readouterr().out
    assert f"{REPOSITORY} 13 landed of 14" in output
    assert "#2 > #5 > #8 ready" in output
    assert "hidden tests: [6, 2, 1]" in output
    assert len(re.findall(r"turns under loss: \d+ words$", output, re.M)) == 3


def test_repositories_and_chains_are_plain_values_that_do_not_change(folder: Path) -> None:
    with prchain.api.open("prchain.db") as database:
        (repository,) = database.repositories()
        chains = list(database.chains(repository=REPOSITORY.upper()))
        assert list(database.chains(strategy="single")) == []
        with pytest.raises(UsageError, match="nobody/nothing has not been mined"):
            list(database.chains(repository="nobody/nothing"))
    assert {tuple(stage.number for stage in chain.stages) for chain in chains} == CITED | UNCITED
    assert [chain.id for chain in chains] == sorted(chain.id for chain in chains)
    for chain in chains:
        assert (chain.repository, chain.task) == (REPOSITORY, "ready")
        assert [stage.position for stage in chain.stages] == [*range(1, len(chain.stages) + 1)]
        assert chain.stages[0].relation is None and chain.stages[1].confidence
    with pytest.raises(FrozenInstanceError):
        repository.name = "x/y"  # type: ignore[misc]


def test_tasks_are_those_that_are_exported(folder: Path) -> None:
    with prchain.api.open(f"sqlite:///{folder}/prchain.db") as database:
        tasks = list(database.tasks())
        assert len(tasks) == 4
        assert all(task.overview and all(stage.query and stage.source_patch for stage in task.stages) for task in tasks)
        shutil.rmtree(folder / "measures")
        with pytest.raises(NotARepository, match="mine it again"):
            list(database.tasks())


def test_proofs_and_trajectories_tell_tests_and_verdicts(folder: Path) -> None:
    with prchain.api.open("prchain.db") as database:
        (proof,) = (one for one in database.proofs(repository=REPOSITORY) if one.chain.startswith("2cff"))
        accepted = list(database.trajectories(outcomes=["accepted"], repository=REPOSITORY))
        tasks = {task.chain_id: task for task in database.tasks(proved=True)}
        sample = next(database.samples())
        with pytest.raises(UsageError):
            list(database.trajectories(outcomes=["acepted"]))
        with pytest.raises(UsageError):
            list(database.proofs(repository="nobody/nothing"))
    assert (proof.outcome, [stage.number for stage in proof.stages]) == ("proved", [2, 5, 8])
    assert [(len(stage.f2p), len(stage.p2p)) for stage in proof.stages] == [(6, 0), (2, 6), (1, 8)]
    assert {stage.worth for stage in proof.stages} == {"not_measured"}
    tests = [stage.tests for stage in tasks[proof.chain].stages]
    assert [one and one.f2p for one in tests] == [stage.f2p for stage in proof.stages]
    assert accepted and all(one.outcome == "accepted" and one.verdicts for one in accepted)
    mended = next(one for one in accepted if one.chain == proof.chain and one.scaffold == "react")
    assert [(verdict.position, verdict.attempt, verdict.accepted) for verdict in mended.verdicts] == [
        (1, 1, True), (2, 1, False), (2, 2, True), (3, 1, True),
    ]  # fmt: skip
    line = prchain.api.messages(sample)
    assert len(line["messages"]) == len(sample.turns) and line["tools"]


def test_samples_are_those_that_are_exported_with_what_is_under_loss(folder: Path, finished_demo: Ran) -> None:
    with prchain.api.open() as database:  # of the demo's own prchain.toml
        samples = list(database.samples())
        with pytest.raises(UsageError, match="acepted"):
            list(database.samples(outcomes=["acepted"]))
    written = [[message["role"] for message in row["messages"]] for row in finished_demo.samples]
    assert [[turn.role for turn in sample.turns] for sample in samples] == written
    for sample in samples:
        assert 0 < sample.trained < len(sample.turns)
        assert sample.facts["repository"] == REPOSITORY


def test_reading_changes_nothing_and_neither_does_opening_what_is_no_current_database(folder: Path) -> None:
    before = (folder / "prchain.db").read_bytes()
    with prchain.api.open("prchain.db") as database:
        list(database.samples())
    assert (folder / "prchain.db").read_bytes() == before
    with pytest.raises(StoreUnavailable, match=r"there is no database at nowhere/x\.db"):
        prchain.api.open("nowhere/x.db")
    with pytest.raises(SettingsError):
        prchain.api.open("mysql://host/x")
    for name, table in {"other.db": "CREATE TABLE other (x)", "empty.db": ""}.items():
        sqlite3.connect(name).execute(table).connection.commit()
    with pytest.raises(StoreCorrupt, match="another program"):
        prchain.api.open("other.db")
    with pytest.raises(StoreTooOld, match="brings it up to date"):
        prchain.api.open("empty.db")
    assert not (folder / "nowhere").exists()


def test_importing_it_loads_no_stage(tmp_path: Path) -> None:
    code = "import json, sys, prchain.api; print(json.dumps([n.partition('.')[0] for n in sys.modules]))"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"sqlalchemy", "pydantic", "sql", "chains", "trajectories"} & set(json.loads(result.stdout))
