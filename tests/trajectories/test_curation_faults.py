"""Curated runs when models, sandboxes and the database fail, and with a budget that is too small."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import (
    ContextTooLong,
    DiskLimit,
    EndpointUnreachable,
    EngineUnavailable,
    RateLimited,
    SandboxLost,
)
from prchain.core.llm.model import Reply, Request
from sql.tables import CurationCandidate, LlmCall, TrajectoryMessage
from tests.trajectories.curationworld import CurationModel, CurationWorld, curation_world, said
from trajectories.curation.windows.options import CURATOR, ESTABLISH, GROUND

pytestmark = pytest.mark.drawn(6, "faults of curated runs")
"""All of them are one table."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CurationWorld]:
    with curation_world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The id and the rows of a run in which nothing fails."""
    with curation_world(tmp_path_factory.mktemp("calm")) as made:
        name = made.curate()
        return name, made.whole(name)


def once(error: Exception, when: Callable[[Request], bool]) -> Callable[[Request], None]:
    """Raises the error at the first request of which `when` holds."""
    left = [error]

    def before(request: Request) -> None:
        if left and when(request):
            raise left.pop()

    return before


class TestModels:
    @pytest.mark.parametrize("purpose", ["agent", CURATOR, ESTABLISH, GROUND])
    @pytest.mark.parametrize("error", [EndpointUnreachable("gone"), RateLimited("slow down")])
    def test_an_endpoint_that_fails_once_changes_no_row(
        self, world: CurationWorld, calm: tuple[str, dict[str, Any]], purpose: str, error: Exception
    ) -> None:
        name = world.curate(CurationModel(before=once(error, lambda request: request.purpose == purpose)))
        assert world.outcome(name) == ("accepted", None)
        assert (name, world.whole(name)) == calm

    def test_a_verifier_without_a_usable_answer_establishes_nothing_and_leaves_a_note(
        self, world: CurationWorld
    ) -> None:
        name = world.curate(CurationModel({ESTABLISH: lambda request, messages: said("I cannot say.")}))
        assert world.outcome(name)[0] == "accepted"
        rows = world.candidates(name)
        assert all(row["effectiveness"] == 0 for row in rows)
        assert "the verifier gave no answer: bad_reply" in str(rows[0]["notes"])

    def test_a_quote_that_the_step_does_not_show_establishes_nothing(self, world: CurationWorld) -> None:
        def invents(request: Request, messages: list[dict[str, Any]]) -> Reply:
            return said(
                json.dumps(
                    {"nodes": [{"id": "listing", "established": True, "evidence": "no such line", "reason": ""}]}
                )
            )

        name = world.curate(CurationModel({ESTABLISH: invents}))
        rows = world.candidates(name)
        assert all(row["effectiveness"] == 0 for row in rows)
        assert "the evidence of listing is not what the step shows" in str(rows[0]["notes"])

    def test_a_judge_without_a_verdict_grounds_nothing(self, world: CurationWorld) -> None:
        name = world.curate(CurationModel({GROUND: lambda request, messages: said("Hm.")}))
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert {row["outcome"] for row in variants} == {"ungrounded"}
        assert all("judge: no verdict: bad_reply" in row["reason"] for row in variants)

    def test_a_curator_that_refuses_drops_the_variant(self, world: CurationWorld) -> None:
        refusal = Reply("", "fake", "content_filter", refusal="no")
        name = world.curate(CurationModel({CURATOR: lambda request, messages: refusal}))
        variants = [row for row in world.candidates(name) if row["place"] is not None]
        assert {row["outcome"] for row in variants} == {"malformed"}
        assert world.outcome(name)[0] == "accepted"

    def test_a_conversation_that_no_model_takes_ends_the_stage_unfinished(self, world: CurationWorld) -> None:
        def full(request: Request) -> None:
            if request.purpose == "agent" and len(request.messages) > 6:
                raise ContextTooLong("too long")

        name = world.curate(CurationModel(before=full))
        outcome, reason = world.outcome(name)
        assert outcome == "unfinished"
        assert "the endpoint does not take the next prompt" in str(reason)
        assert len(world.rows(TrajectoryMessage, "ordinal", trajectory_id=name, kind="turn")) == 3

    def test_a_faulty_agent_ends_the_stage_unfinished(self, world: CurationWorld) -> None:
        name = world.curate(CurationModel({"agent": lambda request, messages: said("I only talk.")}))
        outcome, reason = world.outcome(name)
        assert outcome == "unfinished"
        assert "nothing could be run of 3 turns in a row" in str(reason)


class TestSandboxes:
    @pytest.mark.parametrize("what", ["branch", "exec", "snapshot", "restore", "forget"])
    @pytest.mark.parametrize("error", [SandboxLost("gone"), EngineUnavailable("no engine")])
    def test_one_that_fails_once_changes_no_row(
        self, world: CurationWorld, calm: tuple[str, dict[str, Any]], what: str, error: Exception
    ) -> None:
        left = {"count": 3}

        def before(done: str, words: str) -> None:
            if done == what:
                left["count"] -= 1
                if left["count"] == 0:
                    raise error

        name = world.curate(before=before)
        assert world.outcome(name) == ("accepted", None)
        assert (name, world.whole(name)) == calm

    def test_a_candidate_that_ends_its_sandbox_is_not_committed_where_another_goes_on(
        self, world: CurationWorld
    ) -> None:
        def before(done: str, words: str) -> None:
            if done == "exec" and "cat pyproject.toml" in words:
                raise DiskLimit("the disk is full")

        name = world.curate(before=before)
        assert world.outcome(name) == ("accepted", None)
        first = {row["number"]: row for row in world.candidates(name) if row["window_number"] == 1}
        assert first[1]["outcome"] == "disk_limit"
        assert world.windows(name)[0]["chosen"] != 1

    def test_a_step_that_kills_every_copy_ends_its_candidate(self, world: CurationWorld) -> None:
        def before(done: str, words: str) -> None:
            if done == "exec" and "cat pyproject.toml" in words:
                raise SandboxLost("it has ended")

        name = world.curate(before=before)
        assert world.outcome(name) == ("accepted", None)
        outcomes = [row["outcome"] for row in world.candidates(name) if row["number"] == 1]
        assert outcomes[0] == "sandbox_killed"


class TestBudgets:
    def test_one_that_is_too_small_stops_the_run_and_the_next_one_goes_on(self, world: CurationWorld) -> None:
        run = world.run(budget=0.008)
        report = run.run(1, run.curation().rollouts)
        assert not report.done
        assert run.context.gateway.spending().usd <= 0.008
        made = len(world.rows(CurationCandidate, "number"))
        name = world.curate(run="next")
        assert world.outcome(name) == ("accepted", None)
        assert made < len(world.rows(CurationCandidate, "number"))
        keys = world.rows(LlmCall, "purpose", "subject", "request_hash", "ordinal", state="stored")
        assert len(keys) == len(set(keys))

    def test_it_holds_with_eight_workers(self, tmp_path: Path) -> None:
        with curation_world(tmp_path, tuple((number,) for number in (1, 2, 3, 4))) as world:
            budget = 0.02
            run = world.run(budget=budget, choice={"samples": 2})
            run.run(8, run.curation().rollouts)
            assert 0 < run.context.gateway.spending().usd <= budget


def test_no_secret_is_stored(world: CurationWorld) -> None:
    def tells(request: Request, messages: list[dict[str, Any]]) -> Reply:
        raise EndpointUnreachable("Bearer sk-very-secret was refused")

    run = world.run(CurationModel({"agent": tells}), secrets=("sk-very-secret",))
    report = run.run(1, run.curation().rollouts)
    assert not report.done
    with world.store.reading() as tx:
        dump = "\n".join(
            str(tuple(row))
            for table in ("trajectories", "curation_candidates", "curation_windows")
            for row in tx.connection.exec_driver_sql(f"SELECT * FROM {table}")
        )
    assert "sk-very-secret" not in dump
