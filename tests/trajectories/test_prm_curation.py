"""A process reward model inside curation: asked in each seed and variant, under their subjects of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prchain.core.llm.model import Request
from sql.tables import LlmCall, PrmWindow, Trajectory, TrajectoryMessage
from tests.trajectories.curationworld import CurationModel, CurationWorld, curation_world, said
from tests.trajectories.prmmodels import prm_reply
from trajectories.curation.windows.shown import observed
from trajectories.model import Entry, EntryKind
from trajectories.studies.guidance.labels import write_labels

PRM = "prm:every=2,window=4"

WINDOWS = {"window": 4, "stride": 3}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CurationWorld]:
    with curation_world(tmp_path) as made:
        yield made


def guided(request: Request, messages: list[dict[str, Any]]) -> Any:
    return said(prm_reply("Go on with the part.", evidence="ls", status="Needs correction"))


def curated(world: CurationWorld, *, observers: tuple[str, ...] = (PRM,), **how: Any) -> str:
    return world.curate(CurationModel({"prm": guided}), windows=WINDOWS, observers=observers, **how)


def test_each_candidate_is_asked_under_its_own_subject_and_paid_once(world: CurationWorld) -> None:
    name = curated(world)
    calls = world.rows(LlmCall, "subject", "request_hash", purpose="prm")
    assert calls and all(subject.count("/") == 3 and subject.startswith(f"{name}/1/") for subject, _ in calls)
    assert max(Counter(calls).values()) == 1
    candidates = {tuple(map(int, subject.split("/")[2:])) for subject, _ in calls}
    assert {number for _, number in candidates} >= {0, 1, 2}, "seeds and variants"
    windows = world.rows(PrmWindow, "subject", "last_step", trajectory_id=name)
    assert sorted(subject for subject, _ in windows) == sorted(subject for subject, _ in calls)
    ((usd,),) = world.rows(Trajectory, "usd", id=name)
    spent = sum(row[0] for row in world.rows(LlmCall, "usd", "subject") if row[1].startswith(f"{name}/"))
    assert usd == pytest.approx(spent, abs=1e-9)


def test_words_that_are_committed_name_the_window_that_they_come_from(world: CurationWorld) -> None:
    name = curated(world)
    guidance = world.rows(TrajectoryMessage, "step", "content", "details", trajectory_id=name, kind="guidance")
    assert guidance
    windows = dict(world.rows(PrmWindow, "id", "last_step", trajectory_id=name))
    for step, content, details in guidance:
        assert "Go on with the part." in content and windows[details["window"]] == step


def test_it_counts_steps_of_the_candidate_s_own_prefix(world: CurationWorld) -> None:
    name = curated(world)
    for first, last, subject in world.rows(PrmWindow, "first_step", "last_step", "subject", trajectory_id=name):
        assert last % 2 == 0 and first == max(1, last - 3), subject


def test_a_run_without_one_is_what_it_was_and_another_trajectory(world: CurationWorld) -> None:
    name, plain = curated(world), curated(world, observers=())
    assert name != plain
    assert world.rows(PrmWindow, "id", trajectory_id=plain) == []
    assert not [row for row in world.rows(LlmCall, "subject", purpose="prm") if row[0].startswith(plain)]


def test_only_windows_of_committed_steps_become_labels(world: CurationWorld, tmp_path: Path) -> None:
    name = curated(world)
    counts = write_labels(world.store, tmp_path / "windows.jsonl")
    windows = world.rows(PrmWindow, "id", trajectory_id=name)
    assert 0 < counts.rows < len(windows)
    assert counts.rows + sum(counts.left_out.values()) == len(windows)


def test_its_words_are_no_observation() -> None:
    query = Entry(0, 1, 1, 0, EntryKind.QUERY, "user", "Mend it.")
    words = Entry(1, 1, 1, 0, EntryKind.GUIDANCE, "user", "Look at `src/secret_helper.py` and call `secret_helper()`.")
    assert (
        vars(observed("Mend it.", [query, words], ("/testbed",))).keys()
        == vars(observed("Mend it.", [query], ())).keys()
    )
    shown = observed("Mend it.", [query, words], ("/testbed",))
    assert not shown.knows("secret_helper")


def test_killed_in_the_middle_the_rows_are_those_of_a_calm_run(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    for folder in ("calm", "rough"):
        (tmp_path / folder).mkdir()
    with curation_world(tmp_path / "calm") as calm, curation_world(tmp_path / "rough") as rough:
        name = curated(calm)
        killed = count = 0

        def kill(request: Request) -> None:
            """Kill a run at the second new question that it asks the process reward model."""
            nonlocal count
            count += request.purpose == "prm"
            if count == 2:
                raise Killed

        while killed < 20:
            count = 0
            try:
                rough.curate(CurationModel({"prm": guided}, kill), windows=WINDOWS, observers=(PRM,))
                break
            except Killed:
                killed += 1
        assert killed > 3
        columns = [it.name for it in PrmWindow.__table__.columns if it.name != "seconds"]
        assert rough.rows(PrmWindow, *columns, trajectory_id=name) == calm.rows(PrmWindow, *columns, trajectory_id=name)
        assert rough.whole(name) == calm.whole(name)
