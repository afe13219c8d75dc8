"""Rollouts over imported tasks: what the agent reads, what predictions are called, and which exports take them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from chains.imports.importing import Importer
from chains.imports.reading import read_instances
from sql.tables import Trajectory
from tests.chains.import_rows import swe_gym, verified
from tests.miner.gitworld import git
from tests.trajectories.rolloutworld import RolloutWorld, rollout_world
from trajectories.export.card import Card, card_of
from trajectories.export.card_text import markdown
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.selection import SampleSelection
from trajectories.export.tasks.predictions import predictions
from trajectories.model import EntryKind
from trajectories.outcomes import ACCEPTED, FINAL
from trajectories.rows import read_entries

QUERY = "Parts lack a value.\n\n  <task>As told.</task>\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolloutWorld]:
    """Two imported tasks, one of a benchmark, that were rolled out."""
    tmp_path = tmp_path_factory.mktemp("imported")
    with rollout_world(tmp_path, chains=[(2, 3)]) as world:
        path = world.world.path
        rows: list[dict[str, Any]] = []
        for number, make in ((2, swe_gym), (3, verified)):
            base, landed = world.world.sha(world.bases[number]), world.world.sha(world.landed[number])
            patch = git(path, "diff", base, landed)
            ends = {"base_commit": base, "patch": patch, "test_patch": "", "problem_statement": QUERY}
            rows.append(make(instance_id=f"shop__till-{number}", **ends))
        importer = Importer(world.store, world.settings().data_dir, world.settings().mirrors_dir)
        for place, row in enumerate(rows):
            (tmp_path / f"set{place}.jsonl").write_text(json.dumps(row))
            found = read_instances(tmp_path / f"set{place}.jsonl", source=("SWE-Gym", "set1")[place])
            report = importer.run(found, lambda row: None)
            assert (report.imported, report.benchmark) == (1, place)
        assert world.run(world.context(), strategy="imported").run(1).counts == {ACCEPTED: 2}
        yield world


def test_an_imported_task_is_rolled_out_as_any_other(world: RolloutWorld) -> None:
    with world.store.reading() as tx:
        entries = [read_entries(tx, name) for (name,) in list(tx.rows(Trajectory, "id"))]
        found = predictions(tx, world.settings().mirrors_dir, world.settings().data_dir, outcomes=FINAL)
        named = {row["instance_id"] for row in found}
    for of_one in entries:
        (query,) = (entry.content for entry in of_one if entry.kind is EntryKind.QUERY)
        assert f"<task>\n{QUERY}" in query and "overview" not in query
    assert named == {"shop__till-2", "shop__till-3"}


def test_what_measures_models_is_in_no_export_of_samples_unless_asked_for(world: RolloutWorld) -> None:
    for asked, expected in ((False, {"SWE-Gym"}), (True, {"SWE-Gym", "set1"})):
        options = ExportOptions(benchmarks=asked)
        form = chosen_format("slime", options)
        with world.store.reading() as tx:
            selection = SampleSelection(tx, form, options)
            left_out: Counter[str] = Counter()
            card = Card()
            for chosen in selection.samples(left_out):
                for one in chosen:
                    card.add(*one)
            whole = card_of(tx, card, form="slime", files=[], options=options, counter=selection.counter, overlap=None)
        assert left_out["benchmark"] == (0 if asked else 1)
        assert {it["source"] for it in whole["imports"]} == expected
        assert [it["benchmark"] for it in whole["imports"]] == [False, True][: len(expected)]
        assert "| SWE-Gym |" in markdown(whole)
