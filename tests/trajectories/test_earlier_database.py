"""A database from before migration 0005: it opens, lists, exports, its rollouts resume, and ids stay.

``data/database_0004.sql`` is a dump of one, made by that code in the world of `tests.trajectories.rolloutworld`: a
chain with its task and its proof, sample 0 rolled out, and sample 1 killed in stage 2.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from prchain.cli import run as run_command
from prchain.core.llm.prompts import load_prompt
from sql.tables import LlmCall, Trajectory, TrajectoryMessage
from tests.trajectories.rolloutworld import PolicyModel, RolloutWorld, rollout_world
from tests.trajectories.test_rollout import suited
from trajectories.agents.tools.toolset import toolset
from trajectories.rollouts.rollout import roll

DUMP = Path(__file__).with_name("data") / "database_0004.sql"

OVER, HALF_DONE = "79d217210b82e4d2", "119aaa85b51d3f92"
"""Ids that the code of before gave to samples 0 and 1."""

PROMPTS = {
    "system_full": "trajectories.agents.scaffolds",
    "query": "trajectories.agents.scaffolds",
    "comment": "trajectories.agents.scaffolds",
    "judge": "trajectories.verdicts",
    "comment_again": "trajectories.verdicts",
}
"""Where the prompts stand that the dump names: it has those of today, and today's tools, so that an edit of one fails
nothing here."""


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RolloutWorld]:
    """The world with the earlier database, and the trees that agents left."""
    monkeypatch.chdir(tmp_path)
    with rollout_world(tmp_path, [(1, 2, 3)]) as now:
        roll(now.context(), now.chains[0], 7)  # the same work, so the same trees
        database = Path(now.database)
    for path in tmp_path.glob("prchain.db*"):
        path.unlink()
    text = DUMP.read_text(encoding="utf-8")
    for name, package in PROMPTS.items():
        text = text.replace(f"@{name.upper()}@", load_prompt(package, name).hash)
    tools = json.dumps(toolset("full").schemas).replace("'", "''")
    text = text.replace("@TOOLS@", tools)
    with sqlite3.connect(database) as connection:
        connection.executescript(text.replace("@TILL@", str(tmp_path / "till.git")).replace("@FOLDER@", str(tmp_path)))
    connection.close()
    from sql.store import Store

    store = Store.open(str(database))
    yield RolloutWorld(tmp_path, store, now.world, now.chains, now.bases, now.landed)
    store.close()


def test_it_opens_and_its_rows_are_as_they_were(earlier: RolloutWorld) -> None:
    rows = earlier.rows(Trajectory, "id", "sample", "outcome", "decided_by")
    assert rows == [(HALF_DONE, 1, "running", None), (OVER, 0, "accepted", None)]


def test_it_is_listed_shown_counted_and_exported(
    earlier: RolloutWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    db = ["--db", earlier.database]
    assert run_command(["rollouts", "list", *db, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["id"], row["outcome"]) for row in rows} >= {(OVER, "accepted")} and len(rows) == 2
    assert run_command(["rollouts", "show", OVER, *db, "--messages"]) == 0
    assert "stage 3: accepted" in capsys.readouterr().out
    assert run_command(["stats", *db]) == 0
    assert run_command(["export", *db, "--format", "openai", "--out", "x.jsonl"]) == 0
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 1


def test_what_is_over_is_not_rolled_out_again_and_what_is_half_done_goes_on(earlier: RolloutWorld) -> None:
    model = PolicyModel()
    run = earlier.run(earlier.context(model, overrides=suited(earlier)), samples=2)
    assert [unit.sample for unit in run.pending().units] == [1] and run.anew(run.pending()).samples == 0
    before = earlier.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=HALF_DONE)
    call_count = len(earlier.rows(LlmCall, "id"))
    assert run.run().outcomes == {"accepted": 1}
    assert earlier.rows(TrajectoryMessage, "ordinal", "content", trajectory_id=HALF_DONE)[: len(before)] == before
    assert 0 < model.count("agent") < 11 and len(earlier.rows(LlmCall, "id")) == call_count + len(model.asked)
    assert earlier.rows(Trajectory, "id", "outcome") == [(HALF_DONE, "accepted"), (OVER, "accepted")]
    assert run.run().outcomes == {}
