"""The study of recipes for training data: whose samples, what they hold, and what was tried for them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prchain.cli import run
from sql.tables import CurationCandidate, GraphRow, Trajectory, TrajectoryStage, Verdict
from tests.trajectories.curationworld import curation_world
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.draw import drawn
from trajectories.studies.curation.recipes import HOUR, RecipeLine, recipe_attempts, recipe_lines


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as samples:
        yield samples


def working(steps: int, tokens: int | None = 10, errors: int = 0, failed: int = 0) -> Talk:
    """So many steps, of which the first ones meet a tool error, the next ones a failed command, and a last one that
    submits."""
    talk = Talk().system().query(1)
    for number in range(steps - 1):
        talk.turn("", ("bash", {"command": f"cat {number}"}), tokens_out=tokens)
        code = {"exit_code": int(errors <= number < errors + failed)}
        talk.observation("no", error="no_match" if number < errors else None, details={} if number < errors else code)
    return talk.turn("Done.", ("submit", {}), tokens_out=tokens).observation("Submitted.")


def add_tried(
    world: SampleWorld, name: str, chain: str, talk: Talk, *, tests: str | None = "passed", **fields: Any
) -> None:
    """A trajectory of a chain of one stage, with what its tests said."""
    parent, repository = fields.pop("parent_id", None), fields.pop("repository", ("shop", "till"))
    world.chain(chain, length=1, repository=repository)
    world.trajectory(name, chain, talk, **fields)
    change_rows(world, Verdict, "trajectory_id", name, tests=tests)
    if parent is not None:
        change_rows(world, Trajectory, "id", name, parent_id=parent, parent_step=1)


def change_rows(world: SampleWorld, table: Any, column: str, name: str, **values: Any) -> None:
    with world.store.transaction() as tx:
        tx.connection.execute(table.__table__.update().where(table.__table__.c[column] == name).values(**values))


def lines_of(world: Any, **how: Any) -> dict[str, RecipeLine]:
    choice = {name: how.pop(name) for name in ("repository", "model") if name in how}
    with world.store.reading() as tx:
        return {line.recipe: line for line in recipe_lines(tx, recipe_attempts(tx, **choice), **how)}


def add_all(world: SampleWorld) -> None:
    """Two chains: the plain rollouts of the first pass every time, those of the second at the second try."""
    add_tried(world, "p0", "chain1", working(5, errors=2))
    add_tried(world, "p1", "chain1", working(3), sample=1)
    add_tried(world, "q0", "chain2", working(9), tests="f2p_failed", outcome="rejected", accepted=0)
    add_tried(world, "q1", "chain2", working(4), sample=1)
    for number, chain in enumerate(("chain1", "chain2")):
        add_tried(world, f"c{number}", chain, working(2 + number), scaffold="curated", usd=2.0)


def test_each_recipe_has_its_samples_and_pays_for_all_that_was_tried(world: SampleWorld) -> None:
    add_all(world)
    lines = lines_of(world)
    assert {name: (line.attempts, line.chains, line.samples, line.steps) for name, line in lines.items()} == {
        "test_pass": (2, 2, 1, 5),
        "error_masked": (2, 2, 1, 5),
        "curated": (2, 2, 2, 5),
        "size_matched": (2, 2, 1, lines["size_matched"].steps),
        "compute_matched": (4, 2, 2, 3 + 4),
    }
    assert {name: line.usd for name, line in lines.items()} == {
        "test_pass": 1.0,
        "error_masked": 1.0,
        "curated": 4.0,
        "size_matched": 4.0,
        "compute_matched": 2.0,
    }


def test_tool_errors_and_failed_commands_are_masked_in_the_same_samples(world: SampleWorld) -> None:
    add_tried(world, "p0", "chain1", working(6, errors=2, failed=1))
    lines = lines_of(world)
    plain, masked = lines["test_pass"], lines["error_masked"]
    assert (plain.tokens, masked.tokens) == (60, 60)
    assert (plain.trained_steps, plain.trained_tokens) == (6, 60)
    assert (masked.trained_steps, masked.trained_tokens) == (3, 30)


def test_size_matched_samples_are_those_that_an_export_draws(world: SampleWorld) -> None:
    add_all(world)
    for seed in range(4):
        (name,) = drawn(("c0", "c1"), 1, seed)
        assert lines_of(world, seed=seed)["size_matched"].steps == {"c0": 2, "c1": 3}[name]


def test_more_passes_make_rejection_sampling_larger_and_dearer(world: SampleWorld) -> None:
    add_all(world)
    line = lines_of(world, passes=2)["test_pass"]
    assert (line.attempts, line.samples, line.usd) == (4, 3, 2.0)
    assert lines_of(world, passes=2)["size_matched"].samples == 2, "there are no more"


def test_what_no_test_passed_what_was_disclosed_and_branches_are_no_samples(world: SampleWorld) -> None:
    add_tried(world, "p0", "chain1", working(3), tests=None)
    add_tried(world, "d0", "chain1", working(3), scaffold="disclosed")
    add_tried(world, "b0", "chain1", working(3), parent_id="p0")
    add_tried(world, "g0", "chain1", working(3), observers=["prm:D"])
    line = lines_of(world)["compute_matched"]
    assert (line.attempts, line.samples) == (1, 0)
    with world.store.reading() as tx:
        assert recipe_attempts(tx).guided == 1, "a rollout that an observer guided is told, and of no recipe"


def test_a_sum_of_which_a_part_is_not_known_is_not_known(world: SampleWorld) -> None:
    add_tried(world, "p0", "chain1", working(3, tokens=None), usd=None)
    line = lines_of(world)["test_pass"]
    assert (line.samples, line.tokens, line.trained_tokens, line.usd) == (1, None, None, None)


def test_pools_are_audited_for_chains_without_a_sample_limits_and_redundant_views(world: SampleWorld) -> None:
    add_tried(world, "p0", "chain1", working(3))
    add_tried(world, "q0", "chain2", working(3), tests="f2p_failed", outcome="rejected", accepted=0)
    add_tried(world, "r0", "chain3", working(3))
    change_rows(world, TrajectoryStage, "trajectory_id", "p0", endings=["step_limit"])
    change_rows(world, TrajectoryStage, "trajectory_id", "r0", endings=["step_limit", "submitted"])
    line = lines_of(world)["test_pass"]
    assert (line.without, line.at_limit, line.samples) == (1, 1, 2)
    again = Talk().system().query(1)
    for number in range(4):
        again.turn("", ("bash", {"command": f"cat {'a' if number else 'b'}.py"}), tokens_out=1)
        again.observation("x = 1", details={"exit_code": 0})
    add_tried(world, "s0", "chain4", again.turn("", ("submit", {}), tokens_out=1).observation("Submitted."))
    assert lines_of(world)["test_pass"].redundant == 2 / 8
    assert lines_of(world, repository="no/body")["test_pass"].redundant is None


def test_repository_and_model_choose(world: SampleWorld) -> None:
    add_all(world)
    add_tried(world, "r0", "chain3", working(3), model="agent-2", repository=("tea", "pot"))
    assert lines_of(world, repository="Tea/Pot")["test_pass"].attempts == 1
    assert lines_of(world, model="agent-2")["compute_matched"].attempts == 1
    assert lines_of(world, repository="no/body")["curated"].attempts == 0


def test_curation_pays_for_its_graphs_and_for_candidates_that_were_not_chosen(tmp_path: Path) -> None:
    with curation_world(tmp_path) as made:
        name = made.curate()
        line = lines_of(made)["curated"]
        [(graph_usd, graph_seconds)] = made.rows(GraphRow, "usd", "seconds")
        [(usd,)] = made.rows(Trajectory, "usd", id=name)
        seconds = [spent for table in (CurationCandidate, Verdict) for (spent,) in made.rows(table, "seconds")]
    assert (line.attempts, line.samples) == (1, 1)
    assert line.usd == pytest.approx(usd + graph_usd) and graph_usd > 0
    assert line.hours * HOUR == pytest.approx(sum(seconds) + graph_seconds)


def test_the_command_prints_a_table_and_writes_files(
    world: SampleWorld, tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_all(world)
    add_tried(world, "j0", "chain1", working(30), tests="f2p_failed", sample=2)
    command = ["curate", "study", "baselines", "--db", database_url]
    assert run([*command, "--out", str(tmp_path / "study")]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    table = {words[0]: words[1:] for line in out.splitlines()[1:6] if (words := line.split())}
    assert re.search(r"^test-pass +1 of 2 +0 of 1 +0\.0%$", out, re.M)
    assert table["compute-matched"][:6] == ["5", "2", "7", "7", "70", "2.50"]
    assert "1 kept trajectory without passed tests" in out
    written = json.loads((tmp_path / "study" / "baselines.json").read_text())
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == written
    assert written["recipes"]["test_pass"]["samples"] == 1
    found = list(csv.DictReader((tmp_path / "study" / "baselines.csv").read_text().splitlines()))
    assert [row["recipe"] for row in found] == list(written["recipes"])
    for name in ("samples", "hours"):
        ElementTree.parse(tmp_path / "study" / f"baselines-{name}.svg")


def test_a_database_without_trajectories_has_recipes_of_nothing(
    world: SampleWorld, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["curate", "study", "baselines", "--db", database_url]) == 0
    assert "test-pass" in capsys.readouterr().out
    assert {line.samples for line in lines_of(world).values()} == {0}
