"""What happens to a run when rows change under it, another run begins, or the code has a defect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from chains.tasks.model import StageQuery, TaskDraft
from chains.tasks.rows import write_draft
from prchain.core.errors import EndpointUnreachable
from prchain.core.llm.model import Request
from sql.tables import Chain, Selection, Task, TaskStage
from tests.chains.taskworld import (
    CHAIN,
    OVERVIEW,
    FakeModel,
    TaskWorld,
    crowd,
    crowd_answer,
    failing,
    good_answer,
    mined,
    shop,
    stored,
)
from tests.prchain.secrets_table import DRAWN_TOKEN


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TaskWorld]:
    with mined(tmp_path, shop(tmp_path), [CHAIN]) as task_world:
        yield task_world


@pytest.fixture
def many(tmp_path: Path) -> Iterator[TaskWorld]:
    with mined(tmp_path, crowd(tmp_path, 20), [[number] for number in range(1, 21)]) as task_world:
        yield task_world


class TestAtOnce:
    """What happens to the rows while a run lasts."""

    @staticmethod
    def meanwhile(when: str, act: Callable[[], None], then: Any = None) -> FakeModel:
        """A model in whose first reply about a subject something else happens."""
        pending = [act]

        def answer(request: Request) -> Any:
            if request.subject == when and pending:
                pending.pop()()
                return then or crowd_answer(request)
            return crowd_answer(request)

        return FakeModel(answer)

    @pytest.mark.parametrize("how", ["deleted", "retired"])
    def test_a_chain_that_is_chosen_no_more_is_skipped_and_the_others_go_on(self, many: TaskWorld, how: str) -> None:
        gone = many.chains[4]

        def choose_anew() -> None:
            with many.store.transaction() as tx:
                if how == "deleted":
                    tx.delete(Chain, id=gone)
                else:
                    query = update(Selection).where(Selection.chain_id == gone).values(outcome="retired")
                    tx.connection.execute(query)

        report = many.run(self.meanwhile(f"{gone}/overview", choose_anew)).run(4)
        assert (report.counts, report.done, report.failed) == ({"ready": 19, "chain_gone": 1}, True, ())
        assert many.rows(Task, "outcome", chain_id=gone) == []

    def test_a_chain_that_goes_before_it_is_read_is_skipped(self, many: TaskWorld) -> None:
        first, *_, last = (unit.chain_id for unit in many.run(FakeModel()).pending().units)

        def choose_anew() -> None:
            with many.store.transaction() as tx:
                tx.delete(Chain, id=last)

        report = many.run(self.meanwhile(f"{first}/overview", choose_anew)).run(1)
        assert (report.counts, report.done) == ({"ready": 19, "chain_gone": 1}, True)
        assert last not in {unit.chain_id for unit in many.run(FakeModel()).pending().units}

    @pytest.mark.parametrize("error", [None, EndpointUnreachable("down"), ValueError("a defect")])
    def test_a_task_that_another_run_ended_stands(self, world: TaskWorld, error: Exception | None) -> None:
        theirs = TaskDraft(world.chains[0], "ready", overview="theirs", stages=(StageQuery(1, "ready", query="q"),))

        def end_it() -> None:
            with world.store.transaction() as tx:
                write_draft(tx, theirs, model="other", prompts={})

        model = self.meanwhile(f"{world.chains[0]}/overview", end_it, error or {"overview": OVERVIEW})
        model.answer = _instead(model.answer, good_answer)
        report = world.run(model).run()
        assert stored(world)["draft"] == theirs
        assert (report.counts, report.done) == ({"task_superseded": 1}, True)

    def test_a_second_run_on_the_same_database_passes_over_what_the_first_has_and_pays_nothing(
        self, world: TaskWorld
    ) -> None:
        second = FakeModel()

        def begin() -> None:
            report = world.run(second).run()
            assert (report.counts, report.done) == ({"taken": 1}, False)

        model = self.meanwhile(f"{world.chains[0]}/overview", begin, {"overview": OVERVIEW})
        model.answer = _instead(model.answer, good_answer)
        assert world.run(model).run().counts == {"ready": 1}
        assert second.asked == []
        assert world.run(second).run().standing == 1, "the lock is free again"


def _instead(answer: Any, otherwise: Any) -> Any:
    return lambda request: answer(request) if request.purpose == "overview" else otherwise(request)


class TestDefects:
    def test_a_defect_on_one_chain_is_named_and_ends_no_other(self, many: TaskWorld) -> None:
        broken = f"{many.chains[4]}/1"

        def answer(request: Request) -> Any:
            error = ValueError(f"no such thing as {DRAWN_TOKEN}\nat all")
            return error if request.subject == broken and request.purpose == "query" else crowd_answer(request)

        report = many.run(FakeModel(answer)).run(2)
        assert (report.counts, report.done, len(report.failed)) == ({"ready": 19, "defect": 1}, False, 1)
        ((outcome, reason),) = many.rows(Task, "outcome", "reason", chain_id=many.chains[4])
        assert outcome == "defect" and re.fullmatch(
            r"ValueError: no such thing as \[redacted\] at all \(models\.py:\d+\)", reason
        )
        assert many.run(FakeModel(crowd_answer)).run().counts == {"ready": 1}

    def test_a_row_that_cannot_be_read_fails_its_own_task_alone(self, world: TaskWorld) -> None:
        world.run(failing("plan", EndpointUnreachable("down"), position=3)).run()
        with world.store.transaction() as tx:
            tx.connection.execute(text("UPDATE task_stages SET findings = '{broken' WHERE position = 1"))
        report = world.run(FakeModel()).run()
        assert report.counts == {"row_unreadable": 1} and "task_stages.findings" in (report.results[0].reason or "")
        assert len(world.rows(TaskStage, "position")) == 3, "what was paid for stays"
